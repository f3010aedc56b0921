"""How much load a server takes within a bound of response time, when nothing but its capacity is known: M/M/c.

Arrivals at random (Poisson), ``units`` equal units with one queue, exponential service: Kleinrock 1975, 3.5; Gross and
Harris, Fundamentals of Queueing Theory, 2.3. Real latency has other causes too, so what comes of it is an upper bound
of the load, called modelled; a measured curve (``study slo``) is better wherever there is one.
"""

from __future__ import annotations

import math

from rackscope.errors import RackscopeError

#: Bisection ends when the rate is known to this share.
_PRECISION = 1e-9


def waiting_probability(offered: float, units: int) -> float:
    """The probability that an arrival must wait (Erlang C). ``offered``: units busy on average, below ``units``."""
    blocked = 1.0
    for count in range(1, units + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - offered / units * (1 - blocked))


def late_probability(rate_per_second: float, capacity_per_second: float, units: int, bound_seconds: float) -> float:
    """The probability that a response takes longer than ``bound_seconds``; 1 from the capacity on."""
    if rate_per_second >= capacity_per_second:
        return 1.0
    service = capacity_per_second / units
    offered = rate_per_second / service
    waits, spare = waiting_probability(offered, units), units - 1 - offered
    served = service * bound_seconds
    # e^-served (1 - e^(-served spare)) / spare: where waiting and service go equally fast, spare is zero.
    difference = served * spare
    if abs(difference) < 1e-9:
        both = math.exp(-served) * served
    elif abs(difference) < 1:
        both = -math.exp(-served) * math.expm1(-difference) / spare
    else:
        both = (math.exp(-served) - math.exp(-served * (units - offered))) / spare
    return min(1.0, math.exp(-served) + waits * both)


def rate_within(capacity_per_second: float, units: int, bound_seconds: float, quantile: float) -> float:
    """The most load at which ``quantile`` (such as 0.99) of responses take at most ``bound_seconds``; 0 without any.

    Raises RackscopeError when capacity or bound is not above zero, units below one, or the quantile no share.
    """
    if not (capacity_per_second > 0 and bound_seconds > 0 and units >= 1 and 0 < quantile < 1):
        raise RackscopeError(
            f"capacity {capacity_per_second:g}/s of {units} units cannot keep to {bound_seconds:g} s at {quantile:g}",
            "Capacity and bound must be above zero, units one or more, and the quantile between 0 and 1.",
        )
    allowed = 1 - quantile
    low, high = 0.0, capacity_per_second
    if late_probability(low, capacity_per_second, units, bound_seconds) > allowed:
        return 0.0
    while high - low > _PRECISION * capacity_per_second:
        middle = (low + high) / 2
        if late_probability(middle, capacity_per_second, units, bound_seconds) <= allowed:
            low = middle
        else:
            high = middle
    return low
