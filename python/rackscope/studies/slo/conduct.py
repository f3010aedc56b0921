"""From what is asked of ``study slo`` to what is measured and said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rackscope.analysis.histograms import select_histogram
from rackscope.errors import RackscopeError, UsageError
from rackscope.runs.directory import RunDirectory
from rackscope.runs.prepare import prepare
from rackscope.runs.session import Session
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.bounds import parse_bound
from rackscope.studies.bench.core_meters import CoreStalls
from rackscope.studies.bench.loading import check_budget
from rackscope.studies.bench.windows import SessionLoad, Window
from rackscope.studies.slo.capacity import CapacityStudy
from rackscope.studies.slo.record import Subject, fill
from rackscope.workloads import PhasePlan, WorkloadPlan

_LEAST_BUDGET_SECONDS = 10.0
#: Longer than nearly every window, so that samples are written between them.
_FLUSH_SECONDS = 10.0


def choose_stage(plan: WorkloadPlan, name: str | None) -> PhasePlan:
    """The stage that is asked for. Raises UsageError when there are several and none was named."""
    names = [stage.name for stage in plan.stages]
    if name is None and len(names) == 1:
        return plan.stages[0]
    if name is None:
        raise UsageError(f"{plan.workload} has {len(names)} stages", f"Choose one with --stage: {', '.join(names)}.")
    for stage in plan.stages:
        if stage.name == name:
            return stage
    raise UsageError(f"{plan.workload} has no stage '{name}'", f"Choose from {', '.join(names)}.")


def check(request: Request) -> None:
    parse_bound(request.values["bound"])
    check_budget(request.values["budget"], _LEAST_BUDGET_SECONDS, "finding a rate")


def conduct(conduct: Conduct) -> None:
    request, run = conduct.request, conduct.request.asked
    bound = parse_bound(request.values["bound"])
    budget: float = request.values["budget"]
    prepared = prepare(replace(run, warm_up_seconds=min(run.warm_up_seconds, budget / 20)), conduct.progress)
    stage = choose_stage(prepared.plan, request.values["stage"])
    subject = Subject(
        system=prepared.system.name,
        workload=prepared.plan.workload,
        stage=stage.name if len(prepared.plan.stages) > 1 else "",
        connections=prepared.options.connections,
        depth=prepared.plan.pipeline,
    )
    folder = conduct.member("slo", f"{stage.name}: closed loop, then open at many rates")
    study: CapacityStudy | None = None

    def save() -> None:
        assert study is not None
        fill(conduct.record, study.found, subject)
        conduct.save()

    def work(session: Session) -> None:
        nonlocal study
        session.flush_seconds = _FLUSH_SECONDS
        session.preload()
        session.warm_up(prepared.options.loop)
        with CoreStalls((*prepared.placement.system, *prepared.placement.client)) as stalls:
            load = SessionLoad(session, stage, stalls)
            study = CapacityStudy(load, bound, budget, seed=prepared.options.seed, on_change=save)
            study.run()

    try:
        Session(prepared, conduct.progress, folder).run(work)
    finally:
        if study is not None:
            fill(conduct.record, study.found, subject, _service_means(folder, stage.name, study.found.windows()))


def _service_means(folder: Path, phase: str, windows: list[Window]) -> dict[int, float]:
    """Mean service time by the number of the window, from the histograms; empty where they cannot be read."""
    try:
        latency = RunDirectory.open(folder).latency()
    except RackscopeError:
        return {}
    found = {
        window.number: select_histogram(latency, phase=phase, kind="service", repetition=window.number)
        for window in windows
    }
    means = {number: one.mean_seconds() for number, one in found.items() if one is not None}
    return {number: mean for number, mean in means.items() if mean is not None}
