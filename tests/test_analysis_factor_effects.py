"""Effects of factors: what is known comes out, what is not there is not found, and missing cells do no harm."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from rackscope.analysis.factor_effects import Observation, estimate_effects

THREADS = {"1": 1.0, "2": 2.0, "4": 3.0}
SIZES = {"64": 1.0, "1k": 0.5}


def grid(rounds: int, noise: float, seed: int = 1, drift: float = 0.0, interaction: float = 0.0) -> list[Observation]:
    generator = random.Random(seed)
    return [
        Observation(
            {"threads": threads, "value_size": size},
            number,
            1000
            * THREADS[threads]
            * SIZES[size]
            * math.exp(interaction * (threads == "4" and size == "1k") + drift * number + generator.gauss(0, noise)),
        )
        for number, threads, size in itertools.product(range(rounds), THREADS, SIZES)
    ]


def test_factors_that_multiply_come_out_with_their_size() -> None:
    effects = estimate_effects(grid(3, 0.001))
    threads = next(one for one in effects.factors if one.factor == "threads")
    assert (threads.lowest, threads.highest) == ("1", "4")
    assert threads.span == pytest.approx(3.0, rel=0.01)
    assert math.prod(threads.multipliers.values()) == pytest.approx(1.0)
    assert threads.p_value is not None
    assert threads.p_value < 1e-6
    assert sum(one.share for one in effects.factors) == pytest.approx(1.0, abs=0.01)
    assert effects.interaction_share < 0.01


def test_a_missing_cell_does_not_bend_the_others() -> None:
    kept = [one for one in grid(3, 0.001) if one.levels != {"threads": "4", "value_size": "64"}]
    effects = {one.factor: one for one in estimate_effects(kept).factors}
    assert effects["threads"].span == pytest.approx(3.0, rel=0.01)
    assert effects["value_size"].span == pytest.approx(2.0, rel=0.01)


def test_drift_between_rounds_is_not_taken_for_noise() -> None:
    steady, drifting = (estimate_effects(grid(3, 0.05, drift=drift)) for drift in (0.0, 0.5))
    for one, other in zip(steady.factors, drifting.factors, strict=True):
        assert one.p_value == pytest.approx(other.p_value)


def test_what_only_combinations_do_is_told_apart() -> None:
    effects = estimate_effects(grid(3, 0.01, interaction=1.0))
    assert effects.interaction_p_value is not None
    assert effects.interaction_p_value < 0.001
    assert effects.interaction_share > 0.1


def test_factors_without_effect_are_rarely_called_effective() -> None:
    called = 0
    for seed in range(300):
        generator = random.Random(seed)
        observations = [
            Observation({"a": a, "b": b}, number, math.exp(generator.gauss(0, 0.1)))
            for number, a, b in itertools.product(range(3), "12", "123")
        ]
        effects = estimate_effects(observations)
        called += any(one.p_value is not None and one.p_value < 0.05 for one in effects.factors)
    # 5 % of 300, and three standard deviations of that count.
    assert called <= 15 + 12


def test_one_round_gives_sizes_and_no_p_value() -> None:
    effects = estimate_effects(grid(1, 0.0))
    assert all(one.p_value is None for one in effects.factors)
    assert {one.factor: round(one.span, 3) for one in effects.factors} == {"threads": 3.0, "value_size": 2.0}


def test_nothing_and_one_level_are_no_effects() -> None:
    assert estimate_effects([]).factors == ()
    assert estimate_effects([Observation({"a": "1"}, 0, 5.0)]).factors == ()
    assert estimate_effects([Observation({"a": "1"}, 0, 0.0), Observation({"a": "2"}, 0, math.nan)]).factors == ()
