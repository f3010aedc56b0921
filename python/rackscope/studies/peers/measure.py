"""How ``study peers`` measures: systems side by side on the same cores, setting by setting, within a budget."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rackscope.analysis.wording import percent
from rackscope.errors import LoadError, RackscopeError
from rackscope.runs.options import Loop, Progress, ProgressCallback, RunOptions
from rackscope.runs.prepare import Prepared, prepare
from rackscope.runs.session import Session
from rackscope.studies.bench.figures import Figures, figures_of
from rackscope.studies.bench.interference import Interference
from rackscope.studies.bench.loading import refuse_partial_load
from rackscope.studies.bench.sessions import measure_window, run_together
from rackscope.studies.bench.turns import Steps, by_turns, prepare_all, rounds_of
from rackscope.studies.peers.plan import CURVE, MEMORY, Plan, Setting
from rackscope.systems import find_system

#: Samples are only for the record here; every system has a sampler that runs beside all others.
_SAMPLE_SECONDS = 0.5
_WARM_UP_SECONDS = 0.5
#: How long items that were put in are read, to see whether they are all there.
_CHECK_SECONDS = 0.5
_GIBIBYTE = 1024**3
#: Enough for an item of 32 + 64 bytes in any of the systems.
_ITEM_BYTES = 400


@dataclass(frozen=True)
class MemoryUse:
    """Resident bytes of a system when it was empty and with ``items`` items, and which part of them a read finds."""

    items: int
    empty_bytes: int
    full_bytes: int
    hit_ratio: float | None


#: A window of a system: in a closed loop, or at a rate; the words say what it is. Raises RackscopeError.
Measure = Callable[[str, float | None, str], Figures]
#: What is done with those that could be started.
Work = Callable[[Sequence[str], Measure], None]


@dataclass
class Outcome:
    interference: Interference
    #: By setting's name and system, one a round.
    closed: dict[tuple[str, str], list[Figures]] = field(default_factory=dict)
    #: By load (a fraction of the baseline's best) and system, one a round.
    loaded: dict[tuple[float, str], list[Figures]] = field(default_factory=dict)
    #: What the loads are fractions of.
    best_rate: float | None = None
    memory: dict[str, MemoryUse] = field(default_factory=dict)
    #: Why a system is missing: what it was asked for, its name, the reason.
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Bench:
    """Starts systems, each in a run directory of its own."""

    options: RunOptions
    plan: Plan
    member: Callable[[str, str], Path]
    progress: ProgressCallback
    interference: Interference
    number: int = 0

    def side_by_side(self, setting: Setting, systems: Sequence[str], work: Work) -> dict[str, str]:
        """Start ``systems``, do ``work`` with them and stop them; those that could not be, each with the reason."""
        failures: dict[str, str] = {}

        def open_session(name: str, prepared: Prepared) -> AbstractContextManager[Session]:
            folder = self.member(f"{setting.name}-{name}", f"{name}, {setting.label}")
            return contextlib.nullcontext(self._session(prepared, folder, f"{setting.label}: starting {name}"))

        def measured(sessions: Mapping[str, Session]) -> None:
            def measure(name: str, rate: float | None, activity: str) -> Figures:
                session = sessions[name]
                self.number += 1
                stage = session.prepared.plan.stages[0]
                return measure_window(session, stage, rate, self.plan.seconds, self.number, activity, self.interference)

            work(list(sessions), measure)

        asked = {name: run_options(self.options, name, setting, self.plan.keys, _GIBIBYTE) for name in systems}
        run_together(prepare_all(asked, failures), open_session, self.progress, measured, failures)
        return failures

    def memory(self, system: str, items: int) -> MemoryUse:
        """Load that many items. Raises RackscopeError."""
        found: list[MemoryUse] = []

        def work(session: Session) -> None:
            empty = resident_bytes(session.system.pid)
            session.preload()
            refuse_partial_load(session)
            stage = session.prepared.plan.stages[0]
            row = session.phase(stage, Loop(), _CHECK_SECONDS, 1, activity="reading what was put in")
            found.append(MemoryUse(items, empty, resident_bytes(session.system.pid), figures_of([row]).hit_ratio))

        memory_bytes = max(_GIBIBYTE, items * _ITEM_BYTES)
        asked = run_options(self.options, system, MEMORY, items, memory_bytes, "uniform")
        prepared = prepare(asked, lambda _: None)
        folder = self.member(f"memory-{system}", f"{system}, {items} items of 32 + 64 bytes")
        self._session(prepared, folder, f"memory of {items} items: {system}").run(work)
        return found[0]

    def _session(self, prepared: Prepared, folder: Path, label: str) -> Session:
        """With one line of progress for all that it takes to start; later steps say themselves what they are."""
        return Session(prepared, lambda step: self.progress(replace(step, activity=label)), folder)


def run_options(
    options: RunOptions, name: str, setting: Setting, keys: int, memory_bytes: int, distribution: str = "zipfian"
) -> RunOptions:
    """A run of ``name`` in ``setting``: as many threads as cores, the same memory, the same load for all."""
    knobs = {
        "memory": str(memory_bytes),
        "threads": str(len(options.cores or (0,))),
        # The one of all that cannot choose.
        "congestion_control": "system",
    }
    has = {knob.name for knob in find_system(name).knobs}
    own = {knob: value for knob, value in knobs.items() if knob in has}
    return replace(
        options,
        system=name,
        workload=setting.workload,
        settings={**setting.parameters(keys), "distribution": distribution, **own},
        connections=setting.connections,
        endpoint_kind=setting.endpoint_kind,
        warm_up_seconds=_WARM_UP_SECONDS,
        sample_interval_seconds=_SAMPLE_SECONDS,
        repetitions=1,
    )


def resident_bytes(pid: int, root: Path = Path("/")) -> int:
    """Memory of a process that is in RAM (``statm``, proc(5)). Raises LoadError when it is gone."""
    try:
        pages = int((root / "proc" / str(pid) / "statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError) as error:
        raise LoadError(f"the memory of process {pid} cannot be read: {error}") from error
    return pages * os.sysconf("SC_PAGE_SIZE")


def carry_out(
    plan: Plan,
    bench: Bench,
    outcome: Outcome,
    steps: Steps,
    save: Callable[[], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """All settings, then latency over load, then memory; ``outcome`` holds what there is, whatever ends this."""
    end = clock() + plan.budget_seconds
    # The setting in which latency over load is measured comes last, as its systems stay up for that.
    settings = sorted(plan.settings, key=lambda setting: bool(plan.loads) and setting == CURVE)
    weights = [1 + len(plan.loads) if plan.loads and setting == CURVE else 1 for setting in settings]
    for at, setting in enumerate(settings):
        steps.fraction = sum(weights[:at]) / sum(weights)
        turns = _Turns(plan, outcome, setting, steps, clock, end, sum(weights[at:]))
        failed = bench.side_by_side(setting, plan.systems, turns.work)
        outcome.failures += [(setting.label, name, reason) for name, reason in failed.items()]
        save()
    for name in plan.systems if plan.memory_items else ():
        steps(Progress(f"memory of {plan.memory_items} items: {name}"))
        try:
            outcome.memory[name] = bench.memory(name, plan.memory_items)
        except RackscopeError as error:
            outcome.failures.append((MEMORY.label, name, error.what))
        save()


@dataclass
class _Turns:
    """Measures the systems that are up in one setting. ``ahead`` is how many steps there are from this one on."""

    plan: Plan
    outcome: Outcome
    setting: Setting
    steps: Steps
    clock: Callable[[], float]
    end: float
    ahead: int

    def work(self, systems: Sequence[str], measure: Measure) -> None:
        """In a closed loop, and at loads in the setting where these are measured."""
        seed = self.plan.settings.index(self.setting)
        self._rounds(systems, seed, 1, self.setting.label, None, measure)
        if self.setting != CURVE or not self.plan.loads:
            return
        best = [one.rate for one in self.outcome.closed.get((self.setting.name, self.plan.baseline), [])]
        if not best:
            self.outcome.notes.append(f"No latency over load: there is no throughput of {self.plan.baseline}.")
            return
        self.outcome.best_rate = sum(best) / len(best)
        for number, load in enumerate(self.plan.loads):
            what = f"{percent(load)} of {self.plan.baseline}'s highest throughput"
            self._rounds(systems, 100 + number, 2 + number, what, load, measure)

    def _rounds(
        self, systems: Sequence[str], seed: int, step: int, what: str, load: float | None, measure: Measure
    ) -> None:
        now = self.clock()
        # Each step gets an even part of the time that is left.
        until = now + (self.end - now) / max(self.ahead - step + 1, 1)
        rounds = rounds_of(systems, self.plan.repetitions, self.plan.seed + seed)
        rate = None if load is None or self.outcome.best_rate is None else load * self.outcome.best_rate

        def one(name: str, made: int, _: float) -> None:
            activity = f"{what}, round {made + 1} of {len(rounds)}"
            self.steps(Progress(activity))
            figures = measure(name, rate, activity)
            if load is None:
                self.outcome.closed.setdefault((self.setting.name, name), []).append(figures)
            else:
                self.outcome.loaded.setdefault((load, name), []).append(figures)

        def failed(name: str, reason: str) -> None:
            self.outcome.failures.append((what, name, reason))

        made = by_turns(rounds, until, self.clock, one, failed)
        if made < len(rounds):
            self.outcome.notes.append(f"{what}: {made} of {len(rounds)} rounds fitted into the budget.")
