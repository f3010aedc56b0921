"""``study colocate``: works alone and in pairs on the same cores, and how well each pair is predicted from the others.

``StudyRecord.result`` is described in ``studies/colocate/findings.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.errors import UsageError
from rackscope.studies.base import Conduct, Option, Request, Study

if TYPE_CHECKING:
    from rackscope.studies.colocate.bench import Bench
    from rackscope.studies.colocate.carry_out import Outcome, Steps
    from rackscope.studies.colocate.plan import Plan

_SHORTEST_SECONDS = 0.05


def conduct_colocate(conduct: Conduct, plan: Plan, bench: Bench, outcome: Outcome, steps: Steps, cores: int) -> None:
    """Measure, and say what was found; also when it is stopped before the end."""
    from rackscope.studies.colocate.carry_out import carry_out
    from rackscope.studies.colocate.findings import describe

    conduct.record.result["cores"] = cores
    try:
        carry_out(plan, conduct, bench, outcome, steps)
    finally:
        describe(conduct.record, plan, outcome)


def _conduct(conduct: Conduct) -> None:
    from rackscope.studies.bench.interference import Interference
    from rackscope.studies.colocate.bench import RealBench
    from rackscope.studies.colocate.carry_out import Outcome, Steps
    from rackscope.studies.peers.study import placed

    request = conduct.request
    assert request.run is not None
    plan = build_plan(request)
    run = placed(request.run)
    clients = set(run.client_cores or ())
    own = len(clients) if clients.isdisjoint(run.cores or ()) else None
    steps, outcome = Steps(conduct.progress), Outcome(Interference(), client_cores=own)
    bench = RealBench(run, plan, conduct.member, steps, outcome.interference, outcome.conditions)
    conduct_colocate(conduct, plan, bench, outcome, steps, len(run.cores or (0,)))


def build_plan(request: Request) -> Plan:
    """What is asked, checked as far as that goes without starting anything. Raises UsageError."""
    from rackscope.runs.options import RunOptions
    from rackscope.studies.colocate.plan import EXAMPLES, Plan, parse_pairs, parse_works, run_options
    from rackscope.studies.peers.study import placed
    from rackscope.studies.pressure.study import parse_levels
    from rackscope.systems import find_system
    from rackscope.units import parse_share
    from rackscope.workloads import find_workload

    values = request.values
    works = parse_works(values["works"] or EXAMPLES)
    for spec in works:
        find_system(spec.system)
        find_workload(spec.workload)
        run_options(request.run or RunOptions("", ""), spec).check()
    if not 1 <= values["rounds"] <= 1000:
        raise UsageError(f"{values['rounds']} rounds are out of bounds", "Choose between 1 and 1000.")
    if values["window"] < _SHORTEST_SECONDS:
        raise UsageError(f"a window must last at least {1000 * _SHORTEST_SECONDS:.0f} ms", "Choose --window 600ms.")
    run = placed(request.run or RunOptions("", ""))
    for spec in works:
        if spec.cpu_cores is not None and spec.cpu_cores > len(run.cores or ()):
            raise UsageError(
                f"{spec.name} may have {spec.cpu_cores:g} cores, and there are {len(run.cores or ())} to share",
                "Give it less, or all of them more with --cores.",
            )
    return Plan(
        works=works,
        pairs=parse_pairs(values["pairs"], works),
        levels=parse_levels(values["levels"]),
        window_seconds=values["window"],
        rounds=values["rounds"],
        budget_seconds=values["budget"],
        bound=parse_share(values["slowdown"]),
        seed=run.seed,
    )


def _check(request: Request) -> None:
    build_plan(request)


def _title(request: Request) -> str:
    names = [spec.name for spec in build_plan(request).works]
    return f"{', '.join(names[:-1])} and {names[-1]} beside each other"


STUDY = Study(
    name="colocate",
    help="works alone and in pairs on the same cores: which fit, and how well that is predicted",
    description=(
        "Starts all works on the same cores, squeezes each alone, and measures them alone and in pairs by turns. Each\n"
        "pair is then predicted from the squeezes and from all other pairs, and the predictions are set beside what\n"
        "was measured. Without works, six examples (8 to 12 minutes).\n\n"
        "A work is SYSTEM:WORKLOAD,NAME=VALUE,...: name (what it is called), cpu (cores that it may use at most),\n"
        "connections (16), rate (an open loop, judged by p99; without it a closed loop, judged by throughput), knobs\n"
        "of the system and parameters of the workload.\n\n"
        "Examples:\n"
        "  rackscope study colocate\n"
        "  rackscope study colocate memcached:ycsb-b,cpu=0.4 redis:ycsb-b --rounds 12\n"
        "  rackscope study colocate cache:ycsb-b,rate=20k redis:ycsb-b,cpu=0.3 memcached:ycsb-b --pairs cache+redis"
    ),
    conduct=_conduct,
    subject="works",
    options=(
        Option("pairs", "text", "which are put beside each other (default: all)", metavar="A+B,C+D"),
        Option("slowdown", "text", "loss below which a pair fits", "5%", metavar="SHARE"),
        Option("rounds", "count", "times that each pair is measured", "8"),
        Option("window", "duration", "length of one window", "600ms"),
        Option("levels", "text", "parts of a resource that squeezes leave", "0.8,0.65,0.5", metavar="LIST"),
        Option("budget", "duration", "time for squeezes and pairs together", "12m"),
    ),
    title=_title,
    check=_check,
)
