"""``--limit``: what people write is understood as they mean it, and anything else is refused in one line."""

from __future__ import annotations

import math
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackscope.errors import UsageError
from rackscope.squeezes.provision import Limits
from rackscope.studies.pressure.limits import describe_limits, parse_limits


def test_each_limit_is_read_in_its_own_unit() -> None:
    limits = parse_limits(["cpu=1.5", "memory=512m", "disk=100m", "disk-operations=5k", "link=1g"])
    assert limits == Limits(1.5, 512 * 1024**2, 100 * 1024.0**2, 5000.0, 125e6)
    assert describe_limits(limits) == {name: float(value) for name, value in asdict(limits).items()}


def test_no_limits_are_no_limits() -> None:
    assert parse_limits([]) == Limits()
    assert describe_limits(Limits()) == {}


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (["ram=1g"], "got 'ram=1g'"),
        (["cpu"], "got 'cpu'"),
        (["=1"], "expected NAME=VALUE"),
        (["cpu=two"], "number of cores"),
        (["cpu=0"], "invalid --limit"),
        (["cpu=-1"], "invalid --limit"),
        (["cpu=nan"], "invalid --limit"),
        (["cpu=inf"], "invalid --limit"),
        (["memory=0"], "invalid --limit"),
        (["memory=0.2"], "invalid --limit"),
        ([f"memory={'9' * 400}"], "too large"),
        (["link=0"], "--limit link"),
        (["disk=fast"], "--limit disk: 'fast' is not a size"),
        (["cpu=1", "cpu=2"], "given twice"),
    ],
)
def test_what_is_wrong_is_named(pairs: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_limits(pairs)


@given(
    st.dictionaries(
        st.sampled_from(["cpu", "memory", "disk", "disk-operations", "link"]),
        st.integers(min_value=1, max_value=10**12),
    )
)
def test_plain_numbers_keep_their_value(values: dict[str, int]) -> None:
    limits = parse_limits([f"{name}={value}" for name, value in values.items()])
    assert limits.cpu_cores == values.get("cpu")
    assert limits.memory_bytes == values.get("memory")
    assert limits.disk_bytes_per_second == values.get("disk")
    assert limits.disk_operations_per_second == values.get("disk-operations")
    link = values.get("link")
    assert limits.network_bytes_per_second == (None if link is None else link / 8)
    assert len(describe_limits(limits)) == len(values)


@given(st.lists(st.text(max_size=20) | st.from_regex(r"(cpu|memory|disk|link)=.{0,8}", fullmatch=True), max_size=3))
def test_any_text_is_understood_or_refused(pairs: list[str]) -> None:
    try:
        limits = parse_limits(pairs)
    except UsageError:
        return
    assert all(0 < value < math.inf for value in describe_limits(limits).values())
