"""What a pressure study says: verdicts, slack, tables and charts from the estimates of each phase."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rackscope.analysis import wording
from rackscope.analysis.adjustment import adjust_for_speed
from rackscope.analysis.elasticity import LevelEstimate, bounded_slack
from rackscope.analysis.findings import Characterisation, PhaseCharacterisation
from rackscope.analysis.intervals import mean_interval
from rackscope.analysis.pressure import PhaseJudgement, ResourceVerdict, SqueezeVerdict, WeakerEvidence, judge_phase
from rackscope.analysis.windows import FREE
from rackscope.runs.directory import RunDirectory
from rackscope.runs.facts import characterise_run
from rackscope.runs.prepare import Prepared
from rackscope.runs.study import MEMBERS, Finding
from rackscope.squeezes.base import Isolation, NotSqueezable, Squeeze
from rackscope.squeezes.provision import Limits
from rackscope.studies.base import Conduct
from rackscope.studies.bench.session import Bench
from rackscope.studies.kit import finding, interference_findings, measured_again, note, picked, plain
from rackscope.studies.pressure.limits import describe_limits
from rackscope.studies.pressure.measure import MeasuredPhase
from rackscope.studies.pressure.points import RESOURCES, by_resource, worst_of
from rackscope.studies.pressure.tables import charts_of, make_tables

#: Doubts about a run's own interval, which rests on long repetitions; that of a study rests on blocks.
_OF_REPETITIONS = frozenset({"short_phase", "wide_interval", "too_few_repetitions"})
_STATUS = {"limits": "limits", "does not limit": "does_not_limit", "inconclusive": "inconclusive"}


@dataclass
class Account:
    """Gathers phases as they are measured, and keeps the record up to date with what is known so far."""

    conduct: Conduct
    prepared: Prepared
    limits: Limits
    started: float = field(default_factory=time.monotonic)
    phases: dict[str, MeasuredPhase] = field(default_factory=dict)
    weaker: dict[str, dict[str, WeakerEvidence]] = field(default_factory=dict)
    doubts: list[Finding] = field(default_factory=list)

    def update(self, phase: MeasuredPhase, bench: Bench) -> None:
        """Take over what is known of a phase until now; what it says is on disk when this returns."""
        self.phases[phase.name] = phase
        self.bench = bench
        self._write()

    def finish(self, isolation: Isolation) -> None:
        """With the run directory closed, add the weaker evidence on what could not be squeezed."""
        characterisation = self._characterise()
        self.weaker = {one.phase: _weaker(one) for one in characterisation.phases if one.kind == "measure"}
        self.doubts = [
            finding(one.sentence, "", "serious" if one.severity == "wrong" else "warning")
            for one in characterisation.warnings
            if one.severity != "note" and one.code not in _OF_REPETITIONS
        ]
        self.doubts += [
            note(f"no {part.replace('_', ' ')} of its own for the system: {reason}")
            for part, reason in isolation.missing.items()
        ]
        self._write()

    def _characterise(self) -> Characterisation:
        folder = self.conduct.folder / MEMBERS / self.conduct.record.members[0].folder
        return characterise_run(RunDirectory.open(folder))

    def _write(self) -> None:
        record, resources = self.conduct.record, self.bench.resources
        judged = [
            (phase, judge_phase(phase.estimates, resources, self.weaker.get(phase.name)))
            for phase in self.phases.values()
        ]
        record.findings = [finding for phase, verdict in judged for finding in self._findings(phase, verdict)]
        record.findings += interference_findings(
            self.bench.interference, "A limit found here may be due to what was taken away. Study it on a quiet host."
        )
        record.findings += self.doubts
        record.tables = make_tables(judged, self.bench)
        record.charts = [chart for phase, verdict in judged for chart in charts_of(phase, verdict)]
        record.method = self._method()
        record.result = {
            "system": self.prepared.system.name,
            "workload": self.prepared.plan.workload,
            "limits": describe_limits(self.limits),
            "seconds": round(time.monotonic() - self.started, 1),
            "capacities": {
                name: {"resource": one.squeeze.resource, **picked(one.capacity, "value", "unit")}
                for name, one in self.bench.squeezables.items()
            },
            "phases": [self._result(phase, verdict) for phase, verdict in judged],
        }
        self.conduct.save()

    def _findings(self, phase: MeasuredPhase, verdict: PhaseJudgement) -> list[Finding]:
        name, workload = self.prepared.system.name, self.prepared.plan.workload
        subject = f"{name} under {workload}" if len(self.prepared.plan.stages) == 1 else f"{name}, {phase.name}"
        limits = "; ".join(one.sentence for one in verdict.resources if one.resource in verdict.limits)
        found = [finding(_headline(subject, verdict), limits)]
        slack = [
            f"{100 * one.slack:.0f} % of its {RESOURCES[one.resource]}"
            for one in verdict.resources
            if one.slack is not None and one.slack >= 0.1
        ]
        if slack:
            found.append(finding(f"{subject} would lose less than 2 % without {wording.listing(slack)}"))
        bounded = [words for one in verdict.resources if one.slack is None and (words := _bounded_slack_words(one))]
        if bounded:
            found.append(finding(f"{subject} would lose {wording.listing(bounded)}"))
        return found

    def _method(self) -> list[str]:
        lines = []
        for phase in self.phases.values():
            blocks = max((window.block for window in phase.windows), default=0)
            squeezed = [window for window in phase.windows if window.condition != FREE]
            left_out = sum(estimate.left_out for estimate in phase.estimates)
            lines.append(
                f"{phase.name}: {len(phase.windows)} windows in {blocks} blocks, {len(squeezed)} of them squeezed, "
                f"in an order shuffled from a seed with a free window beside each squeezed one; {left_out} left out"
                + (" because of no throughput in them or beside them." if left_out else ".")
            )
        lines.append(measured_again(self.bench.interference))
        lines += [
            f"{phase.name}: throughput was corrected for the speed of the cores, which other guests of this host "
            f"change: the slope is {slopes[0]:.2f} (1: bound by that speed, 0: not)."
            for phase in self.phases.values()
            if (slopes := adjust_for_speed(phase.windows).slopes)
        ]
        lines.append(
            "An elasticity is the logarithm of squeezed over neighbouring free throughput, divided by the logarithm of "
            "the part of the resource that was measured to be left. Intervals are 95 %, over blocks; verdicts are "
            "corrected for the number of squeezes (Holm 1979) and for repeated looks between blocks."
        )
        return lines

    def _result(self, phase: MeasuredPhase, verdict: PhaseJudgement) -> dict[str, Any]:
        free = [window.throughput for window in phase.windows if window.condition == FREE]
        weaker = self.weaker.get(phase.name, {})
        return {
            "phase": phase.name,
            "throughput_operations_per_second": plain(mean_interval(free)),
            "limits": list(verdict.limits),
            "none_of_these": verdict.none_limits,
            "sentence": verdict.sentence,
            "blocks": max((window.block for window in phase.windows), default=0),
            "resources": [
                *(_squeeze_result(one) for one in verdict.squeezes),
                *(_refusal_result(name, *why, weaker) for name, why in self.bench.refused.items()),
            ],
        }


def _headline(subject: str, verdict: PhaseJudgement) -> str:
    limiting = [RESOURCES[name] for name in verdict.limits]
    undecided = [one for one in verdict.resources if one.resource in verdict.open]
    kinds = {
        "inconclusive": [RESOURCES[one.resource] for one in undecided if one.proven],
        "not proven, for want of a squeeze": [RESOURCES[one.resource] for one in undecided if not one.proven],
    }
    open_words = "; ".join(
        f"{wording.listing(names)} {'is' if len(names) == 1 else 'are'} {kind}"
        for kind, names in kinds.items()
        if names
    )
    aside = f"; {open_words}" if open_words else ""
    if limiting:
        return f"{subject} is limited by {wording.listing(limiting)}{aside}"
    if verdict.none_limits:
        squeezed = [RESOURCES[one.resource] for one in verdict.resources if one.proven]
        return f"None of these limits {subject}: {wording.listing(squeezed)}{aside}"
    return f"No limit of {subject} was proven: {open_words or 'the study is inconclusive'}"


def _bounded_slack_words(one: ResourceVerdict) -> str:
    """What taking from a resource that does not limit costs at most, where less than 2 % was not shown."""
    if one.verdict != "does not limit" or not one.squeezes:
        return ""
    bounds = [bounded_slack(squeeze.levels) for squeeze in one.squeezes]
    known = [bound for bound in bounds if bound is not None]
    if len(known) < len(bounds):
        return ""
    taken, lost = min(bound[0] for bound in known), max(bound[1] for bound in known)
    return f"at most {wording.percent(lost)} without {wording.percent(taken)} of its {RESOURCES[one.resource]}"


def _weaker(phase: PhaseCharacterisation) -> dict[str, WeakerEvidence]:
    found = {}
    for resource, members in by_resource(phase).items():
        worst, sentence = worst_of(members)
        verdict = {"limits": "limits", "spare": "does not limit"}.get(worst.status, "inconclusive")
        found[resource] = WeakerEvidence(verdict, sentence)  # type: ignore[arg-type]
    return found


def _squeeze_result(one: SqueezeVerdict) -> dict[str, Any]:
    return {
        "squeeze": one.squeeze,
        "resource": one.resource,
        "status": _STATUS[one.verdict],
        "evidence": "experiment",
        "elasticity": plain(one.judged and one.judged.elasticity),
        "p99_elasticity": plain(one.judged and one.judged.p99_elasticity),
        "slack": one.slack,
        "sentence": one.sentence,
        "levels": [_level_result(level) for level in one.levels],
    }


def _level_result(level: LevelEstimate) -> dict[str, Any]:
    return {
        "asked_fraction": level.requested_fraction,
        "left_fraction": level.achieved_fraction,
        "throughput_ratio": plain(level.log_ratio.exponential()),
        "loss_bound": level.loss_bound,
        "blocks": len(level.values),
    }


def _refusal_result(
    name: str, squeeze: Squeeze, why: NotSqueezable, weaker: Mapping[str, WeakerEvidence]
) -> dict[str, Any]:
    evidence = weaker.get(squeeze.resource)
    return {
        "squeeze": name,
        "resource": squeeze.resource,
        "status": "not_squeezable",
        "evidence": "none" if evidence is None else "intensity",
        "weaker_status": None if evidence is None else _STATUS[evidence.verdict],
        "elasticity": None,
        "p99_elasticity": None,
        "slack": None,
        "sentence": why.reason if evidence is None else f"{why.reason}; {evidence.sentence}",
        "levels": [],
    }
