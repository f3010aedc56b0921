"""Windows corrected for the speed of the cores they ran on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rackscope.analysis.adjustment import adjust_for_speed
from rackscope.analysis.elasticity import estimate_levels
from rackscope.analysis.windows import Window, schedule

SQUEEZES = ("cpu_share@0.6", "network_in@0.6", "disk_bandwidth@0.6")


def windows(bound: float, *, effect: float = 0.0, seed: int = 1, blocks: int = 4) -> list[Window]:
    """Runs on cores that are now a third slower, now not. ``bound`` is how far throughput follows them, ``effect`` the
    elasticity of throughput to the first squeeze."""
    generator = np.random.default_rng(seed)
    found = []
    for block, order in enumerate(schedule(SQUEEZES, blocks, seed), 1):
        for condition in order:
            speed = 12.5e9 if generator.random() < 0.4 else 8e9
            lost = effect * math.log(0.6) if condition == SQUEEZES[0] else 0.0
            log_throughput = math.log(10_000) + bound * math.log(speed / 1e10) + lost + generator.normal(0, 0.01)
            found.append(
                Window(
                    block, condition, math.exp(log_throughput), None, 0.6, (speed, 9e9 * generator.uniform(0.9, 1.1))
                )
            )
    return found


def spread(found: tuple[Window, ...] | list[Window]) -> float:
    return float(np.std([math.log(one.throughput) for one in found if one.condition == "free"]))


def _interval(found: list[Window]) -> tuple[float, float]:
    level = next(one for one in estimate_levels(found) if one.squeeze == "cpu_share")
    assert level.elasticity is not None
    assert level.elasticity.low is not None
    assert level.elasticity.high is not None
    return level.elasticity.low, level.elasticity.high


def test_what_the_cores_did_is_taken_out() -> None:
    plain = windows(bound=1.0)
    adjusted = adjust_for_speed(plain)
    assert adjusted.slopes[0] == pytest.approx(1.0, abs=0.1)
    assert adjusted.slopes[1] == pytest.approx(0.0, abs=0.2)
    assert spread(adjusted.windows) < 0.2 * spread(plain)


def test_a_workload_that_does_not_follow_its_cores_stays_as_it_was() -> None:
    plain = windows(bound=0.0)
    adjusted = adjust_for_speed(plain).windows
    assert [one.throughput for one in adjusted] == pytest.approx([one.throughput for one in plain], rel=0.03)


def test_the_effect_of_a_squeeze_is_not_taken_out() -> None:
    levels = {level.squeeze: level for level in estimate_levels(windows(bound=1.0, effect=1.0), sequential=True)}
    assert levels["cpu_share"].elasticity is not None
    assert levels["cpu_share"].elasticity.estimate == pytest.approx(1.0, abs=0.1)
    assert levels["network_in"].elasticity is not None
    assert levels["network_in"].elasticity.contains(0.0)


def test_what_ran_on_the_core_before_is_not_taken_for_its_speed() -> None:
    # Bursts read a squeezed core, which is idle in between, as a tenth faster than one that is busy all the time.
    found = [
        replace(one, core_speeds=(one.core_speeds[0] * 1.1, one.core_speeds[1]))
        if one.condition == SQUEEZES[0]
        else one
        for seed in range(5)
        for one in windows(bound=1.0, effect=1.0, seed=seed)
    ]
    level = next(one for one in estimate_levels(found) if one.squeeze == "cpu_share")
    assert level.elasticity is not None
    assert level.elasticity.estimate == pytest.approx(1.0, abs=0.12)


def test_intervals_hold_the_truth_and_are_narrower_for_it() -> None:
    covered = narrower = 0
    for seed in range(60):
        found = windows(bound=1.0, effect=1.0, seed=seed)
        adjusted, plain = (_interval(one) for one in (found, [replace(one, core_speeds=()) for one in found]))
        covered += adjusted[0] <= 1.0 <= adjusted[1]
        narrower += adjusted[1] - adjusted[0] < plain[1] - plain[0]
    assert covered >= 53
    assert narrower >= 57


def test_without_speeds_or_with_too_few_windows_nothing_changes() -> None:
    plain = windows(bound=1.0)
    unknown = [replace(one, core_speeds=()) for one in plain]
    assert adjust_for_speed(unknown).windows == tuple(unknown)
    assert adjust_for_speed(plain[:7]).windows == tuple(plain[:7])
    assert adjust_for_speed([]).windows == ()


def test_a_squeeze_of_the_speed_itself_takes_its_neighbours_correction() -> None:
    plain = windows(bound=1.0)
    frequency = [replace(one, core_speeds=()) if one.condition == SQUEEZES[0] else one for one in plain]
    adjusted = adjust_for_speed(frequency).windows
    for place, one in enumerate(frequency):
        if one.condition == SQUEEZES[0]:
            factors = [adjusted[near].throughput / frequency[near].throughput for near in (place - 1, place + 1)]
            expected = math.sqrt(factors[0] * factors[1])
            assert adjusted[place].throughput / one.throughput == pytest.approx(expected)


def test_speeds_that_are_no_numbers_change_nothing() -> None:
    broken = [replace(one, core_speeds=(math.nan, 1.0)) for one in windows(bound=1.0)]
    assert adjust_for_speed(broken).windows == tuple(broken)
