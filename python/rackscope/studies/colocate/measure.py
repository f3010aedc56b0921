"""How ``study colocate`` measures: all workloads started, squeezed alone, then alone and in pairs on the same cores."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from rackscope.analysis.elasticity import LevelEstimate
from rackscope.errors import LoadError, RackscopeError
from rackscope.runs.options import Progress, ProgressCallback, RunOptions
from rackscope.runs.prepare import Prepared
from rackscope.runs.session import Session
from rackscope.squeezes import find_squeezes
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.provision import Limits
from rackscope.studies.bench.awake import kept_awake
from rackscope.studies.bench.core_meters import CoreSpeeds
from rackscope.studies.bench.figures import Figures, figures_of
from rackscope.studies.bench.interference import Interference, Judge
from rackscope.studies.bench.loading import make_ready
from rackscope.studies.bench.session import RAMP_SECONDS, on_the_bench
from rackscope.studies.bench.session import Bench as PressureBench
from rackscope.studies.bench.turns import Steps, SystemUse, by_turns, prepare_all, rounds_of, side_by_side
from rackscope.studies.colocate.plan import Plan, run_options
from rackscope.studies.pressure import measure as pressure
from rackscope.workloads.base import PhaseKind

#: Squeezes of what neighbours on the same cores share. They do not share reserved memory, the link of a network
#: namespace or the synthetic server's own channel.
SHARED_SQUEEZES = ("cpu_share", "last_level_cache", "dram_bandwidth", "disk_bandwidth", "disk_operations")
_DISK = ("disk_bandwidth", "disk_operations")
#: Below this a workload uses the disk too little for a neighbour to notice.
_SOME_DISK_BYTES_PER_SECOND = 100e3
#: Fraction of a window in which both of a pair must run, and how often that is tried: on a busy host one is often late.
_LEAST_OVERLAP = 0.95
_TRIALS = 12
_START_SECONDS = 30.0


@dataclass(frozen=True)
class Squeezed:
    """What squeezing showed: estimates by level, what there was of what was squeezed, reasons for the rest."""

    estimates: tuple[LevelEstimate, ...]
    capacities: Mapping[str, float]
    refused: Mapping[str, str]


class _Ended(BaseException):
    """The other of two that run at once has ended badly: this one must end, too."""


@dataclass
class Bench:
    """Systems, each in a control group of its own and a network namespace, on the same cores."""

    options: RunOptions
    plan: Plan
    member: Callable[[str, str], Path]
    progress: ProgressCallback
    interference: Interference
    #: Gets sentences on what was done to the host meanwhile.
    conditions: list[str]
    benches: dict[str, PressureBench] = field(default_factory=dict)
    speeds: CoreSpeeds | None = None
    number: int = 0

    def side_by_side(self, work: Callable[[Sequence[str]], None]) -> dict[str, str]:
        """Start all workloads, do ``work`` with those that are up, stop them; why others failed."""
        failures: dict[str, str] = {}
        waiting = prepare_all({spec.name: run_options(self.options, spec) for spec in self.plan.workloads}, failures)
        if not waiting:
            return failures
        placement = next(iter(waiting.values())).placement
        with (
            Journal() as journal,
            kept_awake(placement.system, placement.client, journal) as awake,
            CoreSpeeds(placement.system, placement.client) as self.speeds,
        ):
            self.interference.beside = awake.cpu_seconds
            self.conditions += [awake.sentence] if awake.sentence else []
            side_by_side(waiting, self._start, lambda: work(list(self.benches)) if self.benches else None, failures)
        return failures

    def _start(self, name: str, prepared: Prepared, inside: Callable[[], None]) -> None:
        def ready(bench: PressureBench) -> None:
            make_ready(bench.session)
            bench.interference = self.interference
            self.benches[name] = bench
            inside()

        spec = self.plan.workload(name)
        self.progress(Progress(f"starting {name}"))
        squeezes = [one for one in find_squeezes() if one.name in SHARED_SQUEEZES]
        limits, folder = Limits(cpu_cores=spec.cpu_cores), self.member(name, spec.label)
        on_the_bench(prepared, folder, limits, ready, self.progress, squeezes=squeezes, speeds=self.speeds)

    def squeeze(self, name: str, budget_seconds: float, uses_disk: bool, after: Callable[[Squeezed], None]) -> Squeezed:
        """Squeeze what neighbours share, one at a time, while the workload runs alone."""
        bench = self.benches[name]
        for one in _DISK if not uses_disk else ():
            bench.squeezables.pop(one, None)
        prepared = bench.session.prepared
        plan = pressure.Plan(
            fractions=self.plan.levels,
            window_seconds=min(0.4, self.plan.window_seconds),
            blocks=3,
            budget_seconds=budget_seconds,
            seed=self.plan.seed,
            seeks_slack=False,
        )

        def told(measured: pressure.MeasuredPhase) -> None:
            after(_squeezed(bench, measured))

        measured = pressure.measure_phase(bench, prepared.plan.stages[0], prepared.options.loop, plan, told)
        return _squeezed(bench, measured)

    def alone(self, name: str, seconds: float, activity: str) -> Figures:
        """A window without a neighbour. Raises RackscopeError."""
        self.number += 1
        once = partial(self._window, self.benches[name].session, seconds, activity, "measure", "measure")
        figures: Figures = self.interference.measure(once)["figures"]
        return figures

    def together(self, first: str, second: str, seconds: float, activity: str) -> tuple[Figures, Figures]:
        """A window of two at once. Raises RackscopeError."""

        def once(begin: Callable[[], Judge]) -> dict[str, Any]:
            for _ in range(_TRIALS):
                row = self._both(first, second, seconds, activity, begin)
                if row["overlap"] >= _LEAST_OVERLAP:
                    return row
            raise LoadError(f"{first} and {second} could not be measured at the same time")

        self.number += 1
        figures: tuple[Figures, Figures] = self.interference.measure(once)["figures"]
        return figures

    def _both(
        self, first: str, second: str, seconds: float, activity: str, begin: Callable[[], Judge]
    ) -> dict[str, Any]:
        """Two windows at once, the second one's in a thread; a combined row that says whether they count."""
        barrier, ended = threading.Barrier(2), threading.Event()

        def begin_together() -> Judge:
            barrier.wait(_START_SECONDS)
            return lambda _: ""

        def measure(name: str, beside: str) -> dict[str, Any]:
            session, phase = self.benches[name].session, f"measure beside {beside}"
            try:
                return self._window(session, seconds, activity, phase, "squeezed", begin_together)
            except BaseException:
                barrier.abort()
                raise

        with _checked(self.benches[second].session, ended), ThreadPoolExecutor(1) as pool:
            # Only the main thread gets Ctrl-C: what runs in the other one is told.
            judge = begin()
            other = pool.submit(measure, second, first)
            try:
                own = measure(first, second)
            except BaseException as error:
                ended.set()
                if isinstance(error, threading.BrokenBarrierError):
                    other.result()
                raise
            both = own, other.result()
        used = [row["cpu_seconds"] for row in both if row["cpu_seconds"] is not None]
        row: dict[str, Any] = {"system_cpu_seconds": sum(used) if len(used) == 2 else None}
        row["overlap"], row["figures"] = _overlap(*both), tuple(one["figures"] for one in both)
        if row["overlap"] >= _LEAST_OVERLAP:
            row["discarded"] = judge(row) or None
        return row

    def _window(
        self, session: Session, seconds: float, activity: str, name: str, kind: PhaseKind, begin: Callable[[], Judge]
    ) -> dict[str, Any]:
        """One window's row, with its figures and the CPU time of the system."""
        loop = session.prepared.options.loop
        shown = replace(session.prepared.plan.stages[0], name=name, kind=kind)
        session.ramp(shown, loop, RAMP_SECONDS)
        pid = session.system.pid
        use = SystemUse(pid, begin())
        before = disk_bytes(pid)
        row = session.phase(shown, loop, seconds, self.number, activity=activity, discard=use.discard)
        after = disk_bytes(pid)
        moved = after - before if after is not None and before is not None else None
        figures = figures_of([row], use.cpu_seconds, disk_bytes=moved)
        return {**row, "cpu_seconds": use.cpu_seconds, "figures": figures}


