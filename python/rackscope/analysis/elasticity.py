"""Elasticities from windows in which one resource was squeezed, with free windows between them.

The elasticity of throughput is d ln(throughput) / d ln(resource): 1 where throughput falls as the resource does, 0
where the resource does not matter. That of p99 has the opposite sign: -1 where p99 doubles when the resource halves.
Neither is turned around, so that both mean what the formula says.

A squeezed window is compared with the free windows before and after it, in the same block: what drifts slowly
cancels. Where a squeeze has a control (the same disturbance without the squeeze), the control's own difference to
its free neighbours is taken off. The value of a block is one number, and intervals are over blocks, never over samples:
Student's t, with variances that squeezes of one run lend each other (see ``moderation``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from rackscope.analysis.adjustment import adjust_for_speed
from rackscope.analysis.intervals import Interval, mean_error, student_quantile
from rackscope.analysis.moderation import moderate_variances
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.analysis.windows import CONTROL, FREE, Window, parse_condition


@dataclass(frozen=True)
class LevelEstimate:
    """What one squeeze at one level did, over blocks.

    ``log_ratio`` is of squeezed to free throughput; ``elasticity`` is that over the logarithm of the achieved
    fraction, ``None`` where the fraction is not known or too little was taken. ``loss_bound`` is the one-sided 95 %
    upper bound of the share of throughput lost. ``values`` and ``p99_values`` are the log ratios by block;
    ``left_out`` counts blocks without one. ``standard_error`` of ``log_ratio`` and its ``degrees`` of freedom are
    what tests need; ``None`` below two blocks. ``control`` is the condition that was compared with instead of free
    windows, where there is one.
    """

    squeeze: str
    requested_fraction: float
    achieved_fraction: float | None
    log_ratio: Interval
    elasticity: Interval | None
    p99_elasticity: Interval | None
    loss_bound: float | None
    values: tuple[float, ...]
    p99_values: tuple[float, ...] = ()
    standard_error: float | None = None
    degrees: float | None = None
    left_out: int = 0
    control: str | None = None
    sequential: bool = False

    @property
    def condition(self) -> str:
        """The name under which windows of this squeeze and level run."""
        return f"{self.squeeze}@{self.requested_fraction:g}"


def estimate_levels(windows: Sequence[Window], *, sequential: bool = False) -> list[LevelEstimate]:
    """Elasticity of each squeeze at each level, mildest level first, squeezes in the order they first ran.

    ``sequential`` where blocks are added until verdicts are reached (see ``needs_more``): intervals are then wider.
    Throughput is corrected for the cores' speed first, where that is known (see ``adjustment``).
    """
    windows = adjust_for_speed(windows).windows
    by_block: dict[int, list[Window]] = {}
    for window in windows:
        by_block.setdefault(window.block, []).append(window)
    throughput = [_log_ratios(block, [window.throughput for window in block]) for block in by_block.values()]
    p99 = [_log_ratios(block, [window.p99_seconds for window in block]) for block in by_block.values()]
    levels: dict[str, dict[float, list[Window]]] = {}
    for window in windows:
        parsed = parse_condition(window.condition)
        if parsed is not None:
            levels.setdefault(parsed[0], {}).setdefault(parsed[1], []).append(window)
    by_level = [
        (name, by_fraction[fraction])
        for name, by_fraction in levels.items()
        for fraction in sorted(by_fraction, reverse=True)
    ]
    means = _means([_controlled(group[0].condition, name, throughput) for name, group in by_level])
    p99_means = _means([_controlled(group[0].condition, name, p99) for name, group in by_level])
    return [
        _estimate(name, group, mean, p99_mean, _control_of(group[0].condition, name, throughput), sequential)
        for (name, group), mean, p99_mean in zip(by_level, means, p99_means, strict=True)
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


def bounded_slack(levels: Sequence[LevelEstimate]) -> tuple[float, float] | None:
    """A part of a resource, and the share of throughput that its loss was shown to cost at most.

    As ``shown_slack``, for a loss that is small (``slack.bounded``) but was not shown to be next to none. The bound
    holds at 95 %. ``None`` where not even that was shown.
    """
    taken = shown_slack(levels, tolerance=packaged_thresholds().limit("slack.bounded"))
    if taken is None:
        return None
    bounds = [
        level.loss_bound
        for level in levels
        if level.loss_bound is not None
        and level.achieved_fraction is not None
        and max(0.0, 1 - level.achieved_fraction) == taken
    ]
    return taken, max(0.0, *bounds)


def decision_confidence(sequential: bool) -> float:
    """Level of the intervals behind verdicts, before any correction for the number of squeezes."""
    return packaged_thresholds().limit("elasticity.level") if sequential else 0.95


@dataclass(frozen=True)
class _Mean:
    """The mean of a level's block values with its error, and the values it is of."""

    values: tuple[float, ...]
    estimate: float
    error: float | None = None
    degrees: float | None = None

    def interval(self, sequential: bool) -> Interval:
        count = len(self.values)
        if self.error is None or self.degrees is None:
            return Interval(self.estimate, None, None, 0.95, count)
        half = student_quantile(self.degrees, decision_confidence(sequential)) * self.error
        return Interval(self.estimate, self.estimate - half, self.estimate + half, 0.95, count)


