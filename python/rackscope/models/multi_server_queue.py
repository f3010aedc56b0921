"""How much load a server takes within a bound of response time, when nothing but its capacity is known: M/M/c.

Arrivals at random (Poisson), ``units`` equal units with one queue, exponential service: Kleinrock 1975, 3.5; Gross and
Harris, Fundamentals of Queueing Theory, 2.3. Real latency has other causes too, so what comes of it is an upper bound
of the load, called modelled; a measured curve (``study slo``) is better wherever there is one.
"""

from __future__ import annotations

import math

import scipy

from rackscope.errors import RackscopeError

#: The rate is found to this share of the capacity.
_PRECISION = 1e-9


def erlang_c(servers: int, utilisation: float) -> float:
    """Share of arrivals that wait in M/M/c at ``utilisation`` (0 to 1). Raises RackscopeError for no servers."""
    if servers < 1 or not 0 <= utilisation < 1:
        raise RackscopeError(
            f"a queue of {servers} servers at a utilisation of {utilisation:g} has no steady state",
            "Give one server or more and a utilisation below 1.",
        )
    offered = servers * utilisation
    # Erlang B by its recursion, which does not overflow.
    blocked = 1.0
    for count in range(1, servers + 1):
        blocked = offered * blocked / (count + offered * blocked)
    return blocked / (1 - utilisation * (1 - blocked))


def late_probability(rate_per_second: float, capacity_per_second: float, units: int, bound_seconds: float) -> float:
    """The probability that a response takes longer than ``bound_seconds``; 1 from the capacity on."""
    if rate_per_second >= capacity_per_second:
        return 1.0
    service = capacity_per_second / units
    offered = rate_per_second / service
    waits = erlang_c(units, rate_per_second / capacity_per_second)
    served, drained = service * bound_seconds, service * bound_seconds * (units - offered)
    # (e^-served - e^-drained) / (drained - served), which has a limit where waiting and service go equally fast.
    both = math.exp(-min(served, drained)) * float(scipy.special.exprel(-abs(drained - served)))
    return min(1.0, math.exp(-served) + waits * served * both)


def rate_within(capacity_per_second: float, units: int, bound_seconds: float, quantile: float) -> float:
    """The most load with ``quantile`` of responses within ``bound_seconds``; 0 for none. Raises RackscopeError."""
    if not (capacity_per_second > 0 and bound_seconds > 0 and units >= 1 and 0 < quantile < 1):
        raise RackscopeError(
            f"capacity {capacity_per_second:g}/s of {units} units cannot keep to {bound_seconds:g} s at {quantile:g}",
            "Capacity and bound must be above zero, units one or more, and the quantile between 0 and 1.",
        )
    allowed = 1 - quantile

    def too_many(rate_per_second: float) -> float:
        return late_probability(rate_per_second, capacity_per_second, units, bound_seconds) - allowed

    if too_many(0.0) > 0:
        return 0.0
    return float(scipy.optimize.brentq(too_many, 0.0, capacity_per_second, xtol=_PRECISION * capacity_per_second))
