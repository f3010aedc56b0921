"""Systems side by side: all started, with their data in and warm, and then measured by turns on the same cores."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rackscope.errors import LoadError, RackscopeError
from rackscope.host.cpu_time import process_cpu_seconds

if TYPE_CHECKING:
    from rackscope.runs.options import Progress, ProgressCallback, RunOptions
    from rackscope.runs.prepare import Prepared
    from rackscope.runs.session import Session
    from rackscope.studies.bench.interference import Interference
    from rackscope.studies.peers.plan import Plan, Setting

#: Samples are only for the record here; every system has a sampler that runs beside all others.
_SAMPLE_SECONDS = 0.5
_WARM_UP_SECONDS = 0.5
#: How long items that were put in are read, to see whether they are all there.
_CHECK_SECONDS = 0.5
_GIBIBYTE = 1024**3
#: Room for an item of 32 + 64 bytes in any of the systems.
_ITEM_ROOM_BYTES = 400


@dataclass(frozen=True)
class Figures:
    """What a window gave. Operations are keys asked for, and values written.

    CPU times are for a million of them; ``None`` where they are not known. ``idle_ratio`` is the load generator's.
    """

    rate: float
    offered: float | None
    p50_seconds: float | None
    p99_seconds: float | None
    server_cpu_seconds: float | None
    client_cpu_seconds: float | None
    idle_ratio: float | None
    hit_ratio: float | None


@dataclass(frozen=True)
class MemoryUse:
    """Resident bytes of a system when it was empty and with ``items`` items, and which part of them a read finds."""

    items: int
    empty_bytes: int
    full_bytes: int
    hit_ratio: float | None


#: A window of a system: as fast as it answers, or at a rate; the words say what it is. Raises RackscopeError.
Measure = Callable[[str, float | None, str], Figures]
#: What is done with those that could be started.
Work = Callable[[Sequence[str], Measure], None]


class Bench(Protocol):
    """What measures; tests put another in its place."""

    def side_by_side(self, setting: Setting, systems: Sequence[str], work: Work) -> dict[str, str]:
        """Start ``systems``, do ``work`` with them and stop them; those that could not be, each with the reason."""

    def memory(self, system: str, items: int) -> MemoryUse:
        """Load that many items. Raises RackscopeError."""


class RealBench:
    """Starts systems, each in a run directory of its own."""

    def __init__(
        self,
        options: RunOptions,
        plan: Plan,
        member: Callable[[str, str], Path],
        progress: ProgressCallback,
        interference: Interference,
    ) -> None:
        self._options = options
        self._plan = plan
        self._member = member
        self._progress = progress
        self._interference = interference
        self._up: list[Session] = []

    def side_by_side(self, setting: Setting, systems: Sequence[str], work: Work) -> dict[str, str]:
        failures: dict[str, str] = {}
        waiting: list[tuple[str, Prepared]] = []
        for name in systems:
            # Before any is started: from then on this process keeps off the systems' cores.
            try:
                waiting.append((name, self._prepare(name, setting, self._plan.keys)))
            except RackscopeError as error:
                failures[name] = error.what
        self._start_next(setting, waiting, {}, work, failures)
        return failures

    def _start_next(
        self,
        setting: Setting,
        waiting: Sequence[tuple[str, Prepared]],
        sessions: dict[str, Session],
        work: Work,
        failures: dict[str, str],
    ) -> None:
        """Start the first that waits, and within its session the next; work within all of them."""
        if not waiting:
            if sessions:
                work(list(sessions), _Windows(sessions, self._plan.seconds, self._interference))
            return
        (name, prepared), *rest = waiting
        is_up = False

        def inside(session: Session) -> None:
            nonlocal is_up
            _make_ready(session)
            is_up = True
            self._up.append(session)
            self._start_next(setting, rest, {**sessions, name: session}, work, failures)

        try:
            folder = self._member(f"{setting.name}-{name}", f"{name}, {setting.label}")
            self._session(prepared, folder, f"{setting.label}: starting {name}").run(inside)
        except RackscopeError as error:
            if is_up:
                raise
            failures[name] = error.what
            self._start_next(setting, rest, sessions, work, failures)

    def memory(self, system: str, items: int) -> MemoryUse:
        from rackscope.studies.peers.plan import MEMORY
        from rackscope.studies.sweep.measure import refuse_partial_load

        found: list[MemoryUse] = []

        def work(session: Session) -> None:
            prepared = session.prepared
            empty = resident_bytes(session.system.pid)
            session.preload()
            refuse_partial_load(session)
            row = session.phase(
                prepared.plan.stages[0], {"kind": "closed"}, _CHECK_SECONDS, 1, activity="reading what was put in"
            )
            found.append(MemoryUse(items, empty, resident_bytes(session.system.pid), _hit_ratio(row)))

        prepared = self._prepare(system, MEMORY, items, max(_GIBIBYTE, items * _ITEM_ROOM_BYTES), "uniform")
        folder = self._member(f"memory-{system}", f"{system}, {items} items of 32 + 64 bytes")
        self._session(prepared, folder, f"memory of {items} items: {system}").run(work)
        return found[0]

    def _session(self, prepared: Prepared, folder: Path, label: str) -> Session:
        from dataclasses import replace

        from rackscope.runs.session import Session

        def labelled(step: Progress) -> None:
            # One line for all that it takes to start one; later steps say themselves what they are.
            self._progress(step if session in self._up else replace(step, activity=label))

        session = Session(prepared, labelled, folder)
        return session

    def _prepare(
        self, name: str, setting: Setting, keys: int, memory_bytes: int = _GIBIBYTE, distribution: str = "zipfian"
    ) -> Prepared:
        from rackscope.runs.prepare import prepare

        return prepare(run_options(self._options, name, setting, keys, memory_bytes, distribution), lambda _: None)


def run_options(
    options: RunOptions, name: str, setting: Setting, keys: int, memory_bytes: int, distribution: str = "zipfian"
) -> RunOptions:
    """A run of ``name`` in ``setting``: as many threads as cores, the same memory, the same load for all."""
    from dataclasses import replace

    from rackscope.systems import find_system

    knobs = {"memory": str(memory_bytes), "threads": str(len(options.cores or (0,)))}
    has = {knob.name for knob in find_system(name).knobs}
    return replace(
        options,
        system=name,
        workload=setting.workload,
        settings={
            **setting.parameters(keys),
            "distribution": distribution,
            **{knob: value for knob, value in knobs.items() if knob in has},
        },
        connections=setting.connections,
        endpoint_kind=setting.endpoint_kind,
        warm_up_seconds=_WARM_UP_SECONDS,
        sample_interval_seconds=_SAMPLE_SECONDS,
        repetitions=1,
    )


def _make_ready(session: Session) -> None:
    from rackscope.studies.sweep.measure import refuse_partial_load

    session.preload()
    refuse_partial_load(session)
    session.warm_up({"kind": "closed"})


class _Windows:
    """Windows of systems that are up."""

    def __init__(self, sessions: Mapping[str, Session], seconds: float, interference: Interference) -> None:
        self._sessions = sessions
        self._seconds = seconds
        self._interference = interference
        self._number = 0

    def __call__(self, name: str, rate: float | None, activity: str) -> Figures:
        from rackscope.studies.bench.quiet import behind_the_generator

        session = self._sessions[name]
        loop = {"kind": "closed"} if rate is None else {"kind": "open", "arrivals": "poisson", "rate_per_second": rate}
        self._number += 1
        spent: list[float | None] = []

        def once(begin: Callable[[], Callable[[Mapping[str, Any]], str]]) -> dict[str, Any]:
            judge = begin()
            before = process_cpu_seconds(session.system.pid)

            def discard(row: dict[str, Any]) -> str:
                # The sampler's ticks are too far apart for a window this short.
                after = process_cpu_seconds(session.system.pid)
                spent.append(after - before if before is not None and after is not None else row["system_cpu_seconds"])
                return judge({**row, "system_cpu_seconds": spent[-1]})

            return session.phase(
                session.prepared.plan.stages[0], loop, self._seconds, self._number, activity=activity, discard=discard
            )

        with behind_the_generator(session) if rate is not None else contextlib.nullcontext():
            row = self._interference.measure(once)
        return figures_of(row, session.prepared.plan.multiget, spent[-1])


def figures_of(row: Mapping[str, Any], keys_each: int, server_cpu_seconds: float | None) -> Figures:
    """A row of ``results.parquet``, and the CPU time of the system meanwhile. Raises LoadError for a row of nothing."""
    hits, misses = row.get("hits") or 0, row.get("misses") or 0
    operations = row["operations"] if keys_each == 1 else hits + misses
    if not operations or not row["duration_seconds"]:
        raise LoadError("no operation succeeded")
    if (row.get("errors") or 0) > 0:
        raise LoadError(f"{row['errors']} operations were answered with an error")
    million = operations / 1e6
    client = row.get("generator_cpu_seconds")
    return Figures(
        rate=operations / row["duration_seconds"],
        offered=row.get("offered_operations_per_second"),
        p50_seconds=row.get("response_p50_seconds"),
        p99_seconds=row.get("response_p99_seconds"),
        server_cpu_seconds=None if server_cpu_seconds is None else server_cpu_seconds / million,
        client_cpu_seconds=None if client is None else client / million,
        idle_ratio=row.get("generator_idle_ratio"),
        hit_ratio=_hit_ratio(row),
    )


def _hit_ratio(row: Mapping[str, Any]) -> float | None:
    hits, misses = row.get("hits") or 0, row.get("misses") or 0
    return hits / (hits + misses) if hits + misses else None


def resident_bytes(pid: int, root: Path = Path("/")) -> int:
    """Memory of a process that is in RAM (``statm``, proc(5)). Raises LoadError when it is gone."""
    try:
        pages = int((root / "proc" / str(pid) / "statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError) as error:
        raise LoadError(f"the memory of process {pid} cannot be read: {error}") from error
    return pages * os.sysconf("SC_PAGE_SIZE")
