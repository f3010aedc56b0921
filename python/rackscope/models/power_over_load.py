"""Power over load at one frequency: a curve that only rises, from idle to full (Barroso and Hoelzle 2007)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.errors import RackscopeError
from rackscope.models.estimates import Prediction, Validation, leave_groups_out, require_positive, require_same_length
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

    @property
    def dynamic_share(self) -> float:
        """What the highest measured load adds to the lowest, as a share of it: 1 is proportional, 0 is constant."""
        return 1 - self.curve.values[0] / self.curve.values[-1]


def fit_power_over_load(loads: Sequence[float], watts: Sequence[float]) -> PowerOverLoadModel:
    """Fit from at least four loads between 0 and 1.

    Raises RackscopeError for less, and for watts that are not above zero.
    """
    require_same_length(loads=loads, watts=watts)
    _require_loads(loads)
    require_positive(watts, "the power")
    return PowerOverLoadModel(fit_monotone(loads, watts, "loads"))


def validate_power_over_load(loads: Sequence[float], watts: Sequence[float]) -> Validation:
    """Each load predicted from the others; the lowest and the highest are refused, as nothing is beyond them."""
    return leave_groups_out(
        list(zip(loads, watts, strict=True)),
        lambda point: point[0],
        lambda others, point: fit_power_over_load([one[0] for one in others], [one[1] for one in others]).predict(
            point[0]
        ),
        lambda point: point[1],
    )


def _require_loads(loads: Sequence[float]) -> None:
    for load in loads:
        if not 0 <= load <= 1 or math.isnan(load):
            raise RackscopeError(
                f"a load of {load:g} is no share of the most that the server does", "Give it between 0 and 1, not in %."
            )
