"""Curves that only rise: a percentile of response time over load, and power over load.

Isotonic regression (pool adjacent violators, Barlow 1972) with straight lines between. Queues give no simple form for
tails, and power none from idle to full (Barroso and Hoelzle 2007): no form is assumed, so nothing is said outside of
what was measured. The interval comes from how well each place is told by the others: place by place left out, the
errors' root mean square with Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from rackscope.analysis.intervals import student_quantile
from rackscope.errors import RackscopeError
from rackscope.models.estimates import LEVEL, Prediction, require_distinct, require_positive, require_same_length
from rackscope.models.gates import ProjectionRefused
from rackscope.models.uncertain import Array

#: With fewer places there are not two in between to be left out.
_FEWEST_PLACES = 4
_BASIS = "Student's t from the errors at places that were left out one at a time"


@dataclass(frozen=True)
class MonotoneModel:
    """Knots of the curve: ``places`` ascend and differ, ``values`` (of ``unit``) never fall. ``deviation`` is relative.

    ``outside`` says of a place which ones were measured.
    """

    places: tuple[float, ...]
    values: tuple[float, ...]
    deviation: float
    degrees_of_freedom: int
    unit: str
    outside: Callable[[float, float, float], str]

    def predict(self, place: float) -> Prediction:
        """The next measurement at ``place``. Raises ProjectionRefused outside of what was measured."""
        if not self.places[0] <= place <= self.places[-1]:
            said = self.outside(self.places[0], self.places[-1], place)
            raise ProjectionRefused(said, "Measure there: the curve has no form to continue by.")
        value = float(np.interp(place, self.places, self.values))
        reach = math.exp(min(student_quantile(self.degrees_of_freedom, LEVEL) * self.deviation, 700.0))
        return Prediction(value, value / reach, value * reach, self.unit, _BASIS, False)


def fit_latency_percentile(rates_per_second: Sequence[float], seconds: Sequence[float]) -> MonotoneModel:
    """Seconds of one percentile over operations/s, from four rates or more. Raises RackscopeError for less."""
    require_positive(rates_per_second, "the rate")
    return _fit(rates_per_second, seconds, ("rates", "the response time"), "seconds", _outside_rates)


def fit_power_over_load(loads: Sequence[float], watts: Sequence[float]) -> MonotoneModel:
    """Modelled watts over load (0 to 1 of the most), from four loads or more. Raises RackscopeError for less."""
    for load in loads:
        if not 0 <= load <= 1:
            raise RackscopeError(
                f"a load of {load:g} is not a fraction of full load", "Give it between 0 and 1, not in %."
            )
    return _fit(loads, watts, ("loads", "the power"), "watts (modelled)", _outside_loads)


def _outside_rates(low: float, high: float, asked: float) -> str:
    return f"the percentile was measured from {low:,.0f} to {high:,.0f} operations/s, not at {asked:,.0f}"


def _outside_loads(low: float, high: float, asked: float) -> str:
    return f"power was measured from {100 * low:.0f} to {100 * high:.0f} % of load, not at {100 * asked:.0f} %"


def _fit(
    places: Sequence[float],
    values: Sequence[float],
    words: tuple[str, str],
    unit: str,
    outside: Callable[[float, float, float], str],
) -> MonotoneModel:
    require_same_length(**{words[0]: places, "values": values})
    require_positive(values, words[1])
    require_distinct(places, _FEWEST_PLACES, words[0])
    x, y = np.asarray(places, dtype=np.float64), np.log(np.asarray(values, dtype=np.float64))
    errors: list[float] = []
    for left_out in np.unique(x)[1:-1]:
        others = x != left_out
        knots, curve = _curve(x[others], y[others])
        # Interpolated as it is for users: between values, not between logarithms.
        errors += (y[~others] - math.log(float(np.interp(left_out, knots, np.exp(curve))))).tolist()
    knots, curve = _curve(x, y)
    # Neighbours' errors share measurements, which makes their squares count for about half as many.
    degrees = max(1, len(errors) // 2)
    deviation = math.sqrt(np.mean(np.square(errors)))
    return MonotoneModel(tuple(knots.tolist()), tuple(np.exp(curve).tolist()), deviation, degrees, unit, outside)


def _curve(x: Array, y: Array) -> tuple[Array, Array]:
    """Places and the isotonic means of ``y`` there, each weighing as much as it has measurements."""
    places, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(which, weights=y) / counts
    return places, scipy.optimize.isotonic_regression(means, weights=counts.astype(np.float64)).x
