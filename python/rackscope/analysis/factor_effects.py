"""How much each factor of a grid matters: an analysis of variance of the logarithms. Pure.

A factor's effect is what its levels multiply the response by, all else equal. It is tested against what repetitions of
one cell differ by, rounds taken out as blocks (Montgomery, Design and Analysis of Experiments, chapter 5); p values are
corrected after Holm for the number of factors. Cells that are missing are allowed: factors are compared by leaving one
out of the model of all (type II sums of squares).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from rackscope.analysis.multiple import holm


@dataclass(frozen=True)
class Observation:
    """One run: the level of each factor, its round, and what came out (above zero)."""

    levels: Mapping[str, str]
    round: int
    value: float


@dataclass(frozen=True)
class FactorEffect:
    """``share`` is of the variation between cells; ``multipliers`` are by level, their geometric mean is one.

    ``p_value`` (of no effect, corrected) is ``None`` where repetitions are too few to tell.
    """

    factor: str
    multipliers: Mapping[str, float]
    share: float
    p_value: float | None

    @property
    def lowest(self) -> str:
        return min(self.multipliers, key=lambda level: self.multipliers[level])

    @property
    def highest(self) -> str:
        return max(self.multipliers, key=lambda level: self.multipliers[level])

    @property
    def span(self) -> float:
        return self.multipliers[self.highest] / self.multipliers[self.lowest]


@dataclass(frozen=True)
class Effects:
    """All factors, the weightiest first; ``interaction_share`` is variation that no factor explains by itself."""

    factors: tuple[FactorEffect, ...]
    interaction_share: float
    interaction_p_value: float | None


def estimate_effects(observations: Sequence[Observation]) -> Effects:
    """Effects of the factors that take more than one level. Values that are not above zero are left out."""
    known = [one for one in observations if math.isfinite(one.value) and one.value > 0]
    names = [name for name in (known[0].levels if known else ()) if len({one.levels[name] for one in known}) > 1]
    if not names:
        return Effects((), 0.0, None)
    response = np.log([one.value for one in known])
    blocks = _indicators([str(one.round) for one in known])
    cells = _indicators(["\0".join(one.levels.values()) for one in known])
    parts = {name: _indicators([one.levels[name] for one in known]) for name in names}

    error, error_rank = _residual(response, [blocks, cells])
    only_blocks, _ = _residual(response, [blocks])
    main, main_rank = _residual(response, [blocks, *parts.values()])
    degrees = len(known) - error_rank
    between = max(only_blocks - error, 0.0)

    tested: list[tuple[str, float, float | None]] = []
    for name in names:
        without, rank = _residual(response, [blocks, *(part for other, part in parts.items() if other != name)])
        tested.append((name, without - main, _p_value(without - main, main_rank - rank, error, degrees)))
    raw = [p_value for *_, p_value in tested if p_value is not None]
    corrected = iter(holm(raw))
    effects = [
        FactorEffect(
            name,
            _multipliers(known, response, parts, name),
            _share(explained, between),
            None if p_value is None else next(corrected),
        )
        for name, explained, p_value in tested
    ]
    effects.sort(key=lambda effect: -effect.share)
    interaction = main - error
    return Effects(
        tuple(effects),
        _share(interaction, between),
        _p_value(interaction, error_rank - main_rank, error, degrees),
    )


def _share(part: float, whole: float) -> float:
    return min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0


def _p_value(explained: float, explained_degrees: int, error: float, degrees: int) -> float | None:
    if explained_degrees <= 0 or degrees <= 0:
        return None
    if error <= 0:
        return 0.0 if explained > 0 else 1.0
    return float(fdtrc(explained_degrees, degrees, max(0.0, explained / explained_degrees / (error / degrees))))


def _indicators(labels: Sequence[str]) -> NDArray[np.float64]:
    distinct = sorted(set(labels))
    matrix = np.zeros((len(labels), len(distinct)))
    matrix[range(len(labels)), [distinct.index(label) for label in labels]] = 1.0
    return matrix


def _residual(response: NDArray[np.float64], parts: Sequence[NDArray[np.float64]]) -> tuple[float, int]:
    """Sum of squares that the model leaves, and the model's rank."""
    design = np.hstack(parts)
    fitted, _, rank, _ = np.linalg.lstsq(design, response, rcond=None)
    return float(np.sum((response - design @ fitted) ** 2)), int(rank)


def _multipliers(
    observations: Sequence[Observation],
    response: NDArray[np.float64],
    parts: Mapping[str, NDArray[np.float64]],
    name: str,
) -> dict[str, float]:
    distinct = sorted({one.levels[name] for one in observations})
    # One level's coefficient is what the others leave: they are about their mean.
    own = parts[name][:, :-1] - parts[name][:, -1:]
    others = [part for other, part in parts.items() if other != name]
    design = np.hstack([own, *others, np.ones((len(response), 1))])
    fitted, *_ = np.linalg.lstsq(design, response, rcond=None)
    coefficients = [*fitted[: len(distinct) - 1], -float(np.sum(fitted[: len(distinct) - 1]))]
    by_level = {level: math.exp(one) for level, one in zip(distinct, coefficients, strict=True)}
    order = dict.fromkeys(one.levels[name] for one in observations)
    return {level: by_level[level] for level in order}
