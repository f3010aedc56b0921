"""The storage cluster of Taleb 2016 as a closed network, its power by CPU occupancy, and the fit to the paper's text.

A request passes, over either transport: a delay in which nothing queues; over TCP, a path that all servers share; at
one server of the cluster the link, the processing of the transport, and one of three worker threads. Times are
exponential (see ``closed_network``).

=====================  ==========================================================================================
link                   computed: 1 KB (1024 bytes: the paper's 9 M requests are "8.58GB") and 100 bytes of headers, at
                       1 Gbit/s of Ethernet, or 16 Gbit/s of 20 Gbit/s Infiniband (8b/10b)
workers                assumed: 1 µs, give or take 0.5, of one of three threads (four cores, one of which polls)
transport processing   fitted: one unit a server. RAMCloud's polling thread over Infiniband, the kernel's TCP on a core
                       of its own beside it
shared path            fitted: one unit for all, TCP only. Without it the factors at 20 and 30 servers cannot be met;
                       the paper does not say what it might be (clients come "from outside")
delay                  fitted, for each transport
think time             assumed: none. YCSB asks again at once
watts                  fitted to TCP: a part that is always there (the polling core in it), and one for each busy core
=====================  ==========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from rackscope.errors import RackscopeError
from rackscope.models.closed_network import ClosedNetwork, Solution, Station, mean_value_analysis
from rackscope.papers.taleb2016.quoted import QUOTED, Point, Quoted, Transport

#: An X3440 has four cores; RAMCloud keeps one polling, whatever the load.
CORES, POLLING_CORES = 4, 1
MOST_CLIENTS = 90
_BYTES = 1024 + 100
_LINK_BITS_PER_SECOND: dict[Transport, float] = {"Infiniband": 16e9, "TCP": 1e9}
_WORKERS_SECONDS, _WORKERS_DEVIATION = 1e-6, 0.5
CONFIDENCE = 0.90


@dataclass(frozen=True)
class Parameters:
    """What is not in the paper. Seconds, watts."""

    tcp_delay_seconds: float
    tcp_processing_seconds: float
    tcp_shared_seconds: float
    infiniband_delay_seconds: float
    infiniband_processing_seconds: float
    workers_seconds: float
    watts_without_load: float
    watts_per_busy_core: float


@dataclass(frozen=True)
class Estimate:
    """A value and its interval at ``CONFIDENCE``."""

    value: float
    low: float
    high: float


def network(parameters: Parameters, transport: Transport, servers: int) -> ClosedNetwork:
    over_tcp = transport == "TCP"
    processing = parameters.tcp_processing_seconds if over_tcp else parameters.infiniband_processing_seconds
    return ClosedNetwork(
        servers,
        per_server=(
            Station("link", _BYTES * 8 / _LINK_BITS_PER_SECOND[transport]),
            Station("transport processing", processing),
            Station("workers", parameters.workers_seconds, CORES - POLLING_CORES),
        ),
        shared=(Station("shared path", parameters.tcp_shared_seconds),) if over_tcp else (),
        delay_seconds=parameters.tcp_delay_seconds if over_tcp else parameters.infiniband_delay_seconds,
    )


@lru_cache(maxsize=512)
def _solved(cluster: ClosedNetwork, clients: int) -> tuple[Solution, ...]:
    """A fit moves one parameter at a time, and most networks are as they were."""
    return mean_value_analysis(cluster, clients)


@dataclass(frozen=True)
class Cluster:
    """Answers of the model for one set of parameters; each network is solved once, for all numbers of clients."""

    parameters: Parameters

    def solution(self, transport: Transport, servers: int, clients: int) -> Solution:
        """Means of the network. Raises RackscopeError for no server or no client."""
        most = max(clients, MOST_CLIENTS) if clients >= 1 else clients
        return _solved(network(self.parameters, transport, servers), most)[clients - 1]

    def look(self, transport: Transport, servers: int, clients: int) -> Point:
        """Throughput, latency and power. The core that polls is busy anyway, so what it does takes no more power."""
        solution = self.solution(transport, servers, clients)
        workers = solution.utilisation["workers"] * (CORES - POLLING_CORES)
        beside = workers + (solution.utilisation["transport processing"] if transport == "TCP" else 0.0)
        watts = self.parameters.watts_without_load + self.parameters.watts_per_busy_core * beside
        return Point(solution.throughput_per_second, solution.response_seconds, beside, watts)


@dataclass(frozen=True)
class Fit:
    """Parameters that meet the quoted figures best, and how surely (a normal approximation in their logarithms).

    ``misfit``: mean square of what is left, in the deviations that figures are taken to have, for each degree of
    freedom; intervals are widened by its root where it is above one.
    """

    parameters: Parameters
    covariance: NDArray[np.float64]
    misfit: float
    degrees_of_freedom: int
    free: tuple[str, ...]

    def predict(self, question: Callable[[Cluster], float]) -> Estimate:
        """What the model answers (above zero), with its interval by the delta method in the answer's logarithm."""
        return self.predict_all([question])[0]

    def predict_all(self, questions: Sequence[Callable[[Cluster], float]]) -> list[Estimate]:
        """The same for many questions, solving each network once for each parameter that is moved."""
        start = _logarithms(self.parameters, self.free)
        here = Cluster(self.parameters)
        centre = np.log([question(here) for question in questions])
        step = 1e-4
        slopes = np.empty((len(questions), len(start)))
        for k in range(len(start)):
            moved = start.copy()
            moved[k] += step
            there = Cluster(_moved(self.parameters, self.free, moved))
            slopes[:, k] = (np.log([question(there) for question in questions]) - centre) / step
        deviations = np.sqrt(np.einsum("ij,jk,ik->i", slopes, self.covariance, slopes))
        half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, self.degrees_of_freedom)) * deviations
        ends = zip(np.exp(centre), np.exp(centre - half), np.exp(centre + half), strict=True)
        return [Estimate(float(value), float(low), float(high)) for value, low, high in ends]


