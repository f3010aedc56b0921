"""Behind ``run``: progress while it lasts, findings and the report when it ends, however it ends."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.cli.output import Stopped, complain, print_json
from rackscope.cli.progress import ProgressLine
from rackscope.errors import RackscopeError

if TYPE_CHECKING:
    from rackscope.runs.directory import RunDirectory
    from rackscope.runs.options import RunOptions


def run_and_report(options: RunOptions, *, as_json: bool) -> int:
    """Run, write the report, print findings (or one JSON object). Raises RackscopeError after saying what was kept."""
    from rackscope.runs.prepare import prepare

    folder: Path | None = None
    try:
        with ProgressLine() as progress:
            prepared = prepare(options, progress)
            _import_everything()
            from rackscope.runs.execute import Execution

            execution = Execution(prepared, progress)
            folder = execution.path
            execution.run()
            progress.say("writing the report")
            _write_report(folder)
    except RackscopeError as error:
        error.details["run_directory"] = None if folder is None else str(folder)
        _keep(folder)
        raise
    except KeyboardInterrupt:
        try:
            _keep(folder)
        finally:
            # Also when a second Ctrl-C means that not even the report is wanted.
            raise Stopped(run_directory=None if folder is None else str(folder)) from None
    _print(folder, as_json=as_json)
    return 0


def _import_everything() -> None:
    """Import what the run and its report will need now: later it would take time from what is measured.

    Ctrl-C waits, as a library that was imported by half is no use to the report that must still be written.
    """
    from rackscope.runs.interruption import held_back

    with held_back():
        importlib.import_module("rackscope.runs.execute")
        importlib.import_module("rackscope.report.page")
        for name in ("polars", "numpy", "scipy.stats", "jinja2", "rich.console", "rich.table"):
            importlib.import_module(name)


def _print(folder: Path, *, as_json: bool) -> None:
    from rackscope.cli.findings import print_run, run_summary
    from rackscope.runs.directory import RunDirectory

    run = RunDirectory.open(folder)
    if as_json:
        print_json(run_summary(run))
    else:
        print_run(run)


def _keep(folder: Path | None) -> None:
    """After an error or Ctrl-C: a report of what there is, without letting it hide the reason."""
    if folder is None or not (folder / "manifest.json").exists():
        return
    try:
        run = _write_report(folder)
    except RackscopeError as error:
        complain(f"{folder} keeps what was measured, but has no report: {error}")
        return
    if run.manifest.phases:
        complain(f"what was measured until then is in {folder}")
    else:
        complain(f"nothing was measured; what the system printed is in {folder / 'logs'}")


def _write_report(folder: Path) -> RunDirectory:
    from rackscope.report import write_report
    from rackscope.runs.directory import RunDirectory

    run = RunDirectory.open(folder)
    write_report(run)
    return run
