"""What several windows of one system under one load come to."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.analysis.intervals import Interval, mean_interval, median_interval, relative_half_width
from rackscope.studies.bench.figures import Figures, known_of, least

#: A system that does less than this of what it is offered does not keep up, and its latency is that of a queue.
_KEEPS_UP = 0.95


@dataclass(frozen=True)
class Cell:
    """A system under one load. CPU times are for a million operations; ``idle_ratio`` is the lowest."""

    rate: Interval
    server_cpu: Interval | None
    client_cpu: Interval | None
    p50: Interval | None
    p99: Interval | None
    idle_ratio: float | None
    hit_ratio: float | None
    keeps_up: bool

    @property
    def both_cpu(self) -> float | None:
        """CPU time of both ends together."""
        if self.server_cpu is None or self.client_cpu is None:
            return None
        return self.server_cpu.estimate + self.client_cpu.estimate


def cell_of(figures: Sequence[Figures]) -> Cell:
    """With intervals over the windows."""

    def mean(values: Sequence[float | None]) -> Interval | None:
        known = [value for value in values if value is not None]
        return mean_interval(known, at_least=0.0) if known else None

    def median(name: str) -> Interval | None:
        known = known_of(figures, name)
        return median_interval(known) if known else None

    kept_up = [one.rate / one.offered for one in figures if one.offered]
    return Cell(
        rate=mean_interval([one.rate for one in figures], at_least=0.0),
        server_cpu=mean([one.cpu_per_million(one.cores) for one in figures]),
        client_cpu=mean([one.cpu_per_million(one.client_cores) for one in figures]),
        p50=median("p50_seconds"),
        p99=median("p99_seconds"),
        idle_ratio=least(figures, "idle_ratio"),
        hit_ratio=least(figures, "hit_ratio"),
        keeps_up=not kept_up or statistics.median(kept_up) >= _KEEPS_UP,
    )


def half_percent(interval: Interval) -> float | None:
    """Half of an interval in percent of its estimate, for a cell of a table."""
    half = relative_half_width(interval)
    return None if half is None else 100 * half
