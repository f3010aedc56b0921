"""Quantities as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackscope import units
from rackscope.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30.0), ("1.5ms", 0.0015), ("2m", 120.0), ("0.25", 0.25), ("250 us", 0.00025)]
)
def test_durations(text: str, seconds: float) -> None:
    assert units.parse_duration_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "size"), [("64", 64), ("25k", 25600), ("1MiB", 1048576), ("4g", 4 * 1024**3), ("1.5kb", 1536)]
)
def test_sizes(text: str, size: int) -> None:
    assert units.parse_size_bytes(text) == size


@pytest.mark.parametrize(("text", "rate"), [("20000", 20000.0), ("20k", 20000.0), ("1.5M/s", 1.5e6)])
def test_rates(text: str, rate: float) -> None:
    assert units.parse_rate_per_second(text) == rate


@pytest.mark.parametrize(("text", "cores"), [("0", (0,)), ("0-3,8", (0, 1, 2, 3, 8)), ("2,1,2", (1, 2))])
def test_cores(text: str, cores: tuple[int, ...]) -> None:
    assert units.parse_cores(text) == cores


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_duration_seconds, "5 parsecs"),
        (units.parse_duration_seconds, "0s"),
        (units.parse_duration_seconds, "-1s"),
        (units.parse_duration_seconds, "nan"),
        (units.parse_size_bytes, "12q"),
        (units.parse_count, ""),
        (units.parse_rate_per_second, "0"),
        (units.parse_cores, "3-1"),
        (units.parse_cores, "a"),
        (units.parse_cores, ""),
        (units.parse_cores, "1-"),
    ],
)
def test_mistakes_say_how_to_write_it(parse: object, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)  # type: ignore[operator]
    assert caught.value.advice


@given(st.text(max_size=20))
def test_any_text_parses_or_is_a_usage_error(text: str) -> None:
    for parse in (units.parse_duration_seconds, units.parse_size_bytes, units.parse_rate_per_second):
        try:
            assert parse(text) >= 0
        except UsageError:
            continue


@given(st.floats(min_value=1e-9, max_value=1e15))
def test_printed_quantities_keep_three_digits(value: float) -> None:
    for text, factors in (
        (units.format_count(value), {"k": 1e3, "M": 1e6, "G": 1e9, "": 1.0}),
        (units.format_bytes(value), {"B": 1.0, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}),
        (units.format_duration(value), {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}),
    ):
        number, _, unit = text.partition(" ")
        assert float(number) * factors[unit] == pytest.approx(value, rel=6e-3, abs=0.5 if unit in {"", "B"} else 0)
