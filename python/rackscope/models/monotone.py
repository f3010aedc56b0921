"""A curve that only rises: isotonic regression (pool adjacent violators, Barlow 1972) with straight lines between.

No form is assumed, so nothing is said outside of what was measured. The interval comes from how well each place is told
by the others: place by place left out, the errors' root mean square with Student's t.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackscope.analysis.intervals import student_quantile
from rackscope.errors import RackscopeError
from rackscope.models.estimates import LEVEL

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

#: With fewer places there are not two in between to be left out.
FEWEST_PLACES = 4
BASIS = "Student's t from the errors at places that were left out one at a time"


@dataclass(frozen=True)
class MonotoneFit:
    """Knots of the curve: ``places`` ascend and differ, ``values`` never fall. ``deviation`` is relative."""

    places: tuple[float, ...]
    values: tuple[float, ...]
    deviation: float
    degrees_of_freedom: int

    def value(self, place: float) -> float:
        """The curve at ``place``, which must be within the knots."""
        import numpy as np

        return float(np.interp(place, self.places, self.values))

    def interval(self, place: float) -> tuple[float, float, float]:
        """Value, low and high for one more measurement at ``place``."""
        value = self.value(place)
        reach = math.exp(min(student_quantile(self.degrees_of_freedom, LEVEL) * self.deviation, 700.0))
        return value, value / reach, value * reach


def fit_monotone(places: Sequence[float], values: Sequence[float], what: str) -> MonotoneFit:
    """Fit values above zero over places, of which ``what`` is the name.

    Raises RackscopeError for fewer than four places.
    """
    import numpy as np

    x, y = np.asarray(places, dtype=np.float64), np.log(np.asarray(values, dtype=np.float64))
    distinct = np.unique(x)
    if len(distinct) < FEWEST_PLACES:
        raise RackscopeError(
            f"{len(distinct)} different {what}, and at least {FEWEST_PLACES} are needed", f"Measure at more {what}."
        )
    errors = []
    for left_out in distinct[1:-1]:
        others = x != left_out
        knots, curve = _curve(x[others], y[others])
        # Interpolated as it is for users: between values, not between logarithms.
        expected = math.log(float(np.interp(left_out, knots, np.exp(curve))))
        errors += [float(one) - expected for one in y[~others]]
    deviation = math.sqrt(sum(one**2 for one in errors) / len(errors))
    knots, curve = _curve(x, y)
    # Neighbours' errors share measurements, which makes their squares count for about half as many.
    degrees = max(1, len(errors) // 2)
    return MonotoneFit(
        tuple(float(one) for one in knots), tuple(float(one) for one in np.exp(curve)), deviation, degrees
    )


def _curve(x: Array, y: Array) -> tuple[Array, Array]:
    """Places and the isotonic means of ``y`` there, each weighing as much as it has measurements."""
    import numpy as np
    from scipy.optimize import isotonic_regression

    places, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(which, weights=y) / counts
    return places, isotonic_regression(means, weights=counts.astype(np.float64)).x
