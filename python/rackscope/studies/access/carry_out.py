"""Filling the stores and measuring them, round after round; what there is is said and saved after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rackscope.studies.access.plan import ACCESS_MODES, Plan, Setting, cores_words
from rackscope.units import format_count

if TYPE_CHECKING:
    from rackscope.studies.access.program import Bench, Filled, Measured
    from rackscope.studies.base import Conduct
    from rackscope.studies.bench.interference import Interference


@dataclass
class Outcome:
    """What there is so far."""

    interference: Interference
    filled: dict[tuple[str, int], Filled] = field(default_factory=dict)
    measured: dict[tuple[str, Setting], list[Measured]] = field(default_factory=dict)
    rounds: int = 0
    notes: list[str] = field(default_factory=list)


def carry_out(
    plan: Plan, conduct: Conduct, bench: Bench, outcome: Outcome, clock: Callable[[], float] = time.monotonic
) -> None:
    """Fill all stores, then measure round after round; ``outcome`` holds what there is, whatever ends this."""
    from rackscope.runs.options import Progress
    from rackscope.studies.access.findings import describe

    stores = [(access, cores) for cores in plan.cores for access in ACCESS_MODES]
    for access, cores in stores:
        what = f"filling {format_count(plan.items)} items for {access} on {cores_words(cores)}"
        conduct.progress(Progress(what, len(outcome.filled) / len(stores)))
        outcome.filled[access, cores] = bench.fill(access, cores)
    begun = clock()
    for number, cells in enumerate(plan.rounds(), 1):
        spent = clock() - begun
        if number > 1 and spent + spent / (number - 1) > plan.budget_seconds:
            outcome.notes.append(
                f"{number - 1} of {plan.repetitions} rounds fitted into the budget of {plan.budget_seconds:g} s."
            )
            break
        for place, (access, setting) in enumerate(cells):
            done = (number - 1 + place / len(cells)) / plan.repetitions
            conduct.progress(Progress(f"round {number} of {plan.repetitions}", done))
            measured = _measure(plan, bench, outcome.interference, access, setting)
            outcome.measured.setdefault((access, setting), []).append(measured)
        outcome.rounds = number
        describe(conduct.record, plan, outcome)
        conduct.save()


def _measure(plan: Plan, bench: Bench, interference: Interference, access: str, setting: Setting) -> Measured:
    """Once, or again where others took part of the host meanwhile."""
    latest: list[Measured] = []

    def once(begin: Callable[[], Callable[[Mapping[str, Any]], str]]) -> dict[str, Any]:
        judge = begin()
        latest.append(bench.measure(access, setting, plan.seconds))
        row = {"system_cpu_seconds": latest[-1].cpu_seconds}
        return {**row, "discarded": judge(row) or None}

    interference.measure(once)
    return latest[-1]
