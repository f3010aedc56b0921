"""From what is asked of ``study transports`` to what is measured and said."""

from __future__ import annotations

from rackscope.runs.options import RunOptions
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.interference import FUTILE_AFTER, Interference
from rackscope.studies.bench.loading import check_budget, check_count, check_window, parse_loads
from rackscope.studies.bench.turns import Steps
from rackscope.studies.transports.findings import describe
from rackscope.studies.transports.measure import Bench, Outcome, Starts, carry_out
from rackscope.studies.transports.plan import MODES, TRANSPORTS, Plan, parse_contenders, require_some

_FEWEST_KEYS, _MOST_KEYS = 1000, 100_000_000
_SHORTEST_BUDGET_SECONDS = 1.0


def build_plan(request: Request) -> Plan:
    """What is asked, checked. Raises UsageError."""
    values = request.values
    check_count(values["repetitions"], "repetitions")
    check_window(values["window"], "400ms")
    check_count(values["keys"], "keys", _FEWEST_KEYS, _MOST_KEYS)
    check_budget(values["budget"], _SHORTEST_BUDGET_SECONDS, "a round")
    plan = Plan(
        transports=parse_contenders(values["transports"], TRANSPORTS, "--transports"),
        modes=parse_contenders(values["modes"], MODES, "--modes"),
        loads=parse_loads(values["loads"]),
        keys=values["keys"],
        seconds=values["window"],
        repetitions=values["repetitions"],
        budget_seconds=values["budget"],
        fetch=not values["no_fetch"],
    )
    require_some(plan)
    return plan


def conduct_transports(conduct: Conduct, plan: Plan, bench: Starts, outcome: Outcome, steps: Steps) -> None:
    """Measure, and say what was found; also when it is stopped before the end."""
    with conduct.described(lambda: describe(conduct.record, plan, outcome)) as save:
        carry_out(plan, bench, outcome, steps, save)


def conduct(conduct: Conduct) -> None:
    plan, steps = build_plan(conduct.request), Steps(conduct.progress)
    outcome = Outcome(Interference(futile_after=FUTILE_AFTER))
    options = RunOptions("cache", "ycsb-b", fetch=plan.fetch, command_line=conduct.request.command_line)
    bench = Bench(options, plan, conduct.member, steps, outcome.interference)
    conduct_transports(conduct, plan, bench, outcome, steps)
