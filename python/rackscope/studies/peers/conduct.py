"""From what is asked of ``study peers`` to what is measured and said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rackscope.errors import RackscopeError, UsageError
from rackscope.runs.options import Progress, ProgressCallback
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.interference import Interference
from rackscope.studies.bench.loading import check_count, check_window, on_one_core, parse_loads
from rackscope.studies.bench.turns import Steps
from rackscope.studies.peers.findings import describe
from rackscope.studies.peers.measure import Bench, Outcome, carry_out
from rackscope.studies.peers.plan import CURVE, Plan, parse_peers, parse_settings
from rackscope.systems import find_system

_FEWEST_KEYS, _MOST_KEYS = 1000, 100_000_000


def conduct_peers(conduct: Conduct, plan: Plan, bench: Bench, outcome: Outcome, steps: Steps) -> None:
    """Measure, and say what was found; also when it is stopped before the end."""
    with conduct.described(lambda: describe(conduct.record, plan, outcome)) as save:
        carry_out(plan, bench, outcome, steps, save)


def conduct(conduct: Conduct) -> None:
    steps, outcome = Steps(conduct.progress), Outcome(Interference())
    plan, versions = _plan_of_those_here(conduct.request, steps)
    conduct.record.result["versions"] = versions
    bench = Bench(on_one_core(conduct.request.asked), plan, conduct.member, steps, outcome.interference)
    conduct_peers(conduct, plan, bench, outcome, steps)


def _plan_of_those_here(request: Request, progress: ProgressCallback) -> tuple[Plan, dict[str, str]]:
    """The plan without the systems that cannot be found, and the versions of the rest. Raises RackscopeError."""
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
    return replace(plan, systems=here, missing=missing, congestion_control=congestion_control()), versions


def congestion_control(root: Path = Path("/")) -> str | None:
    """The host's, which sockets have that ask for no other (tcp(7)); None where it cannot be read."""
    try:
        return (root / "proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="ascii").strip() or None
    except (OSError, ValueError):
        return None


def build_plan(request: Request) -> Plan:
    """What is asked, checked as far as that goes without looking for anything. Raises UsageError."""
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
