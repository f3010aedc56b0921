"""What is best when more than one thing counts, and how surely, from draws of possible worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rackscope.analysis.intervals import Interval
from rackscope.analysis.proportions import proportion_interval
from rackscope.errors import RackscopeError
from rackscope.models.uncertain import Array


@dataclass(frozen=True)
class ParetoChances:
    """``on_front[i]``: how probable it is that nothing dominates option i. ``dominates[i][j]``: that i dominates j.

    Intervals are of the number of draws alone (95 %, exact binomial): more draws make them narrower. What the draws
    rest on is another matter.
    """

    names: tuple[str, ...]
    on_front: tuple[Interval, ...]
    dominates: tuple[tuple[Interval, ...], ...]


def dominance(values: Array) -> NDArray[np.bool_]:
    """``[draw, i, j]``: i is as good as j in all and better in one; ``values`` are draws x options x objectives."""
    left, right = values[:, :, None, :], values[:, None, :, :]
    return np.asarray((left >= right).all(axis=-1) & (left > right).any(axis=-1))


def pareto_chances(names: Sequence[str], values: Array) -> ParetoChances:
    """How probable dominance and the Pareto set are. ``values`` as for ``dominance``; RackscopeError if not finite."""
    if values.ndim != 3 or values.shape[1] != len(names) or 0 in values.shape:
        raise RackscopeError(
            f"values of shape {values.shape} are not draws x {len(names)} options x objectives", "Give one of each."
        )
    if not np.isfinite(values).all():
        raise RackscopeError("a value to be compared is not finite", "Leave out what is not known.")
    draws = len(values)
    better = dominance(values)
    on_front = (~better.any(axis=1)).sum(axis=0)
    counts = better.sum(axis=0)
    return ParetoChances(
        tuple(names),
        tuple(proportion_interval(int(count), draws) for count in on_front),
        tuple(tuple(proportion_interval(int(count), draws) for count in row) for row in counts),
    )
