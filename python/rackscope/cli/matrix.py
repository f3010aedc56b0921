"""Set pressure points side by side: systems under workloads against resources, each cell with what it rests on.

Studies of the kind 'pressure' prove what limits; plain runs only show what worked hard, and are marked so.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.output import complain, open_console, print_json
from rackscope.errors import RunDirectoryError

if TYPE_CHECKING:
    from rackscope.runs.study import StudyRecord
    from rackscope.studies.pressure.points import Source

HELP = "set the pressure points of studies and runs side by side"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", metavar="RUN", nargs="+", type=common.path, help="directories of pressure studies and of runs"
    )
    parser.add_argument("--out", metavar="FILE", type=common.path, help="write the matrix as a page, too")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Read what can be read and show it; what cannot is named, and the status is then 1."""
    from rackscope.studies.pressure.matrix import matrix_record

    sources, unread = _read(arguments.runs)
    if not sources:
        raise _nothing(unread)
    for problem in unread.values():
        complain(str(problem))
    record = matrix_record(sources, arguments.command_line)
    written = None if arguments.out is None else _write(record, sources, arguments.out)
    if arguments.json:
        failures = [{"path": path, "error": error.what, "advice": error.advice} for path, error in unread.items()]
        remarks = [remark for source in sources for remark in source.remarks]
        report = None if written is None else str(written)
        print_json({**record.result, "remarks": remarks, "not_read": failures, "report": report})
    else:
        _print(record, written)
    return 1 if unread else 0


def _read(paths: list[Path]) -> tuple[list[Source], dict[str, RunDirectoryError]]:
    """Each directory once; those that are damaged or none by name, with the reason."""
    from rackscope.studies.pressure.points import read_pressure_points

    sources: dict[Path, Source] = {}
    unread: dict[str, RunDirectoryError] = {}
    for path in paths:
        try:
            source = read_pressure_points(path)
        except RunDirectoryError as error:
            unread[str(path)] = error
            continue
        sources.setdefault(path.resolve(), source)
        if source.damage:
            unread[str(path)] = RunDirectoryError(
                f"{path} is damaged: {'; '.join(source.damage)}", "Its row was made without that."
            )
    return list(sources.values()), unread


def _nothing(unread: dict[str, RunDirectoryError]) -> RunDirectoryError:
    """One line for all of it."""
    *others, last = unread.values()
    for error in others:
        complain(str(error))
    return last


def _write(record: StudyRecord, sources: list[Source], out: Path) -> Path:
    from rackscope.report.build import REPORT_NAME
    from rackscope.report.study import write_study_page

    reports = {str(source.path): source.path / REPORT_NAME for source in sources}
    return write_study_page(record, out, {name: page for name, page in reports.items() if page.is_file()})


def _print(record: StudyRecord, written: Path | None) -> None:
    from rackscope.cli.studying import print_record

    # Every figure in words would bury the matrix; the page and --json have them.
    shown = record.model_copy(update={"tables": [one for one in record.tables if one.identifier != "evidence"]})
    console = open_console()
    print_record(console, shown)
    if written is not None:
        console.print(f"Report: {written}", markup=False, style="bold", soft_wrap=True)
