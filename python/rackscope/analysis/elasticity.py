"""Elasticities from stretches in which one resource was squeezed, with free stretches between them.

The elasticity of throughput is d ln(throughput) / d ln(resource): 1 where throughput falls as the resource does, 0
where the resource does not matter. That of p99 has the opposite sign: -1 where p99 doubles when the resource halves.
Neither is turned around, so that both mean what the formula says.

A squeezed stretch is compared with the free stretches before and after it, in the same block: what drifts slowly
cancels. Where a squeeze has a control (the same disturbance without the squeeze), the control's own difference to
its free neighbours is taken off. The value of a block is one number, and intervals are over blocks, never over samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rackscope.analysis.intervals import Interval, bootstrap_mean, mean_interval, student_quantile
from rackscope.analysis.thresholds import packaged_thresholds

FREE = "free"
_CONTROL = "control:"


@dataclass(frozen=True)
class Stretch:
    """Some seconds of a run under one condition. The order of a sequence of stretches is the order they ran in.

    ``condition`` is ``free``, ``NAME@0.8`` (squeeze and the fraction asked to be left) or ``control:NAME`` (also
    ``control:NAME@0.8`` where each level has its own). ``throughput`` is in operations a second, ``achieved_fraction``
    the part of the resource that was measured to be left, ``None`` where it could not be measured.
    """

    block: int
    condition: str
    throughput: float
    p99_seconds: float | None = None
    achieved_fraction: float | None = None


@dataclass(frozen=True)
class LevelEstimate:
    """What one squeeze at one level did, over blocks.

    ``log_ratio`` is of squeezed to free throughput; ``elasticity`` is that over the logarithm of the achieved
    fraction, ``elasticity_bootstrap`` the same with a bootstrap over blocks (Efron 1987). ``None`` where the fraction
    is not known or too little was taken. ``loss_bound`` is the one-sided 95 % upper bound of the share of throughput
    lost. ``values`` and ``p99_values`` are the log ratios by block; ``left_out`` counts blocks without one.
    """

    squeeze: str
    requested_fraction: float
    achieved_fraction: float | None
    log_ratio: Interval
    elasticity: Interval | None
    elasticity_bootstrap: Interval | None
    p99_elasticity: Interval | None
    p99_elasticity_bootstrap: Interval | None
    loss_bound: float | None
    values: tuple[float, ...]
    p99_values: tuple[float, ...] = ()
    left_out: int = 0
    controlled: bool = False
    sequential: bool = False

    @property
    def condition(self) -> str:
        """The name under which stretches of this squeeze and level run."""
        return f"{self.squeeze}@{self.requested_fraction:g}"


def schedule(conditions: Sequence[str], blocks: int, seed: int) -> list[list[str]]:
    """Blocks that hold each condition once, shuffled from ``seed``, with a free stretch around each.

    Every squeezed stretch thus has a free neighbour on both sides in its own block.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    wanted = list(dict.fromkeys(condition for condition in conditions if condition != FREE))
    plan = []
    for _ in range(blocks):
        block = [FREE]
        for index in generator.permutation(len(wanted)):
            block += [wanted[index], FREE]
        plan.append(block)
    return plan


def parse_condition(condition: str) -> tuple[str, float] | None:
    """Squeeze and fraction of ``NAME@0.8``; ``None`` for free and control stretches and anything else."""
    name, mark, level = condition.rpartition("@")
    if not mark or not name or name.startswith(_CONTROL):
        return None
    try:
        fraction = float(level)
    except ValueError:
        return None
    return (name, fraction) if 0 < fraction < 1 else None


def estimate_levels(stretches: Sequence[Stretch], *, sequential: bool = False) -> list[LevelEstimate]:
    """Elasticity of each squeeze at each level, mildest level first, squeezes in the order they first ran.

    ``sequential`` where blocks are added until verdicts are reached (see ``needs_more``): intervals are then wider.
    """
    by_block: dict[int, list[Stretch]] = {}
    for stretch in stretches:
        by_block.setdefault(stretch.block, []).append(stretch)
    throughput = [_log_ratios(block, [stretch.throughput for stretch in block]) for block in by_block.values()]
    p99 = [_log_ratios(block, [stretch.p99_seconds for stretch in block]) for block in by_block.values()]
    levels: dict[str, dict[float, list[Stretch]]] = {}
    for stretch in stretches:
        parsed = parse_condition(stretch.condition)
        if parsed is not None:
            levels.setdefault(parsed[0], {}).setdefault(parsed[1], []).append(stretch)
    return [
        _estimate(name, fraction, by_level[fraction], throughput, p99, sequential)
        for name, by_level in levels.items()
        for fraction in sorted(by_level, reverse=True)
    ]


