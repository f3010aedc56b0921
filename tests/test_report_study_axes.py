"""Ticks, labels and scales: properties that hold for whatever a study measured."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rackscope.report.svg.scales import Scale, is_drawable, linear_range, logarithmic_range
from rackscope.report.svg.text import shorten, width_of, wrap
from rackscope.report.svg.ticks import label_ticks, linear_ticks, logarithmic_ticks

UNITS = ["", "ratio", "percent", "seconds", "bytes", "bytes/s", "operations/s", "count", "cores", "hertz"]
numbers = st.floats(-1e15, 1e15, allow_nan=False)
positive = st.floats(1e-12, 1e15)


@settings(deadline=None)
@given(st.lists(numbers, min_size=1, max_size=20), st.booleans(), st.integers(0, 9), st.sampled_from(UNITS))
def test_a_linear_axis_holds_its_values_and_has_even_ticks_within(values, from_zero, steps, unit):
    low, high = linear_range(values, from_zero=from_zero, steps=steps, unit=unit)
    span = high - low
    assert span > 0
    assert low <= min(values) + 1e-9 * span
    assert high >= max(values) - 1e-9 * span
    if from_zero:
        assert low <= 0 <= high
    ticks = linear_ticks(low, high, 6, unit)
    assert all(low - 1e-6 * span <= tick <= high + 1e-6 * span for tick in ticks)
    assert len(ticks) <= 7
    gaps = [b - a for a, b in itertools.pairwise(ticks)]
    assert all(gap == pytest.approx(gaps[0], rel=1e-6, abs=1e-11 * max(abs(low), abs(high))) for gap in gaps)


@settings(deadline=None)
@given(st.floats(-1e5, 1e5), st.floats(1e-3, 1e6))
def test_a_linear_axis_of_a_plain_quantity_never_has_fewer_than_two_ticks(low, span):
    assert len(linear_ticks(low, low + span, 6)) >= 2


@settings(deadline=None)
@given(st.lists(positive, min_size=1, max_size=20), st.sampled_from(UNITS), st.integers(3, 9))
def test_a_logarithmic_axis_holds_its_values_and_has_rising_ticks_within(values, unit, most):
    low, high = logarithmic_range(values)
    assert 0 < low <= min(values)
    assert max(values) <= high
    ticks = logarithmic_ticks(low, high, most, unit)
    assert all(low * (1 - 1e-6) <= tick <= high * (1 + 1e-6) for tick in ticks)
    assert all(a < b for a, b in itertools.pairwise(ticks))
    assert len(ticks) <= most + 1


@settings(deadline=None)
@given(st.lists(numbers, min_size=1, max_size=8, unique=True), st.sampled_from(UNITS), st.booleans())
def test_different_ticks_never_read_the_same(values, unit, shared):
    assume(all(abs(value) > 1e-6 or value == 0 for value in values))
    labels = label_ticks(values, unit, shared=shared)
    assert len(labels) == len(values)
    assert len(set(labels)) == len(set(values))


@pytest.mark.parametrize(
    ("values", "unit", "shared", "labels"),
    [
        ([0, 0.5, 1], "", True, ["0", "0.5", "1"]),
        ([0, 0.25, 0.5], "ratio", True, ["0 %", "25 %", "50 %"]),
        ([0, 50_000, 100_000], "operations/s", True, ["0", "50 k/s", "100 k/s"]),
        ([100, 500], "operations/s", True, ["100/s", "500/s"]),
        ([1e-4, 1e-3, 1e-2], "seconds", False, ["100 µs", "1 ms", "10 ms"]),
        ([64, 1024, 25600, 1048576], "bytes", False, ["64 B", "1 KiB", "25 KiB", "1 MiB"]),
        ([0, 2**29, 2**30], "bytes/s", True, ["0", "0.5 GiB/s", "1 GiB/s"]),
        ([1, 2, 4], "count", True, ["1", "2", "4"]),
        ([1e9, 2e9], "hertz", True, ["1 GHz", "2 GHz"]),
    ],
)
def test_ticks_read_as_people_write_them(values, unit, shared, labels):
    assert label_ticks(values, unit, shared=shared) == labels


@pytest.mark.parametrize(
    ("low", "high", "unit", "ticks"),
    [
        (0, 10, "", [0, 2, 4, 6, 8, 10]),
        (0, 2**30, "bytes", [0, 2**28, 2**29, 3 * 2**28, 2**30]),
        (0, 3, "count", [0, 1, 2, 3]),
    ],
)
def test_linear_ticks_are_where_people_count(low, high, unit, ticks):
    assert linear_ticks(low, high, 6, unit) == ticks


def test_logarithmic_ticks_are_decades_and_powers_of_two():
    assert logarithmic_ticks(1e-5, 0.2, 6, "seconds") == pytest.approx([1e-5, 1e-4, 1e-3, 1e-2, 1e-1])
    assert logarithmic_ticks(60, 1100, 6, "bytes") == [64, 128, 256, 512, 1024]


@settings(deadline=None)
@given(st.sampled_from(["linear", "logarithmic"]), positive, st.floats(1.001, 1e6), st.data())
def test_a_scale_keeps_the_order_and_the_ends(kind, low, factor, data):
    high = low * factor
    scale = Scale(kind, low, high, 300.0, 20.0)
    assert scale.at(low) == pytest.approx(300)
    assert scale.at(high) == pytest.approx(20)
    a, b = sorted(data.draw(st.tuples(st.floats(low, high), st.floats(low, high))))
    assert 20 - 1e-6 <= scale.at(b) <= scale.at(a) + 1e-6 <= 300 + 2e-6
    assert scale.draws(a)
    assert scale.clamped(high * 10) == pytest.approx(20)


def test_what_has_no_place_is_not_drawn():
    scale = Scale("logarithmic", 1, 100, 0, 10)
    assert not any(scale.draws(value) for value in (None, 0.0, -1.0, 0.5, 101.0, float("nan"), float("inf")))
    assert is_drawable(0.0, "linear")
    assert not is_drawable(0.0, "logarithmic")


@settings(deadline=None)
@given(st.text(max_size=60), st.floats(20, 300))
def test_what_is_shortened_fits(text, pixels):
    assert width_of(shorten(text, pixels)) <= max(pixels, width_of("…"))


@settings(deadline=None)
@given(st.text(alphabet="ab _-", max_size=40), st.floats(30, 200))
def test_wrapping_loses_no_word(text, pixels):
    lines = wrap(text, pixels, 3)
    if lines is not None:
        assert len(lines) <= 3
        assert all(width_of(line) <= pixels for line in lines)
        assert "".join("".join(lines).split()) == "".join(text.split())
