"""The runs of a sweep, in their order: each a fresh start of a system under one configuration.

Runs that were done before are kept, and cells that cannot run are left out.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rackscope.errors import RackscopeError, UsageError
from rackscope.runs.directory import RunDirectory
from rackscope.runs.options import Progress, ProgressCallback, RunOptions
from rackscope.runs.prepare import prepare
from rackscope.runs.session import Session
from rackscope.runs.study import MEMBERS
from rackscope.studies.base import Conduct
from rackscope.studies.bench.figures import Figures, figures_of
from rackscope.studies.bench.loading import make_ready, measured_stages
from rackscope.studies.kit import counted
from rackscope.studies.sweep.grid import cell_options, duration_words
from rackscope.studies.sweep.plan import SweepPlan
from rackscope.workloads import find_workload

#: A cell is given up when this many of its runs failed: once may be an accident.
_MOST_FAILURES = 2
#: Starting and stopping a system and putting its data in, before the first run has told.
_OVERHEAD_SECONDS = 2.0


class Bench:
    """Starts systems."""

    def check(self, options: RunOptions) -> str:
        """Raises RackscopeError for a run that cannot be; says which version of the system would be measured."""
        acquired = prepare(options, lambda _: None).acquired
        return f"{acquired.name} {acquired.version}"

    def measure(self, options: RunOptions, folder: Path, progress: ProgressCallback) -> Figures:
        """Do the run. Raises RackscopeError."""
        session = Session(prepare(options, progress), progress, folder)
        rows: list[dict[str, Any]] = []

        def work(session: Session) -> None:
            make_ready(session)
            rows.extend(measured_stages(session))

        session.run(work)
        return figures_of(rows)

    def recall(self, folder: Path) -> Figures | None:
        """What a run gave that was done before; ``None`` when it was not finished."""
        try:
            run = RunDirectory.open(folder)
        except RackscopeError:
            return None
        rows = [row for row in run.results().to_dicts() if row["kind"] == "measure" and row["discarded"] is None]
        return figures_of(rows) if rows and run.manifest.status == "complete" else None


@dataclass
class Outcome:
    """What there is of a sweep: figures by cell and repetition, why cells failed, which are lost."""

    figures: dict[tuple[int, int], Figures] = field(default_factory=dict)
    failures: dict[int, list[str]] = field(default_factory=dict)
    kept: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    #: Repetitions that were lost to a failure which did not come again.
    discarded: list[str] = field(default_factory=list)

    def of(self, cell: int) -> list[Figures]:
        """What the repetitions of a cell gave, in their order."""
        return [figures for (one, _), figures in sorted(self.figures.items()) if one == cell]


def seconds_per_run(options: RunOptions) -> float:
    """What one run will take, before any has been done."""
    stages = len(find_workload(options.workload).stages)
    return options.warm_up_seconds + stages * options.duration_seconds + _OVERHEAD_SECONDS


def carry_out(
    plan: SweepPlan, conduct: Conduct, bench: Bench, outcome: Outcome, clock: Callable[[], float] = time.monotonic
) -> None:
    """Do every run that is missing; ``outcome`` and the record's folders hold what there is. Raises UsageError."""
    record = conduct.record
    attempts: list[dict[str, Any]] = record.result.setdefault("runs", [])
    cells = plan.cells
    options = _options_by_cell(plan, bench, outcome, conduct.progress)
    _keep_versions(record.result, outcome.versions)
    _recall(conduct, bench, attempts, outcome)
    left = [(cell, one) for cell, one in plan.order() if cell in options and (cell, one) not in outcome.figures]
    conduct.progress(Progress(_announcement(plan, len(left), outcome)))
    spent: list[float] = []
    for position, (cell, repetition) in enumerate(left):
        if cell not in options:
            continue
        remaining = sum(1 for one, _ in left[position:] if one in options)
        each = sum(spent) / len(spent) if spent else seconds_per_run(options[cell])
        label = f"{cells[cell].label}, repetition {repetition}"
        number = f"run {len(left) - remaining + 1} of {len(left)}"
        shown = f"{number}, about {duration_words(remaining * each)} left: {label}"
        folder_name = _folder_name(cell, repetition, cells[cell].label, [one["folder"] for one in attempts])
        folder = conduct.member(folder_name, label)
        attempts.append({"cell": cell, "repetition": repetition, "folder": folder_name})
        conduct.save()
        started = clock()
        try:
            progress = _labelled(conduct.progress, shown, position / len(left), 1 / len(left))
            outcome.figures[cell, repetition] = bench.measure(options[cell], folder, progress)
        except RackscopeError as error:
            record.members[-1].discarded = error.what
            reasons = outcome.failures.setdefault(cell, [])
            reasons.append(error.what)
            if isinstance(error, UsageError) or len(reasons) >= _MOST_FAILURES:
                del options[cell]
            conduct.save()
        except BaseException:
            record.members[-1].discarded = "stopped before its end"
            raise
        else:
            spent.append(clock() - started)
    outcome.discarded += [
        f"{cells[cell].label}: {reasons[0]}" for cell, reasons in outcome.failures.items() if cell in options
    ]
    outcome.failures = {cell: reasons for cell, reasons in outcome.failures.items() if cell not in options}


