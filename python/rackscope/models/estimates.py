"""What every model answers with: a value with its interval and how that was obtained, and how often it held."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackscope.errors import RackscopeError
from rackscope.models.uncertain import Array

#: Said of predictions outside of what was measured, whose interval knows of noise only.
EXTRAPOLATED = "; outside of what was measured it also assumes that the model's form holds"
#: The level of every interval of a prediction, two-sided.
LEVEL = 0.90


@dataclass(frozen=True)
class Prediction:
    """A modelled value of ``unit`` and the interval that the next measurement falls into ``level`` of the time.

    ``basis`` says in words how the interval was obtained, ``extrapolated`` whether it lies outside of what was
    measured.
    """

    value: float
    low: float
    high: float
    unit: str
    basis: str
    extrapolated: bool
    level: float = LEVEL

    def contains(self, value: float) -> bool:
        return self.low <= value <= self.high


def ends_of(draws: Array) -> tuple[float, float, float]:
    """The low end, the median and the high end of draws: ``LEVEL`` of them lie between the ends."""
    low, middle, high = (float(one) for one in np.quantile(draws, ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)))
    return low, middle, high


def from_draws(draws: Array, unit: str, basis: str, extrapolated: bool = False) -> Prediction:
    """The median of draws, and the ends between which ``LEVEL`` of them lie."""
    low, value, high = ends_of(draws)
    return Prediction(value, low, high, unit, basis, extrapolated)


@dataclass(frozen=True)
class LeftOut:
    """A measurement that the model did not see, and what it said of it."""

    measured: float
    prediction: Prediction

    @property
    def error(self) -> float:
        """Predicted less measured, as a share of what was measured."""
        return self.prediction.value / self.measured - 1


@dataclass(frozen=True)
class Validation:
    """Errors on measurements that were left out; ``refused`` counts those that the model would not predict."""

    cases: tuple[LeftOut, ...]
    refused: int

    @property
    def mean_error(self) -> float:
        """Mean of the absolute errors, as a share; NaN without cases."""
        return sum(abs(one.error) for one in self.cases) / len(self.cases) if self.cases else math.nan

    def error_quantile(self, quantile: float) -> float:
        """Quantile (0 to 1) of the absolute errors; NaN without cases."""
        return float(np.quantile([abs(one.error) for one in self.cases], quantile)) if self.cases else math.nan

    @property
    def coverage(self) -> float:
        """Share of the measurements inside their intervals; NaN without cases."""
        held = sum(one.prediction.contains(one.measured) for one in self.cases)
        return held / len(self.cases) if self.cases else math.nan


def require_positive(values: Sequence[float], what: str) -> None:
    """Raises RackscopeError with the first value that is not a finite number above zero."""
    for place, value in enumerate(values):
        if not 0 < value < math.inf:
            raise RackscopeError(
                f"{what} of point {place + 1} is {value:g}, not above zero",
                "Leave the point out, or give it in base units.",
            )


def require_points(fewest: int, plural: str, **columns: Sequence[float]) -> None:
    """Raises RackscopeError unless all columns are of one length and above zero, and the first has ``fewest`` values.

    The keywords are what the columns are called; ``plural`` are several different values of the first.
    """
    require_same_length(**columns)
    for name, values in columns.items():
        require_positive(values, f"the {name.replace('_', ' ')}")
    require_distinct(next(iter(columns.values())), fewest, plural)


def require_same_length(**columns: Sequence[float] | Sequence[float | None]) -> None:
    """Raises RackscopeError unless all columns are of one length."""
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{count} of {name.replace('_', ' ')}" for name, count in lengths.items())
        raise RackscopeError(f"the columns differ in length: {said}", "Give one of each for every measurement.")


def require_distinct(values: Sequence[float], least: int, what: str) -> None:
    """Raises RackscopeError unless there are ``least`` different values (within 0.1 % is the same)."""
    distinct = count_distinct(values)
    if distinct < least:
        raise RackscopeError(
            f"{distinct} different {what}, and at least {least} are needed", f"Measure at more {what}."
        )


def count_distinct(values: Sequence[float]) -> int:
    """Different values, where those within 0.1 % of each other are one: a clock does not hold its frequency exactly."""
    distinct, last = 0, -math.inf
    for value in sorted(values):
        if value > last + abs(value) * 1e-3:
            distinct, last = distinct + 1, value
    return distinct
