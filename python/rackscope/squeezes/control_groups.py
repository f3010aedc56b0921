"""Control groups of both versions: this process's, and one below (cgroup-v1/, cgroup-v2.rst, cgroups(7))."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from rackscope.mounts import Mount, read_memberships, read_mounts
from rackscope.squeezes.held import Changes
from rackscope.squeezes.removal import PARENT_NAME, write_control
from rackscope.squeezes.undo import RemoveControlGroup, RestoreFile

Version = Literal[1, 2]
#: The controllers whose limits are squeezes, by the names that they have in each version.
CONTROLLERS: Mapping[Version, tuple[str, ...]] = {
    1: ("cpu", "cpuset", "memory", "blkio"),
    2: ("cpu", "cpuset", "memory", "io"),
}
#: What is missing, by any name, where there are no control groups.
_ALL_CONTROLLERS = tuple(dict.fromkeys((*CONTROLLERS[1], *CONTROLLERS[2])))
#: Without these a v1 cpuset takes no process in (cgroup-v1/cpusets.rst, 1.4).
_CPUSET_FILES = ("cpuset.cpus", "cpuset.mems")


@dataclass(frozen=True)
class ControlGroup:
    """One control group: its folders by controller. In version 2 that is one folder."""

    version: Version
    folders: Mapping[str, Path]


@dataclass(frozen=True)
class OwnGroups:
    """This process's groups: its folder by controller (``missing``: why none), and how far up one may look."""

    version: Version | None
    folders: Mapping[str, Path] = field(default_factory=dict)
    mount_point: Path | None = None
    missing: Mapping[str, str] = field(default_factory=dict)


def find_own_groups(root: Path = Path("/")) -> OwnGroups:
    """Where this process stands in the host's hierarchies. Version 2 is taken where it has any controller of ours."""
    try:
        mounts = read_mounts((root / "proc/self/mountinfo").read_text(errors="replace"))
        memberships = read_memberships((root / "proc/self/cgroup").read_text(errors="replace"))
    except OSError as error:
        reason = f"this process's control groups cannot be told: {error.filename}: {error.strerror}"
        return OwnGroups(None, missing=dict.fromkeys(_ALL_CONTROLLERS, reason))
    for mount in mounts:
        if mount.file_system != "cgroup2":
            continue
        offered = _words(_below(root, mount.mount_point) / "cgroup.controllers")
        if offered.intersection(CONTROLLERS[2]):
            return _own_unified(root, mount, memberships)
    if any(mount.file_system == "cgroup" for mount in mounts):
        return _own_version_1(root, mounts, memberships)
    return OwnGroups(None, missing=dict.fromkeys(_ALL_CONTROLLERS, "no control groups are mounted here"))


def make_control_group(name: str, own: OwnGroups, changes: Changes) -> tuple[ControlGroup | None, dict[str, str]]:
    """A group ``rackscope/NAME`` below our own, and why controllers are missing. Without a journal: SqueezeError."""
    if own.version is None:
        return None, dict(own.missing)
    folders: dict[str, Path] = {}
    missing = dict(own.missing)
    if own.version == 1:
        for controller, folder in own.folders.items():
            try:
                folders[controller] = _make_version_1(controller, folder, name, changes)
            except OSError as error:
                missing[controller] = _reason(folder, error)
    else:
        _make_unified(name, own, changes, folders, missing)
    return (ControlGroup(own.version, folders) if folders else None), missing


def _own_unified(root: Path, mount: Mount, memberships: Mapping[str, str]) -> OwnGroups:
    folder = _own_folder(root, mount, memberships.get(""))
    if isinstance(folder, str):
        return OwnGroups(2, missing=dict.fromkeys(CONTROLLERS[2], folder))
    return OwnGroups(2, dict.fromkeys(CONTROLLERS[2], folder), _below(root, mount.mount_point))


def _own_version_1(root: Path, mounts: Sequence[Mount], memberships: Mapping[str, str]) -> OwnGroups:
    folders: dict[str, Path] = {}
    missing: dict[str, str] = {}
    for controller in CONTROLLERS[1]:
        mount = next(
            (one for one in mounts if one.file_system == "cgroup" and controller in one.super_options.split(",")), None
        )
        if mount is None:
            missing[controller] = f"the '{controller}' controller is not mounted here"
            continue
        folder = _own_folder(root, mount, memberships.get(controller))
        if isinstance(folder, str):
            missing[controller] = folder
        else:
            folders[controller] = folder
    return OwnGroups(1, folders, None, missing)


