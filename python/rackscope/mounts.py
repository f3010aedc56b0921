"""Mounts and control groups of a process, as /proc tells them, and the disks below a mount."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_MOST_LAYERS = 16


@dataclass(frozen=True)
class Mount:
    """One line of ``/proc/self/mountinfo`` (proc_pid_mountinfo(5))."""

    device: str
    mount_point: str
    options: str
    file_system: str
    source: str
    root: str = "/"
    super_options: str = ""


def read_mounts(mountinfo: str) -> tuple[Mount, ...]:
    """Every well-formed line, in the order of the file."""
    mounts = []
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        left, right = before.split(" "), after.split(" ")
        if not separator or len(left) < 6 or len(right) < 2:
            continue
        root, point, source = (_unescape(text) for text in (left[3], left[4], right[1]))
        super_options = right[2] if len(right) > 2 else ""
        mounts.append(Mount(left[2], point, left[5], right[0], source, root, super_options))
    return tuple(mounts)


def read_memberships(cgroup: str) -> dict[str, str]:
    """Path by controller of ``/proc/PID/cgroup`` (cgroups(7)); the unified hierarchy's is under the empty name."""
    paths: dict[str, str] = {}
    for line in cgroup.splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            paths.update(dict.fromkeys(parts[1].split(","), parts[2]))
    return paths


def whole_disks(block: Path, depth: int = 0) -> tuple[str, ...]:
    """Follow a partition to its disk and a layer (dm, md) to what it lies on."""
    if (block / "partition").exists():
        block = block.parent
    try:
        below = sorted((block / "slaves").iterdir())
    except OSError:
        below = []
    if not below or depth >= _MOST_LAYERS:
        return (block.name,)
    names: list[str] = []
    for entry in below:
        names.extend(whole_disks(entry.resolve(), depth + 1))
    return tuple(dict.fromkeys(names))


def _unescape(text: str) -> str:
    """Spaces and the like are written as octal: ``\\040``."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
