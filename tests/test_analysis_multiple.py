"""What is called different is different: A/A pairs, corrections for many comparisons, orders in which drift cancels."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from rackscope.analysis.intervals import (
    equal_means_p_value,
    median_interval,
    ratio_of_means,
)
from rackscope.analysis.multiple import (
    compare_all_pairs,
    compare_pairs,
    compare_repeated,
    compare_with_baseline,
    holm,
    interleave,
)
from suites import Trials

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def noise(kind: str, generator: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Relative noise of runs, one after another, of about 3 %."""
    if kind == "normal":
        return 0.03 * generator.standard_normal(count)
    if kind == "heavy-tailed":
        return np.clip(0.02 * generator.standard_t(3, count), -0.5, 2)
    drift = np.empty(count)
    drift[0] = generator.standard_normal()
    for index in range(1, count):
        drift[index] = 0.9 * drift[index - 1] + np.sqrt(1 - 0.9**2) * generator.standard_normal()
    return 0.03 * drift + 0.01 * generator.standard_normal(count)


@pytest.mark.parametrize("kind", ["normal", "heavy-tailed", "drifting"])
def test_a_thing_is_seldom_called_different_from_itself(kind: str, trials: Trials) -> None:
    generator = trials.generator(17)
    pairs, different = trials.count(2000, 20_000), 0
    for seed in range(pairs):
        repetitions = 5 + seed % 8
        order = np.array(interleave(["a", "b"], repetitions, seed))
        values = 1e5 * (1 + noise(kind, generator, len(order)))
        different += compare_repeated(values[order == "a"], values[order == "b"]).different
    assert different / pairs <= 0.05


def test_without_interleaving_drift_would_be_taken_for_a_difference() -> None:
    generator = np.random.default_rng(17)
    different = 0
    for _ in range(300):
        values = 1e5 * (1 + noise("drifting", generator, 16))
        different += compare_repeated(values[:8], values[8:]).different
    assert different / 300 > 0.15


def test_what_differs_is_seen() -> None:
    generator = np.random.default_rng(2)
    seen = 0
    for _ in range(200):
        a, b = 100 + 2 * generator.standard_normal((2, 6))
        seen += compare_repeated(1.1 * a, b).different
    assert seen / 200 > 0.95


def test_outcomes() -> None:
    same = [100.0, 100.1, 99.9, 100.05]
    assert compare_repeated(same, same[::-1]).outcome == "equivalent"
    assert compare_repeated([100.0, 130.0, 80.0], [105.0, 70.0, 120.0]).outcome == "no difference seen"
    assert compare_repeated([100.0], same).outcome == "too few repetitions"
    assert compare_repeated([], []).outcome == "too few repetitions"
    assert compare_repeated([120.0] * 3, [100.0] * 3).different
    # Certain, but less than two runs of one thing may be apart.
    assert compare_repeated([100.5] * 3, [100.0] * 3).outcome == "equivalent"


def test_the_more_is_compared_the_wider_an_interval_of_95_percent_of_all_together() -> None:
    values = {"a": [100.0, 101.0, 99.0, 100.5], "b": [104.0, 105.0, 103.0, 104.5], "c": [99.0, 102.0, 100.0, 101.0]}
    [alone] = compare_all_pairs({name: values[name] for name in "ab"})
    every = compare_all_pairs(values)
    assert [one.ratio.confidence for one in (alone, *every)] == [0.95] * 4
    assert every[0].ratio.low < alone.ratio.low and every[0].ratio.high > alone.ratio.high


@settings(deadline=None)
@given(p_values)
def test_holm(values: list[float]) -> None:
    corrected = holm(values)
    # Never more lenient than the false discovery rate, never stricter than Bonferroni.
    for value, lenient, strict in zip(values, stats.false_discovery_control(values), corrected, strict=True):
        assert lenient - 1e-12 <= strict <= min(1.0, len(values) * value) + 1e-12
    order = np.argsort(values, kind="stable")
    assert np.all(np.diff(np.array(corrected)[order]) >= 0)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_a_sweep_of_alike_configurations_seldom_shows_a_difference(trials: Trials) -> None:
    generator = trials.generator(5)
    sweeps, false, held = trials.count(300, 5000), 0, 0
    for _ in range(sweeps):
        values = {f"threads={number}": 100 + 3 * generator.standard_normal(6) for number in range(6)}
        comparisons = compare_all_pairs(values)
        assert len(comparisons) == 15
        false += any(one.different for one in comparisons)
        held += all(one.ratio.contains(1.0) for one in comparisons)
    assert false / sweeps <= 0.05
    assert held / sweeps >= 0.95


