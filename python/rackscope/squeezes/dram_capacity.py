"""DRAM capacity: a lower memory limit of the system's control group, never so low that something must be killed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Achieved, Applied, Capacity, NotSqueezable, Resource, Squeeze, Subject
from rackscope.squeezes.groups import Group, group_folders, group_of, require
from rackscope.squeezes.held import Change, hold, read_integer
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.loads import fill_page_cache
from rackscope.squeezes.memory_use import MemoryUse, limit_text, read_memory_use, usage_file
from rackscope.squeezes.verifying import TOLERANCE, judge
from rackscope.units import format_bytes

#: Left above what cannot be taken back: a system grows while it is squeezed, and pages are charged in batches.
_MARGIN_SHARE, _MARGIN_BYTES = 0.1, 16 << 20
#: More than this is not filled in half a second.
_MOST_TO_FILL_BYTES = 512 << 20
_TRIAL_BYTES = 192 << 20
_FILL_SECONDS = 1.0


class DramCapacity(Squeeze):
    """``memory.limit_in_bytes`` (version 1), ``memory.high`` (version 2, which reclaims and slows but never kills)."""

    name = "dram_capacity"
    resource: Resource = "dram_capacity"
    description = "less memory, by a limit of the control group: what has a copy on disk is given up first"
    #: Reclaim happens in the write itself; what was given up must be missed before it is felt.
    settle_seconds = 0.6

    def __init__(self, root: Path = Path("/")) -> None:
        """``root`` is where /proc is looked for."""
        self._root = root

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        """The group's limit, or what it uses and what is available beyond that."""
        found = self._read(subject)
        if isinstance(found, NotSqueezable):
            return found
        _, use = found
        available = None if use.available_bytes is None else use.used_bytes + use.available_bytes
        if use.limit_bytes is not None and (available is None or use.limit_bytes <= available):
            value, source = use.limit_bytes, "the memory limit of its control group"
        elif available is not None:
            value, source = available, "what the system uses and what is available beyond that"
        else:
            return NotSqueezable("how much memory there is cannot be told", "MemAvailable in /proc/meminfo")
        needed = _least_bytes(use)
        if needed >= value:
            return NotSqueezable(
                f"{format_bytes(use.fixed_bytes)} of the {format_bytes(value)} cannot be reclaimed (no swap)",
                "swap, or a system that keeps files in memory",
            )
        return Capacity(float(value), "bytes", source, max(0.05, needed / value))

    def apply(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        """See the base class. Less than the floor is refused: the kernel would have to kill the system."""
        capacity = require(self.capacity(subject), self.name)
        group = require(group_of(subject.isolation, "memory"), self.name)
        if fraction < capacity.floor:
            raise SqueezeError(
                f"{self.name}: {fraction:.1%} of {format_bytes(capacity.value)} is less than the system must keep "
                f"({capacity.floor:.1%})",
                "Ask for a larger fraction.",
            )
        return hold(self.name, _changes(group, int(capacity.value * fraction)), journal)

    def verify(self, subject: Subject, fraction: float, journal: Journal) -> Achieved:
        """Pages of a file, touched in the group, until the limit gives some up.

        The file has no blocks: its pages cost memory and no disk. A limit that is too far away to be reached in half a
        second is tried nearer, a little above what is in use, which takes nothing from the system.
        """
        capacity = require(self.capacity(subject), self.name)
        group, use = require(self._read(subject), self.name)
        limit = int(capacity.value * fraction)
        with self.apply(subject, fraction, journal):
            kept = read_integer(group.folder / _limit_name(group))
        if kept is None or abs(kept / limit - 1) > TOLERANCE:
            return Achieved(None, f"the kernel keeps a limit of {kept} bytes instead of {limit}", effective=False)
        if subject.folder is None:
            return Achieved(
                None, f"the kernel keeps {format_bytes(kept)}; there is no folder to try it", effective=True
            )
        trial, what = limit, f"of a limit of {format_bytes(limit)}"
        if limit - use.used_bytes > _MOST_TO_FILL_BYTES:
            trial = min(limit, max(use.used_bytes + _TRIAL_BYTES, _least_bytes(use)))
            what = f"of a trial limit of {format_bytes(trial)} ({format_bytes(limit)} are too many to fill)"
        with hold(self.name, _changes(group, trial), journal):
            missing = trial - (read_integer(usage_file(group)) or 0)
            touched, used = _fill(subject.folder, group_folders(subject, "memory"), missing, usage_file(group))
        if used < trial * (1 - TOLERANCE):
            why = "not enough was touched in time" if touched < missing else "files there cost the group no memory"
            return Achieved(None, f"the kernel keeps {format_bytes(kept)}; {why} to try it", effective=True)
        return judge(used / trial * fraction, fraction, f"touching more left {format_bytes(used)} {what}")

    def _read(self, subject: Subject) -> tuple[Group, MemoryUse] | NotSqueezable:
        group = group_of(subject.isolation, "memory")
        if isinstance(group, NotSqueezable):
            return group
        use = read_memory_use(group, self._root)
        if use is None or not (group.folder / _limit_name(group)).exists():
            return NotSqueezable(f"{group.folder} has no memory limit", "the 'memory' controller")
        return group, use


def _least_bytes(use: MemoryUse) -> int:
    return int(use.fixed_bytes * (1 + _MARGIN_SHARE)) + _MARGIN_BYTES


def _limit_name(group: Group) -> str:
    return "memory.limit_in_bytes" if group.version == 1 else "memory.high"


def _changes(group: Group, limit_bytes: int) -> list[Change]:
    name = _limit_name(group)
    changes = [Change(group.folder / name, str(limit_bytes), limit_text(group, name))]
    killer = group.folder / "memory.oom_control"
    if group.version == 1 and os.access(killer, os.W_OK):
        # Before the limit, and given back after it: whoever finds no memory in between waits instead of being killed.
        disabled = "oom_kill_disable 1" in killer.read_text()
        changes.insert(0, Change(killer, "1", "1" if disabled else "0"))
    return changes


def _fill(folder: Path, groups: list[Path], missing_bytes: int, usage: Path) -> tuple[int, int]:
    """Bytes touched, and bytes in use after that."""
    size = int(max(missing_bytes, 0) * 1.2) + (16 << 20)
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".rackscope-verify-") as file:
            file.truncate(size)
            return fill_page_cache(groups, Path(file.name), size, usage, _FILL_SECONDS)
    except OSError as error:
        raise SqueezeError(f"no file to touch can be made in {folder}: {error.strerror}") from error


SQUEEZES = (DramCapacity(),)
