"""What the clients saw: throughput and response time."""

from __future__ import annotations

import numpy as np

from rackscope.report.charts import Colour, Panel, Reference, Style
from rackscope.report.panels.source import PanelSource


def throughput(source: PanelSource) -> Panel:
    """Operations completed, and failed ones where there were any."""
    drawing, series = source.load, []
    completed = source.samples.find("load_throughput_operations_per_second")
    if completed is not None:
        series.append(drawing.series("completed", drawing.values(completed), "blue", "area", band=True))
        failed = source.samples.find("load_errors_per_second")
        if failed is not None:
            values = drawing.values(failed)
            if np.nanmax(values, initial=0.0) > 0:
                series.append(drawing.series("failed", values, "red", worst=True))
    references = []
    offered = source.run.facts.offered_operations_per_second
    if offered is not None:
        references.append(Reference("offered", offered))
    return source.panel(
        "throughput",
        "Throughput",
        "operations per second",
        "operations/s",
        series,
        metrics=("load_throughput_operations_per_second",),
        is_load=True,
        references=references,
    )


_QUANTILES: tuple[tuple[str, str, Colour, Style, bool], ...] = (
    ("1", "maximum", "grey", "dotted", True),
    ("0.999", "p99.9", "red", "line", True),
    ("0.99", "p99", "magenta", "line", True),
    ("0.9", "p90", "blue", "line", False),
    ("0.5", "p50", "teal", "line", False),
)


def response_time(source: PanelSource) -> Panel:
    drawing, series = source.load, []
    for quantile, label, colour, style, worst in _QUANTILES:
        derived = source.samples.find("load_response_seconds", quantile=quantile)
        if derived is not None:
            values = drawing.values(derived)
            positive = np.where(values > 0, values, np.nan)
            if np.isfinite(positive).any():
                series.append(drawing.series(label, positive, colour, style, worst=worst))
    counted = "from the intended start of each request" if source.run.facts.loop == "open" else "closed loop"
    return source.panel(
        "response-time",
        "Response time",
        f"percentiles of each interval, {counted}, log scale",
        "seconds",
        series,
        metrics=("load_response_seconds",),
        is_load=True,
        is_logarithmic=True,
    )
