"""A phase's result from the generator as rows of the tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rackscope.analysis.histograms import Histogram
from rackscope.runs.tables import KEYS, RESULT_FIELDS

#: Quantiles of a row, by the kind of latency.
_QUANTILES = {
    "response": {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999},
    "service": {"p50": 0.5, "p99": 0.99},
}


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
    row: dict[str, Any] = {name: result.get(name) for name in RESULT_FIELDS if name not in KEYS}
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
    for latency, quantiles in _QUANTILES.items():
        merged = _merged(result["histograms"], latency)
        if merged is not None:
            row |= {f"{latency}_{name}_seconds": merged.quantile_seconds(one) for name, one in quantiles.items()}
            if latency == "response":
                row["response_mean_seconds"] = merged.mean_seconds()
    largest = (part["max_seconds"] for part in result["histograms"] if part["kind"] == "response" and part["count"])
    row["response_max_seconds"] = max(largest, default=None)
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
