"""Counters are believed when they agree with a kernel that does a known amount, and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_kernels import SECOND_NS, START_NS, FakeKernels, FakeSampler, setting
from host_trees import amd_bare_metal
from rackscope.host.ceilings import CounterCheck
from rackscope.host.inventory import read_inventory
from rackscope.host.measurements.counters import DRAM_FILLS, INSTRUCTIONS, check_counters, judge, why_missing

#: The fake kernels move 20e9 bytes in two seconds.
FILLS_PER_SECOND = 1e10 / 64


def check(tmp_path: Path, sampler: FakeSampler) -> dict[str, CounterCheck]:
    root = amd_bare_metal(tmp_path)
    circumstances = setting(read_inventory(root, Path("/")), FakeKernels(sampler), root)
    return {found.column: found for found in check_counters(circumstances, pause=lambda _: None)}


@pytest.mark.parametrize(
    ("factor", "status"),
    [(1.0, "trusted"), (1.04, "trusted"), (0.96, "trusted"), (1.06, "untrusted"), (0.5, "untrusted")],
)
def test_a_counter_is_trusted_within_five_percent(tmp_path: Path, factor: float, status: str) -> None:
    sampler = FakeSampler(["cpu", DRAM_FILLS], before=1e6, during=1e6 + factor * FILLS_PER_SECOND, probes=[])
    found = check(tmp_path, sampler)[DRAM_FILLS]
    assert found.status == status
    assert found.error == pytest.approx(factor - 1.0, abs=1e-6)
    assert not sampler.running


def test_a_missing_counter_is_explained_by_its_probe(tmp_path: Path) -> None:
    probes: list[dict[str, Any]] = [
        {"name": "cpu", "status": "ok", "reason": ""},
        {"name": "perf:host", "status": "missing", "reason": "this guest's CPU offers no hardware counters to it"},
    ]
    sampler = FakeSampler(["cpu"], before=0, during=0, probes=probes)
    found = check(tmp_path, sampler)
    assert found[DRAM_FILLS].status == found[INSTRUCTIONS].status == "missing"
    assert found[DRAM_FILLS].reason == "this guest's CPU offers no hardware counters to it"
    assert found[DRAM_FILLS].error is None
    assert not sampler.was_started


def test_the_reason_is_that_of_the_probe_which_would_count() -> None:
    probes = [
        {"name": "perf:host", "status": "ok", "reason": "", "columns": [INSTRUCTIONS]},
        {"name": "perf_memory:host", "status": "missing", "reason": "this CPU's DRAM fills are not known"},
    ]
    assert why_missing(DRAM_FILLS, probes) == "this CPU's DRAM fills are not known"
    assert "no probe" in why_missing(DRAM_FILLS, [])


def test_the_sampler_stops_when_the_kernel_fails(tmp_path: Path) -> None:
    root = amd_bare_metal(tmp_path)
    sampler = FakeSampler(["cpu", DRAM_FILLS], before=0, during=0, probes=[])
    kernels = FakeKernels(sampler)
    kernels.fail["read"] = OSError("no memory")
    with pytest.raises(OSError, match="no memory"):
        check_counters(setting(read_inventory(root, Path("/")), kernels, root), pause=lambda _: None)
    assert sampler.was_started
    assert not sampler.running


def known(amount: float) -> dict[str, Any]:
    return {"amount": amount, "start_ns": START_NS, "end_ns": START_NS + SECOND_NS}


@given(
    rate=st.floats(min_value=1e3, max_value=1e12),
    background=st.floats(min_value=0, max_value=1e6),
    unreadable=st.sets(st.integers(0, 29), max_size=8),
)
def test_an_exact_counter_is_trusted_whatever_else_the_host_does(
    rate: float, background: float, unreadable: set[int]
) -> None:
    stamps = [START_NS + tick * SECOND_NS // 10 for tick in range(-10, 20)]
    values, count = [], 0.0
    for index, stamp in enumerate(stamps):
        values.append(float("nan") if index in unreadable else count)
        count += (background + (rate if START_NS <= stamp < START_NS + SECOND_NS else 0.0)) / 10
    found = judge("c", stamps, values, 1, known(rate))
    assert found.status == "trusted"


def test_a_counter_that_cannot_be_read_is_missing_not_zero() -> None:
    stamps = [START_NS + tick * SECOND_NS // 10 for tick in range(-10, 20)]
    assert judge("c", stamps, [float("nan")] * 30, 1, known(1e9)).status == "missing"
    assert judge("c", [], [], 1, known(1e9)).status == "missing"


def test_a_counter_that_stands_still_is_not_trusted() -> None:
    stamps = [START_NS + tick * SECOND_NS // 10 for tick in range(-10, 20)]
    found = judge("c", stamps, [5.0] * 30, 1, known(1e9))
    assert (found.status, found.error) == ("untrusted", -1.0)
