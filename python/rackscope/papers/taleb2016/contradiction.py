"""What the paper's figures say of each other. No model: the interactive response time law holds of every system in
which each client waits for its answer before it asks again (Lazowska 1984, 3.4): clients = throughput x (response
time + think time).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Growth:
    """How many times the throughput it is, from one number of clients to another."""

    from_10_to_60: float
    from_60_to_90: float
    from_10_to_90: float


def growth_by_latency(at_10: float, at_60: float, at_90: float, think: float = 0.0) -> Growth:
    """What latencies (any one unit, as the think time) say of throughput."""
    return Growth(
        6 * (at_10 + think) / (at_60 + think),
        1.5 * (at_60 + think) / (at_90 + think),
        9 * (at_10 + think) / (at_90 + think),
    )


def growth_by_factors(from_60_to_90: float, from_10_to_90: float) -> Growth:
    """What is left for 10 to 60 clients."""
    return Growth(from_10_to_90 / from_60_to_90, from_60_to_90, from_10_to_90)


def think_time_for(growth: float, clients: float, before: float, after: float) -> float:
    """The think time, in the unit of the latencies ``before`` and ``after``, at which ``clients`` times as many clients
    get ``growth`` times the throughput. Negative: none does.
    """
    return (clients * before - growth * after) / (growth - clients)


def latency_for(growth: float, clients: float, before: float) -> float:
    """The latency after, with ``clients`` times as many clients, ``growth`` times the throughput and no think time."""
    return before * clients / growth
