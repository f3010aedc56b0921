"""A closed queueing network of clients and servers, and what it does on average.

Each client has one request under way at a time: it thinks, its request spends a time in which nothing queues (wires,
the client's own side), passes the stations that all share, then those of one server chosen at random, all servers
equally. With exponential service, first come first served, this has a product form (Baskett, Chandy, Muntz and
Palacios 1975), and its means are exact: mean value analysis (Reiser and Lavenberg 1980), with the marginal
probabilities that stations of several units need (Lazowska, Zahorjan, Graham and Sevcik 1984, chapter 20).
``closed_network_simulation`` checks it, and shows what other distributions of service would change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

from rackscope.errors import RackscopeError

#: Marginal probabilities are got by a subtraction in which rounding errors can grow; from here on they would show.
_LARGEST_ROUNDING_ERROR = 1e-9


@dataclass(frozen=True)
class Station:
    """Where requests queue for one of ``units`` equal units, each busy for ``service_seconds`` a request on average."""

    name: str
    service_seconds: float
    units: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.service_seconds) and self.service_seconds >= 0):
            raise RackscopeError(
                f"station '{self.name}' has a service time of {self.service_seconds:g} s", "Give it zero or more."
            )
        if self.units < 1:
            raise RackscopeError(f"station '{self.name}' has {self.units} units", "Give it one or more.")


@dataclass(frozen=True)
class ClosedNetwork:
    """``servers`` alike, each with the stations ``per_server``; before them the ``shared`` stations.

    ``delay_seconds`` is part of what a client waits for an answer though nothing queues in it; ``think_seconds`` pass
    between an answer and the client's next request. Raises RackscopeError when a time is negative or not finite, when
    there is no server, no time at all, or a name twice.
    """

    servers: int
    per_server: tuple[Station, ...]
    shared: tuple[Station, ...] = ()
    delay_seconds: float = 0.0
    think_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name, seconds in (("delay", self.delay_seconds), ("think time", self.think_seconds)):
            if not (math.isfinite(seconds) and seconds >= 0):
                raise RackscopeError(f"a {name} of {seconds:g} s cannot be", "Give zero or more seconds.")
        if self.servers < 1:
            raise RackscopeError(f"a network of {self.servers} servers has no server", "Give it one or more.")
        names = [station.name for station in self.stations]
        if len(set(names)) < len(names):
            raise RackscopeError(f"two stations have one name: {', '.join(sorted(names))}", "Name each differently.")
        if self.delay_seconds + self.think_seconds + sum(one.service_seconds for one in self.stations) <= 0:
            raise RackscopeError("nothing in the network takes any time", "Give a station a service time.")

    @property
    def stations(self) -> tuple[Station, ...]:
        """Those that are shared, then those of each server, in the order in which a request meets them."""
        return (*self.shared, *self.per_server)

    def copies(self, station: Station) -> int:
        return 1 if station in self.shared else self.servers


@dataclass(frozen=True)
class Solution:
    """Means of a closed network in equilibrium.

    ``residence_seconds`` by station: what a request spends there, waiting and served. ``utilisation`` by station: the
    share of time in which a unit is busy, 0 to 1. ``response_seconds``: from request to answer, the delay included and
    the think time not.
    """

    clients: int
    throughput_per_second: float
    response_seconds: float
    residence_seconds: Mapping[str, float]
    utilisation: Mapping[str, float]


def mean_value_analysis(network: ClosedNetwork, clients: int) -> tuple[Solution, ...]:
    """Solutions for 1, 2, ... ``clients`` clients: the recursion passes them all.

    Where the subtraction for stations of several units would lose its digits (many units, nearly all busy), there are
    more digits to begin with. Raises RackscopeError for fewer than one client.
    """
    if clients < 1:
        raise RackscopeError(f"a network of {clients} clients has no client", "Give it one or more.")
    solutions = _recursion(network, clients, float, 2.0**-52)
    digits = 32
    while solutions is None:
        with localcontext(prec=digits):
            solutions = _recursion(network, clients, Decimal, Decimal(10) ** -digits)
        digits *= 4
    return solutions


def _recursion(
    network: ClosedNetwork, clients: int, exactly: Callable[[float], Any], rounding_error: Any
) -> tuple[Solution, ...] | None:
    """Mean value analysis with numbers as ``exactly`` makes them; ``None`` where rounding errors would show."""
    stations = network.stations
    copies = [network.copies(station) for station in stations]
    services = [exactly(station.service_seconds) for station in stations]
    delay, think = exactly(network.delay_seconds), exactly(network.think_seconds)
    queues = [exactly(0)] * len(stations)
    # Probabilities of 0, 1, ... units - 1 requests at one copy, and how a rounding error in the first has grown.
    idle = [[exactly(1)] + [exactly(0)] * (station.units - 1) for station in stations]
    errors = [[rounding_error * one for one in probabilities] for probabilities in idle]
    solutions = []
    for number in range(1, clients + 1):
        residence = []
        for station, service, queue, probabilities in zip(stations, services, queues, idle, strict=True):
            units = station.units
            free = sum((units - 1 - j) * probabilities[j] for j in range(units - 1))
            residence.append(service / units * (1 + queue + free))
        throughput = number / (think + delay + sum(residence))
        for k, station in enumerate(stations):
            arrivals = throughput / copies[k]
            queues[k] = arrivals * residence[k]
            if station.units > 1:
                busy = arrivals * services[k]
                idle[k] = _marginals(idle[k], busy, busy)
                errors[k] = _marginals(errors[k], busy, None)
                if max(map(abs, errors[k])) > _LARGEST_ROUNDING_ERROR:
                    return None
        solutions.append(_solution(network, number, float(throughput), [float(one) for one in residence]))
    return tuple(solutions)


def _marginals(before: list[Any], busy: Any, total: Any) -> list[Any]:
    """Probabilities with one more client, from those without it.

    ``busy``: units that are busy on average, which is also what the probabilities must add up to. ``None`` for
    ``total``: the same for a small error, which adds up to nothing.
    """
    units = len(before)
    after = [0 * busy] + [busy / j * before[j - 1] for j in range(1, units)]
    weighted = sum((units - j) * after[j] for j in range(1, units))
    after[0] = -weighted / units if total is None else 1 - (total + weighted) / units
    return after


def _solution(network: ClosedNetwork, clients: int, throughput: float, residence: list[float]) -> Solution:
    return Solution(
        clients=clients,
        throughput_per_second=throughput,
        response_seconds=network.delay_seconds + sum(residence),
        residence_seconds={one.name: seconds for one, seconds in zip(network.stations, residence, strict=True)},
        utilisation={
            one.name: throughput * one.service_seconds / (network.copies(one) * one.units) for one in network.stations
        },
    )
