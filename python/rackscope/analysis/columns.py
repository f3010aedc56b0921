"""Names of columns: a metric, and its labels in braces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_COLUMN = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)(?:\{(.*)\})?$", re.DOTALL)
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
#: More values of a label than this are not worth a reader's time.
_MOST_VALUES = 3


def split_column(column: str) -> tuple[str, dict[str, str]]:
    """``disk_reads_total{device="vda"}`` as its metric and its labels."""
    match = _COLUMN.match(column)
    return (match[1], dict(_LABEL.findall(match[2] or ""))) if match else (column, {})


def join_column(metric: str, labels: Mapping[str, str]) -> str:
    """The inverse of ``split_column``, labels sorted by name."""
    if not labels:
        return metric
    return metric + "{" + ",".join(f'{key}="{labels[key]}"' for key in sorted(labels)) + "}"


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
