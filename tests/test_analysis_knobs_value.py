"""What a knob's change is worth, and which did not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rackscope.analysis.knobs_value import KnobPairs, value_knobs


def pairs(knob: str, ratio: float, seed: int, count: int = 8, noise: float = 0.01) -> KnobPairs:
    """Paired runs on a host whose speed drifts by far more than the change is worth."""
    generator = np.random.default_rng(seed)
    drift = np.exp(0.2 * np.cumsum(generator.standard_normal(count)))
    changed = 1e5 * ratio * drift * np.exp(noise * generator.standard_normal(count))
    plain = 1e5 * drift * np.exp(noise * generator.standard_normal(count))
    return KnobPairs(knob, "1", "4", list(zip(changed.tolist(), plain.tolist(), strict=True)))


def test_worths_are_told_apart_and_ordered() -> None:
    changes = [
        pairs("idle", 1.0, 1, noise=0.004),
        pairs("threads", 1.4, 2),
        pairs("harmful", 0.8, 3),
        pairs("unclear", 1.0, 4, noise=0.2),
        pairs("new", 1.2, 5, count=2),
        pairs("some", 1.1, 6),
    ]
    valued = value_knobs(changes)
    assert [(one.knob, one.worth) for one in valued] == [
        ("threads", "better"),
        ("some", "better"),
        ("harmful", "worse"),
        ("idle", "does not matter"),
        ("unclear", "not shown"),
        ("new", "too few pairs"),
    ]
    assert valued[0].ratio.contains(1.4)
    assert "from 1 to 4" in valued[0].sentence
    assert "better" in valued[0].sentence


@pytest.mark.parametrize("count", [3, 6, 12])
def test_changes_without_effect_are_seldom_said_to_matter(count: int) -> None:
    searches, wrong = 150, 0
    for seed in range(searches):
        valued = value_knobs([pairs(str(k), 1.0, 1000 * seed + k, count, 0.03) for k in range(5)])
        wrong += any(one.worth in ("better", "worse") for one in valued)
    assert wrong / searches <= 0.05


def test_an_effect_of_five_percent_is_seldom_said_not_to_matter() -> None:
    assert all(value_knobs([pairs("k", 1.05, seed)])[0].worth != "does not matter" for seed in range(100))


def test_runs_that_cannot_be_compared_are_left_out() -> None:
    change = KnobPairs("k", "a", "b", [(0.0, 1.0), (1.0, math.nan), (2.0, 1.0)])
    valued = value_knobs([change])[0]
    assert (valued.worth, valued.ratio.count) == ("too few pairs", 1)
    assert value_knobs([]) == []
    assert value_knobs([KnobPairs("k", "a", "b", [])])[0].worth == "too few pairs"
