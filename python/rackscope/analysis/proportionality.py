"""Energy proportionality of a server (Barroso and Hoelzle 2007), and performance per watt over load and clock."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from rackscope.analysis.findings import plain_fields
from rackscope.analysis.intervals import Interval
from rackscope.errors import RackscopeError

_FEWEST_LOADS = 3


@dataclass(frozen=True)
class PerformancePoint:
    """One measured phase of one run. ``source`` is metered or modelled; frequency is ``None`` where not sampled."""

    run: str
    phase: str
    source: Literal["metered", "modelled"]
    #: What the watts are of, such as ``server`` or ``package-0 + dram-0``.
    power_scope: str
    throughput_operations_per_second: float
    mean_watts: Interval
    operations_per_joule: Interval
    frequency_hertz: float | None = None
    #: ``None`` where the host was never idle while it was metered.
    idle_watts: float | None = None


def performance_per_watt(points: Iterable[PerformancePoint]) -> pl.DataFrame:
    """One row a point, sorted by run and phase: throughput, watts, operations for each joule, with their intervals.

    ``load_ratio`` is the throughput over the highest among points of the same phase and clock (within 1 %).
    Intervals of metered points are of 95 % over repetitions, null where there are too few; of modelled ones they
    are the model's. Raises RackscopeError where points are of different scopes, which cannot be set beside each other,
    and ValueError without points.
    """
    known = list(points)
    if not known:
        raise ValueError("no points")
    scopes = sorted({point.power_scope for point in known})
    if len(scopes) > 1:
        raise RackscopeError(
            f"the runs' watts are of different things: {'; '.join(scopes)}",
            "Take runs whose power was metered in the same place.",
        )
    rows = []
    for point in known:
        peers = [one for one in known if one.phase == point.phase and _same_clock(one, point)]
        highest = max(one.throughput_operations_per_second for one in peers)
        watts, efficiency = point.mean_watts, point.operations_per_joule
        rows.append(
            {
                "run": point.run,
                "phase": point.phase,
                "source": point.source,
                "power_scope": point.power_scope,
                "frequency_hertz": point.frequency_hertz,
                "load_ratio": point.throughput_operations_per_second / highest if highest > 0 else None,
                "throughput_operations_per_second": point.throughput_operations_per_second,
                "mean_watts": watts.estimate,
                "mean_watts_low": watts.low,
                "mean_watts_high": watts.high,
                "operations_per_joule": efficiency.estimate,
                "operations_per_joule_low": efficiency.low,
                "operations_per_joule_high": efficiency.high,
                "energy_joules_per_operation": 1 / efficiency.estimate if efficiency.estimate > 0 else None,
                "idle_watts": point.idle_watts,
                "repetitions": watts.count,
            }
        )
    # Where nothing is known of a column, it is still one of numbers.
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.selectors.by_dtype(pl.Null).cast(pl.Float64))
    return frame.sort("phase", "frequency_hertz", "load_ratio", "run")


def _same_clock(one: PerformancePoint, other: PerformancePoint) -> bool:
    if one.frequency_hertz is None or other.frequency_hertz is None:
        return one.frequency_hertz is other.frequency_hertz
    return math.isclose(one.frequency_hertz, other.frequency_hertz, rel_tol=0.01)


@dataclass(frozen=True)
class Proportionality:
    """How far power follows load. Loads are shares of the highest, watts of the host."""

    loads: tuple[float, ...]
    watts: tuple[float, ...]
    #: 1 - idle / peak: the part of the peak that load can move (Barroso and Hoelzle 2007).
    dynamic_range: float
    #: EP = 2 - 2 A, A being the area below watts over load with both scaled to a peak of 1 (Ryckbosch, Polfliet and
    #: Eeckhout 2011): 1 is proportional, 0 is constant power, above 1 is less power than proportional.
    energy_proportionality: float
    #: (P(u) - u P(1)) / P(1) at each load: what is taken beyond proportional (Wong and Annavaram 2012).
    gaps: tuple[float, ...]
    #: Load of the highest throughput for each watt.
    best_load: float

    def to_dict(self) -> dict[str, Any]:
        return plain_fields(self)


def proportionality(loads: Sequence[float], watts: Sequence[float]) -> Proportionality:
    """From watts at three loads or more, among them idle (0) and the highest (1); straight lines between them.

    Points at one load (within a thousandth) are averaged. Raises RackscopeError for less, and for watts that are not
    above zero.
    """
    if len(loads) != len(watts):
        raise RackscopeError(f"{len(loads)} loads and {len(watts)} watts", "Give one of each for every measurement.")
    for load, value in zip(loads, watts, strict=True):
        if not 0 <= load <= 1:
            raise RackscopeError(
                f"a load of {load:g} is not a fraction of the highest", "Give it between 0 (idle) and 1, not in %."
            )
        if not 0 < value < math.inf:
            raise RackscopeError(f"{value:g} W at load {load:g} is not above zero", "Leave the point out.")
    groups: dict[float, list[float]] = {}
    for load, value in sorted(zip(loads, watts, strict=True)):
        groups.setdefault(round(load, 3), []).append(value)
    x, y = list(groups), [math.fsum(values) / len(values) for values in groups.values()]
    if len(x) < _FEWEST_LOADS or x[0] != 0 or x[-1] != 1:
        raise RackscopeError(
            f"energy proportionality needs watts when idle, at the highest load and between, not at {_listed(x)}",
            "Measure at more loads; watts when idle are those of load 0.",
        )
    peak = y[-1]
    area = sum((y[k] + y[k + 1]) / 2 * (x[k + 1] - x[k]) for k in range(len(x) - 1)) / peak
    return Proportionality(
        loads=tuple(x),
        watts=tuple(y),
        dynamic_range=1 - y[0] / peak,
        energy_proportionality=2 - 2 * area,
        gaps=tuple(value / peak - load for load, value in zip(x, y, strict=True)),
        best_load=max(zip(x, y, strict=True), key=lambda point: point[0] / point[1])[0],
    )


def proportionality_of(frame: pl.DataFrame) -> Proportionality:
    """``proportionality`` of the rows of one phase at one clock of ``performance_per_watt``: runs at several rates.

    Idle is the mean of those runs that had an idle window. Raises RackscopeError where none had, and for too few.
    """
    idle = [float(value) for value in frame["idle_watts"].drop_nulls()]
    if not idle:
        raise RackscopeError(
            "energy proportionality needs watts when idle, and no run was metered while its host was idle",
            "Measure on a host that does nothing else.",
        )
    loads, watts = frame["load_ratio"].to_list(), frame["mean_watts"].to_list()
    return proportionality([0.0, *loads], [math.fsum(idle) / len(idle), *watts])


def _listed(loads: Sequence[float]) -> str:
    return ", ".join(f"{100 * load:.0f} %" for load in loads) or "no load"
