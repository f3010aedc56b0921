"""From what is asked of ``study colocate`` to what is measured and said."""

from __future__ import annotations

from rackscope.errors import UsageError
from rackscope.runs.options import RunOptions
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.interference import Interference
from rackscope.studies.bench.loading import check_count, check_window, on_one_core
from rackscope.studies.bench.turns import Steps
from rackscope.studies.colocate.findings import describe
from rackscope.studies.colocate.measure import Bench, Outcome, carry_out
from rackscope.studies.colocate.plan import EXAMPLES, Plan, parse_pairs, parse_workloads, run_options
from rackscope.studies.pressure.measure import parse_levels
from rackscope.systems import find_system
from rackscope.units import parse_share
from rackscope.workloads import find_workload


def conduct_colocate(conduct: Conduct, plan: Plan, bench: Bench, outcome: Outcome, steps: Steps, cores: int) -> None:
    """Measure, and say what was found; also when it is stopped before the end."""
    conduct.record.result["cores"] = cores
    with conduct.described(lambda: describe(conduct.record, plan, outcome)) as save:
        carry_out(plan, bench, outcome, steps, save)


def conduct(conduct: Conduct) -> None:
    plan = build_plan(conduct.request)
    run = on_one_core(conduct.request.asked)
    clients = set(run.client_cores or ())
    own = len(clients) if clients.isdisjoint(run.cores or ()) else None
    steps, outcome = Steps(conduct.progress), Outcome(Interference(), client_cores=own)
    bench = Bench(run, plan, conduct.member, steps, outcome.interference, outcome.conditions)
    conduct_colocate(conduct, plan, bench, outcome, steps, len(run.cores or (0,)))


def build_plan(request: Request) -> Plan:
    """What is asked, checked as far as that goes without starting anything. Raises UsageError."""

    values = request.values
    workloads = parse_workloads(values["workloads"] or EXAMPLES)
    asked = request.run or RunOptions("", "")
    for spec in workloads:
        find_system(spec.system)
        find_workload(spec.workload)
        run_options(asked, spec).check()
    check_count(values["rounds"], "rounds")
    check_window(values["window"], "600ms")
    run = on_one_core(asked)
    shared = len(run.cores or ())
    for spec in workloads:
        if spec.cpu_cores is not None and spec.cpu_cores > shared:
            raise UsageError(
                f"{spec.name} has cpu={spec.cpu_cores:g}, and the number of shared cores is {shared}",
                "Choose a smaller cpu=..., or more cores with --cores.",
            )
    return Plan(
        workloads=workloads,
        pairs=parse_pairs(values["pairs"], workloads),
        levels=parse_levels(values["levels"]),
        window_seconds=values["window"],
        repetitions=values["rounds"],
        budget_seconds=values["budget"],
        bound=parse_share(values["slowdown"]),
        seed=run.seed,
    )


def title(request: Request) -> str:
    """``compute, redis and cache on the same cores``."""
    names = [spec.name for spec in build_plan(request).workloads]
    return f"{', '.join(names[:-1])} and {names[-1]} on the same cores"
