"""``study slo``: the highest rate at which a quantile of the response time stays below a bound.

``StudyRecord.result`` is described in ``studies/slo/record.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rackscope.errors import RackscopeError, UsageError
from rackscope.studies.base import Conduct, Option, Request, Study

if TYPE_CHECKING:
    from pathlib import Path

    from rackscope.runs.session import Session
    from rackscope.studies.bench.windows import Window
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


def _check(request: Request) -> None:
    from rackscope.studies.bench.bounds import parse_bound

    parse_bound(request.values["bound"])
    if request.values["budget"] < _LEAST_BUDGET_SECONDS:
        raise UsageError(
            f"{request.values['budget']:g} s is too short to find a rate",
            f"Choose a --budget of {_LEAST_BUDGET_SECONDS:g}s or more.",
        )


def _conduct(conduct: Conduct) -> None:
    from rackscope.runs.prepare import prepare
    from rackscope.runs.session import Session
    from rackscope.studies.bench.bounds import parse_bound
    from rackscope.studies.bench.core_meters import CoreStalls
    from rackscope.studies.bench.windows import SessionLoad
    from rackscope.studies.slo.capacity import CapacityStudy
    from rackscope.studies.slo.record import Subject, fill

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

    def work(session: Session) -> None:
        with CoreStalls((*prepared.placement.system, *prepared.placement.client)) as stalls:
            measure(session, stalls)

    def measure(session: Session, stalls: CoreStalls) -> None:
        nonlocal study
        session.flush_seconds = _FLUSH_SECONDS
        session.preload()
        session.warm_up(prepared.options.loop)

        def save() -> None:
            assert study is not None
            fill(conduct.record, study.found, subject)
            conduct.save()

        study = CapacityStudy(
            SessionLoad(session, stage, stalls), bound, budget, seed=prepared.options.seed, on_change=save
        )
        study.run()

    try:
        Session(prepared, conduct.progress, folder).run(work)
    finally:
        if study is not None:
            fill(conduct.record, study.found, subject, _service_means(folder, stage.name, study.found.windows()))


def _service_means(folder: Path, phase: str, windows: list[Window]) -> dict[int, float]:
    """Mean service time by the number of the window, from the histograms; empty where they cannot be read."""
    from rackscope.analysis.histograms import select_histogram
    from rackscope.runs.directory import RunDirectory

    try:
        latency = RunDirectory.open(folder).latency()
    except RackscopeError:
        return {}
    means = {}
    for window in windows:
        histogram = select_histogram(latency, phase=phase, kind="service", repetition=window.number)
        mean = histogram.mean_seconds() if histogram is not None else None
        if mean is not None:
            means[window.number] = mean
    return means


STUDY = Study(
    name="slo",
    help="the highest open-loop rate that keeps a quantile of the response time below a bound",
    description="""Find the highest rate of requests at which a latency bound holds, the curve of latency over
throughput, and its knee.

Requests arrive on their own schedule (Poisson), and a response time counts from the moment its request was meant to
be sent: the delay of a system that falls behind counts.

Examples:
  rackscope study slo cache ycsb-b --bound 'p99<1ms'
  rackscope study slo redis ycsb-a --bound 'p99.9<5ms' --budget 5m""",
    conduct=_conduct,
    options=(
        Option("bound", "text", "quantile (p50, p90, p99, p999) and its largest acceptable value", "p99<1ms",
               metavar="'p99<1ms'"),
        Option("budget", "duration", "measuring time, without loading, warming up and waiting for a quiet host",
               "100s"),
        Option("stage", "text", "stage of the workload, where it has several", metavar="NAME"),
    ),
    run_defaults={"sample_interval_seconds": 0.25, "warm_up_seconds": 2.0},
    title=lambda request: (
        f"{request.asked.system} under {request.asked.workload}: highest rate within {request.values['bound']}"
    ),
    check=_check,
)  # fmt: skip
