"""A non-negative fit with one more unknown inside its terms (an exponent, a capacity), found by its profile.

Every value of the unknown that fits about as well (an F test at 90 %, Bates and Watts 1988) is kept, and what those
values would predict widens the interval: far from the measurements they part ways, and the interval shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rackscope.analysis.intervals import student_quantile
from rackscope.errors import RackscopeError
from rackscope.models.estimates import LEVEL
from rackscope.models.non_negative import NonNegativeFit, fit_non_negative

BASIS = "Student's t from the residuals, widened by every value of the fitted {unknown} that fits about as well"


@dataclass(frozen=True)
class ProfiledFit:
    """``unknown`` is the best value, ``fit`` its fit; ``likely`` are the values that fit about as well with theirs."""

    unknown: float
    fit: NonNegativeFit
    likely: tuple[tuple[float, NonNegativeFit], ...]
    degrees_of_freedom: int

    @property
    def unknown_low(self) -> float:
        """The least of the likely values."""
        return min(value for value, _ in self.likely)

    def interval(self, terms: Callable[[float], Sequence[float]]) -> tuple[float, float, float]:
        """Value, low and high for one more measurement; ``terms`` gives its terms for a value of the unknown."""
        value, _, high = self.fit.interval(terms(self.unknown))
        # The unknown takes a degree of freedom, too.
        widening = student_quantile(self.degrees_of_freedom, LEVEL) / student_quantile(
            self.fit.degrees_of_freedom, LEVEL
        )
        widening *= math.sqrt(self.fit.degrees_of_freedom / self.degrees_of_freedom)
        noise = math.log(high / value) * widening
        others = [math.log(max(fit.value(terms(unknown)), 1e-300) / value) for unknown, fit in self.likely]
        below, above = min(0.0, *others, 0.0), max(0.0, *others, 0.0)
        down, up = math.hypot(below, noise), math.hypot(above, noise)
        return value, value * math.exp(-min(down, 700.0)), value * math.exp(min(up, 700.0))


def fit_profiled(
    terms: Callable[[float], Sequence[Sequence[float]]],
    values: Sequence[float],
    names: Sequence[str],
    candidates: Sequence[float],
) -> ProfiledFit:
    """Fit for each candidate of the unknown (ascending), keep the likely. RackscopeError for too few measurements."""
    from scipy.optimize import minimize_scalar

    if len(values) < len(names) + 2:
        raise RackscopeError(
            f"{len(values)} measurements for {len(names) + 1} unknowns leave no residual to estimate the error from",
            f"Measure at least {len(names) + 2} times.",
        )
    fits = [(one, fit_non_negative(terms(one), values, names)) for one in candidates]
    place = min(range(len(fits)), key=lambda index: fits[index][1].squares)
    low, high = candidates[max(0, place - 1)], candidates[min(len(candidates) - 1, place + 1)]
    found = minimize_scalar(
        lambda one: fit_non_negative(terms(one), values, names).squares,
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-4 * (high - low)},
    )
    unknown = float(found.x)
    best = fit_non_negative(terms(unknown), values, names)
    if best.squares > fits[place][1].squares:
        unknown, best = fits[place]
    degrees = max(1, best.degrees_of_freedom - 1)
    most = best.squares * (1 + student_quantile(degrees, LEVEL) ** 2 / degrees)
    likely = [(one, fit) for one, fit in fits if fit.squares <= most]
    return ProfiledFit(unknown, best, ((unknown, best), *likely), degrees)
