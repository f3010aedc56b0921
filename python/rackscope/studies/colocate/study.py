"""``study colocate``: workloads alone and in pairs on the same cores, each pair predicted from the rest.

``StudyRecord.result`` is described in ``studies/colocate/findings.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.errors import UsageError
from rackscope.studies.base import Conduct, Option, Request, Study

if TYPE_CHECKING:
    from rackscope.studies.bench.turns import Steps
    from rackscope.studies.colocate.measure import Bench, Outcome
    from rackscope.studies.colocate.plan import Plan


def conduct_colocate(conduct: Conduct, plan: Plan, bench: Bench, outcome: Outcome, steps: Steps, cores: int) -> None:
    """Measure, and say what was found; also when it is stopped before the end."""
    from rackscope.studies.colocate.findings import describe
    from rackscope.studies.colocate.measure import carry_out

    conduct.record.result["cores"] = cores
    with conduct.described(lambda: describe(conduct.record, plan, outcome)) as save:
        carry_out(plan, bench, outcome, steps, save)


def _conduct(conduct: Conduct) -> None:
    from rackscope.studies.bench.interference import Interference
    from rackscope.studies.bench.loading import on_one_core
    from rackscope.studies.bench.turns import Steps
    from rackscope.studies.colocate.measure import Outcome, RealBench

    plan = build_plan(conduct.request)
    run = on_one_core(conduct.request.asked)
    clients = set(run.client_cores or ())
    own = len(clients) if clients.isdisjoint(run.cores or ()) else None
    steps, outcome = Steps(conduct.progress), Outcome(Interference(), client_cores=own)
    bench = RealBench(run, plan, conduct.member, steps, outcome.interference, outcome.conditions)
    conduct_colocate(conduct, plan, bench, outcome, steps, len(run.cores or (0,)))


def build_plan(request: Request) -> Plan:
    """What is asked, checked as far as that goes without starting anything. Raises UsageError."""
    from rackscope.runs.options import RunOptions
    from rackscope.studies.bench.loading import check_count, check_window, on_one_core
    from rackscope.studies.colocate.plan import EXAMPLES, Plan, parse_pairs, parse_workloads, run_options
    from rackscope.studies.pressure.measure import parse_levels
    from rackscope.systems import find_system
    from rackscope.units import parse_share
    from rackscope.workloads import find_workload

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


def _title(request: Request) -> str:
    names = [spec.name for spec in build_plan(request).workloads]
    return f"{', '.join(names[:-1])} and {names[-1]} on the same cores"


STUDY = Study(
    name="colocate",
    help="measure workloads alone and in pairs on the same cores: which pairs fit",
    description=(
        "Starts all workloads on the same cores, squeezes each alone, and measures them alone and in pairs, in turns.\n"
        "Each pair is then predicted from the squeezes and from all other pairs, and compared with what was measured.\n"
        "Without arguments it uses six example workloads (8 to 12 minutes).\n\n"
        "A workload is written SYSTEM:WORKLOAD,NAME=VALUE,... with name (a label), cpu (most cores it may use),\n"
        "connections (16), rate (an open loop, judged by p99; without it a closed loop, judged by throughput), knobs\n"
        "of the system and parameters of the workload.\n\n"
        "Examples:\n"
        "  rackscope study colocate\n"
        "  rackscope study colocate memcached:ycsb-b,cpu=0.4 redis:ycsb-b --rounds 12\n"
        "  rackscope study colocate cache:ycsb-b,rate=20k redis:ycsb-b,cpu=0.3 memcached:ycsb-b --pairs cache+redis"
    ),
    conduct=_conduct,
    subject="workloads",
    options=(
        Option("pairs", "text", "pairs to measure (default: all)", metavar="A+B,C+D"),
        Option("slowdown", "text", "largest acceptable slowdown of each side of a pair", "5%", metavar="PERCENT"),
        Option("rounds", "count", "number of times each pair is measured", "8"),
        Option("window", "duration", "length of one window", "600ms"),
        Option("levels", "text", "fractions of a resource that squeezes leave", "0.8,0.65,0.5", metavar="LIST"),
        Option("budget", "duration", "time for squeezes and pairs together", "12m"),
    ),
    title=_title,
    check=build_plan,
)