def _options_by_cell(
    plan: SweepPlan, bench: Bench, outcome: Outcome, progress: ProgressCallback
) -> dict[int, RunOptions]:
    """What each cell runs as; those that cannot are failures before anything is measured."""
    usable = sorted(os.sched_getaffinity(0))
    options: dict[int, RunOptions] = {}
    progress(Progress(f"checking {counted(len(plan.cells), 'cell')}"))
    for number, cell in enumerate(plan.cells):
        try:
            one = cell_options(plan.options, plan.factors, cell, usable)
            outcome.versions.setdefault(one.system, bench.check(one))
        except RackscopeError as error:
            outcome.failures[number] = [error.what]
        else:
            options[number] = replace(one, repetitions=1)
    if not options:
        reasons = sorted({reasons[0] for reasons in outcome.failures.values()})
        raise UsageError(
            f"none of the {len(plan.cells)} cells can run: {'; '.join(reasons[:3])}", "Vary something else."
        )
    return options


def _keep_versions(result: dict[str, Any], versions: dict[str, str]) -> None:
    before = result.get("versions", {})
    for system, version in versions.items():
        if before.get(system, version) != version:
            raise UsageError(
                f"the sweep measured {before[system]}, and this is {version}",
                "Start another sweep for another version.",
            )
    result["versions"] = {**before, **versions}


def _recall(conduct: Conduct, bench: Bench, attempts: Sequence[dict[str, Any]], outcome: Outcome) -> None:
    """Keep what was measured before the sweep was stopped."""
    members = {member.folder: member for member in conduct.record.members}
    for attempt in attempts:
        figures = bench.recall(conduct.folder / MEMBERS / attempt["folder"])
        member = members.get(attempt["folder"])
        if figures is not None:
            outcome.figures[attempt["cell"], attempt["repetition"]] = figures
            outcome.kept += 1
            if member is not None:
                member.discarded = ""
        elif member is not None and not member.discarded:
            member.discarded = "it had not ended when the sweep was stopped"


def _announcement(plan: SweepPlan, left: int, outcome: Outcome) -> str:
    cells = f"{counted(len(plan.cells), 'cell')} x {counted(plan.repetitions, 'repetition')}"
    kept = f", {counted(outcome.kept, 'run')} kept" if outcome.kept else ""
    failing = f", {counted(len(outcome.failures), 'cell')} cannot run" if outcome.failures else ""
    length = duration_words(left * seconds_per_run(plan.options))
    return f"{cells}{failing}{kept}: {counted(left, 'run')}, about {length}"


def _folder_name(cell: int, repetition: int, label: str, taken: Sequence[str]) -> str:
    words = re.sub(r"[^A-Za-z0-9.=_-]+", "-", label)[:60].strip("-.")
    name = f"{cell + 1:03d}-{words}-{repetition}" if words else f"{cell + 1:03d}-{repetition}"
    tries = sum(1 for one in taken if one == name or one.startswith(f"{name}-again-"))
    return f"{name}-again-{tries}" if tries else name


def _labelled(progress: ProgressCallback, label: str, done: float, share: float) -> ProgressCallback:
    """One line a run, whatever it is doing at the moment; the fraction is of the whole sweep."""

    def show(one: Progress) -> None:
        progress(replace(one, activity=label, fraction=min(1.0, done + share * (one.fraction or 0.0))))

    return show
