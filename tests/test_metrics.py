"""The table of metrics, and how columns are spelled."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackscope.metrics import METRICS, format_metric, parse_metric

UNIT_OF_NAME = {
    "_seconds": "seconds",
    "_bytes": "bytes",
    "_hertz": "hertz",
    "_ratio": "ratio",
    "_watts": "watts",
    "_joules": "joules",
}


def test_columns_are_spelled_with_sorted_and_quoted_labels() -> None:
    column = format_metric("cpu_core_seconds_total", {"state": "user", "core": "0"})
    assert column == 'cpu_core_seconds_total{core="0",state="user"}'
    assert parse_metric(column) == ("cpu_core_seconds_total", {"core": "0", "state": "user"})
    assert format_metric("interrupts_total") == format_metric("interrupts_total", {}) == "interrupts_total"


@given(
    st.from_regex(r"[a-z_][a-z0-9_]{0,10}", fullmatch=True),
    st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True), st.text(max_size=8), max_size=4),
)
def test_what_was_formatted_is_parsed_back(name: str, labels: dict[str, str]) -> None:
    assert parse_metric(format_metric(name, labels)) == (name, labels)


@given(st.text(max_size=30))
def test_any_text_is_a_column_or_refused(text: str) -> None:
    try:
        name, labels = parse_metric(text)
    except ValueError:
        return
    assert parse_metric(format_metric(name, labels)) == (name, labels)


@pytest.mark.parametrize(
    "text",
    ["", "Cpu", "a b", "a{", "a{}", 'a{b="1"', 'a{b="1"}c', 'a{b="1",}', 'a{b="1",b="2"}', "a{b=1}", 'a{b="\\x"}'],
)
def test_what_is_no_column_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a metric"):
        parse_metric(text)


def test_units_follow_from_names() -> None:
    for metric in METRICS.values():
        base = metric.name.removesuffix("_total")
        expected = next((unit for suffix, unit in UNIT_OF_NAME.items() if base.endswith(suffix)), None)
        if base.endswith("_per_second"):
            expected = "operations/s"
        assert metric.unit == (expected or "1") or base.startswith("load_bytes_"), metric.name


def test_opentelemetry_names_are_well_formed() -> None:
    for metric in METRICS.values():
        name = metric.opentelemetry
        assert name is None or re.fullmatch(r"(system|process|container|hw)(\.[a-z_]+)+", name), metric.name


def test_the_table_costs_little_to_import() -> None:
    code = "import sys, rackscope.metrics; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"polars", "numpy", "scipy", "pydantic", "rich"} & set(loaded)
