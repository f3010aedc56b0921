"""Regressions that hold no row of any table: what a fit says of made-up servers, and nothing else.

Support points are means of a few servers with different processors, chosen so that they tell the most of all servers
(greedy: Smola and Bartlett 2001). Their values are what the fit says there (Snelson and Ghahramani 2006: FITC). Between
them the regression goes on as before; it knows less than the fit on all rows, so its deviations are larger and the ends
of its intervals are calibrated anew.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rackscope.models.trained.base import Examples, Floats
from rackscope.models.trained.fit import Ends, Fit, calibrate_by_folds
from rackscope.models.trained.grouped_regression import GroupedRegression
from rackscope.models.trained.model import Model

#: How many support points, and of how many servers with different processors each is the mean.
_POINTS, _SERVERS_OF_A_POINT = 100, 3
#: Support points are rounded to so many decimals of features and of values: what a file holds is what was judged.
_FEATURE_DECIMALS, _VALUE_DECIMALS = 3, 5
#: How exactly a value at a support point is known, as a part of the variance of noise.
_EXACTNESS = 0.1
_FOLDS = 5
#: A mean that is nearer to a server than this, in every feature and in standard deviations of it, is not made up.
_LEAST_APART = 0.05
#: Support points are chosen from at most so many means.
_CANDIDATES = 250


def without_rows(model: Model, examples: Examples, fit: Fit) -> Fit:
    """``fit`` (of ``model`` on ``examples``) on support points, its ends calibrated on processors left out."""
    like = replace(fit, ends={name: Ends(ends.usual) for name, ends in fit.ends.items()})
    usual = calibrate_by_folds(examples, lambda rest: _sparse(model.fit(rest, like)), _FOLDS, fit.evenness, fit.caution)
    ends = {}
    for name, before in fit.ends.items():
        now = usual.get(name, before.usual)
        later = before.later
        if later is not None:
            later = replace(later, below=min(later.below, now.below), above=max(later.above, now.above))
        ends[name] = replace(before, usual=now, later=later)
    return replace(_sparse(fit), ends=ends)


def _sparse(fit: Fit) -> Fit:
    return replace(fit, regressions={name: on_support_points(one) for name, one in fit.regressions.items()})


def on_support_points(regression: GroupedRegression) -> GroupedRegression:
    """The regression on support points."""
    points = _chosen(regression, _candidates(regression))
    # Rounded as the servers that they describe, so that columns of zeros and ones stay so.
    described = (points * regression.spread + regression.mean).round(_FEATURE_DECIMALS)
    points = (described - regression.mean) / regression.spread
    rows = regression.features
    among, with_rows = regression.covariance(points, points), regression.covariance(points, rows)
    among[np.diag_indices_from(among)] += _EXACTNESS * np.exp(regression.scales.noise)
    explained = with_rows * np.linalg.solve(among, with_rows)
    missed = np.maximum(regression.own_variance(rows) - explained.sum(axis=0), 0.0)
    noise = np.linalg.inv(regression.precision) - regression.covariance(rows, rows) + np.diag(missed)
    target = np.linalg.solve(regression.precision, regression.weights)
    weighted = np.linalg.solve(noise, with_rows.T).T
    values = among @ np.linalg.solve(among + weighted @ with_rows.T, weighted @ target)
    return from_support_points(regression, described, values.round(_VALUE_DECIMALS))


def from_support_points(regression: GroupedRegression, described: Floats, values: Floats) -> GroupedRegression:
    """The regression with those rows (not scaled) and values (less the level) in place of its own."""
    points = (described - regression.mean) / regression.spread
    among = regression.covariance(points, points)
    among[np.diag_indices_from(among)] += _EXACTNESS * np.exp(regression.scales.noise)
    precision: Floats = np.asarray(np.linalg.inv(among), dtype=np.float64)
    names = np.array([f"made up {number}" for number in range(len(points))])
    return replace(regression, features=points, weights=precision @ values, precision=precision, groups=names)


def support_points(regression: GroupedRegression) -> tuple[Floats, Floats]:
    """The two arguments of ``from_support_points`` back from what it gave."""
    described = (regression.features * regression.spread + regression.mean).round(_FEATURE_DECIMALS)
    values: Floats = np.asarray(np.linalg.solve(regression.precision, regression.weights), dtype=np.float64)
    return described, values.round(_VALUE_DECIMALS)


def _candidates(regression: GroupedRegression) -> Floats:
    """Of rows the mean with the nearest rows of different groups, which agree in the column ``apart``."""
    rows, found = regression.features, []
    apart = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
    if regression.apart is not None:
        own = rows[:, regression.apart]
        apart[np.abs(own[:, None] - own[None, :]) > 1e-6] = np.inf
    _, group = np.unique(regression.groups, return_inverse=True)
    for distances in apart[:: -(-len(rows) // _CANDIDATES)]:
        order = np.argsort(distances, kind="stable")[: int(np.isfinite(distances).sum())]
        _, first = np.unique(group[order], return_index=True)
        if len(first) >= _SERVERS_OF_A_POINT:
            mean = rows[order[np.sort(first)[:_SERVERS_OF_A_POINT]]].mean(axis=0)
            if np.abs(rows - mean).max(axis=1).min() > _LEAST_APART:
                found.append(mean)
    return np.array(found)


def _chosen(regression: GroupedRegression, candidates: Floats) -> Floats:
    """Of the candidates those that leave the least variance of all rows unexplained, one after the other."""
    of_rows = regression.covariance(regression.features, candidates)
    among = regression.covariance(candidates, candidates)
    left, explained = np.diag(among).copy(), np.zeros((len(candidates), 0))
    chosen: list[int] = []
    for _ in range(min(_POINTS, len(candidates))):
        gain = np.where(left > 1e-6, (of_rows**2).sum(axis=0) / np.maximum(left, 1e-9), 0.0)
        gain[chosen] = 0.0
        best = int(np.argmax(gain))
        if gain[best] <= 0.0:
            break
        chosen.append(best)
        root = np.sqrt(left[best])
        shared = (among[:, best] - explained @ explained[best]) / root
        of_rows -= np.outer(of_rows[:, best] / root, shared)
        explained, left = np.column_stack([explained, shared]), left - shared**2
    return candidates[chosen]
