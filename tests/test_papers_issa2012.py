"""Issa 2012 reproduced: its numbers come out of its equations, and what does not is named."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Rackscope
from rackscope.errors import RackscopeError
from rackscope.papers.issa2012 import equations, printed, projections
from rackscope.papers.issa2012.page import reproduce
from rackscope.papers.reproduction import Comparison

FREQUENCIES = st.floats(1e8, 1e10)


def computed(section: str, item: str) -> float:
    found = [
        one.computed
        for part in reproduce().sections
        if part.identifier == section
        for one in part.comparisons
        if one.item == item
    ]
    assert len(found) == 1, (section, item)
    return found[0]


# Worked by hand from the paper's text, apart from the code.
@pytest.mark.parametrize(
    ("section", "item", "value"),
    [
        ("table-2", "Wordcount: speedup", 5717 / 455),
        ("table-2", "Terasort: speedup in tasks", 184.2 / 18.5),
        ("table-3", "Wordsort: performance per watt", (2901 / 790) / (190 / 44)),
        ("table-3", "Wordcount: performance per $", (5717 / 455) / (7300 / 650)),
        ("table-4", "Kmeans: performance per $", (11357 / 668.3) / (7307 / 628)),
        ("table-6", "throughput per core", 1410475 / 12 / (95336 / 2)),
        ("table-6", "CPI of ATOM at 1,800 MHz", 6.0565),
        ("table-6", "CPI of WSM at 2,270 MHz", 3.0496),
        ("table-7", "sequential read: operations per second and watt", 3686 / 33.25),
        ("table-8", "random write: operations per second and watt", 450 / 157.81),
        ("cpi-regression", "ATOM: bound of CPI", 1 / 0.304),
        ("table-9", "ATOM D510: projected time", 128e6 * 3.00 * (70702 - 31500 * math.log(2)) / 1.66e9 / 2),
        ("table-9", "ATOM D525: projected time", 128e6 * 2.70 * (70702 - 31500 * math.log(2)) / 1.88e9 / 2),
        ("table-9", "NHM X5570: projected time", 128e6 * 1.46 * (70702 - 31500 * math.log(4)) / 2.93e9 / 4),
    ],
)
def test_numbers_are_those_of_the_stated_equations(section: str, item: str, value: float) -> None:
    assert computed(section, item) == pytest.approx(value, rel=1e-4)


@pytest.mark.parametrize(
    ("section", "item", "value"),
    [
        ("table-9", "ATOM D510: projected time", 5652),
        ("table-9", "ATOM D525: projected time", 4491),
        ("table-9", "NHM X5570: projected time", 431),
        ("table-9", "ATOM D525: error", 7.61),
        ("table-6", "CPI of ATOM at 1,800 MHz", 6.04),
        ("table-6", "CPI of WSM at 2,270 MHz", 3.05),
    ],
)
def test_the_projections_are_within_half_a_percent_of_what_is_printed(section: str, item: str, value: float) -> None:
    assert computed(section, item) == pytest.approx(value, rel=0.005)


def test_only_two_prices_do_not_follow() -> None:
    unlike = {(section.identifier, one.item) for section, one in reproduce().not_following()}
    assert unlike == {
        ("table-3", "Wordcount: performance per $"),
        ("table-3", "Kmeans: performance per $"),
    }


def test_no_price_ratio_gives_both_of_them() -> None:
    (table,) = next(one for one in reproduce().sections if one.identifier == "table-3").derived
    ranges = {row[0]: (row[3], row[4]) for row in table.rows}
    assert ranges["Kmeans"][1] < ranges["Wordcount"][0]


def test_errors_of_table_9_divide_by_the_projection() -> None:
    for one in projections.wordcount_projections():
        stated = float(one.row.error_percent)
        assert one.error_percent == pytest.approx(stated, abs=0.005)
        assert abs(one.usual_error_percent - stated) > 0.01


def test_the_cpi_lines_fall_with_frequency_and_gain_more_than_the_clock() -> None:
    for name in printed.MEMCACHED_LINES:
        line = projections.memcached_line(name)
        assert line.cpi(3000) < line.cpi(1660)
        assert line.throughput_elasticity(3000) > 1
        with pytest.raises(RackscopeError, match="no value at"):
            line.cpi(line.lowest_megahertz * 0.999)


def test_path_length_is_refused_beyond_nine_cores() -> None:
    assert projections.WORDCOUNT.instructions_per_byte(9) > 0
    with pytest.raises(RackscopeError, match="10 cores") as refused:
        projections.WORDCOUNT.instructions_per_byte(10)
    assert "9.44" in refused.value.advice


@given(first=FREQUENCIES, second=FREQUENCIES, low=st.floats(1, 500), rise=st.floats(1.01, 5))
def test_with_rising_power_the_printed_fixed_part_is_above_all_that_was_measured(
    first: float, second: float, low: float, rise: float
) -> None:
    if second < first * 1.01:
        return
    form = equations.power_through(low, first, low * rise, second, -1.0)
    assert form.fixed_watts > low * rise
    assert form.at(second) == pytest.approx(low * rise, rel=1e-6)


@given(
    first=FREQUENCIES,
    growth=st.floats(1.05, 4),
    watts=st.floats(1, 500),
    rise=st.floats(1.01, 5),
    exponent=st.floats(1, 3),
)
def test_the_scaled_form_passes_both_points_and_rises(
    first: float, growth: float, watts: float, rise: float, exponent: float
) -> None:
    second, more = first * growth, watts * rise
    form = equations.power_through(watts, first, more, second, exponent)
    at = [form.at(frequency) for frequency in (first, second, second * 2)]
    assert at[0] == pytest.approx(watts)
    assert at[1] == pytest.approx(more, rel=1e-6)
    assert at[2] > at[1]


@given(megahertz=st.floats(900, 5000), other=st.floats(900, 5000), cpi=st.floats(0.3, 20), second=st.floats(0.3, 20))
def test_a_cpi_line_passes_its_points(megahertz: float, other: float, cpi: float, second: float) -> None:
    if abs(megahertz - other) < 1:
        return
    line = equations.cpi_line_through(megahertz, cpi, other, second)
    assert line.cpi(megahertz) == pytest.approx(cpi, rel=1e-6)
    assert line.cpi(other) == pytest.approx(second, rel=1e-6)


def test_equation_2_and_its_solutions_agree() -> None:
    processor = printed.Processor("any", 2000, 4)
    seconds = equations.execution_seconds(processor, 1.5, 300, 1e9)
    assert equations.other_factor(processor, seconds, 300, 1e9) == pytest.approx(1.5)
    assert equations.other_factor(processor, seconds, 1.5, 1e9) == pytest.approx(300)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_equation_2_refuses_what_means_nothing(value: float) -> None:
    with pytest.raises(RackscopeError, match="above zero"):
        equations.execution_seconds(printed.NHM, value, 10)


@pytest.mark.parametrize(
    ("number", "value", "verdict"),
    [
        ("1.50", 1.5049, "rounded"),
        ("1.50", 1.5099, "cut off"),
        ("1.50", 1.4926, "within 0.5 %"),
        ("1.50", 1.5101, "does not follow"),
        ("12", 12.99, "cut off"),
        ("12", 11.4, "does not follow"),
    ],
)
def test_verdicts(number: str, value: float, verdict: str) -> None:
    assert Comparison("it", number, value, "", "by hand").verdict == verdict


def test_the_verb_prints_every_number_and_names_what_does_not_follow(rackscope: Rackscope) -> None:
    ended = rackscope("paper", "issa2012")
    assert ended.returncode == 0, ended.stderr
    for words in ("4,491.68 s", "5652 s", "6.0565", "does not follow", "68 of 70", "negative beyond nine cores"):
        assert words in ended.stdout


def test_json_has_every_comparison(rackscope: Rackscope) -> None:
    ended = rackscope("paper", "issa2012", "--json")
    content = json.loads(ended.stdout)
    assert content["paper"] == "issa2012"
    assert len(content["do_not_follow"]) == 2
    counted = [one for section in content["sections"] for one in section["comparisons"] if one["counted"]]
    assert len(counted) == content["numbers"]
    for one in counted:
        assert one["difference"] == pytest.approx(one["computed"] - one["printed"])
    assert {section["identifier"] for section in content["sections"]} >= {
        *(f"table-{number}" for number in (2, 3, 4, 6, 7, 8, 9, 10)),
        "cpi-regression",
        "path-length",
        "power",
    }
