"""``study peers``: a cache beside memcached, Redis and whatever other caches are here, with the same client.

``StudyRecord.result`` is described in ``studies/peers/result.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.errors import RackscopeError, UsageError
from rackscope.studies.base import Conduct, Option, Request, Study

if TYPE_CHECKING:
    from rackscope.runs.options import ProgressCallback, RunOptions
    from rackscope.studies.peers.bench import Bench
    from rackscope.studies.peers.carry_out import Outcome, Steps
    from rackscope.studies.peers.plan import Plan

_SHORTEST_SECONDS = 0.05
#: Tables that double their size are as full with this many items as with 10 M, which is eight times as much.
_MEMORY_ITEMS = "1.25m"
_FEWEST_KEYS, _MOST_KEYS = 1000, 100_000_000


def conduct_peers(conduct: Conduct, plan: Plan, bench: Bench, outcome: Outcome, steps: Steps) -> None:
    """Measure, and say what was found; also when it is stopped before the end."""
    from rackscope.studies.peers.carry_out import carry_out
    from rackscope.studies.peers.findings import describe

    try:
        carry_out(plan, conduct, bench, outcome, steps)
    finally:
        describe(conduct.record, plan, outcome)


def _conduct(conduct: Conduct) -> None:
    from rackscope.studies.bench.interference import Interference
    from rackscope.studies.peers.bench import RealBench
    from rackscope.studies.peers.carry_out import Outcome, Steps

    request = conduct.request
    assert request.run is not None
    steps, outcome = Steps(conduct.progress), Outcome(Interference())
    plan, versions = _plan_of_those_here(request, steps)
    conduct.record.result["versions"] = versions
    bench = RealBench(placed(request.run), plan, conduct.member, steps, outcome.interference)
    conduct_peers(conduct, plan, bench, outcome, steps)


def _plan_of_those_here(request: Request, progress: ProgressCallback) -> tuple[Plan, dict[str, str]]:
    """The plan, without the systems that are not to be had; and the versions of the others. Raises RackscopeError."""
    from dataclasses import replace

    from rackscope.runs.options import Progress
    from rackscope.systems import find_system

    plan = build_plan(request)
    assert request.run is not None
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name in plan.systems:
        progress(Progress(f"finding {name}"))
        try:
            acquired = find_system(name).acquire(
                fetch=request.run.fetch, progress=lambda text: progress(Progress(text))
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


def placed(run: RunOptions) -> RunOptions:
    """One core serves, unless others were asked for: systems of one thread are among those that are compared."""
    import os
    from dataclasses import replace

    from rackscope.runs.placement import place

    usable = sorted(os.sched_getaffinity(0))
    kept = [core for core in usable if core not in (run.client_cores or ())]
    placement = place(usable, run.cores or tuple(kept[:1] or usable[:1]), run.client_cores)
    return replace(run, cores=placement.system, client_cores=placement.client)


def build_plan(request: Request) -> Plan:
    """What is asked, checked as far as that goes without looking for anything. Raises UsageError."""
    from rackscope.studies.peers.plan import CURVE, Plan, parse_loads, parse_peers, parse_settings

    run, values = request.run, request.values
    assert run is not None
    settings = parse_settings(values["settings"])
    loads = parse_loads(values["loads"])
    if loads and CURVE not in settings:
        # Loads are shares of what the baseline does in that setting.
        settings = (*settings, CURVE)
    if not 1 <= values["repetitions"] <= 1000:
        raise UsageError(f"{values['repetitions']} repetitions are out of bounds", "Choose between 1 and 1000.")
    if values["window"] < _SHORTEST_SECONDS:
        raise UsageError(f"a window must last at least {1000 * _SHORTEST_SECONDS:.0f} ms", "Choose --window 1s.")
    if not _FEWEST_KEYS <= values["keys"] <= _MOST_KEYS:
        raise UsageError(
            f"{values['keys']} keys are out of bounds", f"Choose between {_FEWEST_KEYS} and {_MOST_KEYS:,}."
        )
    if values["memory"] and values["memory"] < _FEWEST_KEYS:
        raise UsageError(
            f"{values['memory']} items are too few to tell their memory", "Choose --memory 10m, or 0 to leave it out."
        )
    placed(run)
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


def _check(request: Request) -> None:
    build_plan(request)


def _title(request: Request) -> str:
    assert request.run is not None
    return f"{request.run.system} beside its peers"


STUDY = Study(
    name="peers",
    help="a cache beside memcached, Redis and other caches, with the same client on the same cores",
    description=(
        "Starts a cache and its peers on the same cores and measures them by turns with the same load generator, in\n"
        "settings of transport, requests outstanding, keys of a read and value size: throughput with ratios, CPU time\n"
        "of both ends, latency over load, and memory. Values are checked. One core serves unless --cores has more.\n"
        "memcached and Redis are fetched where they are missing; pogocache, Valkey, Dragonfly, Garnet and Segcache\n"
        "are taken when they are on PATH.\n\n"
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
        Option("peers", "text", "whom it is compared with (default: all that are here)", metavar="NAME,NAME"),
        Option("settings", "text", "what they are asked for (default: all)", metavar="NAME,NAME"),
        Option("repetitions", "count", "windows of each system in each setting", "6"),
        Option("window", "duration", "length of one window", "1s"),
        Option(
            "loads",
            "text",
            "loads at which latency is told, in percent of memcached's best; or none",
            "25,50,75,90",
            metavar="N,N",
        ),
        Option("keys", "count", "keys of the data set", "100k"),
        Option(
            "memory",
            "count",
            "items of 32 + 64 bytes to measure memory with; fewer than 10m are scaled, and said to be; 0 is none",
            _MEMORY_ITEMS,
            metavar="ITEMS",
        ),
        Option("budget", "duration", "time for all settings and loads; memory aside", "15m"),
    ),
    title=_title,
    check=_check,
)
