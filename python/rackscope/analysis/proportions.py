"""Shares of trials that came out one way."""

from __future__ import annotations

from scipy.special import betaincinv

from rackscope.analysis.intervals import Interval


def proportion_interval(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """The share with its exact interval (Clopper and Pearson 1934). Raises ValueError for counts that cannot be."""
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} of {trials} trials")
    tail = (1 - confidence) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - tail)) if successes < trials else 1.0
    return Interval(successes / trials, low, high, confidence, trials)
