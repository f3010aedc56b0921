"""Regression for rows that come in groups, judged on groups never seen: a Gaussian process with random group effects.

The logarithm of what is predicted is a sum of four parts (Rasmussen and Williams 2006, chapter 2.7 and equation 2.41):
a linear one, a smooth one (squared exponential), a deviation that all rows of a group share (a hundred servers with one
processor are not a hundred processors) and noise. For data that reach over years the level and the linear part may
walk (``drifting``; the same book, equation 6.16; the local level model of Harvey 1989, chapter 2.3): past the last year
the last level goes on, and the predicted deviation grows with every year.

The scales of these parts are those that predict *left-out groups* best, which is known in closed form (the same book,
equations 5.10 to 5.12, for blocks in place of single rows). Rows that are predicted badly without their group count for
less (iterated reweighting, as of a Student t).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rackscope.errors import ModelError
from rackscope.models.trained.base import Floats, Strings

#: Rows of one group beyond this many say nothing new about groups never seen, and cost cubic time.
_ROWS_OF_A_GROUP = 12
_ROWS_OF_A_GROUP_FOR_SCALES = 3
_EVALUATIONS = 100
#: Where the search for scales starts, and for how long each start is tried where there are several.
LENGTHS = (0.5,)
_TRIALS = 40
_ROBUST_PASSES = 3
#: The least and the greatest logarithm of a scale.
_SCALES = (-7.0, 3.0)
#: What is known of the level beforehand: next to nothing.
_PRIOR_OF_LEVEL = 100.0
_FEWEST_ROWS, _FEWEST_GROUPS = 20, 5
#: How long before the mean year the walks began, in standard deviations of the years: long before the first row.
_WALK_BEGAN = 5.0


@dataclass(frozen=True)
class Scales:
    """Logarithms of the variances of each part, and of the lengths over which the smooth ones change."""

    linear: float
    smooth: float
    smooth_length: float
    group: float
    noise: float
    walk: float = 0.0
    apart_walk: float = 0.0


@dataclass(frozen=True)
class LeftOut:
    """What each row would have been predicted as without its group: residual and predicted standard deviation."""

    residual: Floats
    deviation: Floats
    groups: Strings


@dataclass(frozen=True)
class GroupedRegression:
    """A fitted regression; see the module's text. ``predict`` and ``leave_out`` are what it is for.

    ``features`` are the rows that it rests on, less ``mean`` and over ``spread``, as are ``lowest`` and ``highest``,
    between which its features are known. ``precision`` is the inverse of those rows' covariance.
    """

    mean: Floats
    spread: Floats
    level: float
    scales: Scales
    drifting: int | None
    apart: int | None
    features: Floats
    weights: Floats
    precision: Floats
    groups: Strings
    lowest: Floats
    highest: Floats

    def predict(self, features: Floats) -> tuple[Floats, Floats]:
        """Estimates and deviations (of the logarithm) of rows of groups never seen: rows times columns."""
        # Past the data the last known ways of things go on: neither a trend drawn on, nor a return to old ones.
        new = self._within(self._scaled(features), self.lowest, self.highest)
        shared = self.covariance(new, self.features)
        explained = ((shared @ self.precision) * shared).sum(axis=1)
        return shared @ self.weights + self.level, self._deviation(new, explained)

    def leave_out(self, features: Floats, target: Floats, groups: Strings) -> LeftOut:
        """What each row of the fit's table would be predicted as had its whole group not been in the fit."""
        new = self._scaled(features)
        each = [(groups == group, self.groups == group) for group in np.unique(groups)]
        for rows, gone in each:
            kept = self.features[~gone]
            new[rows] = self._within(new[rows], kept.min(axis=0), kept.max(axis=0))
        shared = self.covariance(new, self.features)
        shared *= groups[:, None] != self.groups[None, :]
        across = shared @ self.precision
        estimate, explained = shared @ self.weights, (across * shared).sum(axis=1)
        for rows, gone in each:
            # The inverse without some rows, from the one with them (Rasmussen and Williams 2006, appendix A.3).
            own = across[np.ix_(rows, gone)]
            solved = np.linalg.solve(self.precision[np.ix_(gone, gone)], own.T).T
            estimate[rows] -= solved @ self.weights[gone]
            explained[rows] -= (solved * own).sum(axis=1)
        residual, deviation = target - estimate - self.level, self._deviation(new, explained)
        return LeftOut(residual, deviation, groups)

    def covariance(self, one: Floats, other: Floats) -> Floats:
        """Of all pairs of scaled rows, as rows of different groups without noise."""
        return _Pairs.of(one, other, self.drifting, self.apart).covariance(self.scales)

    def own_variance(self, scaled: Floats) -> Floats:
        """Of each scaled row by itself, likewise: the diagonal of its ``covariance``."""
        return _PRIOR_OF_LEVEL + _own_variance(scaled, self.scales, self.drifting, self.apart)

    def _scaled(self, features: Floats) -> Floats:
        return np.asarray((np.asarray(features, dtype=np.float64) - self.mean) / self.spread)

    def _within(self, new: Floats, lowest: Floats, highest: Floats) -> Floats:
        """Each feature no further than it was seen, but for the time: the walk knows how far off that is."""
        result: Floats = np.clip(new, lowest, highest)
        if self.drifting is not None:
            result[:, self.drifting] = new[:, self.drifting]
        return result

    def _deviation(self, new: Floats, explained: Floats) -> Floats:
        """What is not explained of rows of a group never seen."""
        variance = self.own_variance(new) - explained + np.exp(self.scales.group) + np.exp(self.scales.noise)
        return np.asarray(np.sqrt(np.maximum(variance, 1e-8)))


