"""Phases found in the series of a run: a change that nobody declared is told, with the series it shows in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from analysis_frames import SyntheticRun, only_in, process, quiet_rates
from rackscope.analysis.characterisation import characterise
from rackscope.analysis.facts import RunFacts
from rackscope.analysis.findings import Characterisation, Finding

#: The measured phase is one; behind it, the system behaves in two ways.
BEFORE, AFTER = "before", "after"


def one_measured_phase(run: SyntheticRun) -> RunFacts:
    """Facts that declare both behaviours as one phase."""
    facts = run.run_facts()
    *others, first, last = facts.phases
    return replace(facts, phases=(*others, replace(first, name="measure", end_ns=last.end_ns)))


def two_behaviours(first: dict[str, float], second: dict[str, float]) -> SyntheticRun:
    run = SyntheticRun(phases=[("load", "load", None, 3.0), (BEFORE, "measure", 1, 6.0), (AFTER, "measure", 1, 6.0)])
    changes = {
        name: only_in(AFTER, second[key], first[key])
        for key, name in {
            "user": 'process_cpu_seconds_total{process="system",state="user"}',
            "system": 'process_cpu_seconds_total{process="system",state="system"}',
        }.items()
    }
    run.throughputs = [20_000.0, 20_000.0]
    return run.with_rates(rates={**quiet_rates(), **process(), **changes})


def wobbling(samples: pl.DataFrame, seed: int = 3) -> pl.DataFrame:
    """With the noise that counters of ticks have."""
    generator = np.random.default_rng(seed)
    noise = {
        name: samples[name] + generator.normal(0, 0.002, samples.height)
        for name in samples.columns
        if name.startswith("process_cpu_seconds_total")
    }
    return samples.with_columns(**noise)


def characterised(run: SyntheticRun, facts: RunFacts) -> Characterisation:
    results = run.results()
    return characterise(facts, wobbling(run.samples()), results, pl.DataFrame())


def changes_told(found: Characterisation) -> list[Finding]:
    return [finding for finding in found.findings if "without a phase being declared" in finding.sentence]


def test_an_undeclared_change_is_told_with_the_series_that_changed() -> None:
    run = two_behaviours({"user": 0.2, "system": 0.2}, {"user": 0.45, "system": 0.45})
    found = characterised(run, one_measured_phase(run))
    [told] = changes_told(found)
    assert told.phase == "measure"
    assert "the system's CPU use went from 0.4" in told.sentence
    assert "to 0.9" in told.sentence
    assert told.evidence[0].quantity.startswith("process_cpu_cores")
    assert found.phases_found is not None
    assert len(found.phases_found.undeclared_boundaries_seconds) == 1
    # Nine seconds in; the clock starts with the first sample, 0.43 s before the first phase.
    second = float(told.sentence.split("changed at ")[1].split(" s ")[0])
    assert second == pytest.approx(9.0 + 0.43, abs=0.6)


def test_a_change_in_kind_at_the_same_cpu_use_is_told_too() -> None:
    run = two_behaviours({"user": 0.5, "system": 0.1}, {"user": 0.1, "system": 0.5})
    [told] = changes_told(characterised(run, one_measured_phase(run)))
    assert "the kernel's share of the system's CPU time" in told.sentence


def test_a_declared_change_is_no_news() -> None:
    run = two_behaviours({"user": 0.2, "system": 0.2}, {"user": 0.45, "system": 0.45})
    assert changes_told(characterised(run, run.run_facts())) == []


@pytest.mark.parametrize("seed", range(5))
def test_steady_noise_is_no_change(seed: int) -> None:
    run = two_behaviours({"user": 0.3, "system": 0.2}, {"user": 0.3, "system": 0.2})
    facts = one_measured_phase(run)
    found = characterise(facts, wobbling(run.samples(), seed), run.results(), pl.DataFrame())
    assert changes_told(found) == []


def test_samples_without_any_phase_are_of_none() -> None:
    run = two_behaviours({"user": 0.2, "system": 0.2}, {"user": 0.45, "system": 0.45})
    assert changes_told(characterised(run, replace(run.run_facts(), phases=()))) == []


def test_changes_that_squeezes_made_are_not_told() -> None:
    run = two_behaviours({"user": 0.2, "system": 0.2}, {"user": 0.45, "system": 0.45})
    facts = one_measured_phase(run)
    squeezed = replace(facts.phases[-1], kind="squeezed", start_ns=facts.phases[-1].end_ns - 1_000_000_000)
    found = characterised(run, replace(facts, phases=(*facts.phases, squeezed)))
    assert changes_told(found) == []
