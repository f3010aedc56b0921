"""What it is worth to measure before choosing: the value of sample information (Raiffa and Schlaifer 1961).

One of several things is to be chosen, each with a cost that is not known exactly; the choice is the one with the least
expected cost. Measuring one of them first lets one choose again, and its value is by how much that lowers the expected
cost of the choice: never below zero, and zero where no outcome would change it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rackscope.analysis.intervals import student_quantile
from rackscope.errors import RackscopeError
from rackscope.models.non_negative import NonNegativeFit
from rackscope.models.uncertain import NINETY_PERCENT, Array, generator

#: Draws that look alike to a measurement are taken together, so many at a time: fewer would be chance, more would blur.
_DRAWS_A_BIN = 100
#: Parts of the draws, from whose scatter the error of drawing is taken.
_BATCHES = 20
_LEVEL = 0.90


@dataclass(frozen=True)
class MeasuringValue:
    """``value``: how much measuring ``name`` lowers the expected cost of the choice; ``low`` and ``high``: 90 %, for
    the error of drawing.

    ``changes`` is the chance that something else is chosen after it; ``expected_cost`` what it costs as far as known.
    """

    name: str
    expected_cost: float
    value: float
    low: float
    high: float
    changes: float


def measuring_values(costs: Mapping[str, Array], *, error: float = 0.05, seed: int = 1) -> tuple[MeasuringValue, ...]:
    """The value of measuring each of ``costs``, in their unit, in their order.

    ``costs`` are draws of what each would cost, given what measuring it would show (what measuring does not show,
    such as prices, is averaged out beforehand), all of one length. ``error`` is how far off a measurement of the cost
    is (relative, 90 %; 0 is exact). Raises RackscopeError for less than two things, draws that are too few, of several
    lengths, or not finite.
    """
    _check(costs, error)
    names = list(costs)
    values = np.stack([np.asarray(costs[name], dtype=np.float64) for name in names])
    signals = np.stack([_signal(values[place], name, error, seed) for place, name in enumerate(names)])
    batches = np.array_split(np.arange(values.shape[1]), _BATCHES)
    # The error of a mean of the batches, each with a choice of its own.
    parts = np.array([_values(values[:, one], signals[:, one])[0] for one in batches])
    reach = student_quantile(_BATCHES - 1, _LEVEL) * parts.std(axis=0, ddof=1) / math.sqrt(_BATCHES)
    worth, changes = _values(values, signals)
    return tuple(
        MeasuringValue(
            name,
            float(values[place].mean()),
            float(worth[place]),
            float(max(0.0, worth[place] - reach[place])),
            float(worth[place] + reach[place]),
            float(changes[place]),
        )
        for place, name in enumerate(names)
    )


def _values(values: Array, signals: Array) -> tuple[Array, Array]:
    means = values.mean(axis=1)
    best = int(means.argmin())
    worth, changes = np.zeros(len(means)), np.zeros(len(means))
    for place in range(len(means)):
        # What is measured is known up to its bin; its mean there is what one would then expect. Means over equal bins
        # have the mean of all draws, so that looking cannot raise the expected cost.
        order = np.argsort(signals[place], kind="stable")
        bins = np.array_split(values[place][order], max(1, len(order) // _DRAWS_A_BIN))
        shown, weight = np.array([one.mean() for one in bins]), np.array([len(one) for one in bins]) / len(order)
        if place == best:
            gains = np.maximum(0.0, shown - np.delete(means, best).min())
        else:
            gains = np.maximum(0.0, means[best] - shown)
        # Sums of floats that are equal but for their last digits are no gain.
        gains[gains <= 1e-9 * abs(means[best])] = 0.0
        worth[place], changes[place] = float(gains @ weight), float(weight[gains > 0].sum())
    return worth, changes


def _signal(values: Array, name: str, error: float, seed: int) -> Array:
    deviation = math.log1p(error) / NINETY_PERCENT
    return np.asarray(values * np.exp(deviation * generator(f"measuring {name}", seed).standard_normal(len(values))))


def _check(costs: Mapping[str, Array], error: float) -> None:
    if len(costs) < 2:
        raise RackscopeError(
            "a single option leaves no choice, so no measurement is worth anything", "Give two or more."
        )
    lengths = {len(one) for one in costs.values()}
    if len(lengths) > 1 or min(lengths) < _BATCHES * 2:
        raise RackscopeError(f"draws of {sorted(lengths)} cannot be compared", "Give as many of each, 40 at least.")
    wrong = next((name for name, one in costs.items() if not np.all(np.isfinite(one)) or np.any(one <= 0)), None)
    if wrong is not None:
        raise RackscopeError(f"what {wrong} costs is not above zero in every draw", "Look at its prices and rates.")
    if not 0 <= error < math.inf:
        raise RackscopeError(f"an error of {error:g} cannot be", "Give a fraction such as 0.05.")


def narrowing(fit: NonNegativeFit, target: Sequence[float], points: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """How wide the interval of the mean at ``target`` (terms) would be after one more measurement, over what it is.

    One for each of ``points`` (terms of what could be measured), from 0 to 1: the c-optimal next point (Atkinson, Donev
    and Tobias 2007, section 10.3) has the least. It takes the fit to hold there and the scatter to stay as it is.
    Raises RackscopeError where the fit is zero.
    """
    covariance = fit.covariance
    aim = _row(fit, target)
    spread = float(aim @ covariance @ aim)
    if spread <= 0:
        return tuple(1.0 for _ in points)
    # One degree of freedom more makes Student's t narrower, too.
    closer = student_quantile(fit.degrees_of_freedom + 1, _LEVEL) / student_quantile(fit.degrees_of_freedom, _LEVEL)
    left = []
    for point in points:
        row = _row(fit, point)
        gained = float(aim @ covariance @ row) ** 2 / (1 + float(row @ covariance @ row))
        left.append(closer * math.sqrt(max(0.0, 1 - gained / spread)))
    return tuple(left)


def _row(fit: NonNegativeFit, terms: Sequence[float]) -> Array:
    """Terms over their value, as the fit weighs them."""
    value = fit.value(terms)
    if value <= 0:
        raise RackscopeError("the fitted model is zero there", "Measure at points that show all of its terms.")
    return np.asarray(terms, dtype=np.float64) / value