def fit(figures: Sequence[Quoted] = QUOTED, *, start: Parameters | None = None, shared_path: bool = True) -> Fit:
    """Least squares in units of each figure's deviation, on those of ``figures`` that are to be fitted.

    What is assumed of the workers stands among them as one more figure, so that its doubt is in every interval.
    ``shared_path=False`` leaves that station out: what the model would be without it. Raises RackscopeError when there
    are too few figures.
    """
    chosen = [figure for figure in figures if figure.fitted]
    start = start or _START
    if not shared_path:
        start = replace(start, tcp_shared_seconds=0.0)
    free = tuple(one.name for one in fields(Parameters) if shared_path or one.name != "tcp_shared_seconds")
    freedom = len(chosen) + 1 - len(free)
    if freedom < 1:
        raise RackscopeError(
            f"{len(chosen)} figures say too little about {len(free)} parameters", f"Give {len(free)} or more."
        )

    def residuals(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
        cluster = Cluster(_moved(start, free, logarithms))
        left = [(figure.predict(cluster.look) - figure.value) / figure.deviation for figure in chosen]
        assumed = math.log(cluster.parameters.workers_seconds / _WORKERS_SECONDS) / _WORKERS_DEVIATION
        return np.array([*left, assumed])

    found = scipy.optimize.least_squares(residuals, _logarithms(start, free), x_scale="jac", xtol=1e-8, ftol=1e-10)
    misfit = float(found.fun @ found.fun) / freedom
    slopes = np.asarray(found.jac, dtype=np.float64)
    covariance = np.asarray(np.linalg.inv(slopes.T @ slopes) * max(1.0, misfit), dtype=np.float64)
    return Fit(_moved(start, free, found.x), covariance, misfit, freedom, free)


#: From where the search starts: about what latencies and the bottleneck law (Lazowska 1984, 5.2) say.
_START = Parameters(250e-6, 45e-6, 4e-6, 35e-6, 2.5e-6, _WORKERS_SECONDS, 94.0, 18.0)


def _logarithms(parameters: Parameters, names: Sequence[str]) -> NDArray[np.float64]:
    return np.log([getattr(parameters, name) for name in names])


def _moved(parameters: Parameters, names: Sequence[str], logarithms: NDArray[np.float64]) -> Parameters:
    changes = {name: math.exp(value) for name, value in zip(names, logarithms, strict=True)}
    return replace(parameters, **changes)
