"""The measurements of ``study colocate`` in their order, within a budget; what there is is saved as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rackscope.errors import RackscopeError
from rackscope.runs.options import Progress
from rackscope.studies.colocate.bench import uses_disk

if TYPE_CHECKING:
    from rackscope.runs.options import ProgressCallback
    from rackscope.studies.base import Conduct
    from rackscope.studies.bench.interference import Interference
    from rackscope.studies.colocate.bench import Bench, Figures, Squeezed
    from rackscope.studies.colocate.plan import Plan

#: Share of the budget for squeezing works, before pairs are measured.
_SQUEEZING = 0.45
#: Windows alone before a work is squeezed, that tell what it uses.
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
    #: By work.
    alone: dict[str, list[Figures]] = field(default_factory=dict)
    squeezed: dict[str, Squeezed] = field(default_factory=dict)
    #: By pair.
    rounds: dict[tuple[str, str], list[Round]] = field(default_factory=dict)
    #: Works whose use was measured while others used the host: they would use more.
    hindered: set[str] = field(default_factory=set)
    #: Why a work or pair is missing: its name, the reason.
    failures: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Sentences on what was done to the host meanwhile.
    conditions: list[str] = field(default_factory=list)
    #: How many cores the load generators have to themselves; ``None`` where systems use them, too.
    client_cores: int | None = None


class Steps:
    """Progress of the whole, whatever a system tells of itself meanwhile."""

    def __init__(self, progress: ProgressCallback) -> None:
        self._progress = progress
        self.fraction = 0.0
        self.words = ""

    def __call__(self, step: Progress) -> None:
        words = self.words or step.activity
        self._progress(Progress(words, self.fraction, step.throughput_operations_per_second))


def carry_out(
    plan: Plan,
    conduct: Conduct,
    bench: Bench,
    outcome: Outcome,
    steps: Steps,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Squeeze every work, then measure pairs round by round; ``outcome`` holds what there is, whatever ends this."""
    from rackscope.studies.colocate.findings import describe

    def save(*, whole: bool = True) -> None:
        describe(conduct.record, plan, outcome, whole=whole)
        conduct.save()

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
            save(whole=False)
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
    import numpy as np

    names = set(outcome.alone)
    pairs = [pair for pair in plan.pairs if set(pair) <= names - gone]
    generator = np.random.default_rng(plan.seed)
    order: list[int] = []
    broken: set[tuple[str, str]] = set()
    begun = clock()
    for number in range(plan.rounds):
        each = (clock() - begun) / number if number else 0.0
        if not pairs or (number >= _FEWEST_ROUNDS and clock() + each > end):
            if pairs:
                outcome.notes.append(f"{number} of {plan.rounds} rounds fitted into the budget.")
            return
        # Each second round is the one before it backwards, so that steady drift cancels.
        order = order[::-1] if number % 2 else [int(place) for place in generator.permutation(len(pairs))]
        for at, place in enumerate(order):
            pair = pairs[place]
            if pair in broken:
                continue
            steps.words = f"{pair[0]} beside {pair[1]}, round {number + 1} of {plan.rounds}"
            done = (number + at / len(order)) / plan.rounds
            steps.fraction = _SQUEEZING + (1 - _SQUEEZING) * done
            try:
                measured = _round(plan, bench, pair, backwards=bool(number % 2))
            except RackscopeError as error:
                broken.add(pair)
                outcome.failures.append((f"{pair[0]} beside {pair[1]}", error.what))
                continue
            outcome.rounds.setdefault(pair, []).append(measured)
            outcome.alone[pair[0]].append(measured.first_alone)
            outcome.alone[pair[1]].append(measured.second_alone)
        save()


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