def test_against_a_baseline() -> None:
    generator = np.random.default_rng(5)
    values = {name: level + generator.standard_normal(6) for name, level in (("1", 100), ("2", 150), ("4", 100))}
    found = {one.first: one for one in compare_with_baseline(values, "1")}
    assert set(found) == {"2", "4"}
    assert found["2"].different
    assert found["2"].ratio.contains(1.5)
    assert not found["4"].different
    assert {one.first for one in compare_with_baseline({**values, "8": [1.0]}, "1")}
    with pytest.raises(ValueError, match="no configuration '3'"):
        compare_with_baseline(values, "3")


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(0, 9), st.integers(0, 100))
def test_interleaving_is_balanced_and_cancels_steady_drift(labels: int, repetitions: int, seed: int) -> None:
    names = [str(number) for number in range(labels)]
    plan = interleave(names, repetitions, seed)
    assert plan == interleave(names, repetitions, seed)
    assert Counter(plan) == (dict.fromkeys(names, repetitions) if repetitions else {})
    if repetitions % 2 == 0 and repetitions:
        sums = {name: sum(place for place, label in enumerate(plan) if label == name) for name in names}
        assert len(set(sums.values())) == 1


def test_the_p_value_and_the_interval_agree() -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        a, b = 100 + 5 * generator.standard_normal(5), 103 + 2 * generator.standard_normal(7)
        p_value = equal_means_p_value(a, b)
        assert p_value is not None
        assert (p_value < 0.05) == (not ratio_of_means(a, b).contains(1.0))


def test_the_bootstrap_of_a_median_covers_about_what_it_says() -> None:
    generator = np.random.default_rng(4)
    median = float(stats.gamma.ppf(0.5, 4))
    held = sum(median_interval(list(generator.gamma(4, 1, 20)), resamples=999).contains(median) for _ in range(300))
    assert held / 300 > 0.9


def test_a_median_without_spread_or_with_few_values() -> None:
    assert median_interval([2.0] * 6).contains(2.0)
    ties = median_interval([1.0, 2.0, 2.0, 2.0, 2.0, 3.0])
    assert ties.low is not None and ties.low <= 2.0
    assert not median_interval([1.0, 2.0, 3.0, 4.0]).is_known
    assert median_interval([]).count == 0


def test_chosen_pairs_are_corrected_for_their_number_alone() -> None:
    generator = np.random.default_rng(5)
    values = {name: list(100 + generator.standard_normal(6)) for name in "abcd"}
    every = compare_all_pairs(values)
    chosen = compare_pairs(values, [("a", "b"), ("c", "d")])
    assert [(one.first, one.second) for one in chosen] == [("a", "b"), ("c", "d")]
    narrow, wide = chosen[0].ratio, every[0].ratio
    assert (wide.low or 0) < (narrow.low or 0) < (narrow.high or 0) < (wide.high or 0)
    with pytest.raises(KeyError):
        compare_pairs(values, [("a", "e")])


def test_a_comparison_from_the_other_side_is_the_same() -> None:
    there = compare_repeated([10.0, 11.0, 10.5], [20.0, 21.0, 19.5])
    back = there.turned()
    other = compare_repeated([20.0, 21.0, 19.5], [10.0, 11.0, 10.5])
    assert (back.first, back.second) == ("b", "a")
    assert back.ratio.estimate == pytest.approx(other.ratio.estimate)
    assert (back.ratio.low, back.ratio.high) == pytest.approx((other.ratio.low, other.ratio.high))
    assert (back.outcome, back.p_value) == (there.outcome, there.p_value)


def test_a_spread_without_bounds_has_no_interval() -> None:
    ratio = ratio_of_means([1.0, 1000.0], [1.0, 900.0], confidence=1 - 1e-6)
    assert ratio.estimate == pytest.approx(1001 / 901)
    assert not ratio.is_known
    assert compare_repeated([1e-300, 1e300], [1.0, 2.0]).outcome in ("no difference seen", "too few repetitions")
