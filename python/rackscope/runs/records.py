"""A phase's result from the generator as rows of the tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rackscope.analysis.histograms import Histogram

_COPIED = (
    "start_ns",
    "end_ns",
    "duration_seconds",
    "operations",
    "errors",
    "hits",
    "misses",
    "wrong_values",
    "offered_operations_per_second",
    "bytes_sent",
    "bytes_received",
    "lag_p99_seconds",
    "generator_idle_ratio",
    "generator_cpu_seconds",
)


def result_row(
    phase: str,
    kind: str,
    repetition: int | None,
    result: Mapping[str, Any],
    system_cpu_seconds: float | None,
    system_resident_bytes: float | None,
    discarded: str | None,
) -> dict[str, Any]:
    """One row of ``results.parquet``; quantiles are over all operations of the phase."""
    row: dict[str, Any] = {name: result.get(name) for name in _COPIED}
    row |= {
        "phase": phase,
        "kind": kind,
        "repetition": repetition,
        "system_cpu_seconds": system_cpu_seconds,
        "system_resident_bytes": system_resident_bytes,
        "discarded": discarded,
    }
    duration = result["duration_seconds"]
    row["throughput_operations_per_second"] = result["operations"] / duration if duration > 0 else None
    response = _merged(result["histograms"], "response")
    if response is not None:
        names = {"response_p50_seconds": 0.5, "response_p90_seconds": 0.9, "response_p99_seconds": 0.99}
        for name, quantile in {**names, "response_p999_seconds": 0.999}.items():
            row[name] = response.quantile_seconds(quantile)
        row["response_mean_seconds"] = response.mean_seconds()
        row["response_max_seconds"] = max(
            part["max_seconds"] for part in result["histograms"] if part["kind"] == "response"
        )
    service = _merged(result["histograms"], "service")
    if service is not None:
        row["service_p50_seconds"] = service.quantile_seconds(0.5)
        row["service_p99_seconds"] = service.quantile_seconds(0.99)
    return row


def latency_rows(phase: str, repetition: int | None, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of ``latency.parquet``, one for each histogram that holds something."""
    return [
        {"phase": phase, "repetition": repetition, **histogram}
        for histogram in result["histograms"]
        if histogram["count"]
    ]


def _merged(histograms: Iterable[Mapping[str, Any]], kind: str) -> Histogram | None:
    merged: Histogram | None = None
    for part in histograms:
        if part["kind"] != kind or not part["count"]:
            continue
        histogram = Histogram.of(part["grouping_power"], part["max_value_power"], part["index"], part["count"])
        merged = histogram if merged is None else merged.merge(histogram)
    return merged
