"""Workloads side by side: each started in its own control group, then measured alone and in pairs on the same cores."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rackscope.errors import LoadError, RackscopeError

if TYPE_CHECKING:
    from rackscope.analysis.elasticity import LevelEstimate
    from rackscope.runs.options import Progress, ProgressCallback, RunOptions
    from rackscope.runs.prepare import Prepared
    from rackscope.runs.session import Session
    from rackscope.studies.bench.interference import Interference, Judge
    from rackscope.studies.bench.session import Bench as PressureBench
    from rackscope.studies.bench.speed import CoreSpeeds
    from rackscope.studies.colocate.plan import Plan, Spec
    from rackscope.studies.pressure.study import MeasuredPhase
    from rackscope.workloads.base import PhaseKind

#: Squeezes of what neighbours on the same cores have in common. Memory that is set aside, the link of a network
#: namespace and the synthetic server's own channel are nobody else's here.
SHARED_SQUEEZES = ("cpu_share", "last_level_cache", "dram_bandwidth", "disk_bandwidth", "disk_operations")
_DISK = ("disk_bandwidth", "disk_operations")
#: Below this a work does nothing with the disk that a neighbour could notice.
_SOME_DISK_BYTES_PER_SECOND = 100e3
#: Share of a window in which both of a pair must run, and how often that is tried: on a busy host one is often late.
_LEAST_OVERLAP = 0.95
_TRIALS = 12
_START_SECONDS = 30.0


@dataclass(frozen=True)
class Figures:
    """What a window gave a work. ``cores`` is the CPU time it used a second; what could not be read is ``None``."""

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
        """Start all works, do ``work`` with those that are up, stop them; the others, each with the reason."""

    def squeeze(self, name: str, budget_seconds: float, uses_disk: bool, after: Callable[[Squeezed], None]) -> Squeezed:
        """Squeeze what neighbours share, one at a time, while the work runs alone."""

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
        from rackscope.runs.prepare import prepare
        from rackscope.squeezes.journal import Journal
        from rackscope.studies.bench.awake import kept_awake
        from rackscope.studies.bench.speed import CoreSpeeds
        from rackscope.studies.colocate.plan import run_options

        failures: dict[str, str] = {}
        waiting: list[tuple[Spec, Prepared]] = []
        for spec in self._plan.works:
            # Before any is started: from then on this process keeps off the systems' cores.
            try:
                waiting.append((spec, prepare(run_options(self._options, spec), lambda _: None)))
            except RackscopeError as error:
                failures[spec.name] = error.what
        if not waiting:
            return failures
        placement = waiting[0][1].placement
        with (
            Journal() as journal,
            kept_awake(placement.system, placement.client, journal) as awake,
            CoreSpeeds(placement.system, placement.client) as self._speeds,
        ):
            self._interference.beside = awake.cpu_seconds
            self._conditions += [awake.sentence] if awake.sentence else []
            self._start_next(waiting, work, failures)
        return failures

    def _start_next(
        self,
        waiting: Sequence[tuple[Spec, Prepared]],
        work: Callable[[Sequence[str]], None],
        failures: dict[str, str],
    ) -> None:
        """Start the first that waits, and within its session the next; work within all of them."""
        from rackscope.runs.client import loop_of
        from rackscope.runs.options import Progress
        from rackscope.squeezes import find_squeezes
        from rackscope.squeezes.provision import Limits
        from rackscope.studies.bench.session import on_the_bench
        from rackscope.studies.sweep.measure import refuse_partial_load

        if not waiting:
            if self._benches:
                work(list(self._benches))
            return
        (spec, prepared), *rest = waiting
        is_up = False

        def inside(bench: PressureBench) -> None:
            nonlocal is_up
            bench.session.preload()
            refuse_partial_load(bench.session)
            bench.session.warm_up(loop_of(prepared.options))
            is_up = True
            self._benches[spec.name] = bench
            self._start_next(rest, work, failures)

        squeezes = [one for one in find_squeezes() if one.name in SHARED_SQUEEZES]
        self._progress(Progress(f"starting {spec.name}"))
        try:
            on_the_bench(
                prepared, self._member(spec.name, spec.label), Limits(cpu_cores=spec.cpu_cores), inside,
                self._progress, squeezes=squeezes, speeds=self._speeds,
            )  # fmt: skip
        except RackscopeError as error:
            if is_up:
                raise
            failures[spec.name] = error.what
            self._start_next(rest, work, failures)

    def squeeze(self, name: str, budget_seconds: float, uses_disk: bool, after: Callable[[Squeezed], None]) -> Squeezed:
        from rackscope.runs.client import loop_of
        from rackscope.studies.pressure import study as pressure

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

        def told(measured: MeasuredPhase) -> None:
            after(_squeezed(bench, measured))

        measured = pressure.measure_phase(bench, prepared.plan.stages[0], loop_of(prepared.options), plan, told)
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
        from rackscope.host.cpu_time import process_cpu_seconds
        from rackscope.runs.client import loop_of
        from rackscope.studies.bench.session import RAMP_SECONDS

        stage = session.prepared.plan.stages[0]
        loop = loop_of(session.prepared.options)
        shown = replace(stage, name=name, kind=kind)
        session.ramp(shown, loop, RAMP_SECONDS)
        judge = begin()
        pid = session.system.pid
        before, read = process_cpu_seconds(pid), disk_bytes(pid)
        used: list[float | None] = []
        moved: list[float | None] = []

        def discard(row: dict[str, Any]) -> str:
            # The sampler's ticks are too far apart for a window this short.
            after, late = process_cpu_seconds(pid), disk_bytes(pid)
            used.append(after - before if before is not None and after is not None else row["system_cpu_seconds"])
            moved.append(late - read if read is not None and late is not None else None)
            return judge({**row, "system_cpu_seconds": used[-1]})

        row = session.phase(shown, loop, seconds, self._number, activity=activity, discard=discard)
        return {**row, "cpu_seconds": used[-1]}, figures_of(row, used[-1], moved[-1])


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
    """Whether a neighbour could notice what a work does with the disk."""
    return any((one.disk_bytes_per_second or 0.0) > _SOME_DISK_BYTES_PER_SECOND for one in figures)


def _overlap(first: Mapping[str, Any], second: Mapping[str, Any]) -> float:
    """Share of the longer window in which both ran."""
    both = min(first["end_ns"], second["end_ns"]) - max(first["start_ns"], second["start_ns"])
    longest = max(first["end_ns"] - first["start_ns"], second["end_ns"] - second["start_ns"])
    return both / longest if longest else 0.0


def _squeezed(bench: PressureBench, measured: MeasuredPhase) -> Squeezed:
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
