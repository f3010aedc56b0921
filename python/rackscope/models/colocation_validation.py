"""How far co-location is predicted wrongly: every pair from the others, and what is then called safe."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rackscope.analysis.intervals import student_quantile
from rackscope.errors import RackscopeError
from rackscope.models.colocation import FEWEST_PAIRS, ColocationModel, Side, Slowdown, fit_colocation, textbook
from rackscope.models.estimates import LEVEL, LeftOut, Prediction, Validation


@dataclass(frozen=True)
class ColocationValidation:
    """Every pair predicted from the others, both of its sides left out together.

    ``validation`` has what each measurement should be, its own noise included; ``predicted`` the slowdowns that would
    have been told, in the same order as ``sides``.
    """

    sides: tuple[Side, ...]
    predicted: tuple[Slowdown, ...]
    validation: Validation
    bound: float

    @property
    def called_safe(self) -> int:
        """Sides whose slowdown was said to stay below the bound."""
        return sum(one.is_safe(self.bound) for one in self.predicted)

    @property
    def wrongly_safe(self) -> int:
        """Of those, the ones that lost the bound or more."""
        return sum(
            one.is_safe(self.bound) and -math.expm1(side.log_kept) >= self.bound
            for one, side in zip(self.predicted, self.sides, strict=True)
        )


def validate_colocation(
    sides: Sequence[Side], capacities: Mapping[str, float], bound: float = 0.05
) -> ColocationValidation:
    """Leave one pair out at a time. With fewer than three others they are predicted by the textbook."""
    shown: list[Side] = []
    predicted: list[Slowdown] = []
    cases: list[LeftOut] = []
    refused = 0
    for pair in dict.fromkeys(side.pair for side in sides):
        others = [side for side in sides if side.pair != pair]
        model = fitted_or_textbook(others, capacities)
        for side in (side for side in sides if side.pair == pair):
            try:
                slowdown = model.predict(side.workload, side.neighbour)
            except RackscopeError:
                refused += 1
                continue
            shown.append(side)
            predicted.append(slowdown)
            cases.append(LeftOut(math.exp(side.log_kept), of_measurement(model, slowdown.kept, side.error)))
    return ColocationValidation(tuple(shown), tuple(predicted), Validation(tuple(cases), refused), bound)


def of_measurement(model: ColocationModel, kept: Prediction, error: float) -> Prediction:
    """What a measurement with a standard error of its own (of the logarithm) should give."""
    noise = student_quantile(model.degrees, LEVEL) * error
    low = kept.value * math.exp(-math.hypot(math.log(kept.value / kept.low), noise))
    high = kept.value * math.exp(math.hypot(math.log(kept.high / kept.value), noise))
    return replace(kept, low=low, high=high)


def fitted_or_textbook(sides: Sequence[Side], capacities: Mapping[str, float]) -> ColocationModel:
    """Fitted where there are pairs enough."""
    if len({side.pair for side in sides}) < FEWEST_PAIRS:
        return textbook(capacities)
    return fit_colocation(sides, capacities)
