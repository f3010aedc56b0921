"""The door: a run's frames and facts in, its characterisation out."""

from __future__ import annotations

import polars as pl

from rackscope.analysis.context import Phase, Run
from rackscope.analysis.energy import measure_energy
from rackscope.analysis.energy_findings import energy_figures, energy_findings, energy_warnings
from rackscope.analysis.facts import RunFacts
from rackscope.analysis.findings import Characterisation, Finding, PhaseCharacterisation, Verdict
from rackscope.analysis.found_phases import find_phases_of
from rackscope.analysis.insights import find_insights, measure_figures
from rackscope.analysis.resources import judge_resources
from rackscope.analysis.thresholds import Thresholds, packaged_thresholds
from rackscope.analysis.trust import find_warnings
from rackscope.analysis.verdicts import judge_phase


def characterise(
    facts: RunFacts,
    samples: pl.DataFrame,
    results: pl.DataFrame,
    latency: pl.DataFrame,
    *,
    thresholds: Thresholds | None = None,
) -> Characterisation:
    """What held each phase back, with evidence. Frames may be empty or lack columns: what is then not known is said."""
    run = Run.of(facts, samples, results, latency, thresholds or packaged_thresholds())
    energy = measure_energy(run)
    phases: list[PhaseCharacterisation] = []
    findings: list[Finding] = []
    judged: list[tuple[Phase, Verdict]] = []
    for phase in run.phases():
        resources = judge_resources(phase)
        verdict = judge_phase(phase, resources)
        figures = measure_figures(phase)
        metered = energy.phase(phase.name, phase.kind) if energy else None
        figures |= energy_figures(metered) if metered else {}
        phases.append(
            PhaseCharacterisation(
                phase=phase.name,
                kind=phase.kind,
                repetitions=len(phase.windows),
                seconds=phase.windows,
                resources=tuple(one.assessment() for one in resources),
                verdict=verdict,
                figures=figures,
            )
        )
        judged.append((phase, verdict))
        findings.append(_verdict_finding(phase, verdict))
        if phase.kind == "measure":
            findings += find_insights(phase, figures, resources)
    from_data = find_phases_of(run)
    if from_data is not None:
        findings += from_data[1]
    findings += energy_findings(energy) if energy else []
    findings.sort(key=lambda finding: -finding.importance)
    warnings = find_warnings(run, judged, energy_warnings(energy, asked=facts.power_asked) if energy else ())
    return Characterisation(tuple(findings), tuple(warnings), tuple(phases), from_data[0] if from_data else None)


def _verdict_finding(phase: Phase, verdict: Verdict) -> Finding:
    weight = {"generator": 95, "limited": 90, "no_verdict": 85, "none_near": 80}[verdict.kind]
    # What is loaded or warmed up is seldom what a reader asks about.
    importance = weight if phase.kind == "measure" else weight // 4
    return Finding("verdict", importance, phase.name, verdict.sentence, verdict.evidence, verdict.advice)
