"""The value of measuring: never below zero, zero where nothing could change, and right where it is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.errors import RackscopeError
from rackscope.models.data_size import fit_data_size
from rackscope.models.information_value import measuring_values, narrowing
from rackscope.models.server_guess import guess_by_cores
from rackscope.models.uncertain import Uncertain

medians = st.floats(1.0, 1e6)
factors = st.floats(1.0, 20.0)


def draws(median: float, factor: float, name: str, count: int = 2000) -> np.ndarray:
    return Uncertain.lognormal(median, factor).draw(name, count, 1) if factor > 1 else np.full(count, median)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(medians, factors), min_size=2, max_size=5), st.floats(0.0, 0.5))
def test_to_know_more_never_costs(things: list[tuple[float, float]], error: float) -> None:
    costs = {f"s{k}": draws(*one, f"s{k}") for k, one in enumerate(things)}
    for one, (_, factor) in zip(measuring_values(costs, error=error), things, strict=True):
        assert 0 <= one.low <= one.value <= one.high
        assert 0 <= one.changes <= 1
        # No more than the best choice costs altogether.
        assert one.value <= min(cost.mean() for cost in costs.values()) * (1 + 1e-9)
        if factor == 1:
            assert one.value == 0
            assert one.changes == 0


def test_nothing_is_worth_measuring_where_no_outcome_changes_the_choice() -> None:
    known = measuring_values({"cheap": draws(1, 1.5, "cheap"), "dear": draws(100, 1.5, "dear")})
    assert [one.value for one in known] == [0, 0]


def test_two_normal_costs_have_the_value_of_the_textbook() -> None:
    """Unit normal loss (Raiffa and Schlaifer 1961, 5.2): measuring b exactly is worth s x L(|difference| / s)."""
    normal = np.random.default_rng(1).standard_normal(200_000)
    mean, difference, deviation = 100.0, 2.0, 5.0
    costs = {"a": np.full(200_000, mean), "b": mean + difference + deviation * normal}
    unit = difference / deviation
    density = math.exp(-(unit**2) / 2) / math.sqrt(2 * math.pi)
    loss = deviation * (density - unit * 0.5 * math.erfc(unit / math.sqrt(2)))
    found = {one.name: one for one in measuring_values(costs, error=0.0)}
    assert found["b"].value == pytest.approx(loss, rel=0.02)
    assert found["b"].changes == pytest.approx(0.5 * math.erfc(unit / math.sqrt(2)), abs=0.01)
    assert found["a"].value == 0
    assert found["b"].low <= loss <= found["b"].high


def test_a_worse_measurement_is_worth_less() -> None:
    costs = {"a": draws(100, 1.0, "a", 20_000), "b": draws(100, 2.0, "b", 20_000)}
    worth = [
        next(one.value for one in measuring_values(costs, error=error) if one.name == "b")
        for error in (0.0, 0.2, 1.0, 20.0)
    ]
    assert worth == sorted(worth, reverse=True)
    assert worth[-1] < worth[0] / 3


def test_what_cannot_be_valued_is_refused() -> None:
    with pytest.raises(RackscopeError, match="no choice"):
        measuring_values({"a": np.ones(100)})
    with pytest.raises(RackscopeError, match="cannot be compared"):
        measuring_values({"a": np.ones(100), "b": np.ones(99)})
    with pytest.raises(RackscopeError, match="not above zero"):
        measuring_values({"a": np.ones(100), "b": np.full(100, math.nan)})
    with pytest.raises(RackscopeError, match="an error of -1"):
        measuring_values({"a": np.ones(100), "b": np.ones(100)}, error=-1)


@given(st.floats(0.1, 1e3), st.integers(1, 512))
def test_a_guess_is_by_cores_and_wide(each: float, cores: int) -> None:
    guess = guess_by_cores([4 * each, 8 * each], [4, 8], cores)
    assert guess.middle == pytest.approx(cores * each)
    # Two servers that agree do not make a third known.
    assert guess.high / guess.middle > 1.5
    apart = guess_by_cores([4 * each, 32 * each], [4, 8], cores)
    assert apart.high / apart.middle > guess.high / guess.middle


def test_a_guess_takes_two() -> None:
    with pytest.raises(RackscopeError, match="1 measured servers"):
        guess_by_cores([1.0], [4], 8)
    with pytest.raises(RackscopeError, match="not above zero"):
        guess_by_cores([1.0, 0.0], [4, 8], 8)


def test_the_point_that_narrows_most_is_the_far_one() -> None:
    """Of a line, a measurement at the target's end tells more of it than one at the other."""
    sizes = [1e9, 2e9, 3e9, 4e9, 5e9, 6e9]
    seconds = [(10 + 1e-8 * size) * (1 + 0.02 * (-1) ** k) for k, size in enumerate(sizes)]
    fit = fit_data_size(sizes, seconds).fit
    near, far, same = narrowing(fit, (1.0, 6e9), [(1.0, 1e9), (1.0, 3e9), (1.0, 6e9)])
    assert same < far < 1
    assert same < near < 1


@settings(max_examples=40, deadline=None)
@given(st.floats(1e8, 1e11), st.floats(1e8, 1e11))
def test_a_measurement_never_widens(target: float, point: float) -> None:
    sizes = [1e9, 2e9, 3e9, 4e9, 5e9, 6e9]
    seconds = [(10 + 1e-8 * size) * (1 + 0.02 * (-1) ** k) for k, size in enumerate(sizes)]
    (left,) = narrowing(fit_data_size(sizes, seconds).fit, (1.0, target), [(1.0, point)])
    assert 0 <= left <= 1
