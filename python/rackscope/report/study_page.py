"""What the page of a study says, as data; the templates decide how it looks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rackscope.report.configuration import Row, host_summary, inventory_of
from rackscope.report.page import readable_time
from rackscope.report.quantities import as_sentence, format_cell, format_clock, format_quantity
from rackscope.report.svg import HALF, NARROW, WIDE, describe_value, draw_chart
from rackscope.runs.study import Chart, Column, Finding, StudyRecord, Table

_STATES = {"running": "is still going on", "interrupted": "did not finish", "failed": "failed"}
#: Marks that a cell of text may begin with, such as those of the pressure-point matrix.
_MARKS = {"●": "strong", "◐": "likely", "◌": "none", "·": "none", "~": "open", "?": "unknown"}
#: Charts with more categories or points than this are drawn as wide as the page.
_WIDE_FROM_CATEGORIES = 9


@dataclass(frozen=True)
class Cell:
    """A cell of a table: its text line by line, and where it lies between 0 and 100 when a bar helps to see that."""

    lines: tuple[str, ...]
    numeric: bool
    emphasis: str = ""
    percent: float | None = None


@dataclass(frozen=True)
class ShownTable:
    """A table as it is read."""

    identifier: str
    title: str
    caption: str
    columns: tuple[tuple[Column, bool], ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class ShownChart:
    """A chart, drawn for wide and for narrow pages, and the numbers in it."""

    identifier: str
    title: str
    caption: str
    is_wide: bool
    drawing: str
    narrow_drawing: str
    numbers: ShownTable


def study_page_of(record: StudyRecord, links: Mapping[str, str]) -> dict[str, Any]:
    """What the templates show of ``record``, by name; ``links`` lead to the members' reports, by folder."""
    by_severity: dict[str, list[Finding]] = {}
    for finding in record.findings:
        by_severity.setdefault(finding.severity, []).append(finding)
    return {
        "record": record,
        "started": readable_time(record.started_at),
        "lasted": _lasted(record.started_at, record.finished_at),
        "host_summary": host_summary(record.host),
        # Why the study is not whole; empty when it is.
        "state": _state(record),
        "warnings": [*by_severity.get("serious", ()), *by_severity.get("warning", ())],
        "findings": by_severity.get("finding", []),
        "notes": by_severity.get("note", []),
        "charts": [_chart(chart, alone=len(record.charts) == 1) for chart in record.charts],
        "tables": [_table(table) for table in record.tables],
        "links": links,
        "parameters": [Row(name.replace("_", " "), value) for name, value in record.parameters.items()],
        "host": inventory_of(record.host, "study.json"),
        "command": shlex.join(record.command_line),
    }


def _state(record: StudyRecord) -> str:
    if record.status == "complete":
        return ""
    reason = f": {record.status_reason}" if record.status_reason else ""
    return as_sentence(f"this study {_STATES[record.status]}{reason}") + " What follows is what was found until then."


def _lasted(started: str, finished: str | None) -> str:
    """``took 2:35``; empty where it is not known."""

    try:
        seconds = (datetime.fromisoformat(finished or "") - datetime.fromisoformat(started)).total_seconds()
    except (ValueError, TypeError):
        return ""
    return f"took {format_clock(seconds)}" if seconds > 0 else ""


def _table(table: Table) -> ShownTable:
    bars = [_is_share([row[place] for row in table.rows], column.unit) for place, column in enumerate(table.columns)]
    rows = tuple(
        tuple(_cell(value, column.unit, bar) for value, column, bar in zip(row, table.columns, bars, strict=True))
        for row in table.rows
    )
    columns = tuple((column, column.unit != "text") for column in table.columns)
    return ShownTable(table.identifier, table.title, table.caption, columns, rows)


def _cell(value: str | float | bool | None, unit: str, bar: bool) -> Cell:
    text = format_cell(value, unit)
    percent = None
    if bar and isinstance(value, int | float):
        percent = round(100 * float(value), 2)
    emphasis = _MARKS.get(text[:1], "") if unit == "text" and text[1:2] in ("", " ", "\n") else ""
    return Cell(tuple(text.split("\n")), unit != "text", emphasis, percent)


def _is_share(values: Sequence[str | float | bool | None], unit: str) -> bool:
    """Whether a column is parts of a whole, for which a bar says more than digits."""
    known = [value for value in values if value is not None]
    numbers = [value for value in known if isinstance(value, int | float) and not isinstance(value, bool)]
    return unit == "ratio" and bool(known) and len(numbers) == len(known) and all(0 <= one <= 1 for one in numbers)


def _chart(chart: Chart, *, alone: bool) -> ShownChart:

    wide = alone or max(len(chart.x.categories), len(chart.y.categories)) >= _WIDE_FROM_CATEGORIES
    return ShownChart(
        identifier=chart.identifier,
        title=chart.title,
        caption=chart.caption,
        is_wide=wide,
        drawing=draw_chart(chart, WIDE if wide else HALF),
        narrow_drawing=draw_chart(chart, NARROW),
        numbers=_numbers(chart),
    )


def _numbers(chart: Chart) -> ShownTable:
    """The points of a chart in rows, for those who do not see it and those who want the digits."""
    columns = [Column(name="series"), Column(name=chart.x.label or "x"), Column(name=chart.y.label or "y")]
    intervals = any(series.low or series.high for series in chart.series)
    if intervals:
        levels = sorted({f"{100 * series.level:.0f} %" for series in chart.series if series.low or series.high})
        columns.append(Column(name=f"{' or '.join(levels)} interval"))
    rows = []
    axis = chart.x if chart.y.scale == "category" else chart.y
    for series in chart.series:
        for place, (x, y) in enumerate(zip(series.x, series.y, strict=False)):
            across = describe_value(x, chart.x)
            if place < min(len(series.x_low), len(series.x_high)):
                ends_of_x = (describe_value(end[place], chart.x) for end in (series.x_low, series.x_high))
                across = f"{across} ({' to '.join(ends_of_x)})"
            texts = [series.label, across, describe_value(y, chart.y)]
            if intervals:
                ends = [values[place] if place < len(values) else None for values in (series.low, series.high)]
                known = [describe_value(end, axis) for end in ends if end is not None]
                texts.append(" to ".join(known) if len(known) == 2 else format_quantity(None, ""))
            rows.append(tuple(Cell((text,), numeric=at > 1) for at, text in enumerate(texts)))
    return ShownTable(
        f"{chart.identifier}-numbers", "", "", tuple((column, at > 1) for at, column in enumerate(columns)), tuple(rows)
    )
