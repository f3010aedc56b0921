"""How ``study transports`` measures: contenders of a group side by side, in turns, within a budget."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean
from typing import Protocol

from rackscope.analysis.wording import percent
from rackscope.errors import SystemUnderTestError
from rackscope.runs.options import Progress, ProgressCallback, RunOptions
from rackscope.runs.placement import place
from rackscope.runs.prepare import Prepared
from rackscope.runs.session import Session
from rackscope.squeezes.base import Isolation
from rackscope.squeezes.isolation import make_isolation
from rackscope.squeezes.journal import Journal
from rackscope.studies.bench.figures import Figures
from rackscope.studies.bench.interference import Interference
from rackscope.studies.bench.sessions import measure_window, run_together
from rackscope.studies.bench.turns import Steps, by_turns, prepare_all, rounds_of
from rackscope.studies.transports.plan import BASE, Condition, Contender, Plan

_SAMPLE_SECONDS = 0.25
_WARM_UP_SECONDS = 0.5
_MEMORY_BYTES = 1024**3
#: Of requests over what may lose some, how many may be lost before a window is no measurement.
_LOST = 0.001

#: A window of a contender: in a closed loop, or at a rate; the words say what it is. Raises RackscopeError.
Measure = Callable[[str, Condition, float | None, str], Figures]
#: What is done with those that could be started.
Work = Callable[[Sequence[str], Measure], None]


@dataclass
class Outcome:
    interference: Interference
    #: One a round.
    closed: dict[tuple[str, Condition], list[Figures]] = field(default_factory=dict)
    #: By contender and load (a fraction of its best), one a round.
    loaded: dict[tuple[str, float], list[Figures]] = field(default_factory=dict)
    #: What was measured, the contender, and why it was not.
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Cores of the server and of the client, by how many workers the server has.
    cores: dict[int, tuple[Sequence[int], Sequence[int]]] = field(default_factory=dict)

    def best(self, name: str) -> float | None:
        """The throughput that loads are fractions of."""
        rates = [one.rate for one in self.closed.get((name, BASE), [])]
        return mean(rates) if rates else None


def placed(workers: int, usable: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Cores of a server with so many workers and of its client; None where there are too few.

    With as many cores as workers the client shares them all: a client on one of them would slow one worker alone.
    """
    if workers > len(usable):
        return None
    if workers == len(usable) > 1:
        return tuple(usable), tuple(usable)
    placement = place(usable, tuple(usable[:workers]))
    return placement.system, placement.client


class Starts(Protocol):
    """What starts contenders and measures them while they are up."""

    def cores(self, workers: int) -> tuple[Sequence[int], Sequence[int]] | None:
        """Of a server with so many workers and of its client; None where there are too few."""

    def side_by_side(self, contenders: Sequence[Contender], work: Work) -> dict[str, str]:
        """Start them, do ``work`` and stop them; those that could not be, each with the reason."""


