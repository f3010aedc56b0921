"""Behind ``study``: progress while it lasts, findings, tables and the report when it ends, however it ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackscope.cli.output import Stopped, complain, open_console, print_json
from rackscope.cli.progress import ProgressLine
from rackscope.errors import RackscopeError

if TYPE_CHECKING:
    from rackscope.runs.study import StudyRecord, Table
    from rackscope.studies.base import Request, Study

_STYLES = {"finding": "bold", "note": "dim", "warning": "yellow", "serious": "bold red"}
_FEW_MEMBERS = 3
_MARKS = {"finding": "•", "note": "note:", "warning": "!", "serious": "!"}


def study_and_report(study: Study, request: Request, *, as_json: bool) -> int:
    """Conduct, write the report, print it. Raises RackscopeError after saying what was kept."""
    from rackscope.studies.conduct import begin, conduct

    folder: Path | None = None
    try:
        with ProgressLine() as progress:
            under_way = begin(study, request, progress)
            folder = under_way.folder
            conduct(study, under_way)
            progress.say("writing the report")
            _write_report(folder)
    except RackscopeError as error:
        error.details["study_directory"] = None if folder is None else str(folder)
        _keep(folder, study)
        raise
    except KeyboardInterrupt:
        try:
            _keep(folder, study)
        finally:
            raise Stopped(study_directory=None if folder is None else str(folder)) from None
    print_study(folder, as_json=as_json)
    return 0


def print_study(folder: Path, *, as_json: bool, report: Path | None = None) -> None:
    """A study directory for a person, or as one JSON object. ``report`` is where its page is, if not in it."""
    from rackscope.runs.study import read_study

    record = read_study(folder)
    page = report or folder / "report.html"
    if as_json:
        print_json({"study_directory": str(folder), "report": str(page), **_for_programs(record)})
        return
    console = open_console()
    print_record(console, record)
    console.print(f"Report: {page}", markup=False, style="bold", soft_wrap=True)


def print_record(console: Any, record: StudyRecord) -> None:
    """Findings, tables and method of a study for a person."""
    if record.status != "complete":
        console.print(f"! This study did not finish: {record.status_reason}", style="bold red", markup=False)
    for finding in record.findings:
        console.print(f"{_MARKS[finding.severity]} {finding.sentence}", style=_STYLES[finding.severity], markup=False)
        if finding.evidence:
            console.print(f"  {finding.evidence}", style="dim", markup=False)
    for table in record.tables:
        _print_table(console, table)
    for line in record.method:
        console.print(line, style="dim", markup=False)


def _for_programs(record: StudyRecord) -> dict[str, Any]:
    return record.model_dump(exclude={"charts"})


def _print_table(console: Any, table: Table) -> None:
    from rich.table import Table as RichTable
    from rich.text import Text

    from rackscope.report.quantities import format_cell

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


def _write_report(folder: Path) -> None:
    """The study's report, and those of its members where they are few enough to be looked at one by one."""
    from rackscope.report import write_report
    from rackscope.report.study import write_study_report
    from rackscope.runs.directory import RunDirectory
    from rackscope.runs.study import MEMBERS, read_study

    members = [folder / MEMBERS / member.folder for member in read_study(folder).members]
    if len(members) <= _FEW_MEMBERS:
        for member in members:
            # A member that was never begun has nothing to report.
            if (member / "manifest.json").exists():
                write_report(RunDirectory.open(member))
    write_study_report(folder)


def _keep(folder: Path | None, study: Study) -> None:
    """After an error or Ctrl-C: a report of what there is, without letting it hide the reason."""
    if folder is None:
        return
    try:
        _write_report(folder)
    except RackscopeError as error:
        complain(f"{folder} keeps what was measured, but has no report: {error}")
        return
    go_on = f"; go on with 'rackscope study {study.name} --resume {folder}'" if study.resumable else ""
    complain(f"what was found until then is in {folder}{go_on}")
