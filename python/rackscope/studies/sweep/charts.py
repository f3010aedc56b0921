"""Throughput and latency over the first numeric factor, one line for each combination of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rackscope.analysis.intervals import Interval
    from rackscope.runs.study import Axis, Chart, Series
    from rackscope.studies.sweep.grid import Factor
    from rackscope.studies.sweep.plan import SweepPlan
    from rackscope.studies.sweep.summary import CellSummary, Summary

#: Beyond this many lines a chart is a tangle: the table has the others.
_MOST_LINES = 10
#: From this ratio of its ends on an axis is logarithmic.
_WIDE = 10.0


def make_charts(plan: SweepPlan, summary: Summary) -> list[Chart]:
    """One chart of throughput and one of the 99th percentile; none without cells."""
    from rackscope.runs.study import Axis, Chart

    several = [one for one in plan.factors if len(one.levels) > 1]
    if not summary.cells or not several:
        return []
    across = next((one for one in several if one.numeric), several[0])
    axis = _axis(across)

    def chart(
        identifier: str, title: str, unit: str, label: str, figure: Callable[[CellSummary], Interval | None]
    ) -> Chart:
        series, left_out = _series(plan, summary, across, figure)
        caption = "Means over repetitions with their 95 % intervals."
        if left_out:
            caption += f" {left_out} more combinations are in the table."
        values = [value for one in series for value in one.y if value]
        scale = "logarithmic" if values and max(values) / min(values) >= _WIDE else "linear"
        y = Axis.model_validate({"label": label, "unit": unit, "scale": scale})
        return Chart(identifier=identifier, title=title, caption=caption, x=axis, y=y, series=series)

    return [
        chart("throughput", "Throughput", "operations/s", "throughput", lambda cell: cell.throughput),
        chart("p99", "99th percentile of response time", "seconds", "p99", lambda cell: cell.p99),
    ]


def _axis(factor: Factor) -> Axis:
    from rackscope.runs.study import Axis

    label = factor.name.replace("_", " ")
    if not factor.numeric:
        return Axis(label=label, scale="category", categories=list(factor.levels))
    low, high = min(factor.values), max(factor.values)
    wide = low > 0 and high / low >= _WIDE
    return Axis(label=label, unit=factor.unit, scale="logarithmic" if wide else "linear")


def _series(
    plan: SweepPlan, summary: Summary, across: Factor, figure: Callable[[CellSummary], Interval | None]
) -> tuple[list[Series], int]:
    from rackscope.runs.study import Series

    lines: dict[str, list[tuple[float, Interval]]] = {}
    for cell in summary.cells:
        interval = figure(cell)
        if interval is None:
            continue
        level = cell.levels[across.name]
        place = across.value(level) if across.numeric else float(across.levels.index(level))
        rest = " ".join(
            one if name == "system" else f"{name}={one}" for name, one in cell.levels.items() if name != across.name
        )
        lines.setdefault(rest or plan.options.system, []).append((place, interval))
    shown = list(lines.items())[:_MOST_LINES]
    series = []
    for label, points in shown:
        points.sort(key=lambda point: point[0])
        series.append(
            Series(
                label=label,
                x=[place for place, _ in points],
                y=[interval.estimate for _, interval in points],
                low=[interval.low for _, interval in points],
                high=[interval.high for _, interval in points],
                kind="line" if across.numeric else "points",
            )
        )
    return series, len(lines) - len(shown)
