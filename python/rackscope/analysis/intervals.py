"""Statistics of repetitions, in one place: intervals of means, medians, ratios and differences; when to stop.

Repeating *until* an interval is narrow stops more often when the spread happens to look small, so a plain 95 %
Student t interval computed after such a stop covers the truth less than 95 % of the time (about 90 % at worst, for
independent normal noise). ``SEQUENTIAL_LEVEL`` corrects that: stopping and reporting both use the wider interval
that the t distribution gives at that level, and state 95 %. The simulation in tests/test_analysis_intervals.py
shows that what is stated then holds whatever the spread. Repetitions that drift or depend on each other are
outside of what any of these intervals promise.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

#: Level of the t interval that covers 95 % after ``decide_stopping``, found by simulation (see above).
SEQUENTIAL_LEVEL = 0.98
#: Below this many values a median absolute deviation says nothing about which value is odd.
_FEWEST_FOR_OUTLIERS = 5
#: Resamples of fewer values than this say little about tails.
_FEWEST_FOR_BOOTSTRAP = 5
#: Beyond this logarithm of a ratio an interval says nothing, and its ends leave the range of a float.
_WIDEST_LOGARITHM = 700.0
#: Ten standard deviations of a normal, in units of the median absolute deviation: hyperfine's bound.
_OUTLIER_DEVIATIONS = 14.826


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval at ``confidence``; ``low`` and ``high`` are ``None`` when it cannot be given."""

    estimate: float
    low: float | None
    high: float | None
    confidence: float
    count: int

    @property
    def is_known(self) -> bool:
        """Whether there is an interval, and not only an estimate."""
        return self.low is not None and self.high is not None

    def contains(self, value: float) -> bool:
        """Whether ``value`` lies in the interval; an interval that cannot be given contains everything."""
        return self.low is None or self.high is None or self.low <= value <= self.high


@dataclass(frozen=True)
class StoppingDecision:
    """Whether enough repetitions were made; ``half_width`` is relative to the mean, ``None`` before it exists."""

    stop: bool
    reason: str
    half_width: float | None


@dataclass(frozen=True)
class OutlierNote:
    """Repetitions that are far from the others, counted from 0, and the sentence to show."""

    indices: tuple[int, ...]
    sentence: str


def mean_interval(
    values: Sequence[float], *, confidence: float = 0.95, sequential: bool = False, at_least: float = -math.inf
) -> Interval:
    """Mean with its Student t interval, cut off at what the quantity is ``at_least`` (a time: zero).

    ``sequential`` when the count was decided by ``decide_stopping``: the interval is then as much wider as honesty
    about looking at it repeatedly asks. Values that are not finite are left out; without any the estimate is NaN.
    """
    known = _finite(values)
    count = len(known)
    if count == 0:
        return Interval(math.nan, None, None, confidence, 0)
    mean = math.fsum(known) / count
    if count < 2:
        return Interval(mean, None, None, confidence, count)
    half = student_quantile(count - 1, _level(confidence, sequential)) * math.sqrt(_variance(known) / count)
    return Interval(mean, max(at_least, mean - half), mean + half, confidence, count)


def relative_half_width(interval: Interval) -> float | None:
    """Half of the interval's width as a share of the estimate; ``None`` without an interval or at zero."""
    if interval.low is None or interval.high is None or interval.estimate == 0:
        return None
    return (interval.high - interval.low) / 2 / abs(interval.estimate)


def decide_stopping(
    throughputs: Sequence[float],
    *,
    wanted_half_width: float = 0.02,
    minimum: int = 3,
    maximum: int | None = None,
) -> StoppingDecision:
    """Whether the interval of the mean throughput is as narrow as wanted (a share of the mean).

    At least ``minimum`` repetitions (never fewer than 2, which an interval needs), at most ``maximum``.
    """
    interval = mean_interval(throughputs, sequential=True)
    width = relative_half_width(interval)
    count, fewest = interval.count, max(minimum, 2)
    if maximum is not None and count >= maximum:
        reached = f"the interval is ±{width:.1%}" if width is not None else "there is no interval"
        return StoppingDecision(True, f"all {maximum} repetitions were made; {reached}", width)
    if count < fewest:
        return StoppingDecision(False, f"{count} of at least {fewest} repetitions were made", width)
    if width is None:
        return StoppingDecision(False, "the mean throughput is zero, so no relative interval exists", None)
    wide = f"the 95 % interval of throughput is ±{width:.1%} after {count} repetitions, ±{wanted_half_width:.1%} wanted"
    return StoppingDecision(width <= wanted_half_width, wide, width)


def median_interval(
    values: Sequence[float], *, confidence: float = 0.95, resamples: int = 9999, seed: int = 1
) -> Interval:
    """Median with its bootstrap interval, bias-corrected and accelerated (Efron 1987), from a fixed seed.

    Fewer than five values give no interval: resamples of so few say little about a median's tails.
    """
    import numpy as np

    known = _finite(values)
    count = len(known)
    if count == 0:
        return Interval(math.nan, None, None, confidence, 0)
    estimate = _median(known)
    if count < _FEWEST_FOR_BOOTSTRAP:
        return Interval(estimate, None, None, confidence, count)
    if min(known) == max(known):
        return Interval(estimate, estimate, estimate, confidence, count)
    from scipy.special import ndtr, ndtri
    from scipy.stats import bootstrap

    with warnings.catch_warnings():
        # Of degenerate data, which is dealt with below.
        warnings.simplefilter("ignore")
        generator = np.random.default_rng(seed)
        found = bootstrap(
            (known,), np.median, n_resamples=resamples, confidence_level=confidence, method="BCa", rng=generator
        )
    low, high = found.confidence_interval
    if not math.isfinite(low):
        # Where no value left out moves the median there is no acceleration, and what is left is the bias.
        drawn = found.bootstrap_distribution
        bias = ndtri(float(np.mean(drawn < estimate) + np.mean(drawn == estimate) / 2))
        low, high = np.quantile(drawn, ndtr(2 * bias + ndtri([(1 - confidence) / 2, (1 + confidence) / 2])))
    return Interval(estimate, float(low), float(high), confidence, count)


