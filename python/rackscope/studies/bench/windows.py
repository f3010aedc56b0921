"""One window of load: asked for, measured, and looked at for what the generator or the host did to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from rackscope.analysis.slo_search import stalls_decide
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.runs.options import Loop
from rackscope.runs.prepare import prepare
from rackscope.runs.session import Session
from rackscope.studies.base import Conduct
from rackscope.studies.bench.bounds import QUANTILES
from rackscope.studies.bench.core_meters import CoreStalls
from rackscope.studies.bench.interference import Interference, Judge, Taken, Watch
from rackscope.studies.bench.loading import make_ready
from rackscope.studies.bench.quiet import behind_the_generator
from rackscope.workloads import PhasePlan

#: A system whose cores were busy for this share of a window has no more to give.
_BUSY_RATIO = 0.9


@dataclass(frozen=True)
class Window:
    """What one window gave, from the intended start; ``None``: not read, and the offered rate of a closed loop."""

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
    #: Fraction of the time for which the worst core was preempted.
    stall_ratio: float | None = None
    errors: int = 0
    #: Repetition under which its rows are in the run directory.
    number: int = 0

    @property
    def offered_met(self) -> bool:
        """Whether as many requests completed as were offered, within what Poisson arrivals vary by."""
        if self.offered_per_second is None:
            return True
        chance = 3 / max(self.offered_per_second * self.duration_seconds, 1.0) ** 0.5
        least = min(packaged_thresholds().limit("generator.offered_met"), 1 - chance)
        return bool(self.achieved_per_second >= least * self.offered_per_second)

    @property
    def generator_full(self) -> bool:
        """Whether the load generator was fully busy: it could not have offered more."""
        idle = self.generator_idle_ratio
        return idle is not None and idle < packaged_thresholds().limit("generator.idle_minimum")

    @property
    def system_full(self) -> bool:
        """Whether the system had used up its cores."""
        return self.system_busy_ratio is not None and self.system_busy_ratio >= _BUSY_RATIO

    def interference(self, beyond: float = 1.0) -> str:
        """What was taken from the host while it lasted, in words; empty when nothing was seen.

        ``beyond`` is the fraction of requests beyond the quantile that is asked for: a short preemption of a core
        decides what the slowest of them see. Judged only by what was taken, never by the result: that would
        hide bad results.
        """
        taken = Taken(self.steal_ratio, self.others_cores).interference
        if taken or self.stall_ratio is None:
            return taken
        return "a core was preempted" if stalls_decide(self.stall_ratio, beyond) else ""


class Load(Protocol):
    """Something that windows of load can be asked of."""

    def closed(self, seconds: float, activity: str) -> Window: ...

    def open(self, rate_per_second: float, seconds: float, activity: str) -> Window:
        """At a rate, with Poisson arrivals."""
        ...


@dataclass
class SessionLoad:
    """Windows of one stage in a session that is under way; ``stalls`` watches the cores, where stalls matter."""

    session: Session
    stage: PhasePlan
    stalls: CoreStalls | None = None
    interference: Interference | None = None
    number: int = 0

    def closed(self, seconds: float, activity: str) -> Window:
        """In a closed loop. Raises RackscopeError when it broke."""
        return self._measure(Loop(), seconds, activity)

    def open(self, rate_per_second: float, seconds: float, activity: str) -> Window:
        """At a rate, with Poisson arrivals. Raises RackscopeError when it broke."""
        loop = Loop(rate_per_second)
        return self._measure(loop, seconds, activity)

    def _measure(self, loop: Loop, seconds: float, activity: str) -> Window:
        self.number += 1
        watch = Watch()
        preempted = self.stalls.read() if self.stalls is not None else []

        def once(begin: Callable[[], Judge]) -> dict[str, Any]:
            judge = begin()
            return self.session.phase(self.stage, loop, seconds, self.number, activity=activity, discard=judge)

        with behind_the_generator(self.session):
            row = once(lambda: lambda _: "") if self.interference is None else self.interference.measure(once)
        stall_ratio = self.stalls.since(preempted) if self.stalls is not None else None
        cores = len(self.session.prepared.placement.system)
        window = window_of(row, cores, watch.taken(row["system_cpu_seconds"]))
        return replace(window, number=self.number, stall_ratio=stall_ratio)


def window_of(row: Mapping[str, Any], cores: int, taken: Taken | None = None) -> Window:
    """A row of ``results.parquet`` as a window; ``cores`` is how many the system had."""
    duration, used = row["duration_seconds"], row.get("system_cpu_seconds")
    return Window(
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
        steal_ratio=taken.steal_ratio if taken is not None else None,
        others_cores=taken.others_cores if taken is not None else None,
        errors=row.get("errors") or 0,
    )


def in_one_session(
    conduct: Conduct, work: Callable[[Load], None], interference: Interference, label: str = "windows of load"
) -> None:
    """Start, load and warm up the system, do ``work`` with windows of its first stage. Raises RackscopeError."""
    prepared = prepare(conduct.request.asked, conduct.progress)

    def body(session: Session) -> None:
        make_ready(session)
        work(SessionLoad(session, prepared.plan.stages[0], interference=interference))

    Session(prepared, conduct.progress, conduct.member("windows", label)).run(body)
