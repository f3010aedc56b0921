"""What a window, or a whole run, gave: one set of figures for every study that compares systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackscope.errors import LoadError


@dataclass(frozen=True)
class Figures:
    """``rate`` is operations a second; latencies are those of the slowest stage; what could not be read is ``None``.

    ``cores`` and ``client_cores`` are the CPU time a second of the system and of the load generator, ``idle_ratio`` is
    what the latter had left in its busiest stage. ``hit_ratio`` is of reads.
    """

    rate: float
    mean_seconds: float | None = None
    p50_seconds: float | None = None
    p99_seconds: float | None = None
    hit_ratio: float | None = None
    idle_ratio: float | None = None
    failed_ratio: float = 0.0
    seconds: float = 0.0
    offered: float | None = None
    cores: float | None = None
    client_cores: float | None = None
    disk_bytes_per_second: float | None = None
    network_bytes_per_second: float | None = None

    def cpu_per_million(self, cores: float | None) -> float | None:
        """CPU time of a million operations, from CPU time a second."""
        return None if cores is None else 1e6 * cores / self.rate


def figures_of(
    rows: Sequence[Mapping[str, Any]],
    cpu_seconds: float | None = None,
    *,
    disk_bytes: float | None = None,
    keys_each: int = 1,
) -> Figures:
    """Rows of ``results.parquet`` with what the system used meanwhile. Raises LoadError when nothing was done.

    Where an operation reads ``keys_each`` keys at once, keys are counted.
    """

    def known(name: str) -> list[Any]:
        return [row[name] for row in rows if row.get(name) is not None]

    def a_second(total: float | None) -> float | None:
        return None if total is None else total / seconds

    seconds, errors, hits = sum(known("duration_seconds")), sum(known("errors")), sum(known("hits"))
    reads = hits + sum(known("misses"))
    operations = sum(known("operations")) if keys_each == 1 else reads
    if not operations or seconds <= 0:
        raise LoadError("no operation succeeded")
    client = known("generator_cpu_seconds")
    return Figures(
        rate=operations / seconds,
        mean_seconds=max(known("response_mean_seconds"), default=None),
        p50_seconds=max(known("response_p50_seconds"), default=None),
        p99_seconds=max(known("response_p99_seconds"), default=None),
        hit_ratio=hits / reads if reads else None,
        idle_ratio=min(known("generator_idle_ratio"), default=None),
        failed_ratio=errors / (operations + errors),
        seconds=seconds,
        offered=max(known("offered_operations_per_second"), default=None),
        cores=a_second(cpu_seconds),
        client_cores=sum(client) / seconds if client else None,
        disk_bytes_per_second=a_second(disk_bytes),
        network_bytes_per_second=sum(known("bytes_sent") + known("bytes_received")) / seconds,
    )


def least(figures: Sequence[Figures], name: str) -> float | None:
    """The lowest of what is known of several."""
    return min(known_of(figures, name), default=None)


def known_of(figures: Sequence[Figures], name: str) -> list[float]:
    """One figure of several, where it is known."""
    return [value for one in figures if (value := getattr(one, name)) is not None]
