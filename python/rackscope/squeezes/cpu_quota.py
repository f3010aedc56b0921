"""CPU quotas of control groups: microseconds in every period (sched-bwc.rst; cgroup-v2.rst, "CPU Interface Files")."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rackscope.squeezes.held import Change, read_integer, read_text, with_parents

#: Of the quotas set here. The kernel's own 100 ms would let a window of half a second hold four periods or five.
PERIOD_MICROSECONDS = 10_000
#: The kernel takes no smaller quota.
SMALLEST_QUOTA_MICROSECONDS = 1_000


@dataclass(frozen=True)
class Quota:
    """``quota_microseconds`` in every ``period_microseconds``; no quota is ``None``."""

    quota_microseconds: int | None
    period_microseconds: int

    @property
    def cores(self) -> float | None:
        """How many cores it is worth."""
        return None if self.quota_microseconds is None else self.quota_microseconds / self.period_microseconds


def read_quota(group: Path, version: Literal[1, 2]) -> Quota | None:
    """The group's own; ``None`` where it has no such files."""
    if version == 1:
        quota, period = read_integer(group / "cpu.cfs_quota_us"), read_integer(group / "cpu.cfs_period_us")
        if quota is None or not period:
            return None
        return Quota(None if quota < 0 else quota, period)
    words = (read_text(group / "cpu.max") or "").split()
    if len(words) != 2 or not words[1].isdigit() or not int(words[1]):
        return None
    return Quota(int(words[0]) if words[0].isdigit() else None, int(words[1]))


def tightest_quota_cores(group: Path, version: Literal[1, 2]) -> float | None:
    """The least that this group or one above it leaves; ``None`` where none of them has a quota."""
    name = "cpu.cfs_quota_us" if version == 1 else "cpu.max"
    quotas = [read_quota(path.parent, version) for path in with_parents(group, name)]
    return min((quota.cores for quota in quotas if quota is not None and quota.cores is not None), default=None)


def quota_changes(group: Path, version: Literal[1, 2], cores: float) -> list[Change]:
    """What to write so that the group gets ``cores``, and what to write to have it as it was.

    A group that has a quota keeps its period: between two writes of version 1 it would be given far too much.
    Raises ValueError for less than the kernel lets one ask for.
    """
    before = read_quota(group, version)
    had_quota = before is not None and before.quota_microseconds is not None
    period = before.period_microseconds if before is not None and had_quota else PERIOD_MICROSECONDS
    quota = round(cores * period)
    if quota < SMALLEST_QUOTA_MICROSECONDS:
        raise ValueError(f"{cores:.3g} cores are {quota} µs in {period} µs, and the kernel takes no less than 1000 µs")
    if version == 2:
        return [Change(group / "cpu.max", f"{quota} {period}", read_text(group / "cpu.max") or "max 100000")]
    changes = []
    if before is None or before.period_microseconds != period:
        old = before.period_microseconds if before is not None else 100_000
        changes.append(Change(group / "cpu.cfs_period_us", str(period), str(old)))
    old_quota = before.quota_microseconds if before is not None else None
    changes.append(Change(group / "cpu.cfs_quota_us", str(quota), str(-1 if old_quota is None else old_quota)))
    return changes
