"""A percentile of response time over load: a curve that only rises, as queues give no simple form for tails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.models.estimates import Prediction, Validation, leave_groups_out, require_positive, require_same_length
from rackscope.models.gates import ProjectionRefused
from rackscope.models.monotone import BASIS, MonotoneFit, fit_monotone


@dataclass(frozen=True)
class LatencyPercentileModel:
    """``curve`` is over operations per second, of one percentile in seconds."""

    curve: MonotoneFit

    def predict(self, rate_per_second: float) -> Prediction:
        """Seconds at ``rate_per_second``. Raises ProjectionRefused outside of the rates that were measured."""
        require_positive([rate_per_second], "the rate")
        lowest, highest = self.curve.places[0], self.curve.places[-1]
        if not lowest <= rate_per_second <= highest:
            raise ProjectionRefused(
                f"the percentile was measured from {lowest:,.0f} to {highest:,.0f} operations/s, not at "
                f"{rate_per_second:,.0f}",
                "Measure there: tails have no form to continue by.",
            )
        value, low, high = self.curve.interval(rate_per_second)
        return Prediction(value, low, high, "seconds", BASIS, False)

    def highest_rate_within(self, bound_seconds: float) -> float:
        """The highest measured rate at which the curve is within ``bound_seconds``.

        Raises ProjectionRefused for none.
        """
        import numpy as np

        require_positive([bound_seconds], "the bound")
        places, values = np.array(self.curve.places), np.array(self.curve.values)
        within = np.flatnonzero(values <= bound_seconds)
        if len(within) == 0:
            raise ProjectionRefused(
                f"even the lowest rate measured has {values[0]:.3g} s, beyond the bound of {bound_seconds:.3g} s",
                "Measure at lower rates.",
            )
        last = int(within[-1])
        if last == len(places) - 1:
            return float(places[-1])
        share = (bound_seconds - values[last]) / (values[last + 1] - values[last])
        return float(places[last] + share * (places[last + 1] - places[last]))


def fit_latency_percentile(rates_per_second: Sequence[float], seconds: Sequence[float]) -> LatencyPercentileModel:
    """Fit from one percentile at four rates or more. Raises RackscopeError for less or for values not above zero."""
    require_same_length(rates=rates_per_second, response_times=seconds)
    require_positive(rates_per_second, "the rate")
    require_positive(seconds, "the response time")
    return LatencyPercentileModel(fit_monotone(rates_per_second, seconds, "rates"))


def validate_latency_percentile(rates_per_second: Sequence[float], seconds: Sequence[float]) -> Validation:
    """Each rate predicted from the others; the lowest and the highest are refused, as nothing is beyond them."""
    return leave_groups_out(
        list(zip(rates_per_second, seconds, strict=True)),
        lambda point: point[0],
        lambda others, point: fit_latency_percentile([one[0] for one in others], [one[1] for one in others]).predict(
            point[0]
        ),
        lambda point: point[1],
    )
