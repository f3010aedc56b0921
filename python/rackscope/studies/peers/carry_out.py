"""The measurements of ``study peers`` in their order, within a budget; what there is is said and saved as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rackscope.analysis.wording import percent
from rackscope.errors import RackscopeError
from rackscope.runs.options import Progress
from rackscope.studies.peers.plan import CURVE, MEMORY

if TYPE_CHECKING:
    from rackscope.runs.options import ProgressCallback
    from rackscope.studies.base import Conduct
    from rackscope.studies.bench.interference import Interference
    from rackscope.studies.peers.bench import Bench, Figures, Measure, MemoryUse
    from rackscope.studies.peers.plan import Plan, Setting

#: Fewer rounds than this have no interval.
_FEWEST_ROUNDS = 2


@dataclass
class Outcome:
    """What there is so far."""

    interference: Interference
    #: By setting's name and system, one a round.
    closed: dict[tuple[str, str], list[Figures]] = field(default_factory=dict)
    #: By load (a share of the baseline's best) and system, one a round.
    loaded: dict[tuple[float, str], list[Figures]] = field(default_factory=dict)
    #: What the loads are shares of.
    best_rate: float | None = None
    memory: dict[str, MemoryUse] = field(default_factory=dict)
    #: Why a system is missing: what it was asked for, its name, the reason.
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Steps:
    """Progress of the whole, whatever a system tells of itself meanwhile."""

    def __init__(self, progress: ProgressCallback) -> None:
        self._progress = progress
        self.fraction = 0.0

    def __call__(self, step: Progress) -> None:
        self._progress(replace(step, fraction=self.fraction))


def carry_out(
    plan: Plan,
    conduct: Conduct,
    bench: Bench,
    outcome: Outcome,
    steps: Steps,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """All settings, then latency over load, then memory; ``outcome`` holds what there is, whatever ends this."""
    from rackscope.studies.peers.findings import describe

    end = clock() + plan.budget_seconds
    parts = _parts(plan, outcome, steps, clock, end)
    for part in parts:
        failed = bench.side_by_side(part.setting, plan.systems, part.work)
        outcome.failures += [(part.setting.label, name, reason) for name, reason in failed.items()]
        describe(conduct.record, plan, outcome)
        conduct.save()
    for name in plan.systems if plan.memory_items else ():
        steps(Progress(f"memory of {plan.memory_items} items: {name}"))
        try:
            outcome.memory[name] = bench.memory(name, plan.memory_items)
        except RackscopeError as error:
            outcome.failures.append((MEMORY.label, name, error.what))
        describe(conduct.record, plan, outcome)
        conduct.save()


def _parts(plan: Plan, outcome: Outcome, steps: Steps, clock: Callable[[], float], end: float) -> list[_Part]:
    """The settings; the one that loads are told in comes last, as its systems stay up for them."""
    settings = sorted(plan.settings, key=lambda setting: bool(plan.loads) and setting == CURVE)
    shares = [1 + len(plan.loads) if plan.loads and setting == CURVE else 1 for setting in settings]
    return [
        _Part(plan, outcome, setting, steps, clock, end, sum(shares[:at]) / sum(shares), shares[at:])
        for at, setting in enumerate(settings)
    ]


@dataclass
class _Part:
    """One setting. ``done`` is the share of all settings before it; ``ahead`` weighs it and those that follow."""

    plan: Plan
    outcome: Outcome
    setting: Setting
    steps: Steps
    clock: Callable[[], float]
    end: float
    done: float
    ahead: Sequence[int]

    def work(self, systems: Sequence[str], measure: Measure) -> None:
        """Measure the systems that are up: as fast as they answer, and at loads where those are told."""
        place = self.plan.settings.index(self.setting)
        self._rounds(self.plan.rounds(systems, place), self._until(1), self.setting.label, None, measure)
        if self.setting != CURVE or not self.plan.loads:
            return
        best = [one.rate for one in self.outcome.closed.get((self.setting.name, self.plan.baseline), [])]
        if not best:
            self.outcome.notes.append(f"No latency over load: {self.plan.baseline} gave no load to take shares of.")
            return
        self.outcome.best_rate = sum(best) / len(best)
        for number, load in enumerate(self.plan.loads):
            what = f"{percent(load)} of {self.plan.baseline}'s best load"
            self._rounds(self.plan.rounds(systems, 100 + number), self._until(2 + number), what, load, measure)

    def _until(self, step: int) -> float:
        """When a step of this setting should be over: each gets an even part of the time that is left."""
        now = self.clock()
        return now + (self.end - now) / max(sum(self.ahead) - step + 1, 1)

    def _rounds(
        self, rounds: Sequence[Sequence[str]], until: float, what: str, load: float | None, measure: Measure
    ) -> None:
        gone: set[str] = set()
        begun = self.clock()
        rate = None if load is None or self.outcome.best_rate is None else load * self.outcome.best_rate
        for number, systems in enumerate(rounds):
            each = (self.clock() - begun) / number if number else 0.0
            if number >= _FEWEST_ROUNDS and self.clock() + each > until:
                self.outcome.notes.append(f"{what}: {number} of {len(rounds)} rounds fitted into the budget.")
                return
            self.steps.fraction = self.done
            activity = f"{what}, round {number + 1} of {len(rounds)}"
            for name in systems:
                if name in gone:
                    continue
                self.steps(Progress(activity))
                try:
                    figures = measure(name, rate, activity)
                except RackscopeError as error:
                    gone.add(name)
                    self.outcome.failures.append((what, name, error.what))
                    continue
                if load is None:
                    self.outcome.closed.setdefault((self.setting.name, name), []).append(figures)
                else:
                    self.outcome.loaded.setdefault((load, name), []).append(figures)
