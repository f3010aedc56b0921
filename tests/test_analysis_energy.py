"""Watts and joules from meters whose truth is stated: constant, ramps, gaps, broken meters, nested domains."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis_frames import START_NS
from energy_runs import Metered, constant, counter, gauge, ramp, stuck
from rackscope.analysis.characterisation import characterise
from rackscope.analysis.energy import HostEnergy, PhaseEnergy, RunEnergy, measure_energy, results_with_energy
from rackscope.analysis.power_trace import PowerTrace
from rackscope.analysis.rates import Samples

PACKAGE, DRAM, SERVER = counter("package-0"), counter("dram-0"), gauge("server")


def energy_of(metered: Metered) -> RunEnergy:
    energy = measure_energy(metered.run())
    assert energy is not None
    return energy


def measured(energy: RunEnergy) -> PhaseEnergy:
    phase = energy.phase("measure")
    assert phase is not None
    return phase


def host(energy: RunEnergy) -> HostEnergy:
    found = measured(energy).host
    assert found is not None
    return found


def warnings_of(metered: Metered) -> dict[str, str]:
    run = metered.run()
    found = characterise(run.facts, metered.samples(), metered.results(), pl.DataFrame())
    return {one.code: f"{one.sentence} {one.advice}" for one in found.warnings}


@pytest.mark.parametrize("column", [SERVER, counter("server", "file")])
def test_constant_power_is_itself_whatever_meters_it(column: str) -> None:
    energy = energy_of(Metered({column: constant(120.0)}))
    found = host(energy)
    assert found.mean_watts.estimate == pytest.approx(120.0)
    assert (found.mean_watts.low, found.mean_watts.high) == pytest.approx((120.0, 120.0))
    assert found.energy_joules == pytest.approx(3 * 4 * 120.0)
    assert found.energy_joules_per_operation is not None
    assert found.energy_joules_per_operation.estimate == pytest.approx(120 * 4 / 8_000)
    assert found.operations_per_joule is not None
    assert found.operations_per_joule.estimate == pytest.approx(8_000 / 480)


@pytest.mark.parametrize("column", [SERVER, counter("server", "file")])
def test_a_ramp_is_integrated_exactly_over_edges_that_no_tick_meets(column: str) -> None:
    energy = energy_of(Metered({column: ramp(100.0, 5.0)}))
    watts = [one.mean_watts for one in host(energy).repetitions]
    # The middles of the repetitions are 4, 8 and 12 seconds after the first phase began.
    assert watts == pytest.approx([120.0, 140.0, 160.0])


def test_intervals_are_over_repetitions_and_not_over_samples() -> None:
    def watts(seconds: np.ndarray) -> np.ndarray:
        # 0.4 W of noise from tick to tick says nothing; three repetitions of 100, 110 and 120 W do.
        level = np.select([seconds <= 6, seconds <= 10], [100.0, 110.0], 120.0)
        return level + 0.4 * np.sign(np.sin(seconds * 31))

    found = host(energy_of(Metered({SERVER: watts})))
    assert found.mean_watts.count == 3
    assert found.mean_watts.estimate == pytest.approx(110.0, rel=0.01)
    # Student's t of three values 10 apart: 4.30 x 10 / sqrt(3).
    assert found.mean_watts.high is not None
    assert found.mean_watts.high - found.mean_watts.estimate == pytest.approx(24.8, rel=0.05)


def test_a_discarded_repetition_does_not_count() -> None:
    found = host(energy_of(Metered({SERVER: ramp(100.0, 5.0)}, discarded=frozenset({3}))))
    assert [one.repetition for one in found.repetitions] == [1, 2]
    assert found.mean_watts.estimate == pytest.approx(130.0)


def test_a_counter_that_starts_late_leaves_out_what_it_missed() -> None:
    late = Metered({PACKAGE: constant(60.0)}, unread={PACKAGE: lambda seconds: seconds < 4.0})
    found = host(energy_of(late))
    assert [one.mean_watts for one in found.repetitions] == [None, pytest.approx(60.0), pytest.approx(60.0)]
    assert found.energy_joules is None
    assert found.mean_watts.count == 2
    assert "was read in 2.0 of 4.0 s only" in found.reason
    assert "2 of 3 repetitions" in warnings_of(late)["power_gaps"]


def test_a_gap_within_a_phase_is_known_to_a_counter_and_not_to_a_gauge() -> None:
    def gap(seconds: np.ndarray) -> np.ndarray:
        return (seconds > 3.0) & (seconds < 5.0)

    both = Metered(
        {PACKAGE: ramp(50.0, 2.0), SERVER: ramp(100.0, 2.0)},
        unread={PACKAGE: gap, SERVER: gap},
    )
    energy = energy_of(both)
    package = next(one for one in measured(energy).domains if one.domain == "package-0")
    assert package.energy_joules == pytest.approx(sum(4 * (50 + 2 * middle) for middle in (4, 8, 12)))
    assert [one.mean_watts is None for one in host(energy).repetitions] == [True, False, False]


def test_a_gap_over_the_edge_of_a_phase_is_known_to_neither() -> None:
    edge = Metered({PACKAGE: constant(50.0)}, unread={PACKAGE: lambda seconds: (seconds > 5.0) & (seconds < 7.0)})
    assert [one.mean_watts is None for one in host(energy_of(edge)).repetitions] == [True, True, False]


def test_a_single_missed_tick_costs_nothing() -> None:
    missed = Metered({SERVER: constant(100.0)}, unread={SERVER: lambda seconds: abs(seconds - 4.03) < 0.01})
    assert host(energy_of(missed)).energy_joules == pytest.approx(1200.0)


def test_a_meter_that_answers_once_a_second_suffices() -> None:
    slow = Metered(
        {SERVER: ramp(100.0, 5.0)},
        unread={SERVER: lambda seconds: np.arange(len(seconds)) % 10 != 0},
        after=0.2,
    )
    assert [one.mean_watts for one in host(energy_of(slow)).repetitions] == pytest.approx(
        [120.0, 140.0, 160.0], rel=0.01
    )


def test_a_counter_that_moves_once_a_second_is_not_cut_into_steps() -> None:
    metered = Metered({PACKAGE: constant(60.0)}, phases=(("measure", "measure", 1, 3.5, 7_000),))
    frame = metered.samples()
    held = frame[PACKAGE].gather([10 * (row // 10) for row in range(frame.height)])
    run = replace(metered.run(), samples=Samples(frame.with_columns(held.alias(PACKAGE)), origin_ns=START_NS))
    energy = measure_energy(run)
    assert energy is not None
    assert host(energy).mean_watts.estimate == pytest.approx(60.0)


def test_a_counter_that_stops_half_way_is_not_known_from_there_on() -> None:
    metered = Metered({PACKAGE: constant(60.0)})
    frame = metered.samples()
    stopped = frame[PACKAGE].gather([min(row, 80) for row in range(frame.height)])
    run = replace(metered.run(), samples=Samples(frame.with_columns(stopped.alias(PACKAGE)), origin_ns=START_NS))
    energy = measure_energy(run)
    assert energy is not None
    assert [one.mean_watts is None for one in host(energy).repetitions] == [True, True, True]
    assert "was read in" in host(energy).reason


def test_a_counter_that_was_reset_gives_no_negative_power() -> None:
    metered = Metered({PACKAGE: constant(50.0)})
    frame = metered.samples().with_columns(
        pl.when(pl.int_range(pl.len()) >= 70).then(pl.col(PACKAGE) - 300.0).otherwise(pl.col(PACKAGE)).alias(PACKAGE)
    )
    run = replace(metered.run(), samples=Samples(frame, origin_ns=START_NS))
    energy = measure_energy(run)
    assert energy is not None
    # One step of a tenth of a second of four is lost, which is within what may be.
    assert host(energy).mean_watts.estimate == pytest.approx(50.0)


def test_nested_domains_are_never_added_twice() -> None:
    parts = {
        counter("package-0"): constant(60.0),
        counter("package-1"): constant(50.0),
        counter("core-0"): constant(40.0),
        counter("dram-0"): constant(5.0),
        gauge("gpu-0", "nvml"): constant(30.0),
    }
    energy = energy_of(Metered(parts))
    assert energy.scope is not None
    assert energy.scope.label == "package-0 + package-1 + dram-0 + gpu-0"
    assert "core-0" in {one.domain for one in measured(energy).domains}
    assert host(energy).mean_watts.estimate == pytest.approx(145.0)
    assert "losses of power supplies" in energy.scope.leaves_out

    energy = energy_of(Metered({**parts, counter("psys"): constant(180.0)}))
    assert host(energy).mean_watts.estimate == pytest.approx(180.0)
    energy = energy_of(Metered({**parts, counter("psys"): constant(180.0), SERVER: constant(230.0)}))
    assert host(energy).mean_watts.estimate == pytest.approx(230.0)
    assert energy.scope is not None and energy.scope.kind == "server"


def test_both_outlets_of_a_server_make_it() -> None:
    energy = energy_of(Metered({gauge("outlet-3", "snmp"): constant(90.0), gauge("outlet-4", "snmp"): constant(70.0)}))
    assert host(energy).mean_watts.estimate == pytest.approx(160.0)
    assert energy.scope is not None and "this server and nothing else" in energy.scope.sentence


def test_one_broken_package_does_not_let_the_other_pass_for_the_host() -> None:
    metered = Metered({counter("package-0"): constant(60.0), counter("package-1"): constant(0.0)})
    energy = energy_of(metered)
    assert energy.scope is None
    assert measured(energy).host is None
    assert measured(energy).domains[0].mean_watts.estimate == pytest.approx(60.0)
    assert "package-1 by rapl_perf did not change" in warnings_of(metered)["power_stale"]


def test_of_two_meters_the_broken_one_is_left_out_and_named() -> None:
    powercap, perf = counter("package-0", "rapl_powercap"), counter("package-0", "rapl_perf")
    metered = Metered({perf: constant(-3.0), powercap: constant(62.0)})
    energy = energy_of(metered)
    assert [(one.domain, one.meter) for one in measured(energy).domains] == [("package-0", "rapl_powercap")]
    assert host(energy).mean_watts.estimate == pytest.approx(62.0)


@pytest.mark.parametrize(
    ("watts", "code"), [(-5.0, "power_implausible"), (2e6, "power_implausible"), (0.0, "power_stale")]
)
def test_what_cannot_be_is_left_out_and_said(watts: float, code: str) -> None:
    metered = Metered({SERVER: constant(watts), PACKAGE: constant(50.0)})
    energy = energy_of(metered)
    assert energy.scope is not None and energy.scope.label == "package-0"
    assert "server by ipmi_dcmi" in warnings_of(metered)[code].lower()


def test_a_gauge_that_is_stuck_while_the_cpu_is_not() -> None:
    assert "power_stale" in warnings_of(Metered({SERVER: stuck(131.0)}))
    idle_throughout = Metered({SERVER: stuck(131.0)}, busy=0.05)
    assert "power_stale" not in warnings_of(idle_throughout)


def test_meters_that_contradict_each_other_are_both_shown_and_said() -> None:
    two = Metered(
        {counter("package-0", "rapl_perf"): constant(60.0), counter("package-0", "rapl_powercap"): constant(90.0)}
    )
    assert "33 % apart" in warnings_of(two)["power_contradiction"]
    inside = Metered({SERVER: constant(50.0), PACKAGE: constant(80.0)})
    assert "package-0 took 80.0 W, and server, which holds that, 50.0 W" in warnings_of(inside)["power_contradiction"]
    assert "power_contradiction" not in warnings_of(Metered({SERVER: constant(100.0), PACKAGE: constant(80.0)}))


TWO = {gauge("server", "ipmi_dcmi"): constant(60.0), gauge("server", "hwmon"): constant(90.0)}


@pytest.mark.parametrize("gone", TWO)
def test_a_meter_that_mostly_said_nothing_contradicts_nobody(gone: str) -> None:
    assert "power_contradiction" in warnings_of(Metered(TWO))
    silent = Metered(TWO, unread={gone: lambda seconds: (seconds > -2.5) & (seconds < 14.4)})
    assert "power_contradiction" not in warnings_of(silent)


def step(idle: float, load: float) -> object:
    return lambda seconds: np.where((seconds > 0) & (seconds <= 14.0), load, idle) * (1 + 1e-6 * np.sin(37 * seconds))


def test_idle_is_what_was_before_the_load() -> None:
    energy = energy_of(Metered({SERVER: step(80.0, 140.0)}))
    assert energy.idle is not None
    assert (energy.idle.basis, energy.idle.is_idle) == ("before_load", True)
    assert energy.idle.watts == pytest.approx(80.0, rel=0.01)
    found = host(energy)
    assert found.dynamic_watts is not None and found.dynamic_joules_per_operation is not None
    assert found.dynamic_watts.estimate == pytest.approx(60.0, rel=0.02)
    assert found.dynamic_joules_per_operation.estimate == pytest.approx(60 * 4 / 8_000, rel=0.02)


def test_an_idle_phase_serves_where_nothing_was_before() -> None:
    phases = (("idle", "warm-up", None, 2.0, 0), ("measure", "measure", 1, 4.0, 8_000))
    energy = energy_of(Metered({SERVER: ramp(100.0, 1.0)}, phases=phases, before=0.5))
    assert energy.idle is not None
    assert energy.idle.basis == "idle_phase"
    assert energy.idle.watts == pytest.approx(101.0)


def test_a_host_that_never_idled_has_only_a_bound() -> None:
    energy = energy_of(Metered({SERVER: ramp(150.0, -1.0)}, busy=0.7, busy_before=0.6))
    assert energy.idle is not None
    assert (energy.idle.basis, energy.idle.is_idle) == ("lowest_second", False)
    assert energy.idle.watts == pytest.approx(136.0, abs=1.0)


def test_the_quietest_second_is_named_so() -> None:
    energy = energy_of(Metered({SERVER: step(80.0, 140.0)}, before=0.5, after=3.0))
    assert energy.idle is not None
    assert energy.idle.basis == "quietest_second"
    assert energy.idle.watts == pytest.approx(80.0, rel=0.01)


def test_a_run_without_power_has_nothing_to_say() -> None:
    metered = Metered({})
    run = metered.run()
    assert measure_energy(run) is None
    assert results_with_energy(run, metered.results()).equals(metered.results())
    found = characterise(run.facts, metered.samples(), metered.results(), pl.DataFrame())
    assert not [one for one in found.warnings if one.code.startswith("power")]
    assert not any("watts" in name for phase in found.phases for name in phase.figures)


def test_what_was_found_says_what_it_stands_on() -> None:
    metered = Metered({SERVER: step(80.0, 140.0)})
    found = characterise(metered.facts(), metered.samples(), metered.results(), pl.DataFrame())
    [finding] = [one for one in found.findings if "joule" in one.sentence]
    assert "An operation takes 69.9 mJ at 140 W (server)" in finding.sentence
    assert "58 % of it is what the host takes when idle (80.5 W)" in finding.sentence
    assert finding.evidence[0].columns == (SERVER,)
    [phase] = [one for one in found.phases if one.kind == "measure"]
    assert phase.figures["mean_watts"] == pytest.approx(140.0, rel=0.01)


def test_results_carry_joules_row_by_row() -> None:
    metered = Metered({SERVER: ramp(100.0, 5.0)}, unread={SERVER: lambda seconds: seconds > 9.0})
    frame = results_with_energy(metered.run(), metered.results())
    assert frame["mean_watts"].to_list() == [pytest.approx(105.0), pytest.approx(120.0), None, None]
    assert frame["energy_joules"].to_list()[1] == pytest.approx(480.0)
    assert frame["operations_per_joule"].to_list()[1] == pytest.approx(8_000 / 480)


def test_json_has_no_number_that_is_none() -> None:
    energy = energy_of(Metered({SERVER: constant(100.0)}, unread={SERVER: lambda seconds: seconds > 3.0}))
    content = energy.to_dict()
    assert content["source"] == "metered"
    phase = next(one for one in content["phases"] if one["kind"] == "measure")
    assert phase["host"]["mean_watts"]["estimate"] is None
    assert "nan" not in str(content).lower()


LEVELS = st.lists(st.floats(1.0, 500.0), min_size=30, max_size=60)


def trace_of(levels: list[float], *, counts: bool) -> PowerTrace:
    times = np.arange(len(levels)) * 0.1
    values = np.cumsum(levels) * 0.1 if counts else np.asarray(levels)
    return PowerTrace("server", "file", "column", times, values, counts=counts)


@settings(max_examples=60, deadline=None)
@given(LEVELS, st.lists(st.floats(0.0, 2.9), min_size=3, max_size=6), st.booleans())
def test_energy_is_additive_over_splits_of_a_phase(levels: list[float], moments: list[float], counts: bool) -> None:
    trace = trace_of(levels, counts=counts)
    edges = sorted(moments)
    whole = trace.over(edges[0], edges[-1])
    parts = [trace.over(start, end) for start, end in itertools.pairwise(edges)]
    assert math.isclose(sum(one.joules for one in parts), whole.joules, rel_tol=1e-9, abs_tol=1e-9)
    assert math.isclose(sum(one.seconds for one in parts), whole.seconds, rel_tol=1e-9, abs_tol=1e-9)


@settings(max_examples=60, deadline=None)
@given(LEVELS, st.floats(0.01, 100.0), st.booleans())
def test_scaling_watts_scales_joules(levels: list[float], factor: float, counts: bool) -> None:
    one = trace_of(levels, counts=counts).over(0.33, 2.57)
    other = trace_of([factor * level for level in levels], counts=counts).over(0.33, 2.57)
    assert math.isclose(other.joules, factor * one.joules, rel_tol=1e-9)
    assert one.seconds == other.seconds


@settings(max_examples=60, deadline=None)
@given(LEVELS, st.booleans())
def test_mean_watts_lie_between_the_lowest_and_the_highest(levels: list[float], counts: bool) -> None:
    watts = trace_of(levels, counts=counts).over(0.05, 2.05).watts
    assert watts is not None
    assert min(levels) * (1 - 1e-9) <= watts <= max(levels) * (1 + 1e-9)


def test_what_is_drawn_of_a_counter_is_the_power_of_the_step_around_each_moment() -> None:
    times = np.array([0.0, 0.25, 0.5, 1.0, 1.25])
    trace = PowerTrace("server", "file", "column", times, np.array([0.0, 10.0, 30.0, 50.0, 50.0]), counts=True)
    drawn = trace.watts_at(np.array([-0.1, 0.0, 0.1, 0.25, 0.3, 0.75, 1.0, 1.1, 2.0]))
    # Nobody knows what was before the first reading, nor whether it still counts after the last that moved.
    np.testing.assert_allclose(drawn, [np.nan, np.nan, 40.0, 40.0, 80.0, 40.0, 40.0, np.nan, np.nan])


def test_what_is_drawn_of_a_slow_counter_has_no_teeth() -> None:
    times = np.arange(60) * 0.1
    slow = np.repeat(np.arange(6) * 50.0, 10)
    trace = PowerTrace("server", "file", "column", times, slow, counts=True)
    drawn = trace.watts_at(times)
    assert np.nanmin(drawn) == pytest.approx(50.0)
    assert np.nanmax(drawn) == pytest.approx(50.0)
    assert np.isfinite(drawn).sum() == 50


NUMBERS = st.floats(allow_nan=True, allow_infinity=False, width=32) | st.floats(0.0, 500.0)
COLUMNS = st.sampled_from(
    [PACKAGE, DRAM, SERVER, counter("core-0"), counter("psys"), gauge("3rd outlet", "snmp"), gauge('a"b\\', "hwmon")]
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(COLUMNS, st.lists(NUMBERS, min_size=20, max_size=20), max_size=4), st.randoms())
def test_whatever_meters_say_nothing_breaks_and_no_number_is_made_up(columns: dict, shuffle) -> None:
    metered = Metered({})
    times = sorted(shuffle.choices(range(-3, 15), k=20))
    frame = pl.DataFrame({"timestamp_ns": [START_NS + time * 10**9 for time in times], **columns})
    run = replace(metered.run(), samples=Samples(frame, origin_ns=START_NS))
    energy = measure_energy(run)
    if energy is None:
        return
    highest = run.thresholds.limit("power.highest_watts")
    for phase in energy.phases:
        for domain in phase.domains:
            watts = domain.mean_watts.estimate
            assert math.isnan(watts) or 0 <= watts <= highest * 1.001
            assert not math.isnan(watts) or domain.reason
    characterise(run.facts, frame, metered.results(), pl.DataFrame())
