"""Power over core frequency at one load: P = P0 + (P1 - P0)(f / f1)^n, which rises with frequency.

Switching power is k C V^2 f (equation 4 of Issa 2012): n is 1 where the voltage is held and 3 where it follows the
clock. The paper's own equations 5 and 6 have f1 / f in place of (f / f1)^n and are the form for time; see
docs/papers/issa2012.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.models.estimates import EXTRAPOLATED, Prediction, require_points
from rackscope.models.execution_time import require_near
from rackscope.models.gates import ProjectionRefused
from rackscope.models.profiled import BASIS, ProfiledFit, fit_profiled

_FEWEST_FREQUENCIES = 3
_EXPONENTS = tuple(1.0 + step / 10 for step in range(21))


@dataclass(frozen=True)
class PowerOverFrequencyModel:
    """``fixed_watts`` do not scale, ``scaling_watts`` do, at ``reference_hertz``, with ``exponent``. Modelled."""

    fixed_watts: float
    scaling_watts: float
    exponent: float
    reference_hertz: float
    lowest_hertz: float
    highest_hertz: float
    profile: ProfiledFit

    def predict(self, frequency_hertz: float) -> Prediction:
        """Modelled watts at ``frequency_hertz``. Raises ProjectionRefused far from what was measured."""
        require_near(frequency_hertz, self.lowest_hertz, self.highest_hertz)
        ratio = frequency_hertz / self.reference_hertz
        value, low, high = self.profile.interval(lambda exponent: (1.0, ratio**exponent))
        extrapolated = not self.lowest_hertz <= frequency_hertz <= self.highest_hertz
        basis = BASIS.format(unknown="exponent") + EXTRAPOLATED * extrapolated
        return Prediction(value, low, high, "watts (modelled)", basis, extrapolated)


def fit_power_over_frequency(frequencies_hertz: Sequence[float], watts: Sequence[float]) -> PowerOverFrequencyModel:
    """Fit from at least four measurements at three frequencies or more, at one load.

    Raises RackscopeError for less or for values that are not above zero, ProjectionRefused where power falls as
    frequency rises.
    """
    require_points(_FEWEST_FREQUENCIES, "frequencies", frequency=frequencies_hertz, power=watts)
    reference = max(frequencies_hertz)
    ratios = [one / reference for one in frequencies_hertz]
    profile = fit_profiled(
        lambda exponent: [(1.0, ratio**exponent) for ratio in ratios],
        watts,
        ("fixed watts", "scaling watts"),
        _EXPONENTS,
    )
    if "scaling watts" in profile.fit.negative:
        raise ProjectionRefused(
            "no projection of power: it falls as frequency rises, so something else changed with the clock",
            "Hold the load at its rate or at full at every frequency, and measure again.",
        )
    fixed, scaling = profile.fit.coefficients
    return PowerOverFrequencyModel(
        fixed, scaling, profile.unknown, reference, min(frequencies_hertz), max(frequencies_hertz), profile
    )
