"""A manifest as the analysis is told it: what it does not say is not known, and never zero."""

from __future__ import annotations

from typing import Any

import pytest

from rackscope.analysis.facts import SamplerCost
from rackscope.runs.facts import run_facts
from rackscope.runs.manifest import (
    ClientPart,
    Manifest,
    OverheadPart,
    PhasePart,
    RepetitionPart,
    SystemPart,
    WorkloadPart,
)

SECOND = 1_000_000_000


def manifest(**changes: Any) -> Manifest:
    values: dict[str, Any] = {
        "rackscope_version": "0.1.0",
        "started_at": "2026-11-21T18:22:31+00:00",
        "system": SystemPart(name="memcached"),
        "workload": WorkloadPart(name="ycsb-b"),
        "client": ClientPart(protocol="memcached_text", connections=50),
        "repetition": RepetitionPart(duration_seconds=5, minimum=3),
    }
    return Manifest.model_validate({**values, **changes})


@pytest.mark.parametrize(
    "overhead",
    [
        OverheadPart(),
        OverheadPart(sampler_interval_seconds=0.1),
        OverheadPart(sampler_ticks=190, sampler_cpu_seconds=0.2),
    ],
)
def test_a_sampler_that_says_too_little_has_no_cost(overhead: OverheadPart) -> None:
    assert run_facts(manifest(overhead=overhead)).sampler is None


def test_what_the_sampler_cost_is_told_as_it_was_written() -> None:
    whole = OverheadPart(
        sampler_interval_seconds=0.1,
        sampler_ticks=190,
        sampler_missed_ticks=3,
        sampler_cpu_seconds=0.2,
        sampler_wall_seconds=19.0,
        sampler_worst_lateness_seconds=0.04,
    )
    assert run_facts(manifest(overhead=whole)).sampler == SamplerCost(0.1, 190, 3, 0.2, 19.0, 0.04)
    least = OverheadPart(sampler_interval_seconds=0.1, sampler_ticks=0)
    assert run_facts(manifest(overhead=least)).sampler == SamplerCost(0.1, 0, 0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("written", "known"), [(8e9, 8e9), (0, None), (-1, None), (1e24, None), ("8 GB", None), (None, None)]
)
def test_a_fact_of_the_host_that_is_no_plausible_number_is_not_known(written: object, known: float | None) -> None:
    facts = run_facts(manifest(host={"memory_total_bytes": written, "online_cores": written}))
    assert facts.memory_total_bytes == known
    assert facts.host_cores == int(known or 1)


def phases(*lasted: tuple[str, int, int | None]) -> list[PhasePart]:
    return [
        PhasePart(name=name, kind="load" if name == "load" else "measure", start_ns=start, end_ns=end)
        for name, start, end in lasted
    ]


@pytest.mark.parametrize(
    ("windows", "expire_seconds", "expects"),
    [
        ((("load", 0, SECOND), ("measure", SECOND, 9 * SECOND)), "0", True),
        # Nothing was loaded: what is not there is part of the workload.
        ((("measure", SECOND, 9 * SECOND),), "0", False),
        # From the first load to the end of the last phase, nothing, or something, had time to expire.
        ((("load", 0, SECOND), ("measure", SECOND, 9 * SECOND)), "9", True),
        ((("load", 0, SECOND), ("measure", SECOND, 9 * SECOND)), "8", False),
        ((("load", 4 * SECOND, 5 * SECOND), ("measure", 5 * SECOND, 12 * SECOND)), "8", True),
        # It was killed while it measured.
        ((("load", 0, SECOND), ("measure", SECOND, None)), "8", True),
    ],
)
def test_every_read_hits_where_items_were_loaded_and_cannot_have_expired(
    windows: tuple[tuple[str, int, int | None], ...], expire_seconds: str, expects: bool
) -> None:
    workload = WorkloadPart(name="ycsb-b", parameters={"expire_seconds": expire_seconds})
    assert run_facts(manifest(workload=workload, phases=phases(*windows))).expects_hits is expects


def test_a_phase_without_an_end_is_left_out() -> None:
    facts = run_facts(manifest(phases=phases(("load", 0, SECOND), ("measure", SECOND, None))))
    assert [(one.name, one.start_ns, one.end_ns) for one in facts.phases] == [("load", 0, SECOND)]