def ratio_of_means(
    numerator: Sequence[float], denominator: Sequence[float], *, confidence: float = 0.95, sequential: bool = False
) -> Interval:
    """Mean of ``numerator`` over mean of ``denominator``, with Welch's interval of the difference of their logarithms.

    The variance of each logarithm is the relative variance of its mean (the delta method); degrees of freedom after
    Welch and Satterthwaite. Means that are not above zero, single values, or spreads without bounds give no interval.
    """
    above, below = _finite(numerator), _finite(denominator)
    count = min(len(above), len(below))
    if count == 0 or math.fsum(below) == 0:
        return Interval(math.nan, None, None, confidence, count)
    mean_above, mean_below = math.fsum(above) / len(above), math.fsum(below) / len(below)
    ratio = mean_above / mean_below
    error = _log_ratio_error(above, below)
    if error is None:
        return Interval(ratio, None, None, confidence, count)
    half = student_quantile(error[1], _level(confidence, sequential)) * error[0]
    if abs(math.log(ratio)) + half > _WIDEST_LOGARITHM:
        return Interval(ratio, None, None, confidence, count)
    return Interval(ratio, ratio * math.exp(-half), ratio * math.exp(half), confidence, count)


def equal_means_p_value(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided p value of "the means are the same": Welch's test of the logarithm of ``ratio_of_means``.

    ``None`` where that gives no interval.
    """
    from scipy.special import stdtr

    above, below = _finite(first), _finite(second)
    error = _log_ratio_error(above, below)
    if error is None:
        return None
    away = math.log((math.fsum(above) / len(above)) / (math.fsum(below) / len(below)))
    if error[0] == 0:
        return 1.0 if away == 0 else 0.0
    return 2 * float(stdtr(error[1], -abs(away) / error[0]))


def difference_of_means(
    minuend: Sequence[float], subtrahend: Sequence[float], *, confidence: float = 0.95, sequential: bool = False
) -> Interval:
    """Mean of ``minuend`` minus mean of ``subtrahend``, with Welch's interval (unequal variances)."""
    first, second = _finite(minuend), _finite(subtrahend)
    count = min(len(first), len(second))
    if count == 0:
        return Interval(math.nan, None, None, confidence, 0)
    difference = math.fsum(first) / len(first) - math.fsum(second) / len(second)
    if count < 2:
        return Interval(difference, None, None, confidence, count)
    parts = (_variance(first) / len(first), _variance(second) / len(second))
    error, degrees = _welch_error(parts, (len(first), len(second)))
    half = student_quantile(degrees, _level(confidence, sequential)) * error
    return Interval(difference, difference - half, difference + half, confidence, count)


def note_outliers(values: Sequence[float]) -> OutlierNote | None:
    """Values further from the median than ten deviations, as hyperfine judges; ``None`` when there are none."""
    if len(values) < _FEWEST_FOR_OUTLIERS or len(_finite(values)) < len(values):
        return None
    middle = _median(values)
    deviation = _median([abs(value - middle) for value in values])
    if deviation == 0:
        return None
    odd = tuple(index for index, value in enumerate(values) if abs(value - middle) / deviation > _OUTLIER_DEVIATIONS)
    if not odd:
        return None
    if odd == (0,):
        return OutlierNote(odd, "the first repetition is far from the other repetitions: the warm-up was too short")
    which = ", ".join(str(index + 1) for index in odd)
    many = "repetitions" if len(odd) > 1 else "repetition"
    return OutlierNote(
        odd, f"{many} {which} of {len(values)} are far from the other repetitions: something else was running"
    )


def _level(confidence: float, sequential: bool) -> float:
    if not sequential:
        return confidence
    # The correction was found at 95 %; at another confidence the same share of the error is given up.
    return 1 - (1 - confidence) * (1 - SEQUENTIAL_LEVEL) / 0.05


def student_quantile(degrees_of_freedom: float, level: float) -> float:
    """How many standard errors a two-sided Student t interval at ``level`` reaches to either side."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, 0.5 + level / 2))


def _log_ratio_error(above: Sequence[float], below: Sequence[float]) -> tuple[float, float] | None:
    """Standard error of the logarithm of the ratio of two means, and its degrees of freedom."""
    if min(len(above), len(below)) < 2:
        return None
    mean_above, mean_below = math.fsum(above) / len(above), math.fsum(below) / len(below)
    if mean_above <= 0 or mean_below <= 0:
        return None
    # Divided before they are squared, so that no number is too large for it.
    parts = (
        _variance([value / mean_above for value in above]) / len(above),
        _variance([value / mean_below for value in below]) / len(below),
    )
    return _welch_error(parts, (len(above), len(below)))


def _welch_error(variances_of_means: tuple[float, float], counts: tuple[int, int]) -> tuple[float, float]:
    """Standard error of a difference of two means and its degrees of freedom after Welch and Satterthwaite."""
    total = sum(variances_of_means)
    weights = sum(variance**2 / (count - 1) for variance, count in zip(variances_of_means, counts, strict=True))
    # Squares of denormal variances vanish; the smaller sample's degrees of freedom are then the safe choice.
    degrees = total**2 / weights if weights > 0 else min(counts) - 1
    return math.sqrt(total), degrees


def _finite(values: Sequence[float]) -> list[float]:
    return [float(value) for value in values if value is not None and math.isfinite(value)]


def _variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
