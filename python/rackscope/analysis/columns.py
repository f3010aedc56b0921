"""Names of columns: a metric, and its labels in braces."""

from __future__ import annotations

from collections.abc import Iterable

from rackscope.metrics import parse_metric

#: More values of a label than this are not worth a reader's time.
_MOST_VALUES = 3


def split_column(column: str) -> tuple[str, dict[str, str]]:
    """Metric and labels; a column that is not spelled as a metric is its own name (``timestamp_ns``, results)."""
    try:
        return parse_metric(column)
    except ValueError:
        return column, {}


def describe_columns(columns: Iterable[str]) -> str:
    """``cpu_core_seconds_total core 0``: metrics with their labels, those of many values left out."""
    metrics: dict[str, dict[str, list[str]]] = {}
    for column in columns:
        metric, labels = split_column(column)
        values = metrics.setdefault(metric, {})
        for key, value in labels.items():
            known = values.setdefault(key, [])
            if value not in known:
                known.append(value)
    parts = []
    for metric, values in metrics.items():
        words = [f"{key} {', '.join(known)}" for key, known in values.items() if len(known) <= _MOST_VALUES]
        parts.append(" ".join((metric, *words)))
    return "; ".join(parts)
