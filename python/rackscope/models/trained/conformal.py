"""Intervals that hold on groups never seen: conformal, calibrated on predictions made without the row's own group.

A score is a residual in units of the deviation that the model predicted for it, so that an interval is wide where the
model knows little (normalised scores: Papadopoulos, Gammerman and Vovk 2008). Scores come from leaving whole groups out
(cross-conformal: Vovk 2015; CV+: Barber, Candes, Ramdas and Tibshirani 2021), as rows of one processor resemble each
other (two-layer sampling: Dunn, Wasserman and Ramdas 2023). Both ends are calibrated apart, as errors of ratios are
skewed (Romano, Patterson and Candes 2019). No family of distributions is assumed; what is assumed is that processors
never seen differ from those seen as these differ from each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rackscope.errors import ModelError
from rackscope.models.trained.base import Floats, Strings

#: The fraction of outcomes that the intervals are made to hold.
CONFIDENCE = 0.9
_FEWEST_SCORES = 20


@dataclass(frozen=True)
class Calibration:
    """By how many predicted deviations an outcome may lie below and above the estimate."""

    below: float
    above: float
    groups: int


def calibrate(
    scores: Floats,
    groups: Strings,
    confidence: float = CONFIDENCE,
    *,
    evenness: float = 0.5,
    caution: float = 0.5,
    importance: Floats | None = None,
) -> Calibration:
    """The ends that hold ``confidence`` of the ``scores`` (residual / deviation, of rows in ``groups``).

    A row of a group of n weighs n to the power of -``evenness``: 0 is one vote a row, 1 one vote a group, the default
    between the two. ``caution`` is the part of a conformal quantile's allowance for one more group. ``importance``
    weighs rows beside that (Barber, Candes, Ramdas and Tibshirani 2023: what is more like what is to come counts more).
    Raises ModelError where there are too few scores.
    """
    if len(scores) < _FEWEST_SCORES:
        raise ModelError(f"{len(scores)} residuals are too few for an interval", f"Give at least {_FEWEST_SCORES}.")
    _, which, counts = np.unique(groups, return_inverse=True, return_counts=True)
    weight: Floats = np.asarray(counts[which], dtype=np.float64) ** -evenness
    if importance is not None:
        weight = weight * importance
    # Of the (n + 1) / n of a conformal quantile, as one more processor is to come, a part: with all of it the intervals
    # of quarters of the processors that were held out held 93 of 100 outcomes.
    level = min(1.0, (1.0 - (1.0 - confidence) / 2.0) * (1.0 + caution / len(counts)))
    return Calibration(
        below=-weighted_quantile(-scores, weight, level),
        above=weighted_quantile(scores, weight, level),
        groups=len(counts),
    )


def weighted_quantile(values: Floats, weights: Floats, level: float) -> float:
    """The least value with at least ``level`` of all weight at or below it."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    place = int(np.searchsorted(reached, level - 1e-12))
    return float(values[order][min(place, len(values) - 1)])
