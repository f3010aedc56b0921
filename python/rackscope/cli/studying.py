"""A study in the terminal: what it found, its tables, and how it was done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from rackscope.api.study import Study
from rackscope.cli.output import open_console, print_json
from rackscope.report.quantities import format_cell
from rackscope.runs.directory import REPORT
from rackscope.runs.study import StudyRecord, Table

_STYLES = {"finding": "bold", "note": "dim", "warning": "yellow", "serious": "bold red"}
_MARKS = {"finding": "•", "note": "note:", "warning": "!", "serious": "!"}


def print_study(study: Study, *, as_json: bool, report: Path | None = None) -> None:
    """A study directory for a person, or as one JSON object. ``report`` is where its page is, if not in it."""
    if as_json:
        print_json(study.to_dict(report))
        return
    console = open_console()
    print_record(console, study.record, study.remarks)
    console.print(f"Report: {report or study.path / REPORT}", markup=False, style="bold", soft_wrap=True)


def print_record(console: Any, record: StudyRecord, remarks: Sequence[str] = ()) -> None:
    """Remarks, findings, tables and method of a study for a person."""
    for remark in remarks:
        console.print(f"! {remark}", style="bold red", markup=False)
    for finding in record.findings:
        console.print(f"{_MARKS[finding.severity]} {finding.sentence}", style=_STYLES[finding.severity], markup=False)
        if finding.evidence:
            console.print(f"  {finding.evidence}", style="dim", markup=False)
    for table in record.tables:
        _print_table(console, table)
    for line in record.method:
        console.print(line, style="dim", markup=False)


def _print_table(console: Any, table: Table) -> None:
    shown = RichTable(title=Text(table.title), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in table.columns:
        shown.add_column(Text(column.name), justify="left" if column.unit == "text" else "right")
    for row in table.rows:
        cells = zip(row, table.columns, strict=True)
        shown.add_row(*(Text(format_cell(value, column.unit)) for value, column in cells))
    console.print()
    console.print(shown)
    if table.caption:
        console.print(table.caption, style="dim", markup=False)
