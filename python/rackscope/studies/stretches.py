"""One stretch of load: asked for, measured, and looked at for what the generator or the host did to it."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.studies.bounds import QUANTILES
from rackscope.studies.quiet import behind_the_generator

if TYPE_CHECKING:
    from rackscope.runs.session import Session
    from rackscope.workloads import PhasePlan

#: A system whose cores were busy for this share of a stretch has no more to give.
_BUSY_RATIO = 0.9
#: user, nice, system: what tasks took; interrupts are charged to whoever was there.
_TASK_STATES = (0, 1, 2)
_STEAL_STATE = 7


@dataclass(frozen=True)
class Stretch:
    """What one stretch gave. Response times are from the intended start; ``offered_per_second`` is ``None`` in a
    closed loop. What could not be read is ``None``."""

    offered_per_second: float | None
    achieved_per_second: float
    duration_seconds: float
    operations: int
    response_seconds: Mapping[str, float | None]
    mean_seconds: float | None
    service_p99_seconds: float | None
    lag_p99_seconds: float | None
    generator_idle_ratio: float | None
    system_busy_ratio: float | None
    steal_ratio: float | None = None
    others_cores: float | None = None
    errors: int = 0
    #: Repetition under which its rows are in the run directory.
    number: int = 0

    @property
    def offered_met(self) -> bool:
        """Whether as many were answered as were asked for, but for what Poisson arrivals vary by."""
        if self.offered_per_second is None:
            return True
        chance = 3 / max(self.offered_per_second * self.duration_seconds, 1.0) ** 0.5
        least = min(packaged_thresholds().limit("generator.offered_met"), 1 - chance)
        return bool(self.achieved_per_second >= least * self.offered_per_second)

    @property
    def generator_full(self) -> bool:
        """Whether the load generator had as good as no time left: it could not have asked for more."""
        idle = self.generator_idle_ratio
        return idle is not None and idle < packaged_thresholds().limit("generator.idle_minimum")

    @property
    def system_full(self) -> bool:
        """Whether the system had used up its cores."""
        return self.system_busy_ratio is not None and self.system_busy_ratio >= _BUSY_RATIO

    @property
    def disturbance(self) -> str:
        """What was taken from the host while it lasted, in words; empty when nothing was seen.

        Judged by what others took alone, never by the result: leaving out bad results would flatter.
        """
        limit = packaged_thresholds().limit
        if self.steal_ratio is not None and self.steal_ratio > limit("steal.doubt"):
            return "the hypervisor gave the cores to others"
        if self.others_cores is not None and self.others_cores > limit("others.cores"):
            return "other programs ran"
        return ""


class Load(Protocol):
    """Something that stretches of load can be asked of."""

    def closed(self, seconds: float, activity: str) -> Stretch:
        """As fast as the system answers."""
        ...

    def open(self, rate_per_second: float, seconds: float, activity: str) -> Stretch:
        """At a rate, with Poisson arrivals."""
        ...


class SessionLoad:
    """Stretches of one stage in a session that is under way."""

    def __init__(self, session: Session, stage: PhasePlan) -> None:
        self._session = session
        self._stage = stage
        self._number = 0

    def closed(self, seconds: float, activity: str) -> Stretch:
        """As fast as the system answers. Raises RackscopeError when it broke."""
        return self._measure({"kind": "closed"}, seconds, activity)

    def open(self, rate_per_second: float, seconds: float, activity: str) -> Stretch:
        """At a rate, with Poisson arrivals. Raises RackscopeError when it broke."""
        loop = {"kind": "open", "arrivals": "poisson", "rate_per_second": rate_per_second}
        return self._measure(loop, seconds, activity)

    def _measure(self, loop: Mapping[str, Any], seconds: float, activity: str) -> Stretch:
        self._number += 1
        before = _ticks()
        own_before = _own_cpu_seconds()
        with behind_the_generator():
            row = self._session.phase(self._stage, loop, seconds, self._number, activity=activity)
        cores = len(self._session.prepared.placement.system)
        steal, others = _taken(before, _ticks(), _own_cpu_seconds() - own_before, row["system_cpu_seconds"])
        return replace(stretch_of(row, cores, steal, others), number=self._number)


def stretch_of(
    row: Mapping[str, Any], cores: int, steal_ratio: float | None = None, others_cores: float | None = None
) -> Stretch:
    """A row of ``results.parquet`` as a stretch; ``cores`` is how many the system had."""
    duration, used = row["duration_seconds"], row.get("system_cpu_seconds")
    return Stretch(
        offered_per_second=row.get("offered_operations_per_second"),
        achieved_per_second=row["throughput_operations_per_second"] or 0.0,
        duration_seconds=duration,
        operations=row["operations"],
        response_seconds={name: row.get(column) for name, (column, _) in QUANTILES.items()},
        mean_seconds=row.get("response_mean_seconds"),
        service_p99_seconds=row.get("service_p99_seconds"),
        lag_p99_seconds=row.get("lag_p99_seconds"),
        generator_idle_ratio=row.get("generator_idle_ratio"),
        system_busy_ratio=used / duration / cores if used is not None and duration > 0 and cores else None,
        steal_ratio=steal_ratio,
        others_cores=others_cores,
        errors=row.get("errors") or 0,
    )


def _ticks(root: Path = Path("/")) -> list[int] | None:
    try:
        first = (root / "proc/stat").read_text(encoding="ascii").partition("\n")[0].split()
    except OSError:
        return None
    return [int(part) for part in first[1:]] if len(first) > _STEAL_STATE + 1 else None


def _own_cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _taken(
    before: list[int] | None, after: list[int] | None, own_seconds: float, system_seconds: float | None
) -> tuple[float | None, float | None]:
    """Share of the cores' time stolen, and cores used by neither the system nor rackscope."""
    if before is None or after is None:
        return None, None
    passed = [late - early for early, late in zip(before, after, strict=True)]
    total = sum(passed[: _STEAL_STATE + 1])
    if total <= 0:
        return None, None
    hertz = os.sysconf("SC_CLK_TCK")
    cores = os.cpu_count() or 1
    steal = passed[_STEAL_STATE] / total
    if system_seconds is None:
        return steal, None
    others = sum(passed[state] for state in _TASK_STATES) / hertz - own_seconds - system_seconds
    return steal, max(0.0, others / (total / hertz / cores))