def fit_grouped_regression(
    features: Floats,
    target: Floats,
    groups: Strings,
    *,
    drifting: int | None = None,
    apart: int | None = None,
    scales: Scales | None = None,
    lengths: tuple[float, ...] = LENGTHS,
) -> GroupedRegression:
    """Fit ``target`` (a logarithm, one a row) on ``features`` (rows times columns) with rows in ``groups``.

    ``drifting`` is the column that holds the time, over which the level and the linear part's coefficients walk; that
    column is then part of nothing else, so that no trend is drawn on beyond the data. Rows that agree in the column
    ``apart`` (a maker) also share a walk of their own level. ``scales`` are chosen from the data unless they are given;
    ``lengths`` are the logarithms of lengths of the smooth part that the search starts from: where some servers go ways
    of their own, the likeliest length is a short one, which a search from a long one misses.
    Raises ModelError where there are too few rows or groups, or where rows are not finite.
    """
    _check(features, target, groups)
    mean, spread = features.mean(axis=0), features.std(axis=0)
    # A column that never changes here says nothing, and must not decide once it does.
    spread = np.where(spread > 1e-9, spread, 1e9)
    scaled, level = (features - mean) / spread, float(np.median(target))
    centred = target - level
    if scales is None:
        few = _spread_rows(groups, _ROWS_OF_A_GROUP_FOR_SCALES)
        scales = _choose_scales(scaled[few], centred[few], groups[few], drifting, apart, lengths)
    kept = _spread_rows(groups, _ROWS_OF_A_GROUP)
    scaled, centred, groups = scaled[kept], centred[kept], groups[kept]
    noise = np.ones(len(centred))
    pairs, together = _Pairs.of(scaled, scaled, drifting, apart), _together(groups)
    for _ in range(_ROBUST_PASSES):
        precision = _precision(pairs, together, scales, noise)
        residual, variance = _leave_groups_out(precision, centred, groups)
        variance = np.maximum(variance - np.exp(scales.noise) * (noise - 1.0), 1e-8)
        noise = np.clip(residual**2 / variance / 2.0, 1.0, 30.0)
    precision = _precision(pairs, together, scales, noise)
    return GroupedRegression(
        mean=mean,
        spread=spread,
        level=level,
        scales=scales,
        drifting=drifting,
        apart=apart,
        features=scaled,
        weights=precision @ centred,
        precision=precision,
        groups=groups,
        lowest=scaled.min(axis=0),
        highest=scaled.max(axis=0),
    )


