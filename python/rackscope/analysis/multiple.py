"""Whether things differ: two of them, many of them, and a thing from itself.

``compare_repeated`` is the one rule for calling two repeated measurements different. Its inputs should come from
interleaved runs (``interleave``), so that what drifts falls on both alike. Where many are compared, p values are
corrected after Holm 1979 and intervals are simultaneous after Bonferroni.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

import numpy as np

from rackscope.analysis.intervals import Interval, equal_means_p_value, ratio_of_means
from rackscope.analysis.thresholds import packaged_thresholds

Outcome = Literal["different", "equivalent", "no difference seen", "too few repetitions"]


@dataclass(frozen=True)
class Comparison:
    """The ratio of the mean of ``first`` to that of ``second``.

    ``p_value`` is of the means being the same, corrected where many were compared; ``ratio`` is the stated interval
    (simultaneous where many were compared). ``equivalent`` means that the ratio was shown to be within 2 % of one.
    """

    first: str
    second: str
    ratio: Interval
    p_value: float | None
    outcome: Outcome

    @property
    def different(self) -> bool:
        """Whether the two may be called different."""
        return self.outcome == "different"

    def turned(self) -> Comparison:
        """The same comparison from the other side."""
        ratio = self.ratio.mapped(lambda one: 1 / one if one else one)
        return replace(self, first=self.second, second=self.first, ratio=ratio)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected so that the chance of one false finding or more stays at the level (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


def compare_repeated(a: Sequence[float], b: Sequence[float]) -> Comparison:
    """Whether ``a`` and ``b``, one value a repetition, are different: Welch's test on logarithms.

    They are called different where the test says so at ``comparison.level`` and the ratio is further from one than
    ``comparison.smallest_ratio``, which two runs of the same thing may be apart.
    """
    return _judged("a", "b", a, b, equal_means_p_value(a, b), 1)


def compare_all_pairs(configurations: Mapping[str, Sequence[float]]) -> list[Comparison]:
    """Every configuration with every later one."""
    return compare_pairs(configurations, list(combinations(configurations, 2)))


def compare_with_baseline(configurations: Mapping[str, Sequence[float]], baseline: str) -> list[Comparison]:
    """Every other configuration with the baseline, as ratios to it. Raises ValueError when there is no such one."""
    if baseline not in configurations:
        raise ValueError(f"there is no configuration '{baseline}'")
    return compare_pairs(configurations, [(name, baseline) for name in configurations if name != baseline])


def interleave(labels: Sequence[str], repetitions: int, seed: int) -> list[str]:
    """An order of runs with each label ``repetitions`` times, in which steady drift cancels: ABBA, or BAAB.

    Rounds hold each label once. Each second round is the one before it backwards; the order of the first of a pair
    is drawn from ``seed``, so that no label keeps a place that something periodic could favour.
    """
    generator = np.random.default_rng(seed)
    plan: list[str] = []
    order: list[str] = []
    for number in range(repetitions):
        order = order[::-1] if number % 2 else [labels[index] for index in generator.permutation(len(labels))]
        plan += order
    return plan


def compare_pairs(configurations: Mapping[str, Sequence[float]], pairs: Sequence[tuple[str, str]]) -> list[Comparison]:
    """Those pairs, corrected for their number. Raises KeyError for a configuration that there is not."""
    p_values = [equal_means_p_value(configurations[first], configurations[second]) for first, second in pairs]
    known = [index for index, p_value in enumerate(p_values) if p_value is not None]
    for index, corrected in zip(known, holm([p for p in p_values if p is not None]), strict=True):
        p_values[index] = corrected
    return [
        _judged(first, second, configurations[first], configurations[second], p_value, len(known))
        for (first, second), p_value in zip(pairs, p_values, strict=True)
    ]


def _judged(
    first: str, second: str, a: Sequence[float], b: Sequence[float], p_value: float | None, tests: int
) -> Comparison:
    limit = packaged_thresholds().limit
    alpha = 1 - limit("comparison.level")
    interval = ratio_of_means(a, b, confidence=1 - alpha / max(tests, 1))
    ratio = replace(interval, confidence=0.95)
    return Comparison(first, second, ratio, p_value, _outcome(ratio, p_value, alpha))


def _outcome(ratio: Interval, p_value: float | None, alpha: float) -> Outcome:
    limit = packaged_thresholds().limit
    if p_value is None or ratio.low is None or ratio.high is None:
        return "too few repetitions"
    if p_value < alpha and abs(ratio.estimate - 1) >= limit("comparison.smallest_ratio"):
        return "different"
    margin = math.log1p(limit("comparison.equivalence"))
    if -margin < math.log(ratio.low) and math.log(ratio.high) < margin:
        return "equivalent"
    return "no difference seen"
