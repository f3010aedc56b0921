"""Slowdown of pairs: what must hold of any prediction, and by simulation how often its intervals do."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.errors import RackscopeError
from rackscope.models.colocation import (
    Demand,
    ResponsePoint,
    Sensitivity,
    Side,
    Workload,
    fit_colocation,
    sensitivity,
    textbook,
)
from rackscope.models.colocation_validation import validate_colocation
from shared_core import kept
from suites import Trials

CORE = {"cpu": 1.0}


def from_elasticity(
    resource: str, capacity: float, elasticity: float, error: float = 0.0, use: float | None = None
) -> Sensitivity:
    """A response of one elasticity, measured by halving the resource."""
    half = math.log(0.5)
    return sensitivity(resource, capacity, [ResponsePoint(0.5, elasticity * half, abs(error * half))], use)


def workload(
    name: str, elasticity: float = 1.0, cores: float = 1.0, error: float = 0.0, capacity: float = 1.0
) -> Workload:
    return Workload(
        name,
        {"cpu": from_elasticity("cpu", capacity, elasticity, error, cores / capacity)},
        {"cpu": Demand(cores)},
    )


def limited(name: str, cores: float) -> Workload:
    """Bound by CPU, and allowed so much of it."""
    return workload(name, 1.0, cores, 0.02, cores)


fractions = st.floats(0.01, 1.0)
quick = settings(max_examples=60, deadline=None)


@quick
@given(fractions, fractions)
def test_without_a_neighbour_there_is_no_slowdown(elasticity: float, cores: float) -> None:
    alone = textbook(CORE).predict(workload("a", elasticity, cores), workload("nobody", cores=0.0))
    assert alone.value == pytest.approx(0)
    assert (alone.low, alone.high) == (pytest.approx(0), pytest.approx(0))


@quick
@given(fractions, fractions, fractions)
def test_more_pressure_never_slows_less(elasticity: float, one: float, other: float) -> None:
    little, much = sorted((one, other))
    subject = workload("a", elasticity)
    model = replace(textbook(CORE), core_cost=0.05, waiting_cost=0.03)
    slow = [model.predict(subject, workload("b", cores=cores)).value for cores in (little, much)]
    assert slow[0] <= slow[1] + 1e-9


@quick
@given(fractions, fractions, fractions)
def test_slowdown_rises_with_elasticity(cores: float, one: float, other: float) -> None:
    low, high = sorted((one, other))
    neighbour = workload("b", cores=cores)
    slow = [textbook(CORE).predict(workload("a", elasticity), neighbour).value for elasticity in (low, high)]
    assert slow[0] <= slow[1] + 1e-9


@quick
@given(fractions, fractions, st.floats(0, 0.3))
def test_the_interval_holds_the_value_and_widens_with_the_elasticitys(
    elasticity: float, cores: float, error: float
) -> None:
    neighbour = workload("b", cores=cores)
    known, doubtful = (textbook(CORE).predict(workload("a", elasticity, error=e), neighbour) for e in (0.0, error))
    for one in (known, doubtful):
        assert one.low <= one.value <= one.high < 1
    assert doubtful.high - doubtful.low >= known.high - known.low - 1e-9
    assert "textbook" in known.kept.basis


def test_what_an_interval_stands_on_is_said_in_percent() -> None:
    assert textbook(CORE).basis.endswith("an assumed error of the form of 6 %")
    assert replace(textbook(CORE), pairs=15).basis.startswith(
        "modelled: elasticities and uses with sharing fitted to 15"
    )


def test_two_that_want_the_core_get_half_each() -> None:
    slow = textbook(CORE).predict(workload("a"), workload("b"))
    assert slow.value == pytest.approx(0.5)
    [share] = slow.shares
    assert (share.left, share.taken) == (0.5, 0.5)


@pytest.mark.parametrize("cores", [0.1, 0.3, 0.5])
def test_what_is_within_an_even_share_loses_nothing(cores: float) -> None:
    assert textbook(CORE).predict(limited("a", cores), workload("greedy")).value == pytest.approx(0)
    # And the greedy one has the rest.
    assert textbook(CORE).predict(workload("greedy"), limited("a", cores)).value == pytest.approx(cores)


def test_what_is_not_used_cannot_be_missed() -> None:
    half_used = Workload(
        "a",
        {"cpu": sensitivity("cpu", 1.0, [ResponsePoint(0.4, math.log(0.4 / 0.6), 0.01)], 0.6)},
        {"cpu": Demand(0.6)},
    )
    assert textbook(CORE).predict(half_used, limited("b", 0.4)).value == pytest.approx(0)
    assert textbook(CORE).predict(half_used, limited("b", 0.5)).value == pytest.approx(1 - 0.5 / 0.6, abs=0.02)
    # Unless squeezing showed that it is: bursts use more than the mean.
    bursts = sensitivity("cpu", 1.0, [ResponsePoint(0.8, -0.1, 0.01), ResponsePoint(0.4, -0.6, 0.01)], 0.6)
    assert textbook(CORE).predict(replace(half_used, sensitivities={"cpu": bursts}), limited("b", 0.2)).value > 0.09


def test_bandwidth_is_shared_as_it_is_asked_for_and_memory_is_gone() -> None:
    def streams(name: str, amount: float, resource: str) -> Workload:
        return Workload(name, {resource: from_elasticity(resource, 100.0, 1.0)}, {resource: Demand(amount)})

    model = textbook({"dram_bandwidth": 100.0, "dram_capacity": 100.0})
    one, other = streams("a", 60, "dram_bandwidth"), streams("b", 90, "dram_bandwidth")
    assert model.predict(one, other).shares[0].left == pytest.approx(0.4)
    assert model.predict(one, streams("b", 30, "dram_bandwidth")).shares[0].left == pytest.approx(0.7)
    assert model.predict(streams("a", 60, "dram_capacity"), streams("b", 30, "dram_capacity")).shares[
        0
    ].left == pytest.approx(0.7)


def test_losses_of_resources_add_up() -> None:
    both = Workload(
        "a",
        {"cpu": from_elasticity("cpu", 1.0, 1.0), "disk": from_elasticity("disk", 10.0, 0.5)},
        {"cpu": Demand(1.0), "disk": Demand(10.0)},
    )
    neighbour = Workload("b", {}, {"cpu": Demand(1.0), "disk": Demand(10.0)})
    slow = textbook({"cpu": 1.0, "disk": 10.0}).predict(both, neighbour)
    assert slow.kept.value == pytest.approx(0.5 * 0.5**0.5)


def test_below_the_deepest_squeeze_it_is_said_to_be_extrapolated() -> None:
    shallow = Workload(
        "a", {"cpu": sensitivity("cpu", 1.0, [ResponsePoint(0.8, math.log(0.8), 0.01)])}, {"cpu": Demand(1)}
    )
    slow = textbook(CORE).predict(shallow, workload("b"))
    assert slow.kept.extrapolated
    assert "outside of what was measured" in slow.kept.basis
    assert slow.value == pytest.approx(0.5, abs=0.01)


def test_levels_that_contradict_each_other_are_made_to_fall() -> None:
    answer = sensitivity("cpu", 1.0, [ResponsePoint(0.8, -0.3, 0.02), ResponsePoint(0.4, -0.1, 0.02)])
    assert answer.points[0].log_kept == answer.points[1].log_kept == pytest.approx(-0.2)
    assert sensitivity("cpu", 1.0, [ResponsePoint(0.8, 0.1, 0.02)]).points[0].log_kept == 0


def test_what_was_not_squeezed_or_not_measured_is_refused() -> None:
    with pytest.raises(RackscopeError, match="sensitivity of a is not known"):
        textbook(CORE).predict(Workload("a", {}, {"cpu": Demand(1.0)}), workload("b"))
    with pytest.raises(RackscopeError, match="what b uses is not known"):
        textbook(CORE).predict(workload("a"), Workload("b", {}, {}))
    with pytest.raises(RackscopeError, match="no squeeze of cpu"):
        sensitivity("cpu", 1.0, [])
    with pytest.raises(RackscopeError, match="no squeeze of cpu"):
        sensitivity("cpu", math.nan, [ResponsePoint(0.5, -0.1, 0.1)])


# Fitted to pairs


def squeezed(name: str, cores: float, elasticity: float, random: np.random.Generator) -> Workload:
    """What squeezes of a workload alone on that core show."""
    points = [
        ResponsePoint(left, elasticity * math.log(min(1.0, left / cores)) + random.normal(0, 0.01), 0.01)
        for left in (0.8, 0.6, 0.4, 0.2)
    ]
    return Workload(name, {"cpu": sensitivity("cpu", 1.0, points)}, {"cpu": Demand(cores)})


#: Of a slice, after the core went from one workload to the other.
SWITCH_COST = 0.15


def simulate(seed: int, scatter: float = 0.03, noise: float = 0.015, count: int = 6) -> list[Side]:
    """Pairs that share a core slice by slice, each change of hands at a cost; what is seen of each has an error."""
    random = np.random.default_rng(seed)
    real, seen = [], []
    for number in range(count):
        cores, elasticity = random.choice([0.03, 0.3, 0.6, 1.0]), random.uniform(0.1, 1.0)
        real.append((cores, elasticity))
        seen.append(squeezed(f"w{number}", cores, elasticity, random))
    return [
        Side(seen[a], seen[b], observed(kept(*real[a], real[b][0], SWITCH_COST), scatter, noise, random), noise)
        for first, second in itertools.combinations(range(count), 2)
        for a, b in ((first, second), (second, first))
    ]


def observed(truth: float, scatter: float, noise: float, random: np.random.Generator) -> float:
    return float(math.log(truth) + random.normal(0, scatter) + random.normal(0, noise))


def test_pairs_teach_what_the_textbook_does_not_know() -> None:
    sides = simulate(1, scatter=0.005, noise=0.005)
    fitted = fit_colocation(sides, CORE)
    assert fitted.pairs == 15
    assert fitted.core_cost == pytest.approx(SWITCH_COST, abs=0.05)
    assert fitted.form_deviation < 0.05
    errors = [
        [abs(model.predict(side.workload, side.neighbour).kept.value / math.exp(side.log_kept) - 1) for side in sides]
        for model in (fitted, textbook(CORE))
    ]
    assert np.mean(errors[0]) < 0.5 * np.mean(errors[1])
    assert "15 measured pairs" in fitted.basis


def test_intervals_of_pairs_that_were_left_out_hold_nine_of_ten_times(trials: Trials) -> None:
    held: list[bool] = []
    wrong = safe = 0
    worlds = trials.count(5, 50)
    for seed in trials.seeds(worlds):
        result = validate_colocation(simulate(seed, count=5), CORE)
        held += [case.prediction.contains(case.measured) for case in result.validation.cases]
        safe += result.called_safe
        wrong += result.wrongly_safe
    assert len(held) == worlds * 20
    # Sides of one workload share its errors: the share scatters more than its count says.
    assert 0.86 <= np.mean(held) <= 0.97
    assert safe > 3
    assert wrong <= 0.1 * safe


def test_errors_are_those_of_pairs_that_were_not_seen() -> None:
    sides = simulate(3)
    left_out = validate_colocation(sides, CORE)
    assert len(left_out.sides) == 30
    fitted = fit_colocation(sides, CORE)
    in_sample = np.mean(
        [abs(fitted.predict(one.workload, one.neighbour).kept.value / math.exp(one.log_kept) - 1) for one in sides]
    )
    assert in_sample < left_out.validation.mean_error < 0.06


def test_safe_is_a_promise_on_the_upper_end() -> None:
    model = fit_colocation(simulate(2), CORE)
    slow = model.predict(limited("small", 0.1), limited("other", 0.1))
    assert slow.is_safe(slow.high + 0.001)
    assert not slow.is_safe(slow.high)
    assert slow.high > slow.value


def test_too_few_pairs_are_refused_and_validated_by_the_textbook() -> None:
    few = simulate(1, count=2)
    with pytest.raises(RackscopeError, match="1 measured pairs of at least 3"):
        fit_colocation(few, CORE)
    result = validate_colocation(few, CORE)
    assert len(result.validation.cases) == 2
    assert all("textbook" in case.prediction.basis for case in result.validation.cases)


def test_a_side_that_was_not_squeezed_is_counted_and_not_guessed() -> None:
    sides: Sequence[Side] = simulate(1, count=3)
    blind = [replace(sides[0], workload=replace(sides[0].workload, sensitivities={})), *sides[1:]]
    result = validate_colocation(blind, CORE)
    assert result.validation.refused == 1
    assert len(result.sides) == 5
