"""The figures that the text of the paper gives, each with the sentence; its plots have no numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Transport = Literal["Infiniband", "TCP"]


@dataclass(frozen=True)
class Point:
    """What the model says of one cluster under one load. ``busy_cores_beside_polling``: of a server's other three."""

    throughput_per_second: float
    response_seconds: float
    busy_cores_beside_polling: float
    watts_per_server: float

    def operations_per_joule(self, servers: int) -> float:
        """Operations of the whole cluster for each joule it takes (clients left out, as in the paper)."""
        return self.throughput_per_second / (self.watts_per_server * servers)


#: What the model says at (transport, servers, clients).
Look = Callable[[Transport, int, int], Point]

#: Standard deviations that a quoted figure is taken to have. The paper gives error bars of 5 runs, and no numbers of
#: them. Our choice: 3 % for ratios of measured throughputs, 5 % for what is "around" something, 1 W for whole watts.
_RATIO, _AROUND, _WATTS = 0.03, 0.05, 1.0


@dataclass(frozen=True)
class Quoted:
    """One figure: its ``value`` in ``unit``, how far it is trusted, and whether the model is fitted to it.

    ``predict`` gives the same from the model. ``remark`` says why a figure that is not fitted is not.
    """

    name: str
    value: float
    unit: str
    deviation: float
    sentence: str
    predict: Callable[[Look], float]
    fitted: bool = True
    remark: str = ""


def _ratio(over: tuple[Transport, int, int], under: tuple[Transport, int, int]) -> Callable[[Look], float]:
    return lambda look: look(*over).throughput_per_second / look(*under).throughput_per_second


def _microseconds(transport: Transport, clients: int) -> Callable[[Look], float]:
    return lambda look: look(transport, 10, clients).response_seconds * 1e6


def _watts(transport: Transport, clients: int) -> Callable[[Look], float]:
    return lambda look: look(transport, 10, clients).watts_per_server


_CONTRADICTED = "contradicted by the paper's other figures, see below"

QUOTED = (
    Quoted(
        "throughput of Infiniband over TCP, 10 servers, 10 clients", 7.38, "x", 7.38 * _RATIO,
        "When running 10 clients Infiniband cluster achieves 7.38x the throughput of TCP cluster",
        _ratio(("Infiniband", 10, 10), ("TCP", 10, 10)),
    ),
    Quoted(
        "throughput of Infiniband over TCP, 10 servers, 90 clients", 11.40, "x", 11.40 * _RATIO,
        "the gap widens and reaches 11.40x more throughput for Infiniband cluster",
        _ratio(("Infiniband", 10, 90), ("TCP", 10, 90)),
    ),
    Quoted(
        "throughput of Infiniband at 90 over 60 clients, 10 servers", 1.39, "x", 1.39 * _RATIO,
        "between 60 and 90 clients while Infiniband increases by a factor of 1.39x",
        _ratio(("Infiniband", 10, 90), ("Infiniband", 10, 60)),
    ),
    Quoted(
        "throughput of TCP at 90 over 60 clients, 10 servers", 1.10, "x", 1.10 * _RATIO,
        "TCP only increases by 1.10x from 60 to 90 clients",
        _ratio(("TCP", 10, 90), ("TCP", 10, 60)), fitted=False, remark=_CONTRADICTED,
    ),
    Quoted(
        "throughput of TCP at 90 over 10 clients, 10 servers", 5.4, "x", 5.4 * _RATIO,
        "For the cluster of 10 nodes with TCP the scalability factor is 5.4 while the expected scalability factor is 9",
        _ratio(("TCP", 10, 90), ("TCP", 10, 10)),
    ),
    Quoted(
        "throughput of TCP at 90 over 10 clients, 20 servers", 6.9, "x", 6.9 * _RATIO,
        "it 6.9 for 20 nodes",
        _ratio(("TCP", 20, 90), ("TCP", 20, 10)),
    ),
    Quoted(
        "throughput of TCP at 90 over 10 clients, 30 servers", 7.3, "x", 7.3 * _RATIO,
        "and 7.3 for 30 nodes",
        _ratio(("TCP", 30, 90), ("TCP", 30, 10)),
    ),
    Quoted(
        "latency over Infiniband, 10 servers, 10 clients", 40, "µs", 40 * _AROUND,
        "looking into Infiniband's cluster latency one can see a stable latency around 40 µs",
        _microseconds("Infiniband", 10),
    ),
    Quoted(
        "latency over Infiniband, 10 servers, 90 clients", 40, "µs", 40 * _AROUND,
        "(the same sentence)",
        _microseconds("Infiniband", 90), fitted=False,
        remark="a factor of 1.39 and not 1.5 from 60 to 90 clients says that it rises by 8 %",
    ),
    Quoted(
        "latency over TCP, 10 servers, 10 clients", 315, "µs", 315 * _AROUND,
        "For TCP cluster the latency is stable around 315 µs up to 60 clients",
        _microseconds("TCP", 10),
    ),
    Quoted(
        "latency over TCP, 10 servers, 60 clients", 315, "µs", 315 * _AROUND,
        "(the same sentence)",
        _microseconds("TCP", 60), fitted=False, remark=_CONTRADICTED,
    ),
    Quoted(
        "latency over TCP, 10 servers, 90 clients", 512, "µs", 512 * _AROUND,
        "It reaches more than 512 µs for 90 clients",
        _microseconds("TCP", 90), fitted=False, remark="a lower bound",
    ),
    Quoted(
        "power of a server, TCP, 10 servers, 10 clients", 97, "W", _WATTS,
        "the average power consumption is increasing constantly from 97Watts for 10 clients",
        _watts("TCP", 10),
    ),
    Quoted(
        "power of a server, TCP, 10 servers, 90 clients", 109, "W", _WATTS,
        "up to 109Watts for 90 clients",
        _watts("TCP", 90),
    ),
    Quoted(
        "power of a server, Infiniband, 10 servers, 10 clients", 94, "W", _WATTS,
        "For the Infiniband cluster we can see a stable power consumption of 94Watts up to 60 clients",
        _watts("Infiniband", 10), fitted=False, remark="a check: power is fitted to TCP alone",
    ),
    Quoted(
        "power of a server, Infiniband, 10 servers, 60 clients", 94, "W", _WATTS,
        "(the same sentence; it \"increases a little bit when going up to 90 clients\")",
        _watts("Infiniband", 60), fitted=False, remark="a check: power is fitted to TCP alone",
    ),
)  # fmt: skip
