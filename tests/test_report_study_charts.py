"""Charts of studies: what is drawn is what was measured, and whatever was measured can be drawn."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rackscope.report.svg import HALF, NARROW, WIDE, describe_chart, draw_chart, write_chart_svg
from rackscope.runs.study import Axis, Chart, Reference, Series
from study_example import pressure_study, slo_study, sweep_study

SVG = "{http://www.w3.org/2000/svg}"
CHARTS = [*pressure_study().charts, *slo_study().charts, *sweep_study().charts]
HOSTILE = "</svg><script>alert('x')</script>\"'&\x00\x1b[31m"


def drawn(chart: Chart, size=HALF) -> ElementTree.Element:
    return ElementTree.fromstring(draw_chart(chart, size))


def of_class(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [one for one in svg.iter() if name in one.get("class", "").split()]


def words(svg: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in svg.iter(f"{SVG}text")]


def hints(svg: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in svg.iter(f"{SVG}title")]


def one_series(scale="linear", **fields) -> Chart:
    x, y = Axis(label="threads", unit="count"), Axis(label="time", unit="seconds", scale=scale)
    return Chart(identifier="one", title="One", x=x, y=y, series=[Series(label="p99", **fields)])


def places(svg: ElementTree.Element) -> list[float]:
    """Every coordinate there is, of elements and of paths."""
    found = []
    for one in svg.iter():
        for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height", "d", "points"):
            found += [float(text) for text in re.findall(r"[^MLZ\s,]+", one.get(name, ""))]
    return found


@pytest.mark.parametrize("size", [WIDE, HALF, NARROW], ids=["wide", "half", "narrow"])
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.identifier)
def test_everything_lies_within_the_drawing(chart, size):
    svg = drawn(chart, size)
    _, _, width, height = map(float, svg.get("viewBox").split())
    assert width == size.width
    for one in svg.iter():
        for name, most in (("x", width), ("cx", width), ("x2", width), ("y", height), ("cy", height), ("y2", height)):
            if one.get(name) is not None and one.tag != f"{SVG}rect":
                assert -20 <= float(one.get(name)) <= most + 20, ElementTree.tostring(one)


def test_points_lie_where_their_values_are():
    svg = drawn(one_series(x=[1, 2, 3], y=[0.1, 0.2, 0.3]))
    dots = of_class(svg, "dot")
    xs, ys = ([float(dot.get(name)) for dot in dots] for name in ("cx", "cy"))
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)
    assert ys[0] > ys[2]


def test_a_logarithmic_axis_draws_equal_ratios_equally_far_apart():
    svg = drawn(one_series("logarithmic", x=[1, 2, 3], y=[0.001, 0.01, 0.1]))
    ys = [float(dot.get("cy")) for dot in of_class(svg, "dot")]
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)


def test_bars_are_as_long_as_their_values_from_zero():
    chart = next(chart for chart in CHARTS if chart.identifier == "cost")
    first, second = (float(bar.get("height")) for bar in of_class(drawn(chart), "bar-mark"))
    assert first / second == pytest.approx(9.8 / 7.4, rel=0.01)


def test_lying_bars_are_as_long_as_their_values_too():
    chart = next(chart for chart in CHARTS if chart.identifier == "slack")
    lengths = [float(bar.get("width")) for bar in of_class(drawn(chart), "bar-mark")]
    assert [length / lengths[1] for length in lengths] == pytest.approx([0.06, 1, 0.44, 1.82], rel=0.02)
    assert {"CPU", "DRAM capacity", "DRAM bandwidth", "network", "91.0 %"} <= set(words(drawn(chart)))


def test_negative_bars_hang_below_zero():
    chart = one_series(kind="bars", x=[1, 2], y=[0.5, -0.5])
    up, down = of_class(drawn(chart), "bar-mark")
    assert float(up.get("y")) + float(up.get("height")) == pytest.approx(float(down.get("y")), abs=0.2)


def test_what_is_not_known_is_a_question_mark_and_not_a_bar_of_zero():
    chart = next(chart for chart in CHARTS if chart.identifier == "elasticity")
    svg = drawn(chart)
    assert len(of_class(svg, "bar-mark")) == 12 + 2
    assert len(of_class(svg, "unknown")) == 2
    assert "read phase, last level cache: not known" in hints(svg)


def test_a_line_is_not_drawn_across_what_is_not_known():
    (line,) = of_class(drawn(one_series(x=[1, 2, 3, 4, 5], y=[1, 2, None, 4, 5])), "line-mark")[:1]
    assert len(of_class(drawn(one_series(x=[1, 2, 3, 4, 5], y=[1, 2, None, 4, 5])), "line-mark")) == 2
    assert line.get("d").count("L") == 1


def test_intervals_are_bands_of_lines_and_whiskers_of_bars_and_points():
    ends = {"low": [0.9, 1.9, 2.9], "high": [1.1, 2.1, 3.1]}
    line = drawn(one_series(x=[1, 2, 3], y=[1, 2, 3], **ends))
    assert (len(of_class(line, "band")), len(of_class(line, "whisker"))) == (1, 0)
    for kind in ("points", "bars"):
        svg = drawn(one_series(kind=kind, x=[1, 2, 3], y=[1, 2, 3], **ends))
        assert (len(of_class(svg, "band")), len(of_class(svg, "whisker"))) == (0, 3)


def test_a_curve_that_turns_back_keeps_its_whiskers():
    ends = {"low": [0.9, 1.9, 2.9], "high": [1.1, 2.1, 3.1]}
    svg = drawn(one_series(x=[1, 3, 2], y=[1, 2, 3], **ends))
    assert (len(of_class(svg, "band")), len(of_class(svg, "whisker"))) == (0, 3)


def test_hovering_says_the_value_with_its_interval():
    svg = drawn(one_series(x=[4], y=[0.0012], low=[0.0011], high=[0.0013]))
    assert "4: 1.20 ms (95 % interval 1.10 ms to 1.30 ms)" in hints(svg)


def test_references_are_drawn_where_they_are_and_named():
    (chart,) = slo_study().charts
    svg = drawn(chart, WIDE)
    assert {"bound: p99 < 1 ms", "knee", "highest confirmed rate"} <= set(words(svg))
    lines = [one for one in of_class(svg, "reference") if one.tag == f"{SVG}line"]
    assert len(lines) == 3
    flat = next(one for one in lines if one.get("y1") == one.get("y2"))
    heights = [float(dot.get("cy")) for dot in of_class(svg, "dot") if dot.get("cy") and dot.get("r")]
    # The curve of p99 crosses its bound below 84k; the swatch of the legend lies above its own origin.
    assert len([height for height in heights if 0 < height < float(flat.get("y1"))]) == 4


def test_values_at_and_below_zero_have_no_place_on_a_logarithmic_axis():
    svg = drawn(one_series("logarithmic", x=[1, 2, 3], y=[0.0, -1.0, 0.5]))
    assert len(of_class(svg, "dot")) == 1


def test_an_interval_that_leaves_a_logarithmic_axis_ends_at_its_edge():
    svg = drawn(one_series("logarithmic", kind="points", x=[1], y=[0.5], low=[-0.1], high=[0.9]))
    assert all(math.isfinite(place) for place in places(svg))
    assert len(of_class(svg, "whisker")) == 1


@pytest.mark.parametrize(
    "fields", [{"x": [], "y": []}, {"x": [1, 2], "y": [None, None]}], ids=["no points", "nothing known"]
)
def test_nothing_to_draw_is_said(fields):
    assert "Nothing was measured that could be drawn." in words(drawn(one_series(**fields)))


def test_the_chart_is_told_to_those_who_do_not_see_it():
    text = describe_chart(one_series(x=[1, 2], y=[0.001, None]))
    assert text == "One. time against threads. p99: 1 1.00 ms."
    (chart,) = slo_study().charts
    assert "bound: p99 < 1 ms at 1.00 ms." in describe_chart(chart)
    assert drawn(chart).get("role") == "img"
    assert drawn(chart).get("aria-label") == describe_chart(chart)


def test_series_are_told_apart_by_more_than_colour():
    svg = drawn(next(chart for chart in CHARTS if chart.identifier == "throughput"))
    assert len({dot.tag for dot in of_class(svg, "dot")}) == 3
    assert {"1 thread", "2 threads", "4 threads", "8 threads"} <= set(words(svg))


def test_few_chosen_values_are_the_ticks():
    assert {"1", "2", "4", "8"} <= set(words(drawn(one_series(x=[1, 2, 4, 8], y=[1, 2, 3, 4]))))


def test_ticks_are_round_where_values_were_measured():
    x, y = [3877.81, 7244.45, 10082.8], [1, 2, 3]
    svg = drawn(one_series(x=x, y=y))
    assert not any("3.87" in word for word in words(svg))


def test_values_beside_bars_have_as_many_decimals_as_the_largest_needs():
    chart = one_series(kind="bars", x=[1, 2, 3, 4], y=[0.97, 0.009095, -0.01144, None])
    chart.y.unit = ""
    written = [one.text for one in drawn(chart).iter(f"{SVG}text") if one.get("class") in ("value", "unknown")]
    assert written == ["0.97", "0.01", "-0.01", "?"]


def test_hostile_names_stay_text():
    chart = Chart(
        identifier=HOSTILE,
        title=HOSTILE,
        x=Axis(label=HOSTILE, scale="category", categories=[HOSTILE, "a"]),
        y=Axis(label=HOSTILE),
        series=[Series(label=HOSTILE, x=[0, 1], y=[1, 2]), Series(label="b", x=[0], y=[1])],
        references=[Reference(label=HOSTILE, value=1)],
    )
    text = draw_chart(chart)
    svg = ElementTree.fromstring(text)
    assert not list(svg.iter(f"{SVG}script"))
    assert "<script" not in text
    assert "\x00" not in text
    assert "\x1b" not in text


anything = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-5, 5).map(float))
scales = st.sampled_from(["linear", "logarithmic", "category"])


@st.composite
def charts(draw) -> Chart:
    def axis() -> Axis:
        names = draw(st.lists(st.text(max_size=30), max_size=4))
        unit = draw(st.sampled_from(["", "text", "seconds", "bytes", "ratio", "operations/s", "count"]))
        return Axis(label=draw(st.text(max_size=20)), unit=unit, scale=draw(scales), categories=names)

    def series() -> Series:
        x = draw(st.lists(anything, max_size=6))
        ends = st.lists(st.one_of(st.none(), anything), min_size=len(x), max_size=len(x))
        low, high = (draw(ends), draw(ends)) if draw(st.booleans()) else ([], [])
        kind = draw(st.sampled_from(["line", "points", "bars"]))
        return Series(label=draw(st.text(max_size=20)), x=x, y=draw(ends), low=low, high=high, kind=kind)

    references = [Reference(label="r", value=draw(anything), axis=axis) for axis in draw(st.sampled_from(["", "xy"]))]
    several = [series() for _ in range(draw(st.integers(0, 3)))]
    return Chart(identifier="c", title="t", x=axis(), y=axis(), series=several, references=references)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(charts(), st.sampled_from([WIDE, HALF, NARROW]))
def test_whatever_a_study_found_is_drawn_as_well_formed_svg(chart, size):
    svg = drawn(chart, size)
    assert all(math.isfinite(place) and abs(place) < 1e5 for place in places(svg))


def test_a_chart_as_a_file_needs_nothing_else(tmp_path: Path):
    for chart in CHARTS:
        file = tmp_path / f"{chart.identifier}.svg"
        write_chart_svg(chart, file)
        svg = ElementTree.fromstring(file.read_bytes())
        assert svg.get("width") and svg.get("height")
        assert chart.title in words(svg)
        style = svg.find(f"{SVG}style").text
        used = set(re.findall(r"var\((--[\w-]+)\)", style))
        assert used <= set(re.findall(r"(--[\w-]+):", style))
        assert "prefers-color-scheme:dark" in style
        assert not re.search(r"@import|url\(", style)
        colours = {name for one in svg.iter() for name in one.get("class", "").split() if name.startswith("colour-")}
        assert all(f".{name}" in style for name in colours)
