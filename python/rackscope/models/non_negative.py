"""A sum of known terms with coefficients that cannot be negative, fitted to values whose errors are relative.

Lawson and Hanson's non-negative least squares (1974), with every row divided by its value, as measured times and
rates scatter in proportion to themselves. The interval is Student's t for the next measurement, from the residuals and
the covariance of those coefficients that are not at zero; on logarithms, so that it stays above zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from rackscope.analysis.intervals import student_quantile
from rackscope.analysis.wording import listing
from rackscope.errors import RackscopeError
from rackscope.models.estimates import LEVEL, require_positive
from rackscope.models.uncertain import Array

#: Fits reweighted by their own values, so that noise in a value does not weigh its row.
_ROUNDS = 4
#: Terms this much alike (condition of the scaled matrix) are one term to the data.
_LARGEST_CONDITION = 1e8
#: A negative coefficient is noise where its term is less than this share of the values.
_NEGLIGIBLE = 0.005

BASIS = "Student's t from the residuals of the fit, which are taken as relative and independent"


@dataclass(frozen=True)
class NonNegativeFit:
    """``coefficients`` in the order of the terms; ``relative_deviation`` is that of one measurement from the fit.

    ``covariance`` is that of the coefficients for a relative deviation of 1, zero where a coefficient is at zero.
    ``negative`` has the terms that the data want below zero, beyond chance: the model does not hold then. ``highest``
    is how large each coefficient may be (95 %), also where it is at zero.
    """

    names: tuple[str, ...]
    coefficients: tuple[float, ...]
    relative_deviation: float
    degrees_of_freedom: int
    covariance: Array
    negative: tuple[str, ...]
    highest: tuple[float, ...]
    squares: float

    def value(self, terms: Sequence[float]) -> float:
        """The sum at ``terms``."""
        return float(np.dot(self.coefficients, terms))

    def interval(
        self, terms: Sequence[float], level: float = LEVEL, *, form_error: float = 0.0
    ) -> tuple[float, float, float]:
        """Value, low and high for one more measurement; ``form_error`` (half, relative) is the form's own."""
        value = self.value(terms)
        if value <= 0:
            raise RackscopeError("the fitted model is zero there", "Measure at points that show all of its terms.")
        spread = float(np.asarray(terms) @ self.covariance @ np.asarray(terms))
        deviation = self.relative_deviation * math.sqrt(1 + max(0.0, spread) / value**2)
        noise = student_quantile(self.degrees_of_freedom, level) * deviation
        reach = math.exp(min(math.hypot(noise, form_error), 700.0))
        return value, value / reach, value * reach


def fit_non_negative(terms: Sequence[Sequence[float]], values: Sequence[float], names: Sequence[str]) -> NonNegativeFit:
    """Fit ``values`` (one a row, above zero) by ``terms`` (rows of one number for each of ``names``).

    Raises RackscopeError for fewer rows than terms and one, values that are not above zero, and terms that the rows
    cannot tell apart.
    """
    count, width = len(values), len(names)
    if count <= width:
        raise RackscopeError(
            f"{count} measurements for {width} unknowns leave no residual to estimate the error from",
            f"Measure at least {width + 1} times.",
        )
    require_positive(values, "the measured value")
    matrix, target = np.asarray(terms, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if not np.all(np.isfinite(matrix)):
        raise RackscopeError("a measurement has a setting that is not a number", "Leave it out.")
    scale = np.linalg.norm(matrix / target[:, None], axis=0)
    if np.any(scale == 0) or np.linalg.cond(matrix / target[:, None] / scale) > _LARGEST_CONDITION:
        raise RackscopeError(
            f"the measurements cannot separate {listing(names)}: they vary together or not at all",
            "Measure where one of them changes and the others do not.",
        )
    fitted = target
    for _ in range(_ROUNDS):
        rows = matrix / fitted[:, None] / scale
        free, _ = scipy.optimize.nnls(rows, target / fitted)
        again = matrix / scale @ free
        if np.any(again <= 0):
            break
        fitted = again
    rows = matrix / fitted[:, None] / scale
    residuals = target / fitted - 1
    squares = float(np.sum(residuals**2))
    active = free > 0
    degrees = count - int(np.count_nonzero(active))
    covariance = np.zeros((width, width))
    covariance[np.ix_(active, active)] = np.linalg.pinv(rows[:, active].T @ rows[:, active])
    deviation = math.sqrt(squares / degrees)
    negative, highest = _unconstrained(rows, target / fitted, names)
    return NonNegativeFit(
        tuple(names),
        tuple((free / scale).tolist()),
        deviation,
        degrees,
        covariance / np.outer(scale, scale),
        negative,
        tuple((np.maximum(highest, free) / scale).tolist()),
        squares,
    )


def _unconstrained(rows: Array, target: Array, names: Sequence[str]) -> tuple[tuple[str, ...], Array]:
    """Without bounds: which coefficients that matter are below zero beyond chance (95 %), and how high each may be."""
    free, *_ = np.linalg.lstsq(rows, target, rcond=None)
    degrees = len(target) - len(names)
    deviation = math.sqrt(float(np.sum((target - rows @ free) ** 2)) / degrees)
    errors = deviation * np.sqrt(np.diag(np.linalg.pinv(rows.T @ rows)))
    reach = student_quantile(degrees, 0.95)
    matters = np.abs(rows * free).max(axis=0) > _NEGLIGIBLE
    highest: Array = free + reach * errors
    negative = tuple(
        name
        for name, value, error, large in zip(names, free, errors, matters, strict=True)
        if large and value + reach * error < 0
    )
    return negative, highest
