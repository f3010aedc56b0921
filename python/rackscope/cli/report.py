"""Write (again) the report of a run directory or of a study directory, and print its findings.

The directory is all it takes: it can be made anywhere, later, of what was killed too.
"""

from __future__ import annotations

import argparse

from rackscope.cli import arguments as common
from rackscope.cli.modelling import add_server, given_server
from rackscope.cli.output import complain, print_json
from rackscope.errors import UsageError

HELP = "write the report of a run or study directory and print its findings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be asked for."""
    parser.add_argument("run", metavar="RUN", type=common.path, help="a run directory, or a study directory")
    parser.add_argument(
        "--out", metavar="FILE", type=common.path, help="where to (default: report.html in the directory)"
    )
    add_server(parser)
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Render, then say what is in it. Of a damaged directory, what is left of it, and status 1."""
    from rackscope.cli.findings import print_run, run_summary
    from rackscope.report import write_report
    from rackscope.runs.directory import RunDirectory
    from rackscope.runs.study import is_study

    if is_study(arguments.run):
        if arguments.server is not None:
            raise UsageError("--server is for the report of a run", "Leave it out, or name a run of the study.")
        return _report_study(arguments)
    given = given_server(arguments)
    run = RunDirectory.open(arguments.run)
    written = write_report(run, arguments.out, *given)
    if arguments.json:
        print_json({**run_summary(run, *given), "report": str(written)})
    else:
        print_run(run, *given)
        if arguments.out is not None:
            print(f"Written: {written}")
    if run.damage:
        complain(f"{run.path} is damaged: {'; '.join(run.damage)}. The report was made without that.")
    return 1 if run.damage else 0


def _report_study(arguments: argparse.Namespace) -> int:
    from rackscope.cli.studying import print_study
    from rackscope.report.study import write_study_report

    written = write_study_report(arguments.run, arguments.out)
    print_study(arguments.run, as_json=arguments.json, report=written)
    return 0
