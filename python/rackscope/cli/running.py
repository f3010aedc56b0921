"""Behind ``run``: progress while it lasts, findings and the report when it ends, however it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackscope.cli.progress import ProgressLine
from rackscope.errors import RackscopeError

if TYPE_CHECKING:
    from rackscope.runs.options import RunOptions


def run_and_report(options: RunOptions, *, as_json: bool) -> int:
    """Run, write the report, print findings (or one JSON object). Raises RackscopeError after saying what was kept."""
    from rackscope.runs.execute import Execution
    from rackscope.runs.prepare import prepare

    folder: Path | None = None
    try:
        with ProgressLine() as progress:
            execution = Execution(prepare(options, progress), progress)
            folder = execution.writer.path
            execution.run()
            progress.say("writing the report")
            summary = _summary(folder)
    except RackscopeError as error:
        _say_what_was_kept(folder)
        if as_json:
            failure = {"status": "failed", "error": error.what, "advice": error.advice}
            print(json.dumps({**failure, "run_directory": str(folder) if folder else None}))
        raise
    except KeyboardInterrupt:
        _say_what_was_kept(folder)
        if as_json:
            print(json.dumps({"status": "interrupted", "run_directory": str(folder) if folder else None}))
        raise
    if as_json:
        print(json.dumps(summary))
    else:
        from rackscope.cli.findings import print_run

        print_run(folder)
    return 0


def _say_what_was_kept(folder: Path | None) -> None:
    """After an error or Ctrl-C: a report of what there is, without letting it hide the reason."""
    if folder is None:
        return
    try:
        _write_report(folder)
    except RackscopeError as error:
        print(f"rackscope: no report of {folder}: {error}", file=sys.stderr)
        return
    print(f"rackscope: what was measured until then is in {folder}", file=sys.stderr)


def _write_report(folder: Path) -> Path:
    from rackscope.report import write_report
    from rackscope.runs.directory import RunDirectory

    return write_report(RunDirectory.open(folder))


def _summary(folder: Path) -> dict[str, Any]:
    from rackscope.cli.findings import run_summary

    report = _write_report(folder)
    return {**run_summary(folder), "report": str(report)}
