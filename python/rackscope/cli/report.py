"""Write the report of a run or study directory anew, and print its findings.

Only the directory is needed: on any host, at any time, also of a run or study that was killed.
"""

from __future__ import annotations

import argparse

from rackscope.cli import arguments as common
from rackscope.cli.output import complain
from rackscope.errors import UsageError

HELP = "write the report of a run or study directory and print its findings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=common.path, help="a run directory, or a study directory")
    parser.add_argument(
        "--out", metavar="FILE", type=common.path, help="where to (default: report.html in the directory)"
    )
    common.add_server(parser)
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Render, then say what is in it. Of a damaged directory, what is left of it, and status 1."""
    from rackscope.api.run import Run
    from rackscope.api.study import Study
    from rackscope.cli.findings import print_run
    from rackscope.cli.studying import print_study
    from rackscope.runs.study import is_study

    if is_study(arguments.run):
        if arguments.server is not None:
            raise UsageError("--server is for the report of a run", "Leave it out, or name a run of the study.")
        study = Study.open(arguments.run)
        print_study(study, as_json=arguments.json, report=study.write_report(arguments.out))
        return 0
    run = Run.open(arguments.run, arguments.server, arguments.share)
    written = run.write_report(arguments.out)
    print_run(run, as_json=arguments.json, report=written)
    if run.damage:
        complain(f"{run.path} is damaged: {'; '.join(run.damage)}. The report was made without that.")
    return 1 if run.damage else 0
