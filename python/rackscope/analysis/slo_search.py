"""The search for the highest open-loop rate at which a quantile of the response time stays within a bound.

Pure logic: it proposes a rate, is told what was observed, and proposes the next. Doubling (or halving) brackets the
rate, bisection of its logarithm narrows the bracket, then rates on both sides of the estimate are observed until the
interval of the crossing is narrow, and at last a rate is confirmed by repetition.

The crossing is read from a line through log(latency / bound) over log(rate), near the crossing. Latencies far
from the bound are clipped: how bad an overload is depends on how long it lasted, and not on where the bound is crossed.
The interval is a bootstrap over observations (Efron 1987's percentiles without acceleration), never over requests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rackscope.analysis.intervals import Interval, student_quantile
from rackscope.analysis.thresholds import packaged_thresholds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

#: Natural logarithm of latency over bound beyond which an observation only says on which side it lies.
_CLIP = 0.7
#: Bracket (as a ratio of rates) at which bisection on single observations ends.
_NARROW = 1.10
#: Observations further than this ratio from the middle of the bracket say nothing about the line at the crossing.
_WINDOW = 1.15
#: Fewest observations in the window before the crossing's interval is believed.
_FEWEST = 8
#: Steps to both sides of the estimate, as shares of the rate, in turn.
_STEPS = (0.02, 0.04)
#: Standard deviations that a normal variable exceeds one time of ten.
_NINE_OF_TEN = 1.2816
#: Chance that a rate which meets the bound half of the time is confirmed.
_ERROR = 0.05
_MOST_CONFIRMATIONS = 11


def stalls_decide(stall_ratio: float, beyond: float) -> bool:
    """Whether a core was preempted for so much of the time (``stall_ratio``) that this may have decided a quantile.

    ``beyond`` is the share of requests beyond the quantile. The line is ``preemption.fraction`` of ``thresholds.toml``.
    """
    return stall_ratio > packaged_thresholds().limit("preemption.fraction") * beyond


@dataclass(frozen=True)
class Observation:
    """What was seen at an offered rate, in operations a second.

    ``value_seconds`` is the quantile of the response time, ``None`` where nothing was answered; ``achieved`` the rate
    that was answered, ``None`` where not known; ``lag_seconds`` a high quantile of how late requests were sent.
    """

    rate: float
    value_seconds: float | None
    achieved: float | None = None
    lag_seconds: float | None = None


@dataclass(frozen=True)
class SloResult:
    """The end of a search.

    ``crossing`` is the rate at which the bound is met half of the time, with its interval: the capacity under the
    bound. ``sustained_rate`` is the rate that was confirmed (met in ``confirmations`` of ``attempts``), at or a little
    below it. Both are ``None`` where the search found none, and ``reason`` says why the search ended.
    """

    crossing: Interval | None
    sustained_rate: float | None
    confirmations: int
    attempts: int
    reason: str
    generator_limited: bool
    observations: tuple[Observation, ...]


@dataclass
class SloSearch:
    """State of one search; deterministic, so the same observations give the same proposals.

    ``bound_seconds`` is what the quantile must not exceed. Rates are in operations a second. ``wanted_half_width`` is
    relative, of the crossing's interval; ``most_observations`` ends the search in any case.
    """

    bound_seconds: float
    start_rate: float
    lowest_rate: float
    highest_rate: float
    wanted_half_width: float = 0.015
    most_observations: int = 50
    observations: list[Observation] = field(default_factory=list)
    _candidate: float | None = None
    _tried: list[bool] = field(default_factory=list)
    _ended: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for bounds and rates that no search can be made with."""
        if not self.bound_seconds > 0:
            raise ValueError("the bound must be above zero")
        if not 0 < self.lowest_rate <= self.start_rate <= self.highest_rate < math.inf:
            raise ValueError("rates must be 0 < lowest <= start <= highest")

    def met(self, observation: Observation) -> bool:
        """Whether the bound was met, and the rate that was asked for was answered and could be offered."""
        return self._excess(observation) <= 0

    def next_rate(self) -> float | None:
        """The rate to observe next; ``None`` when the search has ended."""
        if self._ended:
            return None
        if len(self.observations) >= self.most_observations:
            return self._end(f"all {self.most_observations} observations were made")
        if self._candidate is not None:
            return self._candidate
        if not self.observations:
            return self.start_rate
        low, high = self._bracket()
        if low is None or high is None:
            return self._widen(low, high)
        if high / low > _NARROW:
            return math.sqrt(low * high)
        return self._refine(low, high)

    def observe(self, observation: Observation) -> None:
        """Take in what was seen. While a rate is being confirmed, decides whether it is."""
        self.observations.append(observation)
        if self._candidate is None or abs(observation.rate / self._candidate - 1) > 1e-6:
            return
        self._tried.append(self.met(observation))
        met, tried = sum(self._tried), len(self._tried)
        if confirmed(met, tried):
            self._end(f"the rate was confirmed: the bound was met in {met} of {tried} repetitions")
        elif not confirmed(met + _MOST_CONFIRMATIONS - tried, _MOST_CONFIRMATIONS):
            self._candidate = max(self.lowest_rate, self._candidate * (1 - _STEPS[0]))
            self._tried = []

    def result(self) -> SloResult:
        """What was found so far; complete once ``next_rate`` gave ``None``."""
        met, tried = sum(self._tried), len(self._tried)
        sustained = self._candidate if confirmed(met, tried) else None
        crossing = self._crossing()
        limited = self._generator_limited()
        reason = self._ended or "the search is still going on"
        if limited:
            reason += "; above it the load generator is the limit, so that the system may sustain more"
        return SloResult(crossing, sustained, met, tried, reason, limited, tuple(self.observations))

    def _end(self, reason: str) -> float | None:
        self._ended = reason
        return None

    def _excess(self, observation: Observation) -> float:
        """log(latency / bound), clipped; an unanswered or unoffered rate is far above the bound."""
        limit = packaged_thresholds().limit
        value = observation.value_seconds
        if value is None or not math.isfinite(value) or self._late(observation):
            return _CLIP
        if (
            observation.achieved is not None
            and observation.achieved < limit("generator.offered_met") * observation.rate
        ):
            return _CLIP
        if value <= 0:
            return -_CLIP
        return max(-_CLIP, min(_CLIP, math.log(value / self.bound_seconds)))

    def _late(self, observation: Observation) -> bool:
        """Whether the generator sent so late that what was seen is its own delay."""
        share = packaged_thresholds().limit("generator.lag_share")
        return observation.lag_seconds is not None and observation.lag_seconds > share * max(
            self.bound_seconds, observation.value_seconds or 0.0
        )

    def _bracket(self) -> tuple[float | None, float | None]:
        """Highest rate below which all were met, and lowest above which none was, crossing noise by majority."""
        rates = sorted({one.rate for one in self.observations})
        good = {rate: self._mean_excess(rate) <= 0 for rate in rates}
        if all(good.values()):
            return rates[-1], None
        if not any(good.values()):
            return None, rates[0]
        # The split with the fewest observations on the wrong side.
        wrong = [
            sum(not good[rate] for rate in rates[:split]) + sum(good[rate] for rate in rates[split:])
            for split in range(1, len(rates))
        ]
        split = 1 + wrong.index(min(wrong))
        return rates[split - 1], rates[split]

    def _mean_excess(self, rate: float) -> float:
        values = [self._excess(one) for one in self.observations if one.rate == rate]
        return math.fsum(values) / len(values)

    def _widen(self, low: float | None, high: float | None) -> float | None:
        if high is None and low is not None:
            if low >= self.highest_rate:
                return self._confirm(self.highest_rate)
            return min(2 * low, self.highest_rate)
        if high is not None and high <= self.lowest_rate:
            return self._end("the bound was missed at the lowest rate already")
        return max((high or self.start_rate) / 2, self.lowest_rate)

    def _refine(self, low: float, high: float) -> float | None:
        crossing = self._crossing()
        if crossing is None:
            return math.sqrt(low * high)
        number = len(self._near())
        wide = crossing.low is None or crossing.high is None
        half = math.inf if wide else ((crossing.high or 0) - (crossing.low or 0)) / 2 / crossing.estimate
        spent = self.most_observations - len(self.observations) <= _MOST_CONFIRMATIONS
        if number >= _FEWEST and (half <= self.wanted_half_width or spent):
            return self._confirm(min(crossing.low or crossing.estimate, crossing.estimate / math.exp(self._margin())))
        step = _STEPS[number // 2 % len(_STEPS)]
        rate = crossing.estimate * (1 + step if number % 2 else 1 - step)
        return min(max(rate, self.lowest_rate), self.highest_rate)

    def _confirm(self, rate: float) -> float:
        self._candidate = min(max(rate, self.lowest_rate), self.highest_rate)
        return self._candidate

    def _margin(self) -> float:
        """How far below the crossing (in logarithms) noise lets the bound be met nine times of ten."""
        import numpy as np

        near = self._near()
        logs, excess = np.log([one.rate for one in near]), np.array([self._excess(one) for one in near])
        slope = float(_slopes(logs[None, :], excess[None, :])[0])
        left = excess - excess.mean() - slope * (logs - logs.mean())
        return min(math.log(_NARROW), _NINE_OF_TEN * float(np.std(left)) / slope)

    def _near(self) -> list[Observation]:
        """Observations near the middle of the bracket."""
        low, high = self._bracket()
        if low is None or high is None:
            return []
        middle = math.sqrt(low * high)
        return [one for one in self.observations if 1 / _WINDOW <= one.rate / middle <= _WINDOW]

    def _crossing(self) -> Interval | None:
        """Where the line through the observations near the bracket crosses the bound, in operations a second."""
        import numpy as np

        near = self._near()
        if len(near) < 2:
            return None
        logs = np.log([one.rate for one in near])
        excess = np.array([self._excess(one) for one in near])
        low, high = self._bracket()
        middle = math.log(low * high) / 2 if low and high else float(np.mean(logs))
        estimate = float(_line_zero(logs[None, :], excess[None, :], middle)[0])
        if len(near) < _FEWEST:
            return Interval(math.exp(estimate), None, None, 0.95, len(near))
        drawn = np.random.default_rng(1).integers(0, len(near), size=(999, len(near)))
        zeros = _line_zero(logs[drawn], excess[drawn], middle)
        lower, upper = np.quantile(zeros, [0.025, 0.975])
        # Resampled residuals of few observations are too small: by two fitted parameters, and by what Student's t adds.
        left = len(near) - 2
        wider = math.sqrt(len(near) / left) * student_quantile(left, 0.95) / student_quantile(math.inf, 0.95)
        below = math.exp(estimate - wider * max(0.0, estimate - float(lower)))
        above = math.exp(estimate + wider * max(0.0, float(upper) - estimate))
        # Where latency leaps, nothing is known between the last rate that was met and the first that was not.
        return Interval(math.exp(estimate), min(below, low or below), max(above, high or above), 0.95, len(near))

    def _generator_limited(self) -> bool:
        missed = [one for one in self.observations if not self.met(one)]
        if not missed:
            return False
        lowest = min(one.rate for one in missed)
        nearest = [one for one in missed if one.rate <= lowest * _NARROW]
        return 2 * sum(self._late(one) for one in nearest) > len(nearest)


def confirmed(met: int, tried: int) -> bool:
    """Whether a rate counts as sustained: met more often than half of the time would explain (sign test, 5 %).

    5 of 5, 7 of 8, 9 of 11.
    """
    if tried == 0:
        return False
    by_chance: int = sum(math.comb(tried, count) for count in range(met, tried + 1))
    return by_chance <= _ERROR * 2.0**tried


def _slopes(logs: Array, excess: Array) -> Array:
    """Slopes of least-squares lines, one a row."""
    import numpy as np

    x = logs - logs.mean(axis=1, keepdims=True)
    spread = np.sum(x**2, axis=1)
    slopes = np.divide(np.sum(x * excess, axis=1), spread, out=np.zeros(len(x)), where=spread > 0)
    # Latency rises with rate; a flatter or falling line is noise, and its zero would lie anywhere.
    return np.asarray(np.maximum(slopes, 1.0), dtype=np.float64)


def _line_zero(logs: Array, excess: Array, middle: float) -> Array:
    """Zeros of least-squares lines, one a row, kept within the window around the middle."""
    import numpy as np

    zeros = logs.mean(axis=1) - excess.mean(axis=1) / _slopes(logs, excess)
    edge = math.log(_WINDOW)
    return np.asarray(np.clip(zeros, middle - edge, middle + edge), dtype=np.float64)
