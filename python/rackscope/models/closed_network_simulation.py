"""The closed network of ``closed_network``, simulated request by request: what its means are checked against.

A discrete-event simulation with one seed: the same call gives the same numbers. Unlike the analysis it can give
service another distribution than the exponential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from typing import Literal

import numpy as np

from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.errors import RackscopeError
from rackscope.models.closed_network import ClosedNetwork
from rackscope.models.uncertain import Array

Variability = Literal["exponential", "constant"]

#: Means of so many windows are independent enough for Student's t when each holds many requests.
_BATCHES = 20
_FEWEST_REQUESTS = 100 * _BATCHES


@dataclass(frozen=True)
class Simulated:
    """Means of what was simulated, with 95 % intervals over 20 windows of equal numbers of requests."""

    clients: int
    requests: int
    throughput_per_second: Interval
    response_seconds: Interval


def simulate(
    network: ClosedNetwork,
    clients: int,
    requests: int,
    seed: int,
    *,
    variability: Variability = "exponential",
    confidence: float = 0.95,
) -> Simulated:
    """Simulate until ``requests`` requests were answered, after a warm-up of a quarter as many.

    ``variability`` is of service times; delay and think time are exponential always (their distribution does not
    matter to the means). Raises RackscopeError for fewer than one client or 2000 requests.
    """
    if clients < 1 or requests < _FEWEST_REQUESTS:
        raise RackscopeError(
            f"a simulation of {clients} clients and {requests} requests is too small",
            f"Give one client or more, and {_FEWEST_REQUESTS} requests or more.",
        )
    answers = _answers(network, clients, seed, variability)
    # So many at least that every client's first request is long answered.
    for _ in range(requests // 4 + 20 * clients):
        began, _ = next(answers)
    size = requests // _BATCHES
    throughputs, responses = [], []
    for _ in range(_BATCHES):
        total, ended = 0.0, began
        for _ in range(size):
            ended, response = next(answers)
            total += response
        throughputs.append((ended - began) / size)
        responses.append(total / size)
        began = ended
    # The time that a window took is what varies about its mean: its inverse would be biased upwards.
    interval = mean_interval(throughputs, confidence=confidence)
    low = None if interval.high is None else 1 / interval.high
    high = None if interval.low is None or interval.low <= 0 else 1 / interval.low
    throughput = Interval(1 / interval.estimate, low, high, confidence, interval.count)
    return Simulated(clients, size * _BATCHES, throughput, mean_interval(responses, confidence=confidence))


def _answers(
    network: ClosedNetwork, clients: int, seed: int, variability: Variability
) -> Iterator[tuple[float, float]]:
    """(moment of the answer, response time) of request after request, in the order of the answers, without end.

    Every queue is first come first served, so a request's leaving is known when it arrives: it is the moment at which
    the first unit is free, or its own arrival, and then its service. Arrivals are taken in the order of time.
    """
    one, other = (np.random.Generator(np.random.PCG64(part)) for part in np.random.SeedSequence(seed).spawn(2))
    uniform = _endless(one.random)
    # By inversion, whose numbers are the same in every version.
    exponential = _endless(lambda count: -np.log1p(-other.random(count)))
    stations = network.stations
    shared = len(network.shared)
    free = [[[0.0] * station.units for _ in range(network.copies(station))] for station in stations]
    delay, think = network.delay_seconds, network.think_seconds
    # (moment, client, stage): a client is at one place at a time, so no two of its events are compared further.
    asked = [think * next(exponential) for _ in range(clients)]
    server = [0] * clients
    events = [(asked[client] + delay * next(exponential), client, 0) for client in range(clients)]
    heapify(events)
    last = len(stations)
    while True:
        moment, client, stage = events[0]
        if stage == last:
            response = moment - asked[client]
            start = moment + think * next(exponential) if think else moment
            asked[client] = start
            heapreplace(events, (start + delay * next(exponential) if delay else start, client, 0))
            yield moment, response
            continue
        if stage == shared:
            server[client] = int(next(uniform) * network.servers)
        units = free[stage][server[client] if stage >= shared else 0]
        service = stations[stage].service_seconds
        if variability == "exponential":
            service *= next(exponential)
        left = max(units[0], moment) + service
        if len(units) == 1:
            units[0] = left
        else:
            heappop(units)
            heappush(units, left)
        heapreplace(events, (left, client, stage + 1))


def _endless(draw: Callable[[int], Array]) -> Iterator[float]:
    while True:
        yield from draw(8192).tolist()
