"""How a phase is measured while its resources are squeezed one at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rackscope.analysis.elasticity import LevelEstimate, estimate_levels
from rackscope.analysis.pressure import judge_squeezes, needs_more
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.analysis.windows import Window, parse_condition, schedule
from rackscope.errors import UsageError
from rackscope.runs.options import Loop, Progress
from rackscope.studies.bench.loading import check_window
from rackscope.studies.bench.session import RAMP_SECONDS, Bench
from rackscope.workloads import PhasePlan

#: Each level that was shown to cost nothing is followed by one that leaves this part of it, to find the slack.
_SLACK_STEP = 0.4
#: Blocks in which a level is looked at before a deeper one may follow, and at most in all.
_FEWEST_BLOCKS = 3
_MOST_BLOCKS = 16
#: How often it may be asked whether a verdict is reached, the first blocks included: the level of ``elasticity.level``
#: is for so many.
_MOST_LOOKS = 10


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
    loop: Loop,
    plan: Plan,
    after_block: Callable[[MeasuredPhase], None] | None = None,
) -> MeasuredPhase:
    """Interleave free and squeezed windows until verdicts are reached or the budget is spent.

    As much time again may be spent on waiting for interference to end.

    Blocks of all conditions come first; then blocks of inconclusive ones and of deeper levels of what was
    shown to have slack. ``after_block`` gets what is known after each.
    """
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
        inconclusive = needs_more(measured.estimates) if looks < _MOST_LOOKS else set()
        wanted = _with_controls(bench, inconclusive)
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


def _blocks_until_next_look(measured: MeasuredPhase, inconclusive: set[str]) -> int:
    """A quarter of what there are: the number of looks is limited, and each should add much."""
    counts = [len(level.values) for level in measured.estimates if level.condition in inconclusive]
    return max(1, math.ceil(max(counts, default=0) / 4))


def verify_idle(bench: Bench, fractions: Sequence[float]) -> None:
    """Measure, while the system has nothing to do, what every squeeze really leaves."""
    for name in list(bench.squeezables):
        bench.session.progress(Progress(f"verifying {name}"))
        bench.verify(name, fractions)


def _with_controls(bench: Bench, conditions: set[str]) -> set[str]:
    wanted = set()
    for condition in conditions:
        parsed = parse_condition(condition)
        if parsed is not None and parsed[0] in bench.squeezables:
            wanted |= set(bench.squeezables[parsed[0]].conditions([parsed[1]]))
    return wanted


def _slack_conditions(bench: Bench, estimates: Sequence[LevelEstimate]) -> set[str]:
    """The level, squeeze by squeeze, that would tell most about how much more could be taken away at no cost."""
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
    seconds = 0.0
    for condition in order:
        parsed = parse_condition(condition.removeprefix("control:"))
        # A ramp before the squeezed window, and one before the free one that follows.
        settle = bench.squeezables[parsed[0]].squeeze.settle_seconds if parsed is not None else 0.0
        ramps = max(settle, RAMP_SECONDS) + max(settle - RAMP_SECONDS, 0.0)
        seconds += plan.window_seconds + ramps + bench.session.interval_seconds
    return seconds


def check_lengths(window_seconds: float, blocks: int) -> None:
    """Raises UsageError for windows or blocks that nothing can be measured in."""
    check_window(window_seconds, "400ms")
    if blocks < 1:
        raise UsageError("there must be at least one block", f"Choose --blocks {_FEWEST_BLOCKS} or more.")


def parse_levels(text: str, fewest: int = 2) -> tuple[float, ...]:
    """``0.8,0.4`` as parts that squeezes leave, mildest first. Raises UsageError."""
    try:
        fractions = sorted({float(part) for part in text.split(",")}, reverse=True)
    except ValueError:
        fractions = []
    if len(fractions) < fewest or not all(0.05 <= fraction <= 0.95 for fraction in fractions):
        raise UsageError(
            f"invalid --levels {text}: expected {fewest} or more fractions between 0.05 and 0.95",
            "Write the fractions of a resource that squeezes leave: --levels 0.8,0.4.",
        )
    return tuple(fractions)
