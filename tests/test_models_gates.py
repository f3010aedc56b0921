"""Gates refuse a projection whose assumptions fail, say so in words, and say what they could not look at."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.analysis.latency_curve import CurvePoint
from rackscope.models.gates import (
    Gate,
    ProjectionRefused,
    elasticity_gate,
    instruction_drift_gate,
    little_gate,
    require,
)

CLOCKS = [1.2e9, 1.6e9, 2.0e9, 2.4e9]


def point(rate: float, mean: float, outstanding: float | None) -> CurvePoint:
    return CurvePoint(achieved=rate, latency_seconds=mean, mean_response_seconds=mean, mean_outstanding=outstanding)


def test_littles_law_must_hold_at_every_point() -> None:
    good = point(1000, 0.01, 10.2)
    assert little_gate([good, good]).passed is True
    broken = little_gate([good, point(1000, 0.01, 20)])
    assert broken.passed is False
    assert "1 of 2 points" in broken.sentence
    assert little_gate([point(1000, 0.01, None)]).passed is None


@settings(deadline=None)
@given(elasticity=st.floats(0, 1))
def test_an_elasticity_within_nought_and_one_passes(elasticity: float) -> None:
    assert elasticity_gate(CLOCKS, [one**elasticity for one in CLOCKS], "frequency").passed is True


@settings(deadline=None)
@given(elasticity=st.one_of(st.floats(1.1, 4), st.floats(-3, -0.1)))
def test_any_other_elasticity_fails(elasticity: float) -> None:
    gate = elasticity_gate(CLOCKS, [one**elasticity for one in CLOCKS], "frequency")
    assert gate.passed is False
    assert "something else" in gate.sentence


def test_noise_around_one_is_no_reason_to_refuse() -> None:
    assert elasticity_gate(CLOCKS, [1.0, 1.42, 1.66, 2.06], "frequency").passed is True


def test_issas_two_atoms_are_refused() -> None:
    gate = elasticity_gate([1.66e9, 1.88e9], [1 / 5717, 1 / 4150], "frequency")
    assert gate.passed is False
    assert "2.57 %" in gate.sentence


def test_instructions_per_operation_must_stay() -> None:
    steady = [1000.0, 1010.0, 995.0, 1004.0]
    assert instruction_drift_gate(CLOCKS, steady, "frequency").passed is True
    drifting = instruction_drift_gate(CLOCKS, [1000.0, 1100.0, 1210.0, 1330.0], "frequency")
    assert drifting.passed is False
    assert "+32" in drifting.sentence or "+33" in drifting.sentence
    assert instruction_drift_gate(CLOCKS, [None, 1000.0, None, 1000.0], "frequency").passed is None
    scattered = instruction_drift_gate(CLOCKS, [1000.0, 1300.0, 900.0, 1150.0], "frequency")
    assert scattered.passed is True


def test_one_place_or_no_numbers_are_not_checked() -> None:
    assert elasticity_gate([1e9, 1e9], [1.0, 2.0], "frequency").passed is None
    assert elasticity_gate([1e9, 2e9], [math.nan, 2.0], "frequency").passed is None


def test_a_refusal_names_every_gate_that_failed() -> None:
    passed, failed = Gate("a", True, "a holds"), Gate("b", False, "b fails")
    assert require(passed, Gate("c", None, "c was not checked")) == (passed, Gate("c", None, "c was not checked"))
    with pytest.raises(ProjectionRefused, match="no projection: b fails; d fails"):
        require(passed, failed, Gate("d", False, "d fails"))
