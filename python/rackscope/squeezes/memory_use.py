"""What a control group's memory is (cgroup-v1/memory.rst; cgroup-v2.rst, "Memory Interface Files")."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rackscope.squeezes.groups import Group
from rackscope.squeezes.held import read_integer, read_text, with_parents

#: An unlimited memory.limit_in_bytes reads as the largest multiple of a page that fits in 63 bits.
_UNLIMITED_BYTES = 1 << 60


@dataclass(frozen=True)
class MemoryUse:
    """Bytes; ``fixed_bytes`` cannot be reclaimed, ``limit_bytes`` is the tightest limit from the group upwards."""

    used_bytes: int
    fixed_bytes: int
    limit_bytes: int | None
    available_bytes: int | None


def read_memory_use(group: Group, root: Path = Path("/")) -> MemoryUse | None:
    """Of a group; ``None`` where it has no such files."""
    used = read_integer(usage_file(group))
    statistics = _numbers(group.folder / "memory.stat")
    if used is None or not statistics:
        return None
    host = _numbers(root / "proc/meminfo", factor=1024)
    if group.version == 1:
        names = ("total_rss", "total_shmem", "total_unevictable")
        kernel = read_integer(group.folder / "memory.kmem.usage_in_bytes") or 0
    else:
        names = ("anon", "shmem", "unevictable")
        kernel = max(statistics.get("kernel", 0) - statistics.get("slab_reclaimable", 0), 0)
    anonymous, shared, locked = (statistics.get(name, 0) for name in names)
    swappable = min(anonymous + shared, _swap_bytes(group, host))
    return MemoryUse(
        used_bytes=used,
        # What is locked is mostly anonymous, and counted among that already.
        fixed_bytes=max(anonymous + shared - swappable, locked) + kernel,
        limit_bytes=_tightest_limit(group),
        available_bytes=host.get("MemAvailable"),
    )


def usage_file(group: Group) -> Path:
    """What says how much is in use now."""
    return group.folder / ("memory.usage_in_bytes" if group.version == 1 else "memory.current")


def limit_text(group: Group, name: str) -> str:
    """What to write to a limit to have it as it is."""
    value = read_text(group.folder / name)
    if group.version == 2:
        return value or "max"
    return "-1" if value is None or int(value) >= _UNLIMITED_BYTES else value


def _tightest_limit(group: Group) -> int | None:
    names = ("memory.limit_in_bytes",) if group.version == 1 else ("memory.max", "memory.high")
    limits = [read_integer(path) for name in names for path in with_parents(group.folder, name)]
    return min((limit for limit in limits if limit is not None and limit < _UNLIMITED_BYTES), default=None)


def _swap_bytes(group: Group, host: dict[str, int]) -> int:
    """Swap that the group could use. Of version 1, whose swappiness may forbid it, none is counted on."""
    if group.version == 1:
        return 0
    limits = [read_integer(path) for path in with_parents(group.folder, "memory.swap.max")]
    return min([host.get("SwapFree", 0), *(limit for limit in limits if limit is not None)])


def _numbers(path: Path, factor: Literal[1, 1024] = 1) -> dict[str, int]:
    """``name value`` lines, also those of /proc/meminfo: ``name: value kB``."""
    pairs = (line.replace(":", " ").split() for line in (read_text(path) or "").splitlines())
    return {words[0]: int(words[1]) * factor for words in pairs if len(words) > 1 and words[1].isdigit()}
