"""What a paper found, set beside what was measured here: direction and size, with an interval over rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.studies.sweep.measure import Outcome
from rackscope.studies.sweep.plan import SweepPlan
from rackscope.studies.sweep.presets import Claim, Direction, nearest_level

#: Within a tenth either way a figure in a paper is drawn as flat. Our choice.
FLAT = 0.1
_QUANTITIES = {"throughput": "throughput", "mean": "mean response time", "p99": "99th percentile"}
_FIELDS = {"throughput": "rate", "mean": "mean_seconds", "p99": "p99_seconds"}


@dataclass(frozen=True)
class Answer:
    """A claim for one system: the ratio from ``start`` to ``end``, and the direction that is shown (``None``: none)."""

    claim: Claim
    system: str
    start: str
    end: str
    ratio: Interval
    direction: Direction | None

    @property
    def agrees(self) -> bool | None:
        """Whether this host responds as the paper's did; ``None`` when that is inconclusive."""
        return None if self.direction is None else self.direction == self.claim.direction

    def sentence(self) -> str:
        """``memcached: throughput x1.08 from threads=1 to 4 (rises, as in the paper)``."""
        verdict = {
            None: "inconclusive",
            True: f"{self.direction}, as in the paper",
            False: f"{self.direction}, unlike in the paper",
        }[self.agrees]
        interval = "" if self.ratio.low is None else f" [{self.ratio.low:.2f}, {self.ratio.high:.2f}]"
        quantity = _QUANTITIES[self.claim.quantity]
        factor = f"{self.claim.factor}={self.start}"
        return f"{self.system}: {quantity} x{self.ratio.estimate:.2f}{interval} from {factor} to {self.end}: {verdict}"


def answer_claims(plan: SweepPlan, outcome: Outcome, claims: Sequence[Claim]) -> list[Answer]:
    """Every claim for every system that was measured. Intervals hold together, after Bonferroni."""
    systems = next((one.levels for one in plan.factors if one.name == "system"), (plan.options.system,))
    levels = {factor.name: factor.levels for factor in plan.factors}
    found: list[tuple[Claim, str, str, str, list[float]]] = []
    for system in systems:
        for claim in claims:
            start = nearest_level(levels.get(claim.factor, ()), claim.start)
            end = nearest_level(levels.get(claim.factor, ()), claim.end)
            if start is None or end is None or start == end:
                continue
            ratios = _log_ratios(plan, outcome, claim, system, start, end)
            if ratios:
                found.append((claim, system, start, end, ratios))
    return [_answer(*one, len(found)) for one in found]


def _answer(claim: Claim, system: str, start: str, end: str, ratios: Sequence[float], together: int) -> Answer:
    logs = mean_interval(ratios, confidence=1 - 0.05 / together)
    ratio = replace(logs.exponential(), confidence=0.95)
    low, high = ratio.low, ratio.high
    direction: Direction | None = None
    if low is not None and high is not None:
        if low > 1 - FLAT and high < 1 + FLAT:
            direction = "flat"
        elif low > 1 or high < 1:
            direction = "rises" if low > 1 else "falls"
    return Answer(claim, system, start, end, ratio, direction)


def _log_ratios(plan: SweepPlan, outcome: Outcome, claim: Claim, system: str, start: str, end: str) -> list[float]:
    """One a round: the mean, over the other factors' levels, of the logarithm of the ratio."""
    cells = plan.cells
    by_levels = {tuple(sorted(cell.levels.items())): number for number, cell in enumerate(cells)}
    ratios = []
    for repetition in range(1, plan.repetitions + 1):
        logs = []
        for number, cell in enumerate(cells):
            if cell.levels.get(claim.factor) != start or cell.levels.get("system", system) != system:
                continue
            other = by_levels[tuple(sorted({**cell.levels, claim.factor: end}.items()))]
            below = _figure(outcome, number, repetition, claim.quantity)
            above = _figure(outcome, other, repetition, claim.quantity)
            if below and above:
                logs.append(math.log(above / below))
        if logs:
            ratios.append(math.fsum(logs) / len(logs))
    return ratios


def _figure(outcome: Outcome, cell: int, repetition: int, quantity: str) -> float | None:
    figures = outcome.figures.get((cell, repetition))
    value: float | None = None if figures is None else getattr(figures, _FIELDS[quantity])
    return value