def _means(groups: Sequence[Sequence[float]]) -> list[_Mean]:
    spreads = [mean_error(values) ** 2 * len(values) if len(values) > 1 else 0.0 for values in groups]
    moderated = moderate_variances(spreads, [max(len(values) - 1, 0) for values in groups])
    found = []
    for values, spread in zip(groups, moderated, strict=True):
        mean = _Mean(tuple(values), fmean(values) if values else math.nan)
        if len(values) > 1:
            mean = replace(mean, error=math.sqrt(spread.variance / len(values)), degrees=spread.degrees)
        found.append(mean)
    return found


def _estimate(
    squeeze: str, windows: Sequence[Window], mean: _Mean, p99: _Mean, control: str | None, sequential: bool
) -> LevelEstimate:
    known = [
        math.log(window.achieved_fraction)
        for window in windows
        if window.achieved_fraction is not None and window.achieved_fraction > 0
    ]
    achieved = math.exp(fmean(known)) if known else None
    divisor = _divisor(achieved)
    parsed = parse_condition(windows[0].condition)
    return LevelEstimate(
        squeeze=squeeze,
        requested_fraction=parsed[1] if parsed else math.nan,
        achieved_fraction=achieved,
        log_ratio=mean.interval(sequential),
        elasticity=_divided(mean.interval(sequential), divisor),
        p99_elasticity=_divided(p99.interval(sequential), divisor),
        loss_bound=_loss_bound(mean, sequential),
        values=mean.values,
        p99_values=p99.values,
        standard_error=mean.error,
        degrees=mean.degrees,
        left_out=len(windows) - len(mean.values),
        control=control,
        sequential=sequential,
    )


def _log_ratios(block: Sequence[Window], values: Sequence[float | None]) -> dict[str, float]:
    """By condition: the logarithm of its value over the geometric mean of its free neighbours' values."""
    found: dict[str, list[float]] = {}
    for place, window in enumerate(block):
        value = values[place]
        if window.condition == FREE or not _usable(value):
            continue
        neighbours = []
        for side in (range(place - 1, -1, -1), range(place + 1, len(block))):
            near = next((values[at] for at in side if block[at].condition == FREE and _usable(values[at])), None)
            if near is not None:
                neighbours.append(math.log(near))
        if value is not None and neighbours:
            found.setdefault(window.condition, []).append(math.log(value) - fmean(neighbours))
    return {condition: fmean(ratios) for condition, ratios in found.items()}


def _usable(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0


def _control_of(condition: str, squeeze: str, blocks: Sequence[Mapping[str, float]]) -> str | None:
    """The control of a condition: its own, or that of its squeeze; ``None`` where no block holds one."""
    names = (CONTROL + condition, CONTROL + squeeze)
    return next((name for name in names if any(name in block for block in blocks)), None)


def _controlled(condition: str, squeeze: str, blocks: Sequence[Mapping[str, float]]) -> list[float]:
    """Log ratios by block, less the control's. With controls in some blocks, blocks without one are left out."""
    control = _control_of(condition, squeeze, blocks)
    if control is None:
        return [block[condition] for block in blocks if condition in block]
    return [block[condition] - block[control] for block in blocks if condition in block and control in block]


def _divisor(achieved: float | None) -> float | None:
    """The logarithm of the fraction left; ``None`` where it is unknown or too little was taken away."""
    least = packaged_thresholds().limit("elasticity.least_taken")
    return math.log(achieved) if achieved is not None and achieved <= 1 - least else None


def _divided(interval: Interval, divisor: float | None) -> Interval | None:
    if divisor is None or interval.count == 0:
        return None
    return interval.mapped(lambda one: one / divisor)


def _loss_bound(mean: _Mean, sequential: bool) -> float | None:
    """One-sided 95 % upper bound of 1 - squeezed / free."""
    fewest = packaged_thresholds().limit("elasticity.blocks")
    if mean.error is None or mean.degrees is None or len(mean.values) < fewest:
        return None
    # A two-sided interval at 90 % ends at the one-sided bounds at 95 %.
    level = 1 - 2 * (1 - decision_confidence(sequential))
    return -math.expm1(mean.estimate - student_quantile(mean.degrees, level) * mean.error)
