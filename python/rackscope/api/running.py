"""``rackscope.run``: what the verb ``run`` does."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Unpack

from rackscope.api.keeping import keeping
from rackscope.api.run import Run
from rackscope.api.server import server_part
from rackscope.api.settings import ProgressCallback, RunSettings, silent
from rackscope.runs.directory import LOGS, MANIFEST
from rackscope.runs.interruption import held_back
from rackscope.runs.options import Progress, RunOptions, run_options


def run(
    system: str,
    workload: str,
    *,
    server: str | None = None,
    share: float | None = None,
    progress: ProgressCallback = silent,
    **settings: Unpack[RunSettings],
) -> Run:
    """Run ``workload`` against ``system`` on this host, write the run directory and its report, and open it.

    ``settings`` are fields of RunOptions, in seconds and counts: ``duration_seconds=5``, ``connections=50``,
    ``settings={"threads": "2"}``. ``server`` and ``share`` are as in ``Run.open``. ``progress`` is called several times
    a second.

    Raises RackscopeError, or Interrupted after Ctrl-C; ``details["run_directory"]`` says where what was measured is.
    """
    if "budget_seconds" not in settings and "duration_seconds" in settings:
        settings["budget_seconds"] = max(RunOptions.budget_seconds, 3 * settings["duration_seconds"])
    options = run_options(system, workload, server=server_part(server, share), **settings)
    from rackscope.runs.prepare import prepare

    with keeping("run_directory", _save) as kept:
        prepared = prepare(options, progress)
        _import_everything()
        from rackscope.runs.execute import Execution

        execution = Execution(prepared, progress)
        kept.folder = execution.path
        execution.run()
        progress(Progress("writing the report"))
        Run.open(execution.path).write_report()
    return Run.open(execution.path)


def _import_everything() -> None:
    """Import what would later take time from what is measured; Ctrl-C waits, as the report needs all of it."""
    with held_back():
        for name in ("rackscope.runs.execute", "rackscope.report.page"):
            importlib.import_module(name)
        for name in ("polars", "numpy", "scipy.stats", "jinja2", "rich.console", "rich.table"):
            importlib.import_module(name)


def _save(folder: Path) -> str:
    if not (folder / MANIFEST).exists():
        return ""
    kept = Run.open(folder)
    kept.write_report()
    if kept.manifest.phases:
        return f"what was measured until then is in {folder}"
    return f"nothing was measured; what the system printed is in {folder / LOGS}"
