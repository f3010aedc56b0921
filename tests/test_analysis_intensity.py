"""How full each resource was: which cores, which group, and what is said where something was not measured."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from analysis_frames import SyntheticRun, two_cores
from rackscope.analysis.characterisation import characterise
from rackscope.analysis.findings import ResourceAssessment


def resources(run: SyntheticRun, **facts: Any) -> list[ResourceAssessment]:
    """What was found of each resource while it was measured."""
    found = characterise(run.run_facts(**facts), run.samples(), run.results(), pl.DataFrame())
    return list(next(one for one in found.phases if one.phase == "measure").resources)


def names(found: list[ResourceAssessment]) -> list[str]:
    return [one.resource for one in found]


def memory(run: SyntheticRun) -> ResourceAssessment:
    return next(one for one in resources(run) if one.resource == "dram_capacity")


def test_the_host_is_told_apart_where_the_system_has_a_part_of_it_only() -> None:
    run = SyntheticRun(rates=SyntheticRun().rates | two_cores({"user": 0.2}, {"user": 0.9}))
    part = {one.resource: one for one in resources(run, system_cores=(0,))}
    assert (part["cpu_system"].intensity, part["cpu_host"].intensity) == (pytest.approx(0.2), pytest.approx(0.55))
    assert part["cpu_system"].label == "memcached's core (0)"
    assert part["cpu_host"].label == "all 2 cores of the host"
    # Where it has all of them, the same cores are not told twice.
    assert "cpu_host" not in names(resources(run, system_cores=(0, 1), client_cores=(0, 1)))
    free = resources(run, system_cores=(), client_cores=())
    assert "cpu_host" not in names(free)
    assert next(one.label for one in free if one.resource == "cpu_system") == "the host's 2 cores"


def groups(**used_of_limit: tuple[float, float]) -> SyntheticRun:
    run = SyntheticRun()
    for name, (used, limit) in used_of_limit.items():
        run.levels[f'cgroup_memory_bytes{{cgroup="{name}",kind="current"}}'] = used
        run.levels[f'cgroup_memory_limit_bytes{{cgroup="{name}"}}'] = limit
    return run


@pytest.mark.parametrize(
    ("run", "named"),
    [
        (groups(first=(0.9e9, 1e9), second=(0.5e9, 1e9)), "first"),
        (groups(first=(0.5e9, 1e9), second=(0.9e9, 1e9)), "second"),
        # By the share of the limit, not by bytes; of equally full ones the first.
        (groups(first=(2.0e9, 4e9), second=(0.9e9, 1e9)), "second"),
        (groups(first=(0.9e9, 1e9), second=(1.8e9, 2e9)), "first"),
    ],
)
def test_the_fullest_control_group_answers_for_memory(run: SyntheticRun, named: str) -> None:
    found = memory(run)
    assert found.label == f"memory of control group {named}"
    assert found.intensity == pytest.approx(0.9)


def test_memory_that_was_not_measured_is_spare_only_where_nothing_waited_for_it() -> None:
    run = SyntheticRun()
    run.levels = {name: level for name, level in run.levels.items() if not name.startswith("memory_")}
    unread = memory(run)
    assert (unread.intensity, unread.saturation, unread.status) == (None, "none", "spare")
    signs = ("pressure_", "swap_", "out_of_memory_")
    run.rates = {name: rate for name, rate in run.rates.items() if not name.startswith(signs)}
    run.rates = {name: rate for name, rate in run.rates.items() if "major" not in name}
    blind = memory(run)
    assert (blind.intensity, blind.saturation, blind.status) == (None, None, "unknown")
