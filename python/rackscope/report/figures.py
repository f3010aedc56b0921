"""Key figures of what was measured, and each repetition that they stand on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeGuard

import polars as pl

from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.report.quantities import UNKNOWN, format_half_width, format_quantity, format_range, format_rate


@dataclass(frozen=True)
class KeyFigure:
    """One number that people look for first."""

    label: str
    value: str
    unit: str
    detail: str


@dataclass(frozen=True)
class Repetition:
    """One measured repetition as a row of the table and a dot of the strip."""

    number: int | None
    cells: tuple[str, ...]
    discarded: str | None
    #: Where its dot stands in the strip, percent of the width; None without a throughput.
    position: float | None


@dataclass(frozen=True)
class Strip:
    """Throughput of the repetitions on one line: dots, the mean and its interval, in percent of the width."""

    low_label: str
    high_label: str
    mean: float
    interval: tuple[float, ...] | None
    description: str


@dataclass(frozen=True)
class MeasuredPhase:
    """One measured phase: its figures, its repetitions."""

    name: str
    figures: tuple[KeyFigure, ...]
    repetitions: tuple[Repetition, ...]
    strip: Strip | None


REPETITION_COLUMNS = (
    "throughput",
    "p50",
    "p99",
    "p99.9",
    "maximum",
    "errors",
    "hits",
    "system CPU",
    "generator idle",
)


def measured_phases(
    results: pl.DataFrame, *, sequential: bool, memory_total_bytes: float | None, host_busy: dict[str, float]
) -> tuple[MeasuredPhase, ...]:
    """Every measured phase of the results, in order; ``host_busy`` is percent of all cores by phase."""

    if results.is_empty() or "kind" not in results.columns:
        return ()
    measured = results.filter(pl.col("kind") == "measure")
    phases = []
    for (name,), frame in measured.group_by("phase", maintain_order=True):
        rows = frame.to_dicts()
        kept = [row for row in rows if not row.get("discarded")]
        throughput = mean_interval(_numbers(kept, "throughput_operations_per_second"), sequential=sequential)
        figures = (
            _throughput_figure(throughput, len(kept)),
            _latency_figure("p50", kept, "response_p50_seconds"),
            _latency_figure("p99", kept, "response_p99_seconds"),
            _latency_figure("p99.9", kept, "response_p999_seconds"),
            _cpu_figure(kept, host_busy.get(str(name))),
            _memory_figure(kept, memory_total_bytes),
        )
        strip, positions = _strip(rows, throughput)
        repetitions = tuple(
            Repetition(row.get("repetition"), _cells(row), row.get("discarded"), position)
            for row, position in zip(rows, positions, strict=True)
        )
        phases.append(MeasuredPhase(str(name), figures, repetitions, strip))
    return tuple(phases)


def _throughput_figure(interval: Interval, count: int) -> KeyFigure:
    if not math.isfinite(interval.estimate):
        return KeyFigure("Throughput", UNKNOWN, "", "no repetition was completed")
    detail = "one repetition: no interval" if count == 1 else "interval not known"
    if interval.is_known:
        detail = f"{format_half_width(interval.estimate, interval.low, interval.high)} (95 %, n = {count})"
    return KeyFigure("Throughput", format_rate(interval.estimate).strip(), "operations/s", detail)


def _latency_figure(label: str, rows: Sequence[dict[str, Any]], column: str) -> KeyFigure:
    values = _numbers(rows, column)
    if not values:
        return KeyFigure(label, UNKNOWN, "", "not measured")
    value, _, unit = format_quantity(median(values), "seconds").partition(" ")
    if len(values) == 1:
        return KeyFigure(label, value, unit, "response time")
    low, high = min(values), max(values)
    if format_quantity(low, "seconds") == format_quantity(high, "seconds"):
        return KeyFigure(label, value, unit, "in every repetition")
    return KeyFigure(label, value, unit, format_range(low, high, "seconds"))


def _cpu_figure(rows: Sequence[dict[str, Any]], host_busy: float | None) -> KeyFigure:
    pairs = [
        (row["system_cpu_seconds"], row["duration_seconds"], row.get("operations") or 0)
        for row in rows
        if _is_number(row.get("system_cpu_seconds")) and _is_number(row.get("duration_seconds"))
    ]
    duration = sum(pair[1] for pair in pairs)
    if duration <= 0:
        busy = f"host {format_quantity(host_busy, 'percent')} busy" if host_busy is not None else "not measured"
        return KeyFigure("System CPU", UNKNOWN, "", busy)
    seconds, operations = sum(pair[0] for pair in pairs), sum(pair[2] for pair in pairs)
    details = []
    if operations:
        details.append(f"{format_quantity(seconds / operations, 'seconds')} per operation")
    if host_busy is not None:
        details.append(f"host {format_quantity(host_busy, 'percent')} busy")
    return KeyFigure("System CPU", f"{seconds / duration:.2f}", "cores", "; ".join(details))


def _memory_figure(rows: Sequence[dict[str, Any]], total: float | None) -> KeyFigure:
    values = _numbers(rows, "system_resident_bytes")
    if not values:
        return KeyFigure("System memory", UNKNOWN, "", "not measured")
    value, _, unit = format_quantity(median(values), "bytes").partition(" ")
    share = f" of {format_quantity(total, 'bytes')}" if total else ""
    return KeyFigure("System memory", value, unit, f"resident{share}")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    def seconds(column: str) -> str:
        return format_quantity(row.get(column), "seconds")

    hits, misses = row.get("hits"), row.get("misses")
    ratio = UNKNOWN
    if hits is not None and misses is not None and hits + misses > 0:
        ratio = format_quantity(100 * hits / (hits + misses), "percent")
    cpu, duration = row.get("system_cpu_seconds"), row.get("duration_seconds")
    idle = row.get("generator_idle_ratio")
    return (
        format_quantity(row.get("throughput_operations_per_second"), "operations/s"),
        seconds("response_p50_seconds"),
        seconds("response_p99_seconds"),
        seconds("response_p999_seconds"),
        seconds("response_max_seconds"),
        format_quantity(row.get("errors"), "count"),
        ratio,
        format_quantity(cpu / duration, "cores") if _is_number(cpu) and duration else UNKNOWN,
        format_quantity(None if idle is None else 100 * idle, "percent"),
    )


def _strip(rows: Sequence[dict[str, Any]], interval: Interval) -> tuple[Strip | None, list[float | None]]:
    values = [row.get("throughput_operations_per_second") for row in rows]
    known = [value for value in values if _is_number(value)]
    if len(known) < 2 or not math.isfinite(interval.estimate):
        return None, [None] * len(rows)
    interval_ends = [end for end in (interval.low, interval.high) if end is not None]
    low, high = min(*known, *interval_ends), max(*known, *interval_ends)
    margin = 0.08 * (high - low) or 0.01 * abs(high) or 1.0
    low, high = low - margin, high + margin

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    least, most, mean, first, last = (
        format_quantity(value, "operations/s") for value in (min(known), max(known), interval.estimate, low, high)
    )
    description = f"Throughput of {len(known)} repetitions between {least} and {most}, mean {mean}."
    span = tuple(map(place, interval_ends)) if len(interval_ends) == 2 else None
    strip = Strip(first, last, place(interval.estimate), span, description)
    return strip, [place(value) if _is_number(value) else None for value in values]


def _numbers(rows: Sequence[dict[str, Any]], column: str) -> list[float]:
    return [float(row[column]) for row in rows if _is_number(row.get(column))]


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value)
