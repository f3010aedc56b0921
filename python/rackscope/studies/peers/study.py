"""``study peers``: a cache beside memcached, Redis and whatever other caches are here, with the same client.

``StudyRecord.result`` is described in ``studies/peers/findings.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rackscope.errors import RackscopeError, UsageError
from rackscope.studies.base import Conduct, Option, Request, Study

if TYPE_CHECKING:
    from rackscope.runs.options import ProgressCallback
    from rackscope.studies.bench.turns import Steps
    from rackscope.studies.peers.measure import Bench, Outcome
    from rackscope.studies.peers.plan import Plan

#: Tables that double their size are as full with this many items as with 10 M, which is eight times as much.
_MEMORY_ITEMS = "1.25m"
_FEWEST_KEYS, _MOST_KEYS = 1000, 100_000_000


def conduct_peers(conduct: Conduct, plan: Plan, bench: Bench, outcome: Outcome, steps: Steps) -> None:
    """Measure, and say what was found; also when it is stopped before the end."""
    from rackscope.studies.peers.findings import describe
    from rackscope.studies.peers.measure import carry_out

    with conduct.described(lambda: describe(conduct.record, plan, outcome)) as save:
        carry_out(plan, bench, outcome, steps, save)


def _conduct(conduct: Conduct) -> None:
    from rackscope.studies.bench.interference import Interference
    from rackscope.studies.bench.loading import on_one_core
    from rackscope.studies.bench.turns import Steps
    from rackscope.studies.peers.measure import Outcome, RealBench

    steps, outcome = Steps(conduct.progress), Outcome(Interference())
    plan, versions = _plan_of_those_here(conduct.request, steps)
    conduct.record.result["versions"] = versions
    bench = RealBench(on_one_core(conduct.request.asked), plan, conduct.member, steps, outcome.interference)
    conduct_peers(conduct, plan, bench, outcome, steps)


def _plan_of_those_here(request: Request, progress: ProgressCallback) -> tuple[Plan, dict[str, str]]:
    """The plan without the systems that cannot be found, and the versions of the rest. Raises RackscopeError."""

    from rackscope.runs.options import Progress
    from rackscope.systems import find_system

    plan = build_plan(request)
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name in plan.systems:
        progress(Progress(f"finding {name}"))
        try:
            acquired = find_system(name).acquire(
                fetch=request.asked.fetch, progress=lambda text: progress(Progress(text))
            )
        except RackscopeError as error:
            if name == plan.subject:
                raise
            missing[name] = error.what
        else:
            versions[name] = acquired.version
    here = tuple(versions)
    if len(here) < 2:
        raise UsageError(
            f"there is nothing to compare {plan.subject} with: {', '.join(missing)} could not be found",
            "Run 'rackscope get memcached', or put a peer on PATH.",
        )
    return replace(plan, systems=here, missing=missing), versions


def build_plan(request: Request) -> Plan:
    """What is asked, checked as far as that goes without looking for anything. Raises UsageError."""
    from rackscope.studies.bench.loading import check_count, check_window, on_one_core
    from rackscope.studies.peers.plan import CURVE, Plan, parse_loads, parse_peers, parse_settings

    run, values = request.asked, request.values
    settings = parse_settings(values["settings"])
    loads = parse_loads(values["loads"])
    if loads and CURVE not in settings:
        # Loads are shares of what the baseline does in that setting.
        settings = (*settings, CURVE)
    check_count(values["repetitions"], "repetitions")
    check_window(values["window"], "1s")
    check_count(values["keys"], "keys", _FEWEST_KEYS, _MOST_KEYS)
    if values["memory"] and values["memory"] < _FEWEST_KEYS:
        raise UsageError(
            f"{values['memory']} items are too few to measure their memory", "Choose --memory 10m, or 0 to skip memory."
        )
    on_one_core(run)
    return Plan(
        systems=(run.system, *parse_peers(values["peers"], run.system)),
        missing={},
        settings=settings,
        loads=loads,
        keys=values["keys"],
        memory_items=values["memory"],
        seconds=values["window"],
        repetitions=values["repetitions"],
        budget_seconds=values["budget"],
        seed=run.seed,
    )


STUDY = Study(
    name="peers",
    help="compare a cache with memcached, Redis and other caches: same client, same cores",
    description=(
        "Starts a cache and its peers on the same cores and measures them in turns with the same load generator.\n"
        "Settings differ in transport, outstanding requests, keys per read and value size. Reports throughput with\n"
        "ratios, CPU time of server and client, latency over load, and memory. All values are checked. Systems run on\n"
        "one core unless --cores names more.\n"
        "memcached and Redis are downloaded if missing; pogocache, Valkey, Dragonfly, Garnet and Segcache are\n"
        "used if they are on PATH.\n\n"
        "Settings: unpipelined, unix, 16-deep, 50-deep, large (25 KiB), each with -mixed for 95 % reads and 5 %\n"
        "updates, and multi-get (100 keys).\n\n"
        "Examples:\n"
        "  rackscope study peers cache\n"
        "  rackscope study peers cache --peers memcached --settings unpipelined,multi-get --loads none\n"
        "  rackscope study peers cache --memory 10m"
    ),
    conduct=_conduct,
    subject="system",
    options=(
        Option("peers", "text", "peers to compare with (default: all that are installed)", metavar="NAME,NAME"),
        Option("settings", "text", "settings to measure in (default: all)", metavar="NAME,NAME"),
        Option("repetitions", "count", "windows of each system in each setting", "6"),
        Option("window", "duration", "length of one window", "1s"),
        Option(
            "loads",
            "text",
            "loads to measure latency at, in percent of memcached's highest throughput; or none",
            "25,50,75,90",
            metavar="N,N",
        ),
        Option("keys", "count", "keys in the data set", "100k"),
        Option(
            "memory",
            "count",
            "items of 32 + 64 bytes to measure memory with; fewer than 10m are scaled to 10m; 0 skips memory",
            _MEMORY_ITEMS,
            metavar="ITEMS",
        ),
        Option("budget", "duration", "time for all settings and loads, without memory", "15m"),
    ),
    title=lambda request: f"{request.asked.system} and its peers",
    check=build_plan,
)
