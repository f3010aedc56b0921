"""Power over load at one frequency: a curve that only rises, from idle to full (Barroso and Hoelzle 2007)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.errors import RackscopeError
from rackscope.models.estimates import Prediction, require_positive, require_same_length
from rackscope.models.gates import ProjectionRefused
from rackscope.models.monotone import BASIS, MonotoneFit, fit_monotone


@dataclass(frozen=True)
class PowerOverLoadModel:
    """``curve`` is over load as a share of the most that the server does, 0 to 1. Modelled."""

    curve: MonotoneFit

    def predict(self, load: float) -> Prediction:
        """Modelled watts at ``load`` (0 to 1). Raises ProjectionRefused outside of the loads that were measured."""
        _require_loads([load])
        lowest, highest = self.curve.places[0], self.curve.places[-1]
        if not lowest <= load <= highest:
            raise ProjectionRefused(
                f"power was measured from {100 * lowest:.0f} to {100 * highest:.0f} % of load, not at "
                f"{100 * load:.0f} %",
                "Measure there: the curve has no form to continue by.",
            )
        value, low, high = self.curve.interval(load)
        return Prediction(value, low, high, "watts (modelled)", BASIS, False)


def fit_power_over_load(loads: Sequence[float], watts: Sequence[float]) -> PowerOverLoadModel:
    """Fit from at least four loads between 0 and 1.

    Raises RackscopeError for less, and for watts that are not above zero.
    """
    require_same_length(loads=loads, watts=watts)
    _require_loads(loads)
    require_positive(watts, "the power")
    return PowerOverLoadModel(fit_monotone(loads, watts, "loads"))


def _require_loads(loads: Sequence[float]) -> None:
    for load in loads:
        if not 0 <= load <= 1 or math.isnan(load):
            raise RackscopeError(
                f"a load of {load:g} is not a fraction of full load", "Give it between 0 and 1, not in %."
            )
