"""Knees of throughput-latency curves, and points that break Little's law."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rackscope.analysis.latency_curve import CurvePoint, check_little, find_knee


def curve(noise: float = 0.0, seed: int = 1) -> list[CurvePoint]:
    """An M/M/1 queue of 1000 operations a second at 5 to 98 % of its capacity."""
    generator = np.random.default_rng(seed)
    return [
        CurvePoint(1000 * load, 1e-3 / (1 - load) * math.exp(noise * generator.standard_normal()), 1000 * load)
        for load in np.linspace(0.05, 0.98, 24)
    ]


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_knee_of_a_queue_lies_between_six_and_nine_tenths(noise: float) -> None:
    for seed in range(20):
        knee = find_knee(curve(noise, seed))
        assert knee is not None
        assert 600 <= knee.throughput <= 900
        assert curve(noise, seed)[knee.index].achieved == knee.throughput


def test_order_and_overload_do_not_move_the_knee() -> None:
    points = curve()
    knee = find_knee(points)
    overloaded = [*points, CurvePoint(700, 1.0, 1200), CurvePoint(650, 2.0, 1500)]
    assert find_knee(overloaded) == knee
    shuffled = find_knee(points[::-1])
    assert knee is not None
    assert shuffled is not None
    assert shuffled.throughput == knee.throughput


def test_curves_without_a_knee() -> None:
    assert find_knee([]) is None
    assert find_knee(curve()[:4]) is None
    flat = [CurvePoint(100.0 * step, 1e-3 * (1 + 0.1 * (step % 2)), None) for step in range(1, 12)]
    assert find_knee(flat) is None
    straight = [CurvePoint(100.0 * step, math.exp(0.3 * step), None) for step in range(1, 12)]
    assert find_knee(straight) is None
    assert find_knee([CurvePoint(100.0, 1e-3, 100.0)] * 8) is None


def test_littles_law() -> None:
    fine = check_little(CurvePoint(1000, 5e-3, 1000, mean_response_seconds=2e-3, mean_outstanding=2.1))
    assert fine.agrees
    assert fine.ratio == pytest.approx(1.05)
    assert check_little(CurvePoint(1000, 5e-3)).agrees is None
    assert check_little(CurvePoint(0, 5e-3, 10, mean_response_seconds=1e-3, mean_outstanding=1)).agrees is None


@pytest.mark.parametrize(
    ("point", "reason"),
    [
        (CurvePoint(1000, 5e-3, 1000, 2e-3, 5.0, errors=100, operations=1000), "10 % of the requests had no answer"),
        (CurvePoint(1000, 5e-3, 1500, 2e-3, 5.0), "piled up"),
        (CurvePoint(1000, 5e-3, 1000, 2e-3, 5.0), "no response time saw"),
        (CurvePoint(1000, 5e-3, 1000, 2e-3, 0.5), "not spent in the system"),
    ],
)
def test_a_bad_point_is_flagged_with_its_reason(point: CurvePoint, reason: str) -> None:
    check = check_little(point)
    assert check.agrees is False
    assert reason in check.reason
