"""H2 histograms: the layout of the Rust crate, and quantiles within its relative error."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis_frames import bucket_index, histogram_of
from rackscope.analysis.histograms import Histogram, select_histogram

layouts = st.integers(0, 12).flatmap(lambda power: st.tuples(st.just(power), st.integers(power + 1, 64)))


def bounds_of(power: int, largest: int, index: int) -> tuple[int, int]:
    lower, upper = Histogram.of(power, largest, [index], [1]).bounds()
    return int(lower[0]), int(upper[0])


@pytest.mark.parametrize(("layout", "total"), [((2, 64), 252), ((7, 64), 7424), ((14, 64), 835_584), ((2, 4), 12)])
def test_bucket_totals_are_those_of_the_crate(layout: tuple[int, int], total: int) -> None:
    assert Histogram.of(*layout, [], []).total_buckets == total


def test_bounds_are_those_of_the_crate() -> None:
    # By index_to_lower_bound and index_to_upper_bound of histogram 1.6's Config.
    known = {0: (0, 0), 255: (255, 255), 256: (256, 257), 383: (510, 511), 384: (512, 515), 1024: (16384, 16511)}
    assert {index: bounds_of(7, 64, index) for index in known} == known
    assert bounds_of(7, 64, 7423)[1] == 2**64 - 1
    assert bounds_of(2, 4, 11) == (14, 15)


@given(layouts, st.data())
def test_a_value_lies_in_its_bucket_and_buckets_join(layout: tuple[int, int], data: st.DataObject) -> None:
    power, largest = layout
    value = data.draw(st.integers(0, 2**largest - 1))
    index = bucket_index(power, value)
    lower, upper = bounds_of(power, largest, index)
    assert lower <= value <= upper
    assert (upper - lower) <= lower * 2.0**-power
    if index > 0:
        assert bounds_of(power, largest, index - 1)[1] == lower - 1


@given(
    st.lists(st.integers(0, 2**40 - 1), min_size=1, max_size=200),
    st.floats(0, 1),
    st.integers(1, 10),
)
def test_quantiles_are_within_the_relative_error(values: list[int], quantile: float, power: int) -> None:
    histogram = histogram_of(power, 40, values)
    exact = sorted(values)[max(1, math.ceil(round(quantile * len(values), 6))) - 1]
    estimate = histogram.quantile_seconds(quantile)
    assert estimate is not None
    nanoseconds = estimate * 1e9
    assert exact - 1e-3 <= nanoseconds * (1 + 1e-12) + 1e-3
    assert nanoseconds <= exact * (1 + 2.0**-power) * (1 + 1e-12) + 1e-3


@given(st.lists(st.integers(0, 2**40 - 1), min_size=1, max_size=200), st.integers(2, 10))
def test_the_mean_is_within_half_of_it(values: list[int], power: int) -> None:
    estimate = histogram_of(power, 40, values).mean_seconds()
    assert estimate is not None
    exact = math.fsum(values) / len(values)
    assert abs(estimate * 1e9 - exact) <= exact * 2.0 ** -(power + 1) + 1e-3


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50), st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_merging_is_recording_both(first: list[int], second: list[int]) -> None:
    merged = histogram_of(7, 32, first).merge(histogram_of(7, 32, second))
    together = histogram_of(7, 32, first + second)
    assert merged.index.tolist() == together.index.tolist()
    assert merged.count.tolist() == together.count.tolist()


def test_an_empty_histogram_knows_nothing() -> None:
    empty = Histogram.of(7, 64, [], [])
    assert empty.quantile_seconds(0.5) is None
    assert empty.mean_seconds() is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((7, 65, [], []), "cannot be"),
        ((9, 9, [], []), "cannot be"),
        ((2, 4, [12], [1]), "beyond the 12"),
        ((2, 4, [1, 1], [1, 1]), "do not rise"),
        ((2, 4, [1, 2], [1]), "came with"),
    ],
)
def test_what_is_no_histogram_is_refused(arguments: tuple[int, int, list[int], list[int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Histogram.of(*arguments)


def test_quantiles_outside_of_their_range_and_other_layouts_are_refused() -> None:
    histogram = Histogram.of(7, 64, [1], [1])
    with pytest.raises(ValueError, match="between 0 and 1"):
        histogram.quantile_seconds(1.5)
    with pytest.raises(ValueError, match="do not merge"):
        histogram.merge(Histogram.of(6, 64, [1], [1]))


def latency_frame() -> pl.DataFrame:
    rows = [
        ("measure", 1, "read", "response", [100, 200], [3, 1]),
        ("measure", 2, "read", "response", [200, 300], [2, 2]),
        ("measure", 1, "update", "response", [400], [4]),
        ("measure", 1, "read", "service", [50], [4]),
        ("load", None, "insert", "response", [500], [9]),
    ]
    return pl.DataFrame(
        [
            {
                "phase": phase, "repetition": repetition, "operation": operation, "kind": kind,
                "grouping_power": 7, "max_value_power": 64, "index": index, "count": count,
            }
            for phase, repetition, operation, kind, index, count in rows
        ],
        schema_overrides={"grouping_power": pl.UInt8, "max_value_power": pl.UInt8,
                          "index": pl.List(pl.UInt32), "count": pl.List(pl.UInt64)},
    )  # fmt: skip


def test_rows_of_the_latency_frame_are_chosen_and_merged() -> None:
    frame = latency_frame()
    every = select_histogram(frame, phase="measure")
    assert every is not None
    assert (every.total, every.index.tolist()) == (12, [100, 200, 300, 400])
    one = select_histogram(frame, phase="measure", operation="read", repetition=2)
    assert one is not None
    assert one.count.tolist() == [2, 2]
    service = select_histogram(frame, phase="measure", kind="service")
    assert service is not None
    assert service.total == 4
    assert select_histogram(frame, phase="other") is None
    assert select_histogram(pl.DataFrame(), phase="measure") is None


def test_a_damaged_row_is_named() -> None:
    frame = latency_frame().with_columns(pl.lit(70).cast(pl.UInt8).alias("max_value_power"))
    with pytest.raises(ValueError, match="measure, repetition 1, read, response"):
        select_histogram(frame, phase="measure")