@dataclass
class Bench:
    """Starts contenders, each in a run directory of its own."""

    options: RunOptions
    plan: Plan
    member: Callable[[str, str], Path]
    progress: ProgressCallback
    interference: Interference
    usable: Sequence[int] = field(default_factory=lambda: sorted(os.sched_getaffinity(0)))
    number: int = 0

    def cores(self, workers: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        return placed(workers, self.usable)

    def side_by_side(self, contenders: Sequence[Contender], work: Work) -> dict[str, str]:
        """Start them, do ``work`` and stop them; those that could not be, each with the reason."""
        failures: dict[str, str] = {}
        by_name = {one.name: one for one in contenders}

        @contextlib.contextmanager
        def open_session(name: str, prepared: Prepared) -> Iterator[Session]:
            folder = self.member(name, by_name[name].words)
            words = f"starting {name}"
            with _network(by_name[name], prepared) as isolation:
                yield Session(prepared, lambda step: self.progress(replace(step, activity=words)), folder, isolation)

        def measured(sessions: Mapping[str, Session]) -> None:
            def measure(name: str, condition: Condition, rate: float | None, activity: str) -> Figures:
                return self._window(sessions[name], by_name[name], condition, rate, activity)

            work(list(sessions), measure)

        asked = {}
        for one in contenders:
            cores = self.cores(one.workers)
            if cores is None:
                failures[one.name] = f"it takes {one.workers} cores, and this process may use {len(self.usable)}"
            else:
                asked[one.name] = run_options(self.options, one, self.plan.keys, cores)
        run_together(prepare_all(asked, failures), open_session, self.progress, measured, failures)
        return failures

    def _window(
        self, session: Session, contender: Contender, condition: Condition, rate: float | None, activity: str
    ) -> Figures:
        stage = replace(
            session.prepared.plan.stages[0],
            name=condition.name,
            operations=condition.operations,
            distribution=condition.distribution,
        )
        self.number += 1
        lost = _LOST if contender.loses else 0.0
        return measure_window(
            session, stage, rate, self.plan.seconds, self.number, activity, self.interference, lost_ratio_max=lost
        )


@contextlib.contextmanager
def _network(contender: Contender, prepared: Prepared) -> Iterator[Isolation | None]:
    """A network namespace, for one that is reached over a veth. Raises SystemUnderTestError where none can be made.

    Without the control groups: on a busy host one in a group of its own would get more of a core than the others.
    """
    queues = prepared.system.interface_queues(prepared.knobs.values, contender.connections)
    if not contender.over_veth and queues is None:
        yield None
        return
    with Journal() as journal, make_isolation("transports", journal, queues=queues) as isolation:
        if isolation.network_namespace is None:
            raise SystemUnderTestError(f"it needs a network namespace: {isolation.missing['network']}", "Run as root.")
        yield replace(isolation, control_groups={}, cgroup_version=None)


def run_options(
    options: RunOptions, contender: Contender, keys: int, cores: tuple[tuple[int, ...], tuple[int, ...]]
) -> RunOptions:
    """A run of the contender with a worker on each of its cores."""
    knobs = {"memory": str(_MEMORY_BYTES), "threads": str(contender.workers), **contender.knobs}
    return replace(
        options,
        system=contender.system,
        settings={**contender.parameters(keys), **knobs},
        connections=contender.connections,
        endpoint_kind=contender.endpoint_kind,
        cores=cores[0],
        client_cores=cores[1],
        warm_up_seconds=_WARM_UP_SECONDS,
        sample_interval_seconds=_SAMPLE_SECONDS,
        repetitions=1,
    )


def carry_out(
    plan: Plan,
    bench: Starts,
    outcome: Outcome,
    steps: Steps,
    save: Callable[[], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Transports, latency over load, then modes; ``outcome`` holds what there is, whatever ends this."""
    end = clock() + plan.budget_seconds
    # A part of the budget for each, after how many windows it has.
    weights = {"transports": 3 * len(plan.transports), "loads": len(plan.loads) * len(plan.transports)}
    weights["modes"] = 3 * len(plan.modes)
    run = _Turns(plan, outcome, steps, save, clock, end, weights)
    for group, contenders in (("transports", plan.transports), ("modes", plan.modes)):
        if contenders:
            for one in contenders:
                if (cores := bench.cores(one.workers)) is not None:
                    outcome.cores[one.workers] = cores
            run.starting_since = clock()
            failed = bench.side_by_side(contenders, run.of(group))
            outcome.failures += [(group, name, reason) for name, reason in failed.items()]
            save()


@dataclass
class _Turns:
    """Measures those that are up, within their part of the time."""

    plan: Plan
    outcome: Outcome
    steps: Steps
    save: Callable[[], None]
    clock: Callable[[], float]
    end: float
    #: Steps that are ahead, with how much of the time each may have.
    ahead: dict[str, int]
    starting_since: float = 0.0

    def of(self, group: str) -> Work:
        def work(names: Sequence[str], measure: Measure) -> None:
            # Starting does not count: on a busy host it would leave nothing for those that come last.
            self.end += self.clock() - self.starting_since
            self._closed(group, names, measure)
            if group == "transports" and self.plan.loads:
                self._loads(names, measure)

        return work

    def _until(self, step: str) -> tuple[float, Callable[[float], None]]:
        """When a step must be over, and what tells how far all are when a part of it is done."""
        now, all_ahead = self.clock(), sum(self.ahead.values())
        part = self.ahead.pop(step) / all_ahead
        before = self.steps.fraction

        def tell(done: float) -> None:
            self.steps.fraction = before + (1 - before) * part * done

        return now + (self.end - now) * part, tell

    def _closed(self, group: str, names: Sequence[str], measure: Measure) -> None:
        until, tell = self._until(group)
        rounds = self.plan.rounds(names)

        def one(cell: tuple[str, Condition], made: int, part: float) -> None:
            tell((made + part) / len(rounds))
            activity = f"{group}, round {made + 1} of {len(rounds)}"
            self.steps(Progress(activity))
            figures = measure(*cell, None, activity)
            self.outcome.closed.setdefault(cell, []).append(figures)

        def failed(cell: tuple[str, Condition], reason: str) -> None:
            self.outcome.failures.append((cell[1].label, cell[0], reason))

        made = by_turns(rounds, until, self.clock, one, failed, self.save)
        tell(1.0)
        self._note(group, made, len(rounds))

    def _loads(self, names: Sequence[str], measure: Measure) -> None:
        until, tell = self._until("loads")
        best = {name: rate for name in names if (rate := self.outcome.best(name)) is not None}
        cells = [(name, load) for name in best for load in self.plan.loads]
        rounds = rounds_of(cells, self.plan.repetitions, self.plan.seed + 1)

        def one(cell: tuple[str, float], made: int, part: float) -> None:
            tell((made + part) / len(rounds))
            name, load = cell
            activity = f"latency over load, round {made + 1} of {len(rounds)}"
            self.steps(Progress(activity))
            figures = measure(name, BASE, load * best[name], activity)
            self.outcome.loaded.setdefault(cell, []).append(figures)

        def failed(cell: tuple[str, float], reason: str) -> None:
            self.outcome.failures.append((f"{percent(cell[1])} of its load", cell[0], reason))

        made = by_turns(rounds, until, self.clock, one, failed, self.save) if cells else len(rounds)
        tell(1.0)
        self._note("latency over load", made, len(rounds))

    def _note(self, what: str, made: int, asked: int) -> None:
        if made < asked:
            self.outcome.notes.append(f"{what}: {made} of {asked} rounds fitted into the budget.")
