"""A model of the kernel's unified control group hierarchy in a folder, for hosts that have it and rights that we lack.

It keeps the rules of cgroup-v2.rst that decide where a group can be made: a group has the controllers that the one
above enables for its children; one that holds processes cannot enable any (the root excepted); one in use is busy.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rackscope.squeezes import control_groups, removal, undo


class UnifiedKernel:
    """``mount`` stands for /sys/fs/cgroup; ``read_only`` are groups below which nothing may be changed."""

    def __init__(self, root: Path, controllers: str) -> None:
        self.mount = root / "sys/fs/cgroup"
        self.read_only: set[Path] = set()
        self.mount.mkdir(parents=True)
        self._fill(self.mount, controllers)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(control_groups, "_make_folder", self.make)
        monkeypatch.setattr(removal, "_remove_folder", self.remove)
        monkeypatch.setattr(control_groups, "write_control", self.write)
        monkeypatch.setattr(undo, "write_control", self.write)
        monkeypatch.setattr(removal, "write_control", self.write)

    def make(self, path: Path) -> None:
        if path.parent in self.read_only:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        path.mkdir()
        self._fill(path, (path.parent / "cgroup.subtree_control").read_text())

    def remove(self, path: Path) -> None:
        if (path / "cgroup.procs").read_text().split() or any(child.is_dir() for child in path.iterdir()):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        for file in path.iterdir():
            file.unlink()
        path.rmdir()

    def write(self, path: Path, text: str) -> None:
        group = path.parent
        if group in self.read_only:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if path.name == "cgroup.kill":
            (group / "cgroup.procs").write_text("")
            return
        assert path.name == "cgroup.subtree_control"
        if (group / "cgroup.procs").read_text().split() and group != self.mount:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        enabled = set(path.read_text().split())
        for word in text.split():
            name = word[1:]
            if name not in (group / "cgroup.controllers").read_text().split():
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            (enabled.add if word[0] == "+" else enabled.discard)(name)
        path.write_text(" ".join(sorted(enabled)))

    def group(self, path: str, *, enabled: str = "", members: str = "") -> Path:
        """A group with everything that the one above gives, as other programs left it."""
        folder = self.mount / path
        self.make(folder)
        (folder / "cgroup.subtree_control").write_text(enabled)
        (folder / "cgroup.procs").write_text(members)
        return folder

    @staticmethod
    def _fill(folder: Path, controllers: str) -> None:
        (folder / "cgroup.controllers").write_text(controllers)
        for name in ("cgroup.subtree_control", "cgroup.procs", "cgroup.kill"):
            (folder / name).write_text("")
