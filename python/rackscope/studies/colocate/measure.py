"""How ``study colocate`` measures: all workloads started, squeezed alone, then alone and in pairs on the same cores."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from rackscope.analysis.elasticity import LevelEstimate
from rackscope.errors import LoadError, RackscopeError
from rackscope.runs.options import Progress, ProgressCallback, RunOptions
from rackscope.runs.placement import Placement
from rackscope.runs.prepare import Prepared, prepare
from rackscope.runs.session import Session
from rackscope.squeezes import find_squeezes
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.provision import Limits
from rackscope.studies.bench.awake import kept_awake
from rackscope.studies.bench.core_meters import CoreSpeeds
from rackscope.studies.bench.interference import Interference, Judge
from rackscope.studies.bench.loading import make_ready
from rackscope.studies.bench.session import RAMP_SECONDS, on_the_bench
from rackscope.studies.bench.session import Bench as PressureBench
from rackscope.studies.bench.turns import Start, Steps, SystemUse, paced, side_by_side
from rackscope.studies.colocate.plan import Plan, Spec, run_options
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
class Figures:
    """What a window gave a workload. ``cores`` is the CPU time it used a second; what could not be read is ``None``."""

    rate: float
    p99_seconds: float | None
    cores: float | None
    disk_bytes_per_second: float | None
    network_bytes_per_second: float | None
    client_cores: float | None
    idle_ratio: float | None


@dataclass(frozen=True)
class Squeezed:
    """What squeezing showed: estimates by level, ``(value, unit, source)`` of what there was, reasons for the rest."""

    estimates: tuple[LevelEstimate, ...]
    resources: Mapping[str, str]
    capacities: Mapping[str, tuple[float, str, str]]
    refused: Mapping[str, tuple[str, str]]


class Bench(Protocol):
    """What measures; tests put another in its place."""

    def side_by_side(self, work: Callable[[Sequence[str]], None]) -> dict[str, str]:
        """Start all workloads, do ``work`` with those that are up, stop them; why others failed."""

    def squeeze(self, name: str, budget_seconds: float, uses_disk: bool, after: Callable[[Squeezed], None]) -> Squeezed:
        """Squeeze what neighbours share, one at a time, while the workload runs alone."""

    def alone(self, name: str, seconds: float, activity: str) -> Figures:
        """A window without a neighbour. Raises RackscopeError."""

    def together(self, first: str, second: str, seconds: float, activity: str) -> tuple[Figures, Figures]:
        """A window of two at once. Raises RackscopeError."""


class _Ended(BaseException):
    """The other of two that run at once has ended badly: this one must end, too."""


class RealBench:
    """Systems, each in a control group of its own and a network namespace, on the same cores."""

    def __init__(
        self,
        options: RunOptions,
        plan: Plan,
        member: Callable[[str, str], Path],
        progress: ProgressCallback,
        interference: Interference,
        conditions: list[str],
    ) -> None:
        """``conditions`` gets sentences on what was done to the host meanwhile."""
        self._options = options
        self._plan = plan
        self._member = member
        self._progress = progress
        self._interference = interference
        self._benches: dict[str, PressureBench] = {}
        self._speeds: CoreSpeeds | None = None
        self._number = 0
        self._conditions = conditions

    def side_by_side(self, work: Callable[[Sequence[str]], None]) -> dict[str, str]:
        failures: dict[str, str] = {}
        waiting: list[tuple[str, Start]] = []
        placement: Placement | None = None
        for spec in self._plan.workloads:
            # Before any is started: from then on this process keeps off the systems' cores.
            try:
                prepared = prepare(run_options(self._options, spec), lambda _: None)
            except RackscopeError as error:
                failures[spec.name] = error.what
            else:
                placement = placement or prepared.placement
                waiting.append((spec.name, functools.partial(self._start, spec, prepared)))
        if placement is None:
            return failures
        with (
            Journal() as journal,
            kept_awake(placement.system, placement.client, journal) as awake,
            CoreSpeeds(placement.system, placement.client) as self._speeds,
        ):
            self._interference.beside = awake.cpu_seconds
            self._conditions += [awake.sentence] if awake.sentence else []
            side_by_side(waiting, lambda: work(list(self._benches)) if self._benches else None, failures)
        return failures

    def _start(self, spec: Spec, prepared: Prepared, inside: Callable[[], None]) -> None:
        def ready(bench: PressureBench) -> None:
            make_ready(bench.session)
            self._benches[spec.name] = bench
            inside()

        squeezes = [one for one in find_squeezes() if one.name in SHARED_SQUEEZES]
        self._progress(Progress(f"starting {spec.name}"))
        folder = self._member(spec.name, spec.label)
        limits = Limits(cpu_cores=spec.cpu_cores)
        on_the_bench(prepared, folder, limits, ready, self._progress, squeezes=squeezes, speeds=self._speeds)

    def squeeze(self, name: str, budget_seconds: float, uses_disk: bool, after: Callable[[Squeezed], None]) -> Squeezed:
        bench = self._benches[name]
        for one in _DISK if not uses_disk else ():
            bench.squeezables.pop(one, None)
        prepared = bench.session.prepared
        plan = pressure.Plan(
            fractions=self._plan.levels,
            window_seconds=min(0.4, self._plan.window_seconds),
            blocks=3,
            budget_seconds=budget_seconds,
            seed=self._plan.seed,
            seeks_slack=False,
        )
        bench.interference = self._interference

        def told(measured: pressure.MeasuredPhase) -> None:
            after(_squeezed(bench, measured))

        measured = pressure.measure_phase(bench, prepared.plan.stages[0], prepared.options.loop, plan, told)
        return _squeezed(bench, measured)

    def alone(self, name: str, seconds: float, activity: str) -> Figures:
        session = self._benches[name].session
        found: list[Figures] = []

        def once(begin: Callable[[], Judge]) -> dict[str, Any]:
            row, figures = self._window(session, seconds, activity, "measure", "measure", begin)
            found.append(figures)
            return row

        self._number += 1
        self._interference.measure(once)
        return found[-1]

    def together(self, first: str, second: str, seconds: float, activity: str) -> tuple[Figures, Figures]:
        found: list[tuple[Figures, Figures]] = []

        def once(begin: Callable[[], Judge]) -> dict[str, Any]:
            for _ in range(_TRIALS):
                row, figures = self._both(first, second, seconds, activity, begin)
                if row["overlap"] >= _LEAST_OVERLAP:
                    found.append(figures)
                    return row
            raise LoadError(f"{first} and {second} could not be measured at the same time")

        self._number += 1
        self._interference.measure(once)
        return found[-1]

    def _both(
        self, first: str, second: str, seconds: float, activity: str, begin: Callable[[], Judge]
    ) -> tuple[dict[str, Any], tuple[Figures, Figures]]:
        """Two windows at once, the second one's in a thread; a combined row that says whether they count."""
        barrier = threading.Barrier(2)
        ended = threading.Event()
        done: list[tuple[dict[str, Any], Figures]] = []
        raised: list[BaseException] = []
        other = self._benches[second].session

        def measure(session: Session, beside: str) -> tuple[dict[str, Any], Figures]:
            def judge_later() -> Judge:
                barrier.wait(_START_SECONDS)
                return lambda _: ""

            return self._window(session, seconds, activity, f"measure beside {beside}", "squeezed", judge_later)

        def in_a_thread() -> None:
            try:
                done.append(measure(other, first))
            except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
                raised.append(error)
                barrier.abort()

        thread = threading.Thread(target=in_a_thread, name=f"rackscope-{second}")
        with _checked(other, ended):
            # Only the main thread gets Ctrl-C: what runs in the other one is told.
            judge = begin()
            thread.start()
            try:
                own_row, own = measure(self._benches[first].session, second)
            except BaseException as error:
                ended.set()
                barrier.abort()
                thread.join()
                if isinstance(error, threading.BrokenBarrierError) and raised:
                    raise raised[0] from None
                raise
            thread.join()
        if raised:
            raise raised[0]
        [(other_row, others)] = done
        used = [row["cpu_seconds"] for row in (own_row, other_row) if row["cpu_seconds"] is not None]
        row: dict[str, Any] = {"system_cpu_seconds": sum(used) if len(used) == 2 else None}
        row["overlap"] = _overlap(own_row, other_row)
        if row["overlap"] >= _LEAST_OVERLAP:
            row["discarded"] = judge(row) or None
        return row, (own, others)

    def _window(
        self, session: Session, seconds: float, activity: str, name: str, kind: PhaseKind, begin: Callable[[], Judge]
    ) -> tuple[dict[str, Any], Figures]:
        loop = session.prepared.options.loop
        shown = replace(session.prepared.plan.stages[0], name=name, kind=kind)
        session.ramp(shown, loop, RAMP_SECONDS)
        pid = session.system.pid
        use = SystemUse(pid, begin())
        before = disk_bytes(pid)
        row = session.phase(shown, loop, seconds, self._number, activity=activity, discard=use.discard)
        after = disk_bytes(pid)
        moved = after - before if after is not None and before is not None else None
        return {**row, "cpu_seconds": use.cpu_seconds}, figures_of(row, use.cpu_seconds, moved)


