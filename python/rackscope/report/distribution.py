"""Latency distributions of each operation: repetitions added up, percentiles read off."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import polars as pl

from rackscope.analysis.histograms import Histogram
from rackscope.report.charts import Colour, Curve, Distribution, Style

#: Percentiles of the curve: evenly spaced in the number of nines, from 0 to 99.9999 %.
CURVE_PERCENTILES: tuple[float, ...] = tuple(1.0 - 10.0 ** (-step / 24) for step in range(6 * 24 + 1))
TABLE_PERCENTILES: tuple[float, ...] = (0.5, 0.9, 0.99, 0.999, 0.9999)
#: A percentile is read off only where at least this many measurements lie beyond it.
MINIMUM_BEYOND = 5
KINDS = ("response", "service", "lag")
#: More operations than there are colours share a chart badly; the table has them all.
_COLOURS: tuple[Colour, ...] = ("blue", "orange", "teal", "magenta", "yellow")
_STYLES: Mapping[str, Style] = {"response": "line", "service": "dashed"}
#: Curves that differ by less everywhere cannot be told apart on a logarithmic axis.
_SAME_LINE = 0.02
_COLUMNS = {"phase", "repetition", "operation", "kind", "grouping_power", "max_value_power", "index", "count"}


@dataclass(frozen=True)
class DistributionRow:
    """One operation and kind in the table: seconds at each of ``TABLE_PERCENTILES``, NaN where too few lie beyond."""

    operation: str
    kind: str
    count: int
    percentiles: tuple[float, ...]
    maximum_seconds: float


def distribution_of(
    latency: pl.DataFrame, phases: Sequence[str], discarded: set[tuple[str, int | None]]
) -> tuple[Distribution, tuple[DistributionRow, ...]]:
    """Curves and table of the given phases' operations, without the repetitions that were discarded."""
    grouped = _merge_repetitions(latency, phases, discarded)
    names = _operation_names(grouped)
    colours = dict(zip(names, _COLOURS, strict=False))
    curves: list[Curve] = []
    rows = []
    for (phase, operation, kind), histogram in grouped.items():
        name = names[(phase, operation)]
        maximum = histogram.quantile_seconds(1.0) or 0.0
        rows.append(DistributionRow(name, kind, histogram.total, _quantiles(histogram, TABLE_PERCENTILES), maximum))
        colour = colours.get((phase, operation))
        if kind not in _STYLES or colour is None:
            continue
        values = _quantiles(histogram, CURVE_PERCENTILES)
        if kind == "service" and curves and curves[-1].colour == colour and _look_alike(values, curves[-1].values):
            # One line over the other would look as if one of them were missing.
            curves[-1] = replace(curves[-1], label=f"{name} response, service alike")
        else:
            curves.append(Curve(f"{name} {kind}", values, colour, _STYLES[kind]))
    drawn = 1 + max(
        (index for curve in curves for index, value in enumerate(curve.values) if not math.isnan(value)), default=-1
    )
    p99 = CURVE_PERCENTILES.index(0.99)
    trimmed = tuple(replace(curve, values=curve.values[:drawn], at_p99=curve.values[p99]) for curve in curves)
    return Distribution(CURVE_PERCENTILES[:drawn], trimmed), tuple(rows)


def _merge_repetitions(
    latency: pl.DataFrame, phases: Sequence[str], discarded: set[tuple[str, int | None]]
) -> dict[tuple[str, str, str], Histogram]:
    if latency.is_empty() or not set(latency.columns) >= _COLUMNS:
        return {}
    merged: dict[tuple[str, str, str], Histogram] = {}
    for row in latency.iter_rows(named=True):
        if row["phase"] not in phases or (row["phase"], row["repetition"]) in discarded or row["kind"] not in KINDS:
            continue
        key = (row["phase"], row["operation"], row["kind"])
        # A row that holds no histogram, as of a damaged file, is left out: the others still say something.
        with suppress(TypeError, ValueError):
            histogram = Histogram.of(row["grouping_power"], row["max_value_power"], row["index"], row["count"])
            merged[key] = merged[key].merge(histogram) if key in merged else histogram
    order = {key[:2]: position for position, key in enumerate(merged)}
    ordered = sorted(merged, key=lambda key: (order[key[:2]], KINDS.index(key[2])))
    return {key: merged[key] for key in ordered if merged[key].total}


def _operation_names(grouped: Mapping[tuple[str, str, str], Histogram]) -> dict[tuple[str, str], str]:
    pairs = list(dict.fromkeys((phase, operation) for phase, operation, _ in grouped))
    several = len({phase for phase, _ in pairs}) > 1
    return {
        (phase, operation): f"{phase}: {operation}" if several and phase != operation else operation
        for phase, operation in pairs
    }


def _quantiles(histogram: Histogram, shares: Sequence[float]) -> tuple[float, ...]:
    values = histogram.quantiles_seconds(shares) or []
    total = histogram.total
    return tuple(
        value if total * (1.0 - share) >= MINIMUM_BEYOND or share <= 0.5 else math.nan
        for share, value in zip(shares, values, strict=True)
    )


def _look_alike(one: Sequence[float], other: Sequence[float]) -> bool:
    known = [(a, b) for a, b in zip(one, other, strict=True) if not math.isnan(a) and not math.isnan(b)]
    return all(math.isclose(a, b, rel_tol=_SAME_LINE) for a, b in known)
