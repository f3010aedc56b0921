"""Mean response time over load: a queue before several servers, with what does not queue.

W(rate) = fixed + queueing x q(rate / capacity), where q is the mean wait of M/M/c in service times (Erlang C: Kleinrock
1975). Letting ``queueing`` differ from the service time takes up burstiness and uneven requests as the approximation of
Allen and Cunneen does (Allen 1990). Valid below capacity only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.analysis.latency_curve import CurvePoint
from rackscope.errors import RackscopeError
from rackscope.models.estimates import EXTRAPOLATED, Prediction, require_points, require_positive
from rackscope.models.gates import Gate, ProjectionRefused, little_gate, log_slope, require
from rackscope.models.multi_server_queue import erlang_c
from rackscope.models.profiled import BASIS, ProfiledFit, fit_profiled

_FEWEST_LOADS = 5
#: Capacities that are tried, as shares above the highest rate that was reached.
_ABOVE = tuple(0.002 * 1.16**step for step in range(55))


@dataclass(frozen=True)
class MeanLatencyModel:
    """``fixed_seconds`` without load, ``queueing_seconds`` before the queue's shape, ``capacity`` in operations/s.

    ``capacity_low`` is the least capacity that fits about as well: no mean is stated at or beyond it.
    """

    fixed_seconds: float
    queueing_seconds: float
    capacity: float
    capacity_low: float
    servers: int
    lowest_rate: float
    highest_rate: float
    gates: tuple[Gate, ...]
    profile: ProfiledFit

    def predict(self, rate_per_second: float) -> Prediction:
        """Mean response seconds at ``rate_per_second``. Raises ProjectionRefused where capacity may be reached."""
        require_positive([rate_per_second], "the rate")
        if rate_per_second > self.highest_rate and rate_per_second >= self.capacity_low:
            raise ProjectionRefused(
                f"{rate_per_second:,.0f} operations/s may be beyond capacity, which is {self.capacity:,.0f} and may be "
                f"{self.capacity_low:,.0f}: a queue that grows has no mean",
                "Ask for less, or measure nearer to capacity.",
            )
        value, low, high = self.profile.interval(
            lambda capacity: (1.0, _waiting(rate_per_second / capacity, self.servers))
        )
        extrapolated = not self.lowest_rate <= rate_per_second <= self.highest_rate
        basis = BASIS.format(unknown="capacity") + EXTRAPOLATED * extrapolated
        return Prediction(value, low, high, "seconds", basis, extrapolated)


def fit_mean_latency(
    rates_per_second: Sequence[float],
    mean_seconds: Sequence[float],
    *,
    servers: int,
    outstanding: Sequence[float | None] | None = None,
) -> MeanLatencyModel:
    """Fit from mean response times at five rates or more; ``servers`` are the cores or threads that serve at a time.

    ``outstanding`` is the mean number of requests in the system at each rate, counted apart from the times: with it
    Little's law is checked first. Raises RackscopeError for less, ProjectionRefused where the law fails.
    """
    require_points(_FEWEST_LOADS, "rates", rate=rates_per_second, mean_response_time=mean_seconds)
    if servers < 1:
        raise RackscopeError(
            f"{servers} servers cannot serve requests", "Give the cores or threads that serve at a time."
        )
    counted = [None] * len(mean_seconds) if outstanding is None else list(outstanding)
    points = [
        CurvePoint(achieved=rate, latency_seconds=mean, mean_response_seconds=mean, mean_outstanding=count)
        for rate, mean, count in zip(rates_per_second, mean_seconds, counted, strict=True)
    ]
    gates = require(little_gate(points))
    highest = max(rates_per_second)
    profile = fit_profiled(
        lambda capacity: [(1.0, _waiting(rate / capacity, servers)) for rate in rates_per_second],
        mean_seconds,
        ("fixed", "queueing"),
        [highest * (1 + above) for above in _ABOVE],
    )
    slope = log_slope(rates_per_second, mean_seconds)
    if "queueing" in profile.fit.negative or (slope is not None and slope[2] < 0):
        raise ProjectionRefused(
            "no projection over load: response times fall as load rises",
            "Look for what idles at low load (clock, sleep states, batching), and fit from where they rise.",
        )
    fixed, queueing = profile.fit.coefficients
    return MeanLatencyModel(
        fixed,
        queueing,
        profile.unknown,
        profile.unknown_low,
        servers,
        min(rates_per_second),
        highest,
        gates,
        profile,
    )


def _waiting(utilisation: float, servers: int) -> float:
    """Mean wait of M/M/c in service times; very long where the rate is at a capacity that is only tried."""
    utilisation = min(utilisation, 1 - 1e-9)
    return erlang_c(servers, utilisation) / (servers * (1 - utilisation))
