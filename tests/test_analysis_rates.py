"""Rates from counters: over windows, row by row, across resets, gaps and two sources of rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis_frames import START_NS, SyntheticRun, all_cores, core, derived, nanoseconds
from rackscope.analysis.quantities import QUANTITIES
from rackscope.analysis.rates import Samples
from rackscope.metrics import METRICS

READS = 'disk_reads_total{device="vda"}'
RATE = 'disk_reads_per_second{device="vda"}'


def frame(seconds: list[float], **columns: Any) -> pl.DataFrame:
    named = {READS if name == "reads" else name: values for name, values in columns.items()}
    return pl.DataFrame({"timestamp_ns": [nanoseconds(second) for second in seconds], **named})


def samples(table: pl.DataFrame, **options: Any) -> Samples:
    return Samples(table, origin_ns=START_NS, **options)


def rate_over(table: pl.DataFrame, *windows: tuple[float, float]) -> float | None:
    series = samples(table).find("disk_reads_per_second", device="vda")
    assert series is not None
    return series.over(windows).value


def test_every_quantity_is_made_of_metrics_that_exist() -> None:
    for quantity in QUANTITIES:
        for term in (*quantity.numerator, *quantity.denominator):
            assert term.metric in METRICS, f"{quantity.name} is made of {term.metric}"
            assert set(term.labels) | set(quantity.by) <= set(METRICS[term.metric].labels) | set(quantity.labels)
            assert term.metric.endswith("_total") == (quantity.kind in ("rate", "ratio"))


def test_a_rate_counts_the_share_of_a_step_that_lies_in_the_window() -> None:
    table = frame([0.0, 1.0, 2.0], reads=[0.0, 10.0, 40.0])
    assert rate_over(table, (0.0, 2.0)) == pytest.approx(20.0)
    assert rate_over(table, (0.5, 1.5)) == pytest.approx((5 + 15) / 1.0)
    assert rate_over(table, (0.0, 0.5), (1.5, 2.0)) == pytest.approx((5 + 15) / 1.0)


def test_a_counter_that_was_reset_gives_no_rate_there() -> None:
    table = frame([0.0, 1.0, 2.0, 3.0], reads=[100.0, 110.0, 5.0, 15.0])
    assert rate_over(table, (0.0, 3.0)) == pytest.approx(10.0)
    rows = derived(table)[RATE].to_list()
    assert rows == [None, pytest.approx(10.0), None, pytest.approx(10.0)]


def test_a_window_that_was_hardly_sampled_has_no_value() -> None:
    table = frame([0.0, 1.0], reads=[0.0, 10.0])
    series = samples(table).find("disk_reads_per_second")
    assert series is not None
    reading = series.over(((0.0, 10.0),))
    assert reading.value is None
    assert "1.0 of 10.0 s" in reading.reason


def test_a_gap_stays_a_gap_in_rows_but_its_growth_counts() -> None:
    times = [0.0, 0.1, 0.2, 0.3, 2.0, 2.1]
    table = frame(times, reads=[0.0, 1.0, 2.0, 3.0, 20.0, 21.0])
    assert derived(table)[RATE].to_list()[4] is None
    assert derived(table)[RATE].to_list()[5] == pytest.approx(10.0)
    assert rate_over(table, (0.0, 2.1)) == pytest.approx(10.0)


def test_missing_values_are_not_zero() -> None:
    table = frame([0.0, 1.0, 2.0, 3.0], reads=[0.0, None, 20.0, math.nan])
    rows = derived(table)[RATE].to_list()
    assert rows == [None, None, pytest.approx(10.0), None]
    unread = frame([0.0, 1.0], reads=[None, None])
    assert rate_over(unread.with_columns(pl.col(READS).cast(pl.Float64)), (0.0, 1.0)) is None


def test_two_sources_with_their_own_ticks_do_not_disturb_each_other() -> None:
    host = frame([0.0, 0.1, 0.2, 0.3], reads=[0.0, 1.0, 2.0, 3.0])
    load = frame([0.05, 0.25], load_errors_total=[100.0, 300.0], load_idle_ratio=[0.5, 0.25])
    both = pl.concat([host, load], how="diagonal").sample(fraction=1.0, shuffle=True, seed=1)
    table = derived(both)
    assert table["timestamp_ns"].is_sorted()
    assert len(table) == 6
    assert table[RATE].drop_nulls().to_list() == pytest.approx([10.0, 10.0, 10.0])
    assert table["load_errors_per_second"].drop_nulls().to_list() == pytest.approx([1000.0])
    assert table["load_idle_ratio"].drop_nulls().to_list() == [0.5, 0.25]


def test_a_ratio_of_nothing_is_unknown_and_not_zero() -> None:
    others = {"read_seconds": [0.0, 0.0, 0.015], "writes": [0.0, 0.0, 0.0], "write_seconds": [0.0, 0.0, 0.005]}
    columns = [pl.Series(f'disk_{name}_total{{device="vda"}}', values) for name, values in others.items()]
    table = frame([0.0, 1.0, 2.0], reads=[0.0, 0.0, 4.0]).with_columns(columns)
    series = samples(table).find("disk_latency_seconds")
    assert series is not None
    nothing = series.over(((0.0, 1.0),))
    assert nothing.value is None
    assert nothing.seconds == pytest.approx(1.0)
    assert series.over(((1.0, 2.0),)).value == pytest.approx(0.005)


def test_busy_time_leaves_steal_out() -> None:
    rates = core(0, user=0.3, steal=0.4)
    run = SyntheticRun(rates=rates | all_cores(rates, 1), levels={})
    table = samples(run.samples(), core_sets={"system": (0,)})
    window = ((1.0, 9.0),)
    for name in ("cpu_busy_ratio", "cpu_core_busy_ratio", "cpu_set_busy_ratio"):
        series = table.find(name)
        assert series is not None
        assert series.over(window).value == pytest.approx(0.5), name
    steal = table.find("cpu_ratio", state="steal")
    assert steal is not None
    assert steal.over(window).value == pytest.approx(0.4)


def test_a_set_of_cores_needs_all_of_its_cores() -> None:
    rates = core(0, user=0.2) | core(1, user=0.6)
    table = samples(SyntheticRun(rates=rates, levels={}).samples(), core_sets={"system": (0, 1), "client": (1, 2)})
    both = table.find("cpu_set_busy_ratio", set="system")
    assert both is not None
    assert both.over(((0.0, 9.0),)).value == pytest.approx(0.4)
    assert table.find("cpu_set_busy_ratio", set="client") is None


def test_states_add_up_to_one() -> None:
    rates = core(0, user=0.2, system=0.3, iowait=0.1, steal=0.05)
    table = samples(SyntheticRun(rates=rates | all_cores(rates, 1), levels={}).samples())
    values = [series.over(((0.0, 9.0),)).value or 0.0 for series in table.find_all("cpu_ratio")]
    assert sum(values) == pytest.approx(1.0)


def test_levels_are_averaged_over_the_rows_that_end_in_the_window() -> None:
    table = frame([0.0, 1.0, 2.0, 3.0], run_queue_length=[100.0, 2.0, 4.0, 100.0])
    series = samples(table).find("run_queue_tasks")
    assert series is not None
    reading = series.over(((0.0, 2.0),))
    assert (reading.value, reading.lowest, reading.highest, reading.last) == (3.0, 2.0, 4.0, 4.0)


def test_a_frame_without_anything_derives_nothing() -> None:
    assert derived(pl.DataFrame()).columns == ["timestamp_ns"]
    assert samples(pl.DataFrame()).series == {}
    odd = pl.DataFrame({"timestamp_ns": [1, None, 2], "not a metric {": [1.0, 2.0, 3.0]})
    assert len(derived(odd)) == 2


steps = st.lists(st.floats(0.0, 1e6), min_size=3, max_size=40)


@given(steps, st.lists(st.floats(0.01, 0.5), min_size=3, max_size=40), st.data())
def test_windows_that_share_a_phase_share_its_growth(
    growth: list[float], gaps: list[float], data: st.DataObject
) -> None:
    count = min(len(growth), len(gaps))
    times = list(np.cumsum([0.0, *gaps[:count]]))
    table = frame(times, reads=list(np.cumsum([0.0, *growth[:count]])))
    series = samples(table, minimum_coverage=0.0).find("disk_reads_per_second")
    assert series is not None
    middle = data.draw(st.floats(0.1, 0.9)) * times[-1]
    whole = series.growth(((0.0, times[-1]),))
    first, second = series.growth(((0.0, middle),)), series.growth(((middle, times[-1]),))
    assert whole is not None
    assert first is not None
    assert second is not None
    assert first + second == pytest.approx(whole, rel=1e-6, abs=1e-6)


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e12)), min_size=2, max_size=40))
def test_rates_are_never_negative(values: list[float | None]) -> None:
    table = pl.DataFrame(
        {"timestamp_ns": [nanoseconds(place / 10) for place in range(len(values))], READS: values},
        schema_overrides={READS: pl.Float64},
    )
    rows = derived(table)
    if RATE in rows.columns:
        assert all(value >= 0 for value in rows[RATE].drop_nulls())
    rate = rate_over(table, (0.0, len(values) / 10))
    assert rate is None or rate >= 0
