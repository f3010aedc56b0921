"""Throughput and latency over the first numeric factor, one line for each combination of the others."""

from __future__ import annotations

from collections.abc import Callable

from rackscope.analysis.intervals import Interval
from rackscope.runs.study import Axis, Chart, Series
from rackscope.studies.kit import axis, chart, estimates_by
from rackscope.studies.sweep.grid import Cell, Factor
from rackscope.studies.sweep.plan import SweepPlan
from rackscope.studies.sweep.summary import CellSummary, Summary

#: With more lines than this a chart cannot be read; the table has all of them.
_MOST_LINES = 10
#: From this ratio of its ends on an axis is logarithmic.
_WIDE = 10.0


def make_charts(plan: SweepPlan, summary: Summary) -> list[Chart]:
    """One chart of throughput and one of the 99th percentile; none without cells."""
    several = [one for one in plan.factors if len(one.levels) > 1]
    if not summary.cells or not several:
        return []
    across = next((one for one in several if one.numeric), several[0])

    def drawn(identifier: str, title: str, y: str, unit: str, of: Callable[[CellSummary], Interval | None]) -> Chart:
        series, left_out = _series(plan, summary, across, of)
        values = [value for one in series for value in one.y if value]
        wide = bool(values) and max(values) / min(values) >= _WIDE
        caption = "Means over repetitions with their 95 % intervals."
        if left_out:
            caption += f" {left_out} more combinations are in the table."
        return chart(identifier, title, _axis(across), axis(y, unit, logarithmic=wide), series, caption=caption)

    return [
        drawn("throughput", "Throughput", "throughput", "operations/s", lambda cell: cell.throughput),
        drawn("p99", "99th percentile of response time", "p99", "seconds", lambda cell: cell.p99),
    ]


def _axis(factor: Factor) -> Axis:
    label = factor.name.replace("_", " ")
    if not factor.numeric:
        return axis(label, categories=factor.levels)
    low, high = min(factor.values), max(factor.values)
    return axis(label, factor.unit, logarithmic=low > 0 and high / low >= _WIDE)


def _series(
    plan: SweepPlan, summary: Summary, across: Factor, of: Callable[[CellSummary], Interval | None]
) -> tuple[list[Series], int]:
    several: dict[str, dict[str, CellSummary]] = {}
    for cell in summary.cells:
        if of(cell) is not None:
            rest = Cell({name: one for name, one in cell.levels.items() if name != across.name}).label
            several.setdefault(rest or plan.options.system, {})[cell.levels[across.name]] = cell
    places = {level: across.value(level) if across.numeric else float(at) for at, level in enumerate(across.levels)}
    places = dict(sorted(places.items(), key=lambda one: one[1]))
    labels = list(several)[:_MOST_LINES]

    def known(label: str, level: str) -> Interval | None:
        cell = several[label].get(level)
        return None if cell is None else of(cell)

    series = estimates_by(labels, places, known, "line" if across.numeric else "points")
    return series, len(several) - len(series)
