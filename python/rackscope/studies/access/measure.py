"""How ``study access`` measures: it fills the stores, and asks each in turn, round after round."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rackscope.runs.options import Progress, ProgressCallback
from rackscope.studies.access.plan import Plan, Setting
from rackscope.studies.access.program import Filled, Measured, Program
from rackscope.studies.bench.interference import Interference, Judge
from rackscope.studies.bench.turns import paced
from rackscope.studies.kit import counted
from rackscope.units import format_count


@dataclass
class Outcome:
    interference: Interference
    filled: dict[tuple[str, int], Filled] = field(default_factory=dict)
    measured: dict[tuple[str, Setting], list[Measured]] = field(default_factory=dict)
    rounds: int = 0
    notes: list[str] = field(default_factory=list)


def carry_out(
    plan: Plan,
    bench: Program,
    outcome: Outcome,
    progress: ProgressCallback,
    save: Callable[[], None],
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Fill all stores, then measure round after round; ``outcome`` holds what there is, whatever ends this."""
    stores = [(access, cores) for cores in plan.cores for access in plan.structures]
    for access, cores in stores:
        what = f"filling {format_count(plan.items)} items for {access} on {counted(cores, 'core')}"
        progress(Progress(what, len(outcome.filled) / len(stores)))
        outcome.filled[access, cores] = bench.fill(access, cores, plan.partitions(cores))
    for cells in paced(plan.rounds(), clock() + plan.budget_seconds, clock, fewest=1):
        for position, (access, setting) in enumerate(cells):
            done = (outcome.rounds + position / len(cells)) / plan.repetitions
            progress(Progress(f"round {outcome.rounds + 1} of {plan.repetitions}", done))
            measured = _measure(plan, bench, outcome.interference, access, setting)
            outcome.measured.setdefault((access, setting), []).append(measured)
        outcome.rounds += 1
        save()
    if outcome.rounds < plan.repetitions:
        outcome.notes.append(
            f"{outcome.rounds} of {plan.repetitions} rounds fitted into the budget of {plan.budget_seconds:g} s."
        )


def _measure(plan: Plan, bench: Program, interference: Interference, access: str, setting: Setting) -> Measured:
    """Once, or again where there was interference."""

    def once(begin: Callable[[], Judge]) -> dict[str, Any]:
        judge = begin()
        measured = bench.measure(access, setting, plan.seconds)
        row = {"system_cpu_seconds": measured.cpu_seconds, "measured": measured}
        return {**row, "discarded": judge(row) or None}

    measured: Measured = interference.measure(once)["measured"]
    return measured