def _check(features: Floats, target: Floats, groups: Strings) -> None:
    if len(target) < _FEWEST_ROWS or len(np.unique(groups)) < _FEWEST_GROUPS:
        raise ModelError(
            f"{len(target)} rows of {len(np.unique(groups))} processors are too few to fit a model",
            f"Give at least {_FEWEST_ROWS} rows of {_FEWEST_GROUPS} processors.",
        )
    if not (np.isfinite(features).all() and np.isfinite(target).all()):
        raise ModelError("some values are zero, negative or no numbers", "Leave those rows out.")
    if np.all(features.std(axis=0) < 1e-9):
        raise ModelError("all rows have the same features", "Give servers that differ.")


def _spread_rows(groups: Strings, most: int) -> NDArray[np.intp]:
    """Row numbers with at most ``most`` of each group, spread evenly over its rows as they are ordered."""
    kept: list[int] = []
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        if len(rows) > most:
            rows = rows[np.unique(np.linspace(0, len(rows) - 1, most).round().astype(int))]
        kept.extend(rows.tolist())
    return np.sort(np.array(kept, dtype=np.intp))


def _timeless(features: Floats, drifting: int | None) -> Floats:
    return features if drifting is None else np.delete(features, drifting, axis=1)


@dataclass(frozen=True)
class _Pairs:
    """What the covariance of pairs of rows is made of, whatever the scales are."""

    products: Floats
    distance: Floats
    #: For how long the two rows' walks were the same one; the second only of rows that agree in ``apart``.
    together: Floats | None
    apart: Floats | None

    @classmethod
    def of(cls, one: Floats, other: Floats, drifting: int | None, apart: int | None) -> _Pairs:
        first, second = _timeless(one, drifting), _timeless(other, drifting)
        squares = (first**2).sum(axis=1)[:, None] + (second**2).sum(axis=1)[None, :] - 2.0 * first @ second.T
        walked = same = None
        if drifting is not None:
            walked = np.minimum(_walked(one, drifting)[:, None], _walked(other, drifting)[None, :])
            if apart is not None:
                same = walked * (np.abs(one[:, apart][:, None] - other[:, apart][None, :]) < 1e-6)
        return cls(
            products=first @ second.T / first.shape[1],
            distance=np.maximum(squares, 0.0) / first.shape[1],
            together=walked,
            apart=same,
        )

    def covariance(self, scales: Scales) -> Floats:
        total = np.exp(self.distance * (-0.5 * np.exp(-2.0 * scales.smooth_length)) + scales.smooth)
        total += _PRIOR_OF_LEVEL
        total += np.exp(scales.linear) * self.products
        if self.together is not None:
            total += np.exp(scales.walk) * (1.0 + self.products) * self.together
        if self.apart is not None:
            total += np.exp(scales.apart_walk) * self.apart
        return np.asarray(total)


def _walked(features: Floats, drifting: int) -> Floats:
    return np.asarray(np.maximum(features[:, drifting] + _WALK_BEGAN, 0.0))


def _own_variance(features: Floats, scales: Scales, drifting: int | None, apart: int | None) -> Floats:
    """The diagonal of the covariance of rows with themselves, without the level's."""
    linear = _timeless(features, drifting)
    products = (linear**2).sum(axis=1) / linear.shape[1]
    own = np.exp(scales.linear) * products + np.exp(scales.smooth)
    if drifting is not None:
        walked = _walked(features, drifting)
        own += np.exp(scales.walk) * (1.0 + products) * walked
        if apart is not None:
            own += np.exp(scales.apart_walk) * walked
    return np.asarray(own)


