"""What gives a resource back: small, idempotent, and kept in a file so that another process can do it."""

from __future__ import annotations

import errno
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

from rackscope.errors import UsageError
from rackscope.process_identity import process_start_ticks
from rackscope.squeezes.removal import remove_control_group, remove_link, write_control
from rackscope.units import parse_cores

#: Where a squeeze changes anything. A journal that names other paths is not obeyed.
ROOTS: tuple[Path, ...] = (
    Path("/sys/fs/cgroup"),
    Path("/sys/devices/system/cpu"),
    Path("/sys/fs/resctrl"),
)
#: The kernel takes 15 bytes (IFNAMSIZ less the zero); these are the characters that link names are made of.
_LINK_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")
#: What a control group that is gone answers: nothing is left to undo.
_GONE = (errno.ENOENT, errno.ENODEV)


class Undo(ABC):
    """One step that gives something back. Doing it twice is doing it once."""

    kind: ClassVar[str]
    #: What it gives back, in a few words around its fields.
    gives_back: ClassVar[str]

    @abstractmethod
    def perform(self) -> None:
        """Do it; what is already gone counts as done. Raises OSError, or SqueezeError."""

    @abstractmethod
    def refusal(self, roots: Iterable[Path]) -> str | None:
        """Why it must not be done, because it names something that no squeeze changes; ``None`` if it may be."""

    def describe(self) -> str:
        """What it gives back, in a few words."""
        return self.gives_back.format(**vars(self))


@dataclass(frozen=True)
class _AtPath(Undo):
    """A step that changes something at ``path``, which must be in a folder of limits or groups."""

    path: Path

    def refusal(self, roots: Iterable[Path]) -> str | None:
        if not self.path.is_absolute() or ".." in self.path.parts:
            return f"{self.path} is not a plain absolute path"
        # Controllers and frequency policies are reached through links, which must not lead elsewhere.
        real = self.path.parent.resolve() / self.path.name
        for root in roots:
            if self.path != root and real != root.resolve() and real.is_relative_to(root.resolve()):
                return None
        return f"{self.path} is not where squeezes change anything"


@dataclass(frozen=True)
class RestoreFile(_AtPath):
    """Write ``content`` to a file of the kernel's, which holds a limit."""

    content: str
    kind: ClassVar[str] = "restore_file"
    gives_back: ClassVar[str] = "{path}"

    def perform(self) -> None:
        """Never creates the file: a limit whose group is gone is gone with it."""
        try:
            write_control(self.path, self.content)
        except OSError as error:
            if error.errno not in _GONE:
                raise


@dataclass(frozen=True)
class RemoveControlGroup(_AtPath):
    """Remove a control group that was made for a system, and the parent folder when that is empty."""

    kind: ClassVar[str] = "remove_control_group"
    gives_back: ClassVar[str] = "control group {path}"

    def perform(self) -> None:
        if self.path.exists():
            remove_control_group(self.path)


@dataclass(frozen=True)
class RemoveResctrlGroup(_AtPath):
    """Remove a resctrl group that was made for a system; its tasks fall back to the default group (resctrl.rst)."""

    kind: ClassVar[str] = "remove_resctrl_group"
    gives_back: ClassVar[str] = "resctrl group {path}"

    def perform(self) -> None:
        """Only the folder: the kernel keeps what is in it, and moves the tasks."""
        with suppress(FileNotFoundError):
            self.path.rmdir()

    def refusal(self, roots: Iterable[Path]) -> str | None:
        if not self.path.name.startswith("rackscope-"):
            return f"{self.path} is not a group of rackscope's"
        return super().refusal(roots)


@dataclass(frozen=True)
class RemoveLink(Undo):
    """Remove a network link (one end of a veth) that was made for a system."""

    name: str
    kind: ClassVar[str] = "remove_link"
    gives_back: ClassVar[str] = "network link {name}"

    def perform(self) -> None:
        if Path("/sys/class/net", self.name).exists():
            remove_link(self.name)

    def refusal(self, roots: Iterable[Path]) -> str | None:
        del roots
        if not _LINK_NAME.fullmatch(self.name):
            return f"{self.name!r} is not a valid name of a network link"
        if Path("/sys/class/net", self.name, "device").exists():
            return f"{self.name} is a hardware device, which no squeeze creates"
        return None


@dataclass(frozen=True)
class RestoreAffinity(Undo):
    """Let all threads of a process run on ``cores`` again; ``start_ticks`` tells it from a later one of its number."""

    pid: int
    start_ticks: int
    cores: str
    kind: ClassVar[str] = "restore_affinity"
    gives_back: ClassVar[str] = "cores of process {pid}"

    def perform(self) -> None:
        """Threads that have ended need nothing."""
        if process_start_ticks(self.pid) != self.start_ticks:
            return
        cores = parse_cores(self.cores)
        for entry in Path(f"/proc/{self.pid}/task").iterdir():
            with suppress(ProcessLookupError):
                os.sched_setaffinity(int(entry.name), cores)

    def refusal(self, roots: Iterable[Path]) -> str | None:
        del roots
        try:
            parse_cores(self.cores)
        except UsageError as error:
            return error.what
        return None


_KINDS = {one.kind: one for one in (RestoreFile, RemoveControlGroup, RemoveResctrlGroup, RemoveLink, RestoreAffinity)}
#: Types of fields, all of which are text in the file.
_TYPES: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "Path": Path}


def undo_to_json(undo: Undo) -> dict[str, str]:
    """What ``undo_from_json`` reads."""
    return {"kind": undo.kind} | {name: str(value) for name, value in vars(undo).items()}


def undo_from_json(content: Mapping[str, Any]) -> Undo:
    """The step that was kept. Raises KeyError, ValueError or TypeError for anything else."""
    values = {name: value for name, value in content.items() if name != "id"}
    if not all(isinstance(value, str) and "\0" not in value for value in values.values()):
        raise TypeError("a step whose values are not text")
    kind = _KINDS[values["kind"]]
    step: Undo = kind(**{one.name: _TYPES[str(one.type)](values[one.name]) for one in fields(kind)})
    return step
