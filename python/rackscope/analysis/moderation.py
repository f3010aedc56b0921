"""Variances of several small groups, each drawn towards what all of them say.

A variance from four blocks is itself known only within a factor of three, and an interval from it alone pays for
that. Groups measured in the same way in the same run share most of their noise, so each variance is moderated
by the others as far as they agree (empirical Bayes, Smyth 2004, equations 3 to 5 and section 6.2): where they
differ by more than chance, little is borrowed. Unlike there, a variance only ever grows: what is gained is degrees of
freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, polygamma

#: With fewer groups, how far they differ from each other is not known, and nothing is borrowed.
_FEWEST_GROUPS = 4
#: Degrees of freedom that a group borrows at most, as a share of its own.
_MOST_BORROWED = 0.5


@dataclass(frozen=True)
class ModeratedVariance:
    """Variance of single values of a group, and the degrees of freedom of Student's t that it is used with."""

    variance: float
    degrees: float


def moderate_variances(variances: Sequence[float], degrees: Sequence[int]) -> list[ModeratedVariance]:
    """The moderated variance of each group. Groups without spread or degrees keep their own and lend nothing."""
    own = [ModeratedVariance(*pair) for pair in zip(variances, degrees, strict=True)]
    lending = [one for one in own if one.variance > 0 and one.degrees >= 1]
    if len(lending) < _FEWEST_GROUPS:
        return own
    prior = _prior(lending)
    if prior is None:
        return own
    pooled = sum(one.degrees for one in lending)
    return [_moderated(one, prior, pooled) if one.variance > 0 and one.degrees >= 1 else one for one in own]


def _moderated(own: ModeratedVariance, prior: ModeratedVariance, pooled: float) -> ModeratedVariance:
    # By simulation: borrowing more, or making the variance of a noisy group smaller than it was measured, lets verdicts
    # on the one noisy group among quiet ones err more often than stated.
    borrowed = min(prior.degrees, _MOST_BORROWED * own.degrees)
    total = own.degrees + borrowed
    variance = (borrowed * prior.variance + own.degrees * own.variance) / total
    # All groups together cannot know more than their degrees of freedom added up.
    return ModeratedVariance(max(variance, own.variance), min(total, pooled))


def _prior(groups: Sequence[ModeratedVariance]) -> ModeratedVariance | None:
    """The distribution the variances are drawn from, by the moments of their logarithms."""
    half = np.array([one.degrees / 2 for one in groups])
    logs = np.log([one.variance for one in groups]) - digamma(half) + np.log(half)
    excess = float(np.var(logs, ddof=1) - np.mean(polygamma(1, half)))
    if excess <= 0:
        pooled = sum(one.variance * one.degrees for one in groups) / sum(one.degrees for one in groups)
        return ModeratedVariance(pooled, math.inf)
    half_prior = _inverse_trigamma(excess)
    scale = math.exp(float(np.mean(logs)) + float(digamma(half_prior)) - math.log(half_prior))
    return ModeratedVariance(scale, 2 * half_prior) if math.isfinite(scale) and scale > 0 else None


def _inverse_trigamma(value: float) -> float:
    """Newton's iteration of Smyth 2004, appendix."""
    if value > 1e7:
        return 1 / math.sqrt(value)
    if value < 1e-6:
        return 1 / value
    guess = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, guess))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, guess))
        guess += step
        if -step / guess < 1e-8:
            break
    return guess