def _own_folder(root: Path, mount: Mount, membership: str | None) -> Path | str:
    """The folder of a group, or why there is none. In a container the mount may show only a part of the hierarchy."""
    if membership is None:
        return f"this process is in no group of the hierarchy at {mount.mount_point}"
    try:
        relative = PurePosixPath(membership).relative_to(mount.root)
    except ValueError:
        return f"this process's control group {membership} is outside of what is mounted at {mount.mount_point}"
    folder = _below(root, mount.mount_point) / relative
    return folder if folder.is_dir() else f"this process's control group {folder} is not visible here"


def _make_version_1(controller: str, own: Path, name: str, changes: Changes) -> Path:
    folder = own
    before = len(changes)
    try:
        for part in (PARENT_NAME, name):
            above, folder = folder, folder / part
            _make_unless_there(folder, changes)
            if controller == "cpuset":
                _inherit_cpuset(above, folder)
    except OSError:
        changes.try_undo_to(before)
        raise
    return folder


def _inherit_cpuset(above: Path, folder: Path) -> None:
    for file in _CPUSET_FILES:
        if not (folder / file).read_text().strip():
            write_control(folder / file, (above / file).read_text().strip())


def _make_unified(
    name: str, own: OwnGroups, changes: Changes, folders: dict[str, Path], missing: dict[str, str]
) -> None:
    """Below the nearest group, from this process's own upwards, that lets its children have all the controllers.

    A group with processes in it cannot (cgroup-v2.rst, "No Internal Process Constraint"), the root group excepted; so
    it is mostly the one above: a slice, or what systemd delegated to the user.
    """
    start = next(iter(own.folders.values()), None)
    if start is None or own.mount_point is None:
        return
    reasons: dict[str, str] = {}
    for above in [start, *start.parents]:
        if not above.is_relative_to(own.mount_point):
            break
        made = _try_unified_below(above, name, changes, reasons)
        if made:
            group, controllers = made
            folders.update(dict.fromkeys(controllers, group))
            break
    for controller in CONTROLLERS[2]:
        if controller not in folders:
            missing[controller] = reasons.get(controller, f"no group above {start} has the '{controller}' controller")


def _try_unified_below(
    above: Path, name: str, changes: Changes, reasons: dict[str, str]
) -> tuple[Path, tuple[str, ...]] | None:
    """A group below ``above`` with the controllers that it could get; ``None`` when it could get none of them."""
    before = len(changes)
    group = above / PARENT_NAME / name
    try:
        offered = [one for one in CONTROLLERS[2] if one in _words(above / "cgroup.controllers")]
        enabled = [one for one in offered if _enable(above, one, changes, reasons)]
        if enabled:
            _make_unless_there(group.parent, changes)
            # It holds no process, so it may pass on what it has.
            write_control(group.parent / "cgroup.subtree_control", " ".join(f"+{one}" for one in enabled))
            _make_unless_there(group, changes)
            return group, tuple(enabled)
    except OSError as error:
        for controller in CONTROLLERS[2]:
            reasons.setdefault(controller, _reason(above, error))
    changes.try_undo_to(before)
    return None


def _enable(above: Path, controller: str, changes: Changes, reasons: dict[str, str]) -> bool:
    """Let the children of ``above`` have the controller, where they do not yet."""
    file = above / "cgroup.subtree_control"
    if controller in _words(file):
        return True
    changes.record(RestoreFile(file, f"-{controller}"))
    try:
        write_control(file, f"+{controller}")
    except OSError as error:
        changes.forget_last()
        reasons.setdefault(controller, _reason(above, error))
        return False
    return True


def _reason(folder: Path, error: OSError) -> str:
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return f"no control group may be made below {folder} ({error.strerror}): it takes root, or a delegated group"
    if error.errno == errno.EBUSY:
        return f"{folder} holds processes, so that groups below it get no controllers (no internal processes)"
    return f"no control group can be made below {folder}: {error.strerror or error}"


def _make_unless_there(folder: Path, changes: Changes) -> None:
    if not folder.is_dir():
        changes.record(RemoveControlGroup(folder))
        _make_folder(folder)


def _make_folder(path: Path) -> None:
    path.mkdir(exist_ok=path.name == PARENT_NAME)


def _below(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _words(file: Path) -> frozenset[str]:
    try:
        return frozenset(file.read_text(encoding="ascii", errors="replace").split())
    except OSError:
        return frozenset()