def disk_bytes(pid: int, root: Path = Path("/")) -> float | None:
    """What a process has had read from and written to disks so far (``io``, proc(5)); ``None`` where it is hidden."""
    try:
        lines = (root / "proc" / str(pid) / "io").read_text(encoding="ascii").splitlines()
        fields = dict(line.split(": ") for line in lines)
        return float(int(fields["read_bytes"]) + int(fields["write_bytes"]))
    except (OSError, ValueError, KeyError):
        return None


def uses_disk(figures: Sequence[Figures]) -> bool:
    """Whether a neighbour could notice what a workload does with the disk."""
    return any((one.disk_bytes_per_second or 0.0) > _SOME_DISK_BYTES_PER_SECOND for one in figures)


def _overlap(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    """Fraction of the longer window in which both ran."""
    both = min(first["end_ns"], second["end_ns"]) - max(first["start_ns"], second["start_ns"])
    longest = max(first["end_ns"] - first["start_ns"], second["end_ns"] - second["start_ns"])
    return both / longest if longest else 0.0


def _squeezed(bench: PressureBench, measured: pressure.MeasuredPhase) -> Squeezed:
    return Squeezed(
        measured.estimates,
        {name: one.capacity.value for name, one in bench.squeezables.items()},
        {name: why.reason for name, (_, why) in bench.refused.items()},
    )


@contextlib.contextmanager
def _checked(session: Session, ended: threading.Event) -> Iterator[None]:
    """Within, the session's phases end soon after ``ended`` is set: they tell their progress all the time."""
    progress = session.progress

    def check(_: Progress) -> None:
        if ended.is_set():
            raise _Ended

    session.progress = check
    try:
        yield
    finally:
        session.progress = progress


#: Share of the budget for squeezing workloads, before pairs are measured.
_SQUEEZING = 0.45
#: Windows alone before a workload is squeezed, to measure what it uses.
_FIRST_WINDOWS = 3


@dataclass(frozen=True)
class Round:
    """A pair once: each alone, and both together, one right after the other."""

    first_alone: Figures
    first: Figures
    second: Figures
    second_alone: Figures


@dataclass
class Outcome:
    interference: Interference
    #: By workload.
    alone: dict[str, list[Figures]] = field(default_factory=dict)
    squeezed: dict[str, Squeezed] = field(default_factory=dict)
    #: By pair.
    rounds: dict[tuple[str, str], list[Round]] = field(default_factory=dict)
    #: Workloads whose use was measured under interference: they would use more.
    hindered: set[str] = field(default_factory=set)
    #: Why a workload or pair is missing: its name, the reason.
    failures: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Sentences on what was done to the host meanwhile.
    conditions: list[str] = field(default_factory=list)
    #: How many cores the load generators have to themselves; ``None`` where systems use them, too.
    client_cores: int | None = None


def carry_out(
    plan: Plan,
    bench: Bench,
    outcome: Outcome,
    steps: Steps,
    save: Callable[[], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Squeeze every workload, then measure pairs round by round; ``outcome`` holds what there is, whatever ends it."""

    def work(names: Sequence[str]) -> None:
        begun = clock()
        gone: set[str] = set()
        for number, name in enumerate(names):
            steps.words = f"squeezing {name}, {number + 1} of {len(names)}"
            steps.fraction = _SQUEEZING * number / len(names)
            until = begun + plan.budget_seconds * _SQUEEZING * (number + 1) / len(names)
            try:
                _squeeze(plan, bench, outcome, name, until - clock())
            except RackscopeError as error:
                gone.add(name)
                outcome.failures.append((name, error.what))
            save()
        _pairs(plan, bench, outcome, steps, gone, clock, begun + plan.budget_seconds, save)
        steps.words = ""

    failed = bench.side_by_side(work)
    outcome.failures += list(failed.items())
    save()


def _squeeze(plan: Plan, bench: Bench, outcome: Outcome, name: str, budget_seconds: float) -> None:
    alone = outcome.alone.setdefault(name, [])
    kept = outcome.interference.kept
    for _ in range(_FIRST_WINDOWS):
        alone.append(bench.alone(name, plan.window_seconds, f"{name} alone"))
    if outcome.interference.kept > kept:
        outcome.hindered.add(name)

    def after(squeezed: Squeezed) -> None:
        outcome.squeezed[name] = squeezed

    outcome.squeezed[name] = bench.squeeze(name, max(budget_seconds, 0.0), uses_disk(alone), after)


def _pairs(
    plan: Plan,
    bench: Bench,
    outcome: Outcome,
    steps: Steps,
    gone: set[str],
    clock: Callable[[], float],
    end: float,
    save: Callable[[], None],
) -> None:
    pairs = [pair for pair in plan.pairs if set(pair) <= set(outcome.alone) - gone]

    def one(pair: tuple[str, str], made: int, done: float) -> None:
        steps.words = f"{pair[0]} beside {pair[1]}, round {made + 1} of {plan.repetitions}"
        steps.fraction = _SQUEEZING + (1 - _SQUEEZING) * (made + done) / plan.repetitions
        measured = _round(plan, bench, pair, backwards=bool(made % 2))
        outcome.rounds.setdefault(pair, []).append(measured)
        outcome.alone[pair[0]].append(measured.first_alone)
        outcome.alone[pair[1]].append(measured.second_alone)

    def failed(pair: tuple[str, str], reason: str) -> None:
        outcome.failures.append((f"{pair[0]} beside {pair[1]}", reason))

    if pairs:
        made = by_turns(rounds_of(pairs, plan.repetitions, plan.seed), end, clock, one, failed, save)
        if made < plan.repetitions:
            outcome.notes.append(f"{made} of {plan.repetitions} rounds fitted into the budget.")


def _round(plan: Plan, bench: Bench, pair: tuple[str, str], *, backwards: bool) -> Round:
    """One alone, both, the other alone; backwards in every second round."""
    first, second = pair
    before, after = (second, first) if backwards else (first, second)
    seconds = plan.window_seconds
    one = bench.alone(before, seconds, f"{before} alone")
    both = bench.together(first, second, seconds, f"{first} beside {second}")
    other = bench.alone(after, seconds, f"{after} alone")
    firsts, seconds_alone = (other, one) if backwards else (one, other)
    return Round(firsts, both[0], both[1], seconds_alone)