def figures_of(row: Mapping[str, Any], cpu_seconds: float | None, disk: float | None) -> Figures:
    """A row of ``results.parquet`` with what its system used meanwhile. Raises LoadError for a row of nothing."""
    seconds, operations = row["duration_seconds"], row["operations"]
    if not operations or not seconds:
        raise LoadError("no operation succeeded")
    client = row.get("generator_cpu_seconds")
    moved = (row.get("bytes_sent") or 0) + (row.get("bytes_received") or 0)
    return Figures(
        rate=operations / seconds,
        p99_seconds=row.get("response_p99_seconds"),
        cores=None if cpu_seconds is None else cpu_seconds / seconds,
        disk_bytes_per_second=None if disk is None else disk / seconds,
        network_bytes_per_second=moved / seconds,
        client_cores=None if client is None else client / seconds,
        idle_ratio=row.get("generator_idle_ratio"),
    )


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
    resources = {name: one.squeeze.resource for name, one in bench.squeezables.items()}
    resources |= {name: squeeze.resource for name, (squeeze, _) in bench.refused.items()}
    return Squeezed(
        estimates=measured.estimates,
        resources=resources,
        capacities={
            name: (one.capacity.value, one.capacity.unit, one.capacity.source)
            for name, one in bench.squeezables.items()
        },
        refused={name: (why.reason, why.needs) for name, (_, why) in bench.refused.items()},
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
#: Fewer rounds than this have no interval.
_FEWEST_ROUNDS = 2


@dataclass(frozen=True)
class Round:
    """A pair once: each alone, and both together, one right after the other."""

    first_alone: Figures
    first: Figures
    second: Figures
    second_alone: Figures


@dataclass
class Outcome:
    """What there is so far."""

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
    if not pairs:
        return
    broken: set[tuple[str, str]] = set()
    made = 0
    for order in paced(plan.rounds(pairs), end, clock, _FEWEST_ROUNDS):
        for at, pair in enumerate(order):
            if pair in broken:
                continue
            steps.words = f"{pair[0]} beside {pair[1]}, round {made + 1} of {plan.repetitions}"
            steps.fraction = _SQUEEZING + (1 - _SQUEEZING) * (made + at / len(order)) / plan.repetitions
            try:
                measured = _round(plan, bench, pair, backwards=bool(made % 2))
            except RackscopeError as error:
                broken.add(pair)
                outcome.failures.append((f"{pair[0]} beside {pair[1]}", error.what))
                continue
            outcome.rounds.setdefault(pair, []).append(measured)
            outcome.alone[pair[0]].append(measured.first_alone)
            outcome.alone[pair[1]].append(measured.second_alone)
        made += 1
        save()
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