def _precision(pairs: _Pairs, together: Floats, scales: Scales, noise: Floats) -> Floats:
    """The inverse of the covariance of all rows; ``together`` is 1 for pairs of one group."""
    total = pairs.covariance(scales)
    total += np.exp(scales.group) * together
    total[np.diag_indices_from(total)] += np.exp(scales.noise) * noise
    return _invert(total)


def _together(groups: Strings) -> Floats:
    _, which = np.unique(groups, return_inverse=True)
    return np.asarray((which[:, None] == which[None, :]).astype(np.float64))


def _leave_groups_out(precision: Floats, target: Floats, groups: Strings) -> tuple[Floats, Floats]:
    """Residuals and predicted variances of rows whose whole group is left out, without fitting again."""
    solved = precision @ target
    residual, variance = np.empty_like(target), np.empty_like(target)
    _, which, counts = np.unique(groups, return_inverse=True, return_counts=True)
    ordered, starts = np.argsort(which, kind="stable"), np.cumsum(counts) - counts
    for size in np.unique(counts):
        # All groups of one size at a time: there are many small ones.
        rows = ordered[starts[counts == size][:, None] + np.arange(size)[None, :]]
        blocks = np.linalg.inv(precision[rows[:, :, None], rows[:, None, :]])
        residual[rows] = np.einsum("kij,kj->ki", blocks, solved[rows])
        variance[rows] = np.einsum("kii->ki", blocks)
    return residual, np.maximum(variance, 1e-8)


def _invert(matrix: Floats) -> Floats:
    """The inverse of a symmetric positive definite matrix. Raises LinAlgError where it is none."""
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(matrix, lower=1, clean=1)
    if failed:
        raise np.linalg.LinAlgError("not positive definite")
    inverse, failed = lapack.dpotri(factor, lower=1)
    if failed:
        raise np.linalg.LinAlgError("not positive definite")
    # Only the lower half is filled in.
    result: Floats = inverse + inverse.T
    result[np.diag_indices_from(result)] *= 0.5
    return result


def _choose_scales(
    features: Floats,
    target: Floats,
    groups: Strings,
    drifting: int | None,
    apart: int | None,
    lengths: tuple[float, ...],
) -> Scales:
    """The scales under which left-out groups are the likeliest (Student t of four degrees of freedom)."""
    from scipy.optimize import minimize

    _, which, counts = np.unique(groups, return_inverse=True, return_counts=True)
    weight = 1.0 / np.sqrt(counts[which])
    ones = np.ones(len(target))
    pairs, together = _Pairs.of(features, features, drifting, apart), _together(groups)

    def surprise(logarithms: Floats) -> float:
        scales = Scales(*np.clip(logarithms, *_SCALES))
        try:
            precision = _precision(pairs, together, scales, ones)
            residual, variance = _leave_groups_out(precision, target, groups)
        except np.linalg.LinAlgError:
            return 1e9
        likelihood = 0.5 * np.log(variance) + 2.5 * np.log1p(residual**2 / variance / 4.0)
        return float(np.sum(weight * likelihood) + 0.001 * np.sum(logarithms**2))

    total = float(np.log(np.var(target) + 1e-9))

    def search(start: Floats, evaluations: int) -> tuple[float, Floats]:
        simplex = np.vstack([start, start + np.eye(len(start))])
        found = minimize(
            surprise, start, method="Nelder-Mead", options={"maxfev": evaluations, "initial_simplex": simplex}
        )
        return float(found.fun), found.x

    starts = []
    for length in lengths:
        start = np.array([total, total - 1.0, length, total - 2.0, total - 3.0])
        starts.append(start if drifting is None else np.append(start, [total - 2.0] * (1 if apart is None else 2)))
    if len(starts) > 1:
        starts = [min((search(start, _TRIALS) for start in starts), key=lambda tried: tried[0])[1]]
    _, found = search(starts[0], _EVALUATIONS)
    return Scales(*(float(value) for value in np.clip(found, *_SCALES)))
