"""Intervals cover what they say they cover, also when one looks while repeating."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rackscope.analysis.intervals import (
    SEQUENTIAL_LEVEL,
    Interval,
    decide_stopping,
    difference_of_means,
    mean_interval,
    median_interval,
    note_outliers,
    ratio_of_means,
    relative_half_width,
)
from suites import Trials

positive = st.floats(min_value=1e-6, max_value=1e9)
samples_of_at_least_two = st.lists(positive, min_size=2, max_size=20)


def test_the_mean_interval_is_students() -> None:
    values = [10.0, 12.0, 11.0, 13.0]
    expected = stats.t.interval(0.95, 3, loc=11.5, scale=stats.sem(values))
    interval = mean_interval(values)
    assert interval.estimate == 11.5
    assert interval.count == 4
    assert (interval.low, interval.high) == pytest.approx(expected)


def test_one_value_has_no_interval_and_none_no_estimate() -> None:
    assert mean_interval([3.0]) == Interval(3.0, None, None, 0.95, 1)
    empty = mean_interval([])
    assert math.isnan(empty.estimate)
    assert not empty.is_known
    assert mean_interval([math.nan, 4.0]).estimate == 4.0


@given(samples_of_at_least_two)
def test_the_interval_contains_its_mean_and_looking_widens_it(values: list[float]) -> None:
    plain, sequential = mean_interval(values), mean_interval(values, sequential=True)
    assert plain.low is not None
    assert plain.high is not None
    assert sequential.low is not None
    assert sequential.high is not None
    assert plain.low <= plain.estimate <= plain.high
    assert sequential.low <= plain.low
    assert plain.high <= sequential.high


def test_relative_half_width() -> None:
    assert relative_half_width(Interval(100.0, 98.0, 102.0, 0.95, 3)) == pytest.approx(0.02)
    assert relative_half_width(Interval(-100.0, -102.0, -98.0, 0.95, 3)) == pytest.approx(0.02)
    assert relative_half_width(Interval(0.0, -1.0, 1.0, 0.95, 3)) is None
    assert relative_half_width(Interval(1.0, None, None, 0.95, 1)) is None


def test_stopping_waits_for_the_minimum_however_alike_the_values_are() -> None:
    assert not decide_stopping([]).stop
    assert not decide_stopping([100.0]).stop
    early = decide_stopping([100.0, 100.0])
    assert not early.stop
    assert "2 of at least 3" in early.reason
    assert decide_stopping([100.0, 100.0, 100.0]).stop


def test_stopping_says_how_wide_the_interval_is() -> None:
    wide = decide_stopping([100.0, 120.0, 80.0])
    assert not wide.stop
    assert wide.half_width is not None
    assert wide.half_width > 0.02
    narrow = decide_stopping([100.0, 100.2, 99.9])
    assert narrow.stop
    assert narrow.half_width is not None
    assert narrow.half_width <= 0.02
    assert "±" in narrow.reason


def test_stopping_at_the_maximum_and_with_nothing_done() -> None:
    spent = decide_stopping([100.0, 150.0, 50.0, 90.0], maximum=4)
    assert spent.stop
    assert "all 4 repetitions" in spent.reason
    assert decide_stopping([5.0], maximum=1).stop
    zero = decide_stopping([0.0, 0.0, 0.0])
    assert not zero.stop
    assert zero.half_width is None


def coverage_after_stopping(spread: float, level: float, simulation: Trials, longest: int = 40) -> float:
    """How often the t interval at ``level`` holds the truth when repetition stops by its own width."""
    generator, trials = simulation.generator(20_261_121), simulation.count(12_000, 100_000)
    values = 1 + spread * generator.standard_normal((trials, longest))
    counts = np.arange(1, longest + 1)
    means = np.cumsum(values, axis=1) / counts
    variances = np.maximum(np.cumsum(values**2, axis=1) - counts * means**2, 0) / np.maximum(counts - 1, 1)
    quantiles = np.array([1e9, *(stats.t.ppf(0.5 + level / 2, count - 1) for count in counts[1:])])
    halves = quantiles * np.sqrt(variances / counts)
    stop = halves <= 0.02 * means
    stop[:, :2] = False
    stop[:, -1] = True
    place = stop.argmax(axis=1)
    rows = np.arange(trials)
    return float(np.mean(np.abs(means[rows, place] - 1) <= halves[rows, place]))


@pytest.mark.parametrize("spread", [0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06])
def test_the_stated_interval_covers_after_optional_stopping(spread: float, trials: Trials) -> None:
    # Standard error of a share of 0.95 over 12,000 trials: 0.002.
    assert coverage_after_stopping(spread, SEQUENTIAL_LEVEL, trials) >= 0.943


def test_without_the_correction_it_would_not(trials: Trials) -> None:
    assert coverage_after_stopping(0.03, 0.95, trials) < 0.93


def test_the_simulated_rule_is_the_one_that_is_used() -> None:
    generator = np.random.default_rng(7)
    for _ in range(50):
        values = list(1 + 0.01 * generator.standard_normal(int(generator.integers(3, 12))))
        half = stats.t.ppf(0.5 + SEQUENTIAL_LEVEL / 2, len(values) - 1) * stats.sem(values)
        decision = decide_stopping(values)
        assert decision.half_width == pytest.approx(half / np.mean(values))
        assert decision.stop == (half / np.mean(values) <= 0.02)
        interval = mean_interval(values, sequential=True)
        assert interval.high == pytest.approx(np.mean(values) + half)
        assert interval.confidence == 0.95


def test_the_ratio_interval_covers(trials: Trials) -> None:
    generator = trials.generator(3)
    count, held = trials.count(2000, 20_000), 0
    for _ in range(count):
        above = 110 + 3 * generator.standard_normal(4)
        below = 100 + 5 * generator.standard_normal(6)
        held += ratio_of_means(above, below).contains(1.1)
    assert held / count == pytest.approx(0.95, abs=0.02)


@given(samples_of_at_least_two, samples_of_at_least_two)
def test_ratio_and_its_inverse_agree(first: list[float], second: list[float]) -> None:
    ratio, inverse = ratio_of_means(first, second), ratio_of_means(second, first)
    assert ratio.low is not None
    assert inverse.high is not None
    assert ratio.estimate == pytest.approx(1 / inverse.estimate)
    if inverse.high < 1e100:
        assert ratio.low == pytest.approx(1 / inverse.high)


def test_ratios_that_cannot_be_given() -> None:
    assert math.isnan(ratio_of_means([1.0], []).estimate)
    assert math.isnan(ratio_of_means([1.0, 1.0], [0.0, 0.0]).estimate)
    assert not ratio_of_means([0.0, 0.0], [1.0, 2.0]).is_known
    assert ratio_of_means([2.0], [1.0]) == Interval(2.0, None, None, 0.95, 1)


def test_the_difference_is_welchs() -> None:
    first, second = [10.0, 11.0, 12.0, 10.5], [8.0, 8.1, 7.9]
    expected = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    interval = difference_of_means(first, second)
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert difference_of_means([1.0], [2.0, 3.0]).low is None


def test_identical_values_give_an_interval_without_width() -> None:
    assert difference_of_means([2.0, 2.0], [1.0, 1.0]) == Interval(1.0, 1.0, 1.0, 0.95, 2)


def test_the_median_interval_is_repeatable_and_holds_the_median() -> None:
    values = list(np.random.default_rng(5).lognormal(size=31))
    interval = median_interval(values)
    assert interval == median_interval(values)
    assert interval.low is not None
    assert interval.high is not None
    assert min(values) <= interval.low < interval.estimate < interval.high <= max(values)
    assert median_interval([1.0, 2.0]).low is None


def test_the_median_interval_covers_a_skewed_truth(trials: Trials) -> None:
    generator = trials.generator(11)
    count = trials.count(300, 3000)
    held = sum(
        median_interval(generator.exponential(size=25), resamples=999).contains(math.log(2)) for _ in range(count)
    )
    # A bootstrap of 25 values holds roughly what it says: within five points.
    assert 0.90 <= held / count <= 0.99


def test_outliers_as_hyperfine_sees_them() -> None:
    steady = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2]
    assert note_outliers(steady) == ""
    assert "warm-up" in note_outliers([60.0, *steady])
    assert note_outliers([*steady, 60.0]).startswith("repetition 7 of 7 are far")
    assert note_outliers([60.0, *steady, 60.0]).startswith("repetitions 1, 8 of 8")
    assert note_outliers([1.0, 100.0]) == ""
    assert note_outliers([5.0] * 6) == ""
