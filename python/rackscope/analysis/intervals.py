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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

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

    def mapped(self, function: Callable[[float], float]) -> Interval:
        """That of a function of the quantity, which rises all over or falls all over."""
        estimate = function(self.estimate)
        if self.low is None or self.high is None:
            return replace(self, estimate=estimate)
        low, high = sorted((function(self.low), function(self.high)))
        return replace(self, estimate=estimate, low=low, high=high)

    def exponential(self) -> Interval:
        """That of a ratio, where this is of its logarithm."""
        low, high = (None if end is None else math.exp(min(end, _WIDEST_LOGARITHM)) for end in (self.low, self.high))
        estimate = math.exp(self.estimate) if math.isfinite(self.estimate) else math.nan
        return Interval(estimate, low, high, self.confidence, self.count)


@dataclass(frozen=True)
class StoppingDecision:
    """Whether enough repetitions were made; ``half_width`` is relative to the mean, ``None`` before it exists."""

    stop: bool
    reason: str
    half_width: float | None


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
    mean = fmean(known)
    if count < 2:
        return Interval(mean, None, None, confidence, count)
    half = student_quantile(count - 1, _level(confidence, sequential)) * mean_error(known)
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
    """Whether the mean's interval is as narrow as wanted (a share); ``minimum`` is 2 at least."""
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


def median_interval(values: Sequence[float], *, resamples: int = 9999) -> Interval:
    """Median with its bootstrap interval of 95 % (BCa, Efron 1987), fixed seed; none below five values."""
    import numpy as np

    confidence, known = 0.95, _finite(values)
    count = len(known)
    if count == 0:
        return Interval(math.nan, None, None, confidence, 0)
    estimate = median(known)
    if count < _FEWEST_FOR_BOOTSTRAP:
        return Interval(estimate, None, None, confidence, count)
    if min(known) == max(known):
        return Interval(estimate, estimate, estimate, confidence, count)
    from scipy.special import ndtr, ndtri
    from scipy.stats import bootstrap

    with warnings.catch_warnings():
        # Of degenerate data, which is dealt with below.
        warnings.simplefilter("ignore")
        found = bootstrap((known,), np.median, n_resamples=resamples, confidence_level=confidence, method="BCa", rng=1)
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
    ratio = fmean(above) / fmean(below)
    error = _log_ratio_error(above, below)
    if error is None:
        return Interval(ratio, None, None, confidence, count)
    half = student_quantile(error[1], _level(confidence, sequential)) * error[0]
    if abs(math.log(ratio)) + half > _WIDEST_LOGARITHM:
        return Interval(ratio, None, None, confidence, count)
    return Interval(ratio, ratio * math.exp(-half), ratio * math.exp(half), confidence, count)


def equal_means_p_value(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Two-sided p value of "the means are the same" (Welch, logarithms); ``None`` without an interval."""
    above, below = _finite(first), _finite(second)
    error = _log_ratio_error(above, below)
    return None if error is None else student_p_value(math.log(fmean(above) / fmean(below)), *error)


def difference_of_means(minuend: Sequence[float], subtrahend: Sequence[float], *, sequential: bool = False) -> Interval:
    """Mean of ``minuend`` minus mean of ``subtrahend``, with Welch's interval of 95 % (unequal variances)."""
    confidence, first, second = 0.95, _finite(minuend), _finite(subtrahend)
    count = min(len(first), len(second))
    if count == 0:
        return Interval(math.nan, None, None, confidence, 0)
    difference = fmean(first) - fmean(second)
    if count < 2:
        return Interval(difference, None, None, confidence, count)
    parts = (_variance(first) / len(first), _variance(second) / len(second))
    error, degrees = _welch_error(parts, (len(first), len(second)))
    half = student_quantile(degrees, _level(confidence, sequential)) * error
    return Interval(difference, difference - half, difference + half, confidence, count)


def note_outliers(values: Sequence[float]) -> str:
    """Which values lie further from the median than ten deviations, as hyperfine judges; empty when none does."""
    if len(values) < _FEWEST_FOR_OUTLIERS or len(_finite(values)) < len(values):
        return ""
    middle = median(values)
    line = _OUTLIER_DEVIATIONS * median(abs(value - middle) for value in values)
    odd = [str(number) for number, value in enumerate(values, 1) if abs(value - middle) > line > 0]
    if odd == ["1"]:
        return "the first repetition is far from the other repetitions: the warm-up was too short"
    which = f"{'repetitions' if len(odd) > 1 else 'repetition'} {', '.join(odd)} of {len(values)}"
    return f"{which} are far from the other repetitions: something else was running" if odd else ""


def _level(confidence: float, sequential: bool) -> float:
    if not sequential:
        return confidence
    # The correction was found at 95 %; at another confidence the same share of the error is given up.
    return 1 - (1 - confidence) * (1 - SEQUENTIAL_LEVEL) / 0.05


def student_quantile(degrees_of_freedom: float, level: float) -> float:
    """How many standard errors a two-sided Student t interval at ``level`` reaches to either side."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, 0.5 + level / 2))


def student_p_value(away: float, error: float, degrees_of_freedom: float) -> float:
    """Two-sided p value of "it is zero" for an estimate ``away`` from it, with its standard error."""
    from scipy.special import stdtr

    if error == 0:
        return 1.0 if away == 0 else 0.0
    return 2 * float(stdtr(degrees_of_freedom, -abs(away) / error))


def mean_error(values: Sequence[float]) -> float:
    """Standard error of the mean of two values or more."""
    return math.sqrt(_variance(values) / len(values))


def _log_ratio_error(above: Sequence[float], below: Sequence[float]) -> tuple[float, float] | None:
    """Standard error of the logarithm of the ratio of two means, and its degrees of freedom."""
    if min(len(above), len(below)) < 2:
        return None
    mean_above, mean_below = fmean(above), fmean(below)
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
    mean = fmean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
