"""A percentile of response time over load: a curve that only rises, as queues give no simple form for tails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.models.estimates import Prediction, require_positive, require_same_length
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


def fit_latency_percentile(rates_per_second: Sequence[float], seconds: Sequence[float]) -> LatencyPercentileModel:
    """Fit from one percentile at four rates or more. Raises RackscopeError for less or for values not above zero."""
    require_same_length(rates=rates_per_second, response_times=seconds)
    require_positive(rates_per_second, "the rate")
    require_positive(seconds, "the response time")
    return LatencyPercentileModel(fit_monotone(rates_per_second, seconds, "rates"))
