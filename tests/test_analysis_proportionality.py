"""Energy proportionality and performance per watt, against curves whose answer is known."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.analysis.proportionality import (
    PerformancePoint,
    performance_per_watt,
    proportionality,
    proportionality_of,
)
from rackscope.errors import RackscopeError
from rackscope.runs.energy import performance_per_watt_chart

TENTHS = [step / 10 for step in range(11)]


def test_a_proportional_server_and_a_constant_one() -> None:
    proportional = proportionality([0.0, 0.5, 1.0], [1e-9, 50.0, 100.0])
    assert proportional.energy_proportionality == pytest.approx(1.0)
    assert proportional.dynamic_range == pytest.approx(1.0)
    constant = proportionality([0.0, 0.5, 1.0], [100.0, 100.0, 100.0])
    assert (constant.energy_proportionality, constant.dynamic_range) == (0.0, 0.0)
    assert constant.best_load == 1.0


def test_a_published_server() -> None:
    # SPECpower_ssj2008 20110406-00368: idle is 26 % of peak, and the curve bends above the straight line.
    watts = [58.4, 98, 109, 118, 128, 140, 153, 170, 189, 205, 222]
    found = proportionality(TENTHS, watts)
    assert found.dynamic_range == pytest.approx(0.737, abs=0.001)
    assert found.energy_proportionality == pytest.approx(0.69, abs=0.005)
    assert found.gaps[0] == pytest.approx(58.4 / 222)
    assert found.gaps[-1] == pytest.approx(0.0)


@given(st.floats(0.0, 0.95))
def test_a_straight_line_is_as_proportional_as_its_range(idle: float) -> None:
    watts = [max(100 * (idle + (1 - idle) * load), 1e-6) for load in TENTHS]
    found = proportionality(TENTHS, watts)
    assert found.energy_proportionality == pytest.approx(1 - idle, abs=1e-6)


def test_repeated_loads_are_averaged_in_any_order() -> None:
    one = proportionality([1.0, 0.0, 0.5, 0.5], [100.0, 20.0, 70.0, 50.0])
    assert one.loads == (0.0, 0.5, 1.0)
    assert one.watts == (20.0, 60.0, 100.0)


@pytest.mark.parametrize(
    ("loads", "watts", "said"),
    [
        ([0.0, 1.0], [20.0, 100.0], "not at 0 %, 100 %"),
        ([0.2, 0.5, 1.0], [20.0, 50.0, 100.0], "needs watts when idle"),
        ([0.0, 50.0, 100.0], [20.0, 50.0, 100.0], "not a fraction of the highest"),
        ([0.0, 0.5, 1.0, 1.2], [20.0, 50.0, 100.0, 110.0], "a load of 1.2 is not a fraction of the highest"),
        ([-0.1, 0.0, 0.5, 1.0], [20.0, 20.0, 50.0, 100.0], "a load of -0.1 is not a fraction of the highest"),
        ([0.0, 0.5, 1.0], [20.0, 0.0, 100.0], "not above zero"),
        ([0.0, 0.5], [20.0], "2 loads and 1 watts"),
    ],
)
def test_too_little_is_refused(loads: list[float], watts: list[float], said: str) -> None:
    with pytest.raises(RackscopeError, match=said):
        proportionality(loads, watts)


def point(run: str, rate: float, watts: float, hertz: float | None = None, scope: str = "server") -> PerformancePoint:
    efficiency = mean_interval([rate / watts * factor for factor in (0.99, 1.0, 1.01)])
    return PerformancePoint(run, "measure", "metered", scope, rate, mean_interval([watts] * 3), efficiency, hertz)


def test_performance_per_watt_over_load_and_clock() -> None:
    frame = performance_per_watt(
        [point("a", 50.0, 80.0, 2e9), point("b", 100.0, 100.0, 2.001e9), point("c", 130.0, 150.0, 3e9)]
    )
    assert frame["idle_watts"].dtype == pl.Float64
    assert frame["repetitions"].to_list() == [3, 3, 3]
    assert frame["run"].to_list() == ["a", "b", "c"]
    # Loads are shares of the highest at the same clock.
    assert frame["load_ratio"].to_list() == pytest.approx([0.5, 1.0, 1.0])
    assert frame["operations_per_joule"].to_list() == pytest.approx([0.625, 1.0, 130 / 150])
    assert (frame["operations_per_joule_low"] < frame["operations_per_joule"]).all()


def test_proportionality_of_runs_at_several_rates() -> None:
    points = [
        replace(point(name, rate, watts), idle_watts=idle)
        for name, rate, watts, idle in (("a", 50.0, 60.0, 20.0), ("b", 100.0, 100.0, None), ("c", 25.0, 40.0, 20.0))
    ]
    found = proportionality_of(performance_per_watt(points))
    assert found.loads == (0.0, 0.25, 0.5, 1.0)
    assert found.energy_proportionality == pytest.approx(0.8)
    with pytest.raises(RackscopeError, match="no run was metered while its host was idle"):
        proportionality_of(performance_per_watt([replace(one, idle_watts=None) for one in points]))


def test_watts_of_different_things_are_not_set_beside_each_other() -> None:
    with pytest.raises(RackscopeError, match="watts are of different things: package-0; server"):
        performance_per_watt([point("a", 1.0, 2.0), point("b", 1.0, 2.0, scope="package-0")])


def test_the_chart_has_a_point_a_run_with_its_interval() -> None:
    single = Interval(0.9, None, None, 0.95, 1)
    points = [point("a", 50.0, 80.0, 2e9), point("b", 100.0, 100.0, 3e9)]
    points.append(PerformancePoint("c", "measure", "metered", "server", 90.0, single, single, 2.5e9))
    chart = performance_per_watt_chart(performance_per_watt(points), "frequency_hertz")
    [series] = chart.series
    assert series.x == [2e9, 2.5e9, 3e9]
    assert series.low[1] == series.y[1] == series.high[1] == 0.9
    assert series.low[0] is not None and series.y[0] is not None and series.low[0] < series.y[0]
    with pytest.raises(RackscopeError, match="clock was not sampled"):
        performance_per_watt_chart(performance_per_watt([point("a", 1.0, 2.0)]), "frequency_hertz")
