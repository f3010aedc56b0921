"""``study pressure``: prove which resources limit a workload by squeezing them one at a time while it runs.

``StudyRecord.result`` is described in ``studies/pressure/record.py``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rackscope.errors import UsageError
from rackscope.studies.base import Conduct, Option, Request, Study

if TYPE_CHECKING:
    from rackscope.analysis.elasticity import LevelEstimate
    from rackscope.analysis.windows import Window
    from rackscope.studies.bench.session import Bench
    from rackscope.workloads import PhasePlan

#: Each level that was shown to cost nothing is followed by one that leaves this part of it, to find the slack.
_SLACK_STEP = 0.4
#: Blocks in which a level is looked at before a deeper one may follow, and at most in all.
_FEWEST_BLOCKS = 3
_MOST_BLOCKS = 16
#: How often it may be asked whether a verdict is reached, the first blocks included: the level of ``elasticity.level``
#: is for so many.
_MOST_LOOKS = 10
#: Below this a window holds too few samples of the host to say what it used.
_SHORTEST_SECONDS = 0.05


@dataclass(frozen=True)
class Plan:
    """How a phase is measured. ``fractions`` are what squeezes leave, mildest first; lengths in seconds."""

    fractions: tuple[float, ...]
    window_seconds: float
    blocks: int
    budget_seconds: float
    seed: int
    #: Whether blocks of ever deeper squeezes follow, to find how much can be taken away at no cost.
    seeks_slack: bool = True


@dataclass(frozen=True)
class MeasuredPhase:
    """The windows of one phase in the order they ran in, and what is estimated from them."""

    name: str
    windows: tuple[Window, ...]
    estimates: tuple[LevelEstimate, ...]


def measure_phase(
    bench: Bench,
    stage: PhasePlan,
    loop: Mapping[str, Any],
    plan: Plan,
    after_block: Callable[[MeasuredPhase], None] | None = None,
) -> MeasuredPhase:
    """Interleave free and squeezed windows until verdicts are reached or the budget is spent.

    As long again may be spent on waiting for the host to be left alone.

    Blocks of all conditions come first; then blocks of those whose verdict is open and of deeper levels of what was
    shown to have slack. ``after_block`` gets what is known after each.
    """
    from rackscope.analysis.elasticity import estimate_levels
    from rackscope.analysis.pressure import needs_more
    from rackscope.analysis.windows import schedule

    interference = bench.interference
    interference.patience_seconds = interference.waited_seconds + plan.budget_seconds
    # Waiting for a quiet host is not measuring.
    deadline = time.monotonic() + plan.budget_seconds - interference.waited_seconds
    verify_idle(bench, plan.fractions)
    windows: list[Window] = []
    block = 0

    def run(order: Sequence[str]) -> MeasuredPhase:
        nonlocal block
        block += 1
        windows.extend(bench.window(stage, loop, plan.window_seconds, condition, block) for condition in order)
        known = MeasuredPhase(stage.name, tuple(windows), tuple(estimate_levels(windows, sequential=True)))
        if after_block is not None:
            after_block(known)
        return known

    measured = MeasuredPhase(stage.name, (), ())
    conditions = [name for one in bench.squeezables.values() for name in one.conditions(plan.fractions)]
    for order in schedule(conditions, plan.blocks, plan.seed):
        measured = run(order)
    looks = 1
    while True:
        undecided = needs_more(measured.estimates) if looks < _MOST_LOOKS else set()
        wanted = _with_controls(bench, undecided)
        looks += bool(wanted)
        count = _blocks_until_next_look(measured, wanted)
        if plan.seeks_slack:
            wanted |= _slack_conditions(bench, measured.estimates)
        if not wanted:
            break
        orders = schedule(sorted(wanted), count, plan.seed + block)
        left_seconds = deadline + interference.waited_seconds - time.monotonic()
        affordable = int(left_seconds / _block_seconds(bench, orders[0], plan))
        if affordable < 1:
            break
        for order in orders[:affordable]:
            measured = run(order)
    return measured


def _blocks_until_next_look(measured: MeasuredPhase, undecided: set[str]) -> int:
    """As many that the few looks there may be reach far: a quarter of what the undecided have."""
    counts = [len(level.values) for level in measured.estimates if level.condition in undecided]
    return max(1, math.ceil(max(counts, default=0) / 4))


def verify_idle(bench: Bench, fractions: Sequence[float]) -> None:
    """Measure, while the system has nothing to do, what every squeeze really leaves."""
    from rackscope.runs.options import Progress

    for name in list(bench.squeezables):
        bench.session.progress(Progress(f"verifying {name}"))
        bench.verify(name, fractions)


def _with_controls(bench: Bench, conditions: set[str]) -> set[str]:
    from rackscope.analysis.windows import parse_condition

    wanted = set()
    for condition in conditions:
        parsed = parse_condition(condition)
        if parsed is not None and parsed[0] in bench.squeezables:
            wanted |= set(bench.squeezables[parsed[0]].conditions([parsed[1]]))
    return wanted


def _slack_conditions(bench: Bench, estimates: Sequence[LevelEstimate]) -> set[str]:
    """The level, squeeze by squeeze, that would tell most about how much more could be taken away at no cost."""
    from rackscope.analysis.pressure import judge_squeezes
    from rackscope.analysis.thresholds import packaged_thresholds

    tolerance = packaged_thresholds().limit("slack.tolerance")
    wanted: set[str] = set()
    for verdict in judge_squeezes(estimates):
        one = bench.squeezables.get(verdict.squeeze)
        if one is None or verdict.verdict != "does not limit":
            continue
        deepest = min(verdict.levels, key=lambda level: level.requested_fraction)
        unshown = next(
            (
                level
                for level in sorted(verdict.levels, key=lambda level: -level.requested_fraction)
                if level.loss_bound is None or level.loss_bound >= tolerance
            ),
            None,
        )
        if unshown is not None:
            # Worth more blocks only while it may still turn out to cost nothing.
            lost = -unshown.log_ratio.estimate
            if len(unshown.values) < _FEWEST_BLOCKS or (lost < tolerance and len(unshown.values) < _MOST_BLOCKS):
                wanted |= set(one.conditions([unshown.requested_fraction]))
            continue
        deeper = round(deepest.requested_fraction * _SLACK_STEP, 3)
        if deeper >= one.capacity.floor:
            bench.verify(verdict.squeeze, [deeper])
            if verdict.squeeze in bench.squeezables:
                wanted |= set(one.conditions([deeper]))
    return wanted


def _block_seconds(bench: Bench, order: Sequence[str], plan: Plan) -> float:
    from rackscope.analysis.windows import parse_condition
    from rackscope.studies.bench.session import RAMP_SECONDS

    seconds = 0.0
    for condition in order:
        parsed = parse_condition(condition.removeprefix("control:"))
        # A ramp before the squeezed window, and one before the free one that follows.
        settle = bench.squeezables[parsed[0]].squeeze.settle_seconds if parsed is not None else 0.0
        ramps = max(settle, RAMP_SECONDS) + max(settle - RAMP_SECONDS, 0.0)
        seconds += plan.window_seconds + ramps + bench.session.interval_seconds
    return seconds


def _conduct(conduct: Conduct) -> None:
    from rackscope.runs.client import loop_of
    from rackscope.runs.prepare import prepare
    from rackscope.squeezes.provision import Limits
    from rackscope.studies.bench.session import on_the_bench
    from rackscope.studies.pressure.limits import parse_limits
    from rackscope.studies.pressure.record import Account

    request = conduct.request
    assert request.run is not None
    fractions = parse_levels(request.values["levels"])
    limits: Limits = parse_limits(request.values["limit"])
    prepared = prepare(request.run, conduct.progress)
    stages = prepared.plan.stages
    budget = request.values["budget"]
    account = Account(conduct, prepared, limits)

    def work(bench: Bench) -> None:
        loop = loop_of(prepared.options)
        verify_idle(bench, fractions)
        bench.session.preload()
        bench.session.warm_up(loop)
        for number, stage in enumerate(stages):
            plan = Plan(
                fractions=fractions,
                window_seconds=request.values["window"],
                blocks=request.values["blocks"],
                budget_seconds=budget / len(stages),
                seed=prepared.options.seed + 1000 * number,
            )
            measure_phase(bench, stage, loop, plan, lambda measured: account.update(measured, bench))

    isolation = on_the_bench(
        prepared, conduct.member("squeezed", "free and squeezed windows"), limits, work, conduct.progress
    )
    account.finish(isolation)


def _check(request: Request) -> None:
    from rackscope.studies.pressure.limits import parse_limits

    parse_levels(request.values["levels"])
    parse_limits(request.values["limit"])
    check_lengths(request)


def check_lengths(request: Request) -> None:
    """Raises UsageError for windows, blocks or a budget that nothing can be measured in."""
    if not request.values["window"] >= _SHORTEST_SECONDS:
        raise UsageError(f"a window must last at least {1000 * _SHORTEST_SECONDS:.0f} ms", "Choose --window 400ms.")
    if request.values["blocks"] < 1:
        raise UsageError("there must be a block at least", f"Choose --blocks {_FEWEST_BLOCKS} or more.")


def parse_levels(text: str, fewest: int = 2) -> tuple[float, ...]:
    """``0.8,0.4`` as parts that squeezes leave, mildest first. Raises UsageError."""
    try:
        fractions = sorted({float(part) for part in text.split(",")}, reverse=True)
    except ValueError:
        fractions = []
    if len(fractions) < fewest or not all(0.05 <= fraction <= 0.95 for fraction in fractions):
        raise UsageError(
            f"'{text}' are no levels of a squeeze",
            f"Give {fewest} or more parts that are left, between 0.05 and 0.95: --levels 0.8,0.4.",
        )
    return tuple(fractions)


STUDY = Study(
    name="pressure",
    help="prove which resources limit a workload, by squeezing one at a time",
    description=(
        "Runs the workload once and, window by window, takes away a known part of one resource after the other.\n"
        "How throughput answers (its elasticity) proves what limits; what could be taken away at no cost is slack.\n\n"
        "Examples:\n"
        "  rackscope study pressure cache ycsb-b\n"
        "  rackscope study pressure redis redis-stages --limit link=1g --limit memory=512m"
    ),
    conduct=_conduct,
    check=_check,
    options=(
        Option("levels", "text", "parts of a resource that squeezes leave, mildest first", "0.8,0.4", metavar="LIST"),
        Option("window", "duration", "length of one window", "400ms"),
        Option("blocks", "count", "blocks of all conditions before only open questions are pursued", "4"),
        Option("budget", "duration", "measuring time for all phases together", "120s"),
        Option(
            "limit",
            "text",
            "as if the server were smaller: cpu=1.5 (cores), memory=1g, disk=100m (bytes/s), disk-operations=5k, "
            "link=1g (bits/s); may be given again for another",
            repeated=True,
            metavar="NAME=VALUE",
        ),
    ),
    run_defaults={"warm_up_seconds": 2.0, "sample_interval_seconds": 0.05, "repetitions": 1},
)
