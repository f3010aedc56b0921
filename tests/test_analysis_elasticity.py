"""Elasticities from interleaved windows: drift cancels, verdicts hold, and what is not shown is not claimed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit

from rackscope.analysis.elasticity import LevelEstimate, bounded_slack, estimate_levels, shown_slack
from rackscope.analysis.pressure import WeakerEvidence, judge_phase, judge_squeezes, needs_more
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.analysis.windows import FREE, Window, parse_condition, schedule
from suites import Trials


def measured(
    elasticities: Mapping[str, float],
    *,
    blocks: int,
    seed: int,
    noise: float = 0.01,
    noise_of: Mapping[str, float] | None = None,
    drift: float = 0.0,
    levels: Sequence[float] = (0.8, 0.6),
    extra: Sequence[str] = (),
    weather: float = 0.0,
    bursts: float = 0.0,
) -> list[Window]:
    """A run whose truth is known; ``drift`` is the change of log throughput from one window to the next.

    On top of the noise of each window, ``weather`` is the deviation of what changes slowly (a neighbour that comes and
    goes: a first-order autoregression of 0.9), and ``bursts`` how often a window loses a tenth.
    """
    generator = np.random.default_rng(seed)
    slow = weather * generator.standard_normal()
    conditions = [f"{name}@{level}" for name in elasticities for level in levels] + list(extra)
    windows: list[Window] = []
    for number, block in enumerate(schedule(conditions, blocks, seed)):
        for condition in block:
            slow = 0.9 * slow + math.sqrt(1 - 0.9**2) * weather * generator.standard_normal()
            log = 11.0 + drift * len(windows) + slow
            if bursts and generator.random() < bursts:
                log += math.log(0.9)
            parsed = parse_condition(condition)
            spread = noise
            if parsed is not None:
                log += elasticities[parsed[0]] * math.log(parsed[1])
                spread = (noise_of or {}).get(parsed[0], noise)
            throughput = math.exp(log + spread * generator.standard_normal())
            p99 = 1e-3 * 1e5 / throughput
            windows.append(Window(number, condition, throughput, p99, parsed[1] if parsed else None))
    return windows


def only(estimates: Sequence[LevelEstimate], squeeze: str, fraction: float) -> LevelEstimate:
    return next(one for one in estimates if (one.squeeze, one.requested_fraction) == (squeeze, fraction))


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["cpu@0.8", "cpu@0.6", "disk@0.5", "control:cache", "cache@0.7"]), unique=True),
    st.integers(0, 6),
    st.integers(0, 1000),
)
def test_a_schedule_is_balanced_and_puts_free_windows_around_each(
    conditions: list[str], blocks: int, seed: int
) -> None:
    plan = schedule(conditions, blocks, seed)
    assert len(plan) == blocks
    assert plan == schedule(conditions, blocks, seed)
    for block in plan:
        assert sorted(name for name in block if name != FREE) == sorted(conditions)
        assert block[0] == block[-1] == FREE
        assert all((first == FREE) != (second == FREE) for first, second in pairwise(block))


def test_orders_differ_between_blocks() -> None:
    plan = schedule([f"r{number}@0.8" for number in range(6)], 5, 1)
    assert len({tuple(block) for block in plan}) > 1


def test_steady_drift_cancels_entirely() -> None:
    estimates = estimate_levels(measured({"cpu": 0.7, "disk": 0.0}, blocks=4, seed=3, noise=0.0, drift=0.01))
    for name, truth in (("cpu", 0.7), ("disk", 0.0)):
        for fraction in (0.8, 0.6):
            found = only(estimates, name, fraction).elasticity
            assert found is not None
            assert found.estimate == pytest.approx(truth, abs=1e-9)


def test_p99_has_the_opposite_sign() -> None:
    estimates = estimate_levels(measured({"cpu": 1.0}, blocks=5, seed=3))
    found = only(estimates, "cpu", 0.8).p99_elasticity
    assert found is not None
    assert found.estimate == pytest.approx(-1.0, abs=0.15)


def test_intervals_are_over_blocks() -> None:
    found = only(estimate_levels(measured({"cpu": 1.0}, blocks=6, seed=1)), "cpu", 0.6)
    assert found.log_ratio.count == 6
    assert found.elasticity is not None
    assert found.elasticity.contains(1.0)


def test_a_control_takes_its_own_disturbance_off() -> None:
    windows = []
    for window in measured({"cache": 0.0}, blocks=5, seed=2, extra=["control:cache"], levels=(0.7,)):
        disturbed = window.condition != FREE
        windows.append(Window(window.block, window.condition, window.throughput * (0.8 if disturbed else 1), None, 0.7))
    found = only(estimate_levels(windows), "cache", 0.7)
    assert found.control == "control:cache"
    assert found.log_ratio.estimate == pytest.approx(0.0, abs=0.02)


def test_a_fraction_that_was_not_measured_gives_no_elasticity_and_no_verdict() -> None:
    windows = [Window(one.block, one.condition, one.throughput) for one in measured({"cpu": 1.0}, blocks=5, seed=2)]
    estimates = estimate_levels(windows)
    assert all(one.elasticity is None for one in estimates)
    verdict = judge_squeezes(estimates)[0]
    assert verdict.verdict == "inconclusive"
    assert "could not be measured" in verdict.sentence
    assert verdict.slack is None
    assert needs_more(estimates) == set()


def test_a_squeeze_that_took_nothing_is_inconclusive() -> None:
    windows = [
        Window(one.block, one.condition, one.throughput, None, 0.995) for one in measured({"c": 0.0}, blocks=5, seed=2)
    ]
    verdict = judge_squeezes(estimate_levels(windows))[0]
    assert (verdict.verdict, "too little" in verdict.sentence) == ("inconclusive", True)


def test_windows_without_throughput_are_left_out_and_counted() -> None:
    windows = measured({"cpu": 1.0}, blocks=4, seed=2)
    stopped = [
        Window(one.block, one.condition, 0.0 if one.block == 1 else one.throughput, None, one.achieved_fraction)
        for one in windows
    ]
    found = only(estimate_levels(stopped), "cpu", 0.8)
    assert (found.log_ratio.count, found.left_out) == (3, 1)
    assert estimate_levels([]) == []
    assert estimate_levels([Window(0, "cpu@0.8", 5.0, None, 0.8)])[0].values == ()


def test_what_limits_is_told_from_what_does_not() -> None:
    estimates = estimate_levels(measured({"cpu": 1.0, "disk": 0.0, "network": 0.6}, blocks=6, seed=5))
    judgement = judge_phase(estimates)
    assert set(judgement.limits) == {"cpu", "network"}
    assert not judgement.none_limits
    assert "cpu and network" in judgement.sentence
    assert needs_more(estimates) == set()


def test_slack_is_what_was_shown_to_cost_less_than_two_in_a_hundred() -> None:
    windows = measured({"cpu": 1.0, "disk": 0.0}, blocks=8, seed=5, noise=0.005)
    judged = {one.squeeze: one for one in judge_squeezes(estimate_levels(windows))}
    assert judged["cpu"].slack is None
    assert judged["disk"].slack == pytest.approx(0.4)
    noisy = estimate_levels(measured({"disk": 0.0}, blocks=3, seed=5, noise=0.1))
    assert shown_slack(noisy) is None


def test_a_loss_that_noise_hides_is_bounded_where_the_bound_is_small() -> None:
    judged = judge_squeezes(estimate_levels(measured({"cpu": 1.0, "disk": 0.0}, blocks=8, seed=6, noise=0.05)))
    levels = {one.squeeze: one.levels for one in judged}
    assert shown_slack(levels["disk"]) is None
    bound = bounded_slack(levels["disk"])
    assert bound is not None
    assert bound[0] == pytest.approx(0.4)
    assert bound[1] == max(level.loss_bound or 0 for level in levels["disk"] if level.requested_fraction == 0.6)
    assert 0.02 < bound[1] < 0.1
    assert bounded_slack(levels["cpu"]) is None


def test_the_bound_of_a_loss_is_one_sided_at_95_percent() -> None:
    level = only(estimate_levels(measured({"disk": 0.0}, blocks=8, seed=6, noise=0.05)), "disk", 0.6)
    assert level.standard_error is not None and level.degrees is not None
    lowest = level.log_ratio.estimate - stdtrit(level.degrees, 0.95) * level.standard_error
    assert level.loss_bound == pytest.approx(-math.expm1(lowest))


def test_what_is_inconclusive_says_whether_its_interval_contains_the_line() -> None:
    line = packaged_thresholds().limit("elasticity.limits")
    seen = set()
    for seed in range(12):
        windows = measured(dict.fromkeys(("cpu", "disk", "cache", "link"), 0.2), blocks=6, seed=seed, noise=0.02)
        for one in judge_squeezes(estimate_levels(windows)):
            if one.verdict == "inconclusive" and one.judged is not None and one.judged.elasticity is not None:
                said = "the interval contains" in one.sentence, "the interval is too close" in one.sentence
                seen.add((one.judged.elasticity.contains(line), *said))
    assert seen == {(True, True, False), (False, False, True)}


def test_none_of_these_resources_needs_every_verdict() -> None:
    quiet = estimate_levels(measured({"cpu": 0.0, "disk": 0.0}, blocks=6, seed=8))
    judgement = judge_phase(quiet)
    assert judgement.none_limits
    assert "none of these resources" in judgement.sentence
    noisy = judge_phase(estimate_levels(measured({"cpu": 0.0, "disk": 0.0}, blocks=3, seed=8, noise=0.3)))
    assert not noisy.none_limits
    assert set(noisy.open) == {"cpu", "disk"}
    # One that is shown not to limit says nothing of another that is not decided.
    mixed = measured({"cpu": 0.0, "disk": 0.0}, blocks=6, seed=8, noise_of={"disk": 0.3})
    one_open = judge_phase(estimate_levels(mixed))
    assert one_open.open == ("disk",)
    assert not one_open.none_limits
    assert not judge_phase([]).none_limits


def test_weaker_evidence_never_counts_as_proven() -> None:
    estimates = estimate_levels(measured({"cpu": 0.0}, blocks=6, seed=8))
    weaker = {"dram_bandwidth": WeakerEvidence("limits", "used at 95 % of its ceiling")}
    judgement = judge_phase(estimates, weaker=weaker)
    assert judgement.limits == ()
    assert not judgement.none_limits
    assert "dram_bandwidth" in judgement.open
    assert "not proven" in judgement.sentence


def test_a_resource_limits_when_one_of_its_squeezes_does() -> None:
    estimates = estimate_levels(measured({"disk_bytes": 0.0, "disk_operations": 0.9}, blocks=6, seed=4))
    judgement = judge_phase(estimates, {"disk_bytes": "disk", "disk_operations": "disk"})
    assert judgement.limits == ("disk",)
    assert judgement.resources[0].slack is None


def test_only_what_is_open_is_asked_for_again() -> None:
    windows = measured({"cpu": 1.0, "cache": 0.25, "disk": 0.0}, blocks=6, seed=5, noise=0.005, extra=["control:cache"])
    assert needs_more(estimate_levels(windows, sequential=True)) == {"cache@0.8", "control:cache"}
    early = [one for one in windows if one.block < 2]
    assert needs_more(estimate_levels(early, sequential=True)) >= {"cpu@0.8", "cache@0.8", "disk@0.8"}


@pytest.mark.parametrize(
    ("truth", "noise_of"),
    [
        ({f"r{number}": 0.25 for number in range(5)}, {}),
        ({"a": 0.25, "b": 0.0, "c": 0.0, "d": 0.0, "e": 1.0}, {}),
        ({"a": 0.25, "b": 0.0, "c": 0.0, "d": 0.0, "e": 1.0}, {"a": 0.06}),
    ],
    ids=["all at the line", "one at the line", "one at the line and noisy"],
)
def test_looking_after_each_block_keeps_errors_rare(
    truth: dict[str, float], noise_of: dict[str, float], trials: Trials
) -> None:
    """At the line both verdicts are wrong, so that here the chance of an error is greatest."""
    runs, wrong = trials.count(120, 1200), 0
    for seed in trials.seeds(runs):
        windows = measured(truth, blocks=12, seed=seed, noise=0.02, noise_of=noise_of, levels=(0.8,))
        decided: set[str] = set()
        for blocks in range(3, 13):
            seen = estimate_levels([one for one in windows if one.block < blocks], sequential=True)
            decided |= {one.squeeze for one in judge_squeezes(seen) if one.verdict != "inconclusive"}
        wrong += any(truth[name] == 0.25 for name in decided)
    # The standard error of a share of 0.05 over 120 runs is 0.02.
    assert wrong / runs <= 0.07


def test_most_verdicts_on_a_quiet_host_are_reached_in_six_blocks() -> None:
    truth = {"cpu": 1.0} | {f"r{number}": 0.0 for number in range(6)}
    right = 0
    for seed in range(20):
        verdicts = judge_squeezes(estimate_levels(measured(truth, blocks=6, seed=seed, noise=0.02), sequential=True))
        right += sum(one.verdict == ("limits" if one.squeeze == "cpu" else "does not limit") for one in verdicts)
    assert right / (20 * len(truth)) > 0.9


@pytest.mark.parametrize(
    "host",
    [
        {},
        {"noise_of": {"cache": 0.06}},
        {"drift": 0.01},
        {"weather": 0.1},
        {"weather": 0.03, "drift": -0.005, "bursts": 0.1},
    ],
    ids=["even noise", "one is noisier", "drift", "slow changes", "all of it"],
)
def test_intervals_cover_on_hosts_that_are_not_quiet(host: dict[str, Any], trials: Trials) -> None:
    truth = {"cpu": 1.0, "disk": 0.0, "cache": 0.3, "network": 0.0, "memory": 0.5}
    runs, held = trials.count(200, 2000), dict.fromkeys(truth, 0)
    for seed in trials.seeds(runs):
        windows = measured(truth, blocks=5, seed=seed, noise=0.02, levels=(0.8,), **host)
        for one in estimate_levels(windows):
            assert one.elasticity is not None
            held[one.squeeze] += one.elasticity.contains(truth[one.squeeze])
    # The standard error of a share of 0.95 over 200 runs is 0.015.
    assert min(held.values()) / runs >= 0.91
    assert sum(held.values()) / runs / len(truth) >= 0.94