def shown_slack(levels: Iterable[LevelEstimate], *, tolerance: float | None = None) -> float | None:
    """The largest part of a resource whose loss was shown to cost less than ``tolerance`` of the throughput.

    Levels of one squeeze are gone through from the mildest on and the first that is not shown ends it: tests in an
    order fixed beforehand need no correction for their number (Maurer, Hothorn, Lehmacher 1995). ``None`` if none was.
    """
    if tolerance is None:
        tolerance = packaged_thresholds().limit("slack.tolerance")
    slack = None
    for level in sorted(levels, key=lambda level: -level.requested_fraction):
        if level.achieved_fraction is None or level.loss_bound is None or level.loss_bound >= tolerance:
            break
        slack = max(0.0, 1 - level.achieved_fraction)
    return slack


def decision_confidence(sequential: bool) -> float:
    """Level of the intervals behind verdicts, before any correction for the number of squeezes."""
    return packaged_thresholds().limit("elasticity.level") if sequential else 0.95


def _estimate(
    squeeze: str,
    fraction: float,
    stretches: Sequence[Stretch],
    throughput: Sequence[Mapping[str, float]],
    p99: Sequence[Mapping[str, float]],
    sequential: bool,
) -> LevelEstimate:
    condition = stretches[0].condition
    values = _controlled(condition, squeeze, throughput)
    p99_values = _controlled(condition, squeeze, p99)
    known = [
        math.log(stretch.achieved_fraction)
        for stretch in stretches
        if stretch.achieved_fraction is not None and stretch.achieved_fraction > 0
    ]
    achieved = math.exp(math.fsum(known) / len(known)) if known else None
    least = packaged_thresholds().limit("elasticity.least_taken")
    divisor = math.log(achieved) if achieved is not None and achieved <= 1 - least else None
    log_ratio = _mean(values, sequential)
    return LevelEstimate(
        squeeze=squeeze,
        requested_fraction=fraction,
        achieved_fraction=achieved,
        log_ratio=log_ratio,
        elasticity=_divided(log_ratio, divisor),
        elasticity_bootstrap=_divided(bootstrap_mean(values), divisor),
        p99_elasticity=_divided(_mean(p99_values, sequential), divisor) if p99_values else None,
        p99_elasticity_bootstrap=_divided(bootstrap_mean(p99_values), divisor) if p99_values else None,
        loss_bound=_loss_bound(log_ratio, sequential),
        values=tuple(values),
        p99_values=tuple(p99_values),
        left_out=len(stretches) - len(values),
        controlled=any(_control_of(condition, squeeze, block) is not None for block in throughput),
        sequential=sequential,
    )


def _log_ratios(block: Sequence[Stretch], values: Sequence[float | None]) -> dict[str, float]:
    """By condition: the logarithm of its value over the geometric mean of its free neighbours' values."""
    found: dict[str, list[float]] = {}
    for place, stretch in enumerate(block):
        value = values[place]
        if stretch.condition == FREE or not _usable(value):
            continue
        neighbours = []
        for side in (range(place - 1, -1, -1), range(place + 1, len(block))):
            near = next((values[at] for at in side if block[at].condition == FREE and _usable(values[at])), None)
            if near is not None:
                neighbours.append(math.log(near))
        if value is not None and neighbours:
            found.setdefault(stretch.condition, []).append(math.log(value) - math.fsum(neighbours) / len(neighbours))
    return {condition: math.fsum(ratios) / len(ratios) for condition, ratios in found.items()}


def _usable(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0


def _control_of(condition: str, squeeze: str, block: Mapping[str, float]) -> float | None:
    return block.get(_CONTROL + condition, block.get(_CONTROL + squeeze))


def _controlled(condition: str, squeeze: str, blocks: Sequence[Mapping[str, float]]) -> list[float]:
    """Log ratios by block, less the control's. With controls in some blocks, blocks without one are left out."""
    controls = [_control_of(condition, squeeze, block) for block in blocks]
    needs_control = any(control is not None for control in controls)
    return [
        block[condition] - (control or 0.0)
        for block, control in zip(blocks, controls, strict=True)
        if condition in block and (control is not None or not needs_control)
    ]


def _mean(values: Sequence[float], sequential: bool) -> Interval:
    interval = mean_interval(values, confidence=decision_confidence(sequential))
    return Interval(interval.estimate, interval.low, interval.high, 0.95, interval.count)


def _divided(interval: Interval, divisor: float | None) -> Interval | None:
    if divisor is None or interval.count == 0:
        return None
    ends = sorted(end / divisor for end in (interval.low, interval.high) if end is not None)
    low, high = ends if len(ends) == 2 else (None, None)
    return Interval(interval.estimate / divisor, low, high, interval.confidence, interval.count)


def _loss_bound(log_ratio: Interval, sequential: bool) -> float | None:
    """One-sided 95 % upper bound of 1 - squeezed / free, from the two-sided interval's half width."""
    if log_ratio.low is None or log_ratio.count < packaged_thresholds().limit("elasticity.blocks"):
        return None
    level = decision_confidence(sequential)
    degrees = log_ratio.count - 1
    # The upper end of a two-sided interval at 90 % is the one-sided bound at 95 %; looking widens both alike.
    share = student_quantile(degrees, 1 - 2 * (1 - level)) / student_quantile(degrees, level)
    return -math.expm1(log_ratio.estimate - (log_ratio.estimate - log_ratio.low) * share)
