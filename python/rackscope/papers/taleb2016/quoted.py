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


Place = tuple[Transport, int, int]


def _ratio(name: str, value: float, sentence: str, over: Place, under: Place, remark: str = "") -> Quoted:
    def predict(look: Look) -> float:
        return look(*over).throughput_per_second / look(*under).throughput_per_second

    return Quoted(f"throughput of {name}", value, "x", value * _RATIO, sentence, predict, not remark, remark)


def _latency(transport: Transport, clients: int, value: float, sentence: str, remark: str = "") -> Quoted:
    def predict(look: Look) -> float:
        return look(transport, 10, clients).response_seconds * 1e6

    name = f"latency over {transport}, 10 servers, {clients} clients"
    return Quoted(name, value, "µs", value * _AROUND, sentence, predict, not remark, remark)


def _power(transport: Transport, clients: int, value: float, sentence: str, remark: str = "") -> Quoted:
    def predict(look: Look) -> float:
        return look(transport, 10, clients).watts_per_server

    name = f"power of a server, {transport}, 10 servers, {clients} clients"
    return Quoted(name, value, "W", _WATTS, sentence, predict, not remark, remark)


_CONTRADICTED = "contradicted by the paper's other figures, see below"

QUOTED = (
    _ratio(
        "Infiniband over TCP, 10 servers, 10 clients", 7.38,
        "When running 10 clients Infiniband cluster achieves 7.38x the throughput of TCP cluster",
        ("Infiniband", 10, 10), ("TCP", 10, 10),
    ),
    _ratio(
        "Infiniband over TCP, 10 servers, 90 clients", 11.40,
        "the gap widens and reaches 11.40x more throughput for Infiniband cluster",
        ("Infiniband", 10, 90), ("TCP", 10, 90),
    ),
    _ratio(
        "Infiniband at 90 over 60 clients, 10 servers", 1.39,
        "between 60 and 90 clients while Infiniband increases by a factor of 1.39x",
        ("Infiniband", 10, 90), ("Infiniband", 10, 60),
    ),
    _ratio(
        "TCP at 90 over 60 clients, 10 servers", 1.10,
        "TCP only increases by 1.10x from 60 to 90 clients",
        ("TCP", 10, 90), ("TCP", 10, 60), _CONTRADICTED,
    ),
    _ratio(
        "TCP at 90 over 10 clients, 10 servers", 5.4,
        "For the cluster of 10 nodes with TCP the scalability factor is 5.4 while the expected scalability factor is 9",
        ("TCP", 10, 90), ("TCP", 10, 10),
    ),
    _ratio(
        "TCP at 90 over 10 clients, 20 servers", 6.9,
        "it 6.9 for 20 nodes",
        ("TCP", 20, 90), ("TCP", 20, 10),
    ),
    _ratio(
        "TCP at 90 over 10 clients, 30 servers", 7.3,
        "and 7.3 for 30 nodes",
        ("TCP", 30, 90), ("TCP", 30, 10),
    ),
    _latency(
        "Infiniband", 10, 40, "looking into Infiniband's cluster latency one can see a stable latency around 40 µs",
    ),
    _latency(
        "Infiniband", 90, 40, "(the same sentence)",
        "a factor of 1.39 and not 1.5 from 60 to 90 clients says that it rises by 8 %",
    ),
    _latency("TCP", 10, 315, "For TCP cluster the latency is stable around 315 µs up to 60 clients"),
    _latency("TCP", 60, 315, "(the same sentence)", _CONTRADICTED),
    _latency("TCP", 90, 512, "It reaches more than 512 µs for 90 clients", "a lower bound"),
    _power("TCP", 10, 97, "the average power consumption is increasing constantly from 97Watts for 10 clients"),
    _power("TCP", 90, 109, "up to 109Watts for 90 clients"),
    _power(
        "Infiniband", 10, 94,
        "For the Infiniband cluster we can see a stable power consumption of 94Watts up to 60 clients",
        "a check: power is fitted to TCP alone",
    ),
    _power(
        "Infiniband", 60, 94, "(the same sentence; it \"increases a little bit when going up to 90 clients\")",
        "a check: power is fitted to TCP alone",
    ),
)  # fmt: skip
