"""A regression on support points: made up, few, rounded, and it says what the one on all servers says."""

from __future__ import annotations

import numpy as np
import pytest

from rackscope.models.trained.base import Floats
from rackscope.models.trained.grouped_regression import GroupedRegression, fit_grouped_regression
from rackscope.models.trained.support_points import from_support_points, on_support_points, support_points

#: Frequencies, sizes, and a column of zeros and ones, far from each other in scale.
CENTRE, SCALE = np.array([2.5, 64.0, 0.0]), np.array([0.4, 20.0, 1.0])


def servers(count: int, seed: int) -> tuple[Floats, Floats]:
    """Made-up servers and the logarithm of what they do."""
    random = np.random.default_rng(seed)
    drawn = random.normal(size=(count, 3))
    drawn[:, 2] = random.integers(0, 2, count)
    return CENTRE + SCALE * drawn, 3.0 + 0.5 * drawn[:, 0] - 0.3 * drawn[:, 1] ** 2 + 0.2 * drawn[:, 2]


@pytest.fixture(scope="module")
def whole() -> GroupedRegression:
    features, target = servers(120, seed=1)
    groups = np.repeat([f"processor {number}" for number in range(40)], 3)
    noisy = target + 0.02 * np.random.default_rng(2).normal(size=120)
    return fit_grouped_regression(features, noisy, groups, apart=2)


@pytest.fixture(scope="module")
def sparse(whole: GroupedRegression) -> GroupedRegression:
    return on_support_points(whole)


def test_it_predicts_what_the_regression_on_all_servers_predicts(
    whole: GroupedRegression, sparse: GroupedRegression
) -> None:
    others, _ = servers(60, seed=3)
    (before, deviation), (after, deviation_after) = whole.predict(others), sparse.predict(others)
    assert np.median(np.abs(after - before)) < 0.01
    assert np.quantile(np.abs(after - before), 0.9) < 0.05
    np.testing.assert_allclose(deviation_after, deviation, rtol=0.5)


def test_points_are_rounded_as_the_file_holds_them_and_come_back_from_it(sparse: GroupedRegression) -> None:
    described, values = support_points(sparse)
    assert 0 < len(described) <= 100
    exactly = sparse.features * sparse.spread + sparse.mean
    np.testing.assert_allclose(exactly, described, rtol=0, atol=1e-9)
    # Three decimals: two would hold less than what the file was judged with.
    assert (described == described.round(3)).all() and (described != described.round(2)).any()
    assert (values == values.round(5)).all() and (values != values.round(4)).any()
    np.testing.assert_allclose(np.linalg.solve(sparse.precision, sparse.weights), values, rtol=0, atol=1e-7)
    again = from_support_points(sparse, described, values)
    others, _ = servers(20, seed=4)
    np.testing.assert_allclose(again.predict(others)[0], sparse.predict(others)[0], rtol=0, atol=1e-9)


def test_no_point_is_a_server_nor_a_mix_of_different_kinds(whole: GroupedRegression, sparse: GroupedRegression) -> None:
    rows = whole.features
    described, _ = support_points(sparse)
    assert set(np.unique(described[:, 2])) == {0.0, 1.0}
    assert (described >= (rows * whole.spread + whole.mean).min(axis=0) - 1e-3).all()
    assert (described <= (rows * whole.spread + whole.mean).max(axis=0) + 1e-3).all()
    for point in sparse.features:
        assert np.abs(rows - point).max(axis=1).min() > 0.045
    assert not set(sparse.groups) & set(whole.groups)
