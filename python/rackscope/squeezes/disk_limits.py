"""Disk limits of control groups, by device (cgroup-v1/blkio-controller.rst; cgroup-v2.rst, "IO Interface Files")."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from rackscope.squeezes.groups import Group
from rackscope.squeezes.held import Change, read_text, with_parents

Direction = Literal["read", "write"]
Kind = Literal["bps", "iops"]


def limit_file(group: Group, kind: Kind, direction: Direction) -> Path:
    """Where the limit is written."""
    name = f"blkio.throttle.{direction}_{kind}_device" if group.version == 1 else "io.max"
    return group.folder / name


def tightest_limit(group: Group, device: str, kind: Kind, direction: Direction) -> int | None:
    """The least that the group has to keep to; ``None`` where nothing limits it."""
    own = limit_file(group, kind, direction)
    # In version 1 a group does not feel what is set above it.
    paths = [own] if group.version == 1 else with_parents(group.folder, own.name)
    limits = [_own_limit(path, group.version, device, kind, direction) for path in paths]
    return min((limit for limit in limits if limit is not None), default=None)


def limit_changes(group: Group, device: str, kind: Kind, limits: Mapping[Direction, int]) -> list[Change]:
    """What to write so that the group gets no more, and what to write to have it as it was."""
    before = {
        direction: _own_limit(limit_file(group, kind, direction), group.version, device, kind, direction)
        for direction in limits
    }
    if group.version == 1:
        return [
            Change(limit_file(group, kind, direction), f"{device} {limit}", f"{device} {before[direction] or 0}")
            for direction, limit in limits.items()
        ]
    keys: dict[Direction, str] = {direction: f"{direction[0]}{kind}" for direction in limits}
    wanted = " ".join(f"{keys[direction]}={limit}" for direction, limit in limits.items())
    restored = " ".join(f"{keys[direction]}={before[direction] or 'max'}" for direction in limits)
    return [Change(group.folder / "io.max", f"{device} {wanted}", f"{device} {restored}")]


def _own_limit(path: Path, version: Literal[1, 2], device: str, kind: Kind, direction: Direction) -> int | None:
    for line in (read_text(path) or "").splitlines():
        words = line.split()
        if not words or words[0] != device:
            continue
        if version == 1:
            values = words[1:2]
        else:
            key = f"{direction[0]}{kind}="
            values = [word.removeprefix(key) for word in words[1:] if word.startswith(key)]
        # "max" is none; so is a number that was never set.
        return int(values[0]) if values and values[0].isdigit() and int(values[0]) else None
    return None
