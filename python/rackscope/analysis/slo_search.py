"""The search for the highest open-loop rate at which a quantile of the response time stays within a bound.

Pure logic: it proposes a rate, is told what was observed, and proposes the next. Doubling (or halving) brackets the
rate, bisection of its logarithm narrows the bracket, then rates on both sides of the estimate are observed. How far
the rate is known is for ``crossing`` to say, from windows that are spread over time.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from rackscope.analysis.crossing import WINDOW, excess
from rackscope.analysis.thresholds import packaged_thresholds

#: Bracket (as a ratio of rates) at which bisection on single observations ends.
_NARROW = 1.10
#: Latency rises with rate; a flatter or falling line is noise, and its zero would lie anywhere.
_LEAST_SLOPE = 1.0
#: Steps to both sides of the estimate, as shares of the rate, in turn.
_STEPS = (0.02, 0.04)
#: Times that the highest rate must meet the bound, and never miss it, before the search ends there.
_TIMES_AT_HIGHEST = 3
#: Chance that a rate which meets the bound half of the time is confirmed.
_ERROR = 0.05


def stalls_decide(stall_ratio: float, beyond: float) -> bool:
    """Whether a core was preempted for so much of the time (``stall_ratio``) that this may have decided a quantile.

    ``beyond`` is the share of requests beyond the quantile. The line is ``preemption.fraction`` of ``thresholds.toml``.
    """
    return stall_ratio > packaged_thresholds().limit("preemption.fraction") * beyond


@dataclass(frozen=True)
class Observation:
    """What was seen at an offered rate, in operations a second.

    ``value_seconds`` is the quantile of the response time, ``None`` where nothing was answered; ``achieved`` the rate
    that was answered, ``None`` where not known.
    """

    rate: float
    value_seconds: float | None
    achieved: float | None = None


@dataclass
class SloSearch:
    """State of one search, deterministic; rates are operations a second, the quantile's bound is in seconds."""

    bound_seconds: float
    start_rate: float
    lowest_rate: float
    highest_rate: float
    observations: list[Observation] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Raises ValueError for bounds and rates that no search can be made with."""
        if not self.bound_seconds > 0:
            raise ValueError("the bound must be above zero")
        if not 0 < self.lowest_rate <= self.start_rate <= self.highest_rate < math.inf:
            raise ValueError("rates must be 0 < lowest <= start <= highest")

    def met(self, observation: Observation) -> bool:
        """Whether the bound was met, and the rate that was asked for was answered."""
        return self._excess(observation) <= 0

    def next_rate(self) -> float | None:
        """The rate to observe next; ``None`` once the bound is missed at the lowest rate, or met at the highest."""
        if not self.observations:
            return self.start_rate
        low, high = self._bracket()
        if low is None or high is None:
            return self._widen(low, high)
        crossing = self.crossing()
        if high / low > _NARROW or crossing is None:
            return math.sqrt(low * high)
        number = len(self.near())
        step = _STEPS[number // 2 % len(_STEPS)]
        rate = crossing * (1 + step if number % 2 else 1 - step)
        return min(max(rate, self.lowest_rate), self.highest_rate)

    def observe(self, observation: Observation) -> None:
        """Take in what was seen."""
        self.observations.append(observation)

    def near(self) -> list[Observation]:
        """Observations near the middle of the bracket."""
        low, high = self._bracket()
        if low is None or high is None:
            return []
        middle = math.sqrt(low * high)
        return [one for one in self.observations if 1 / WINDOW <= one.rate / middle <= WINDOW]

    def crossing(self) -> float | None:
        """Where the line through the observations near the bracket crosses the bound; ``None`` below two of them."""
        low, high = self._bracket()
        near = self.near()
        if len(near) < 2 or low is None or high is None:
            return None
        logs, above = [math.log(one.rate) for one in near], [self._excess(one) for one in near]
        spread = statistics.variance(logs)
        slope = max(statistics.covariance(logs, above) / spread if spread > 0 else 0.0, _LEAST_SLOPE)
        zero = math.exp(statistics.fmean(logs) - statistics.fmean(above) / slope)
        middle = math.sqrt(low * high)
        return min(max(zero, middle / WINDOW), middle * WINDOW)

    def _excess(self, observation: Observation) -> float:
        answered = packaged_thresholds().limit("generator.offered_met") * observation.rate
        kept_up = observation.achieved is None or observation.achieved >= answered
        return excess(observation.value_seconds, self.bound_seconds, kept_up=kept_up)

    def _bracket(self) -> tuple[float | None, float | None]:
        """Highest rate below which all were met, and lowest above which none was, crossing noise by majority."""
        rates = sorted({one.rate for one in self.observations})
        by_rate = {rate: [self._excess(one) for one in self.observations if one.rate == rate] for rate in rates}
        good = {rate: statistics.fmean(found) <= 0 for rate, found in by_rate.items()}
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

    def _widen(self, low: float | None, high: float | None) -> float | None:
        if low is not None:
            highest = [self.met(one) for one in self.observations if one.rate == self.highest_rate]
            ended = len(highest) >= _TIMES_AT_HIGHEST and all(highest)
            return None if ended else min(2 * low, self.highest_rate)
        assert high is not None
        return None if high <= self.lowest_rate else max(high / 2, self.lowest_rate)


def confirmed(met: int, tried: int) -> bool:
    """Whether a rate was met more often than by chance (sign test, 5 %): 5 of 5, 7 of 8 or 9 of 11 times."""
    if tried == 0:
        return False
    by_chance: int = sum(math.comb(tried, count) for count in range(met, tried + 1))
    return by_chance <= _ERROR * 2.0**tried
