"""What a pressure study says: verdicts, slack, tables and charts from the estimates of each phase.

``StudyRecord.result``::

    {"system", "workload", "limits": {...}, "seconds", "capacities": {squeeze: {"resource", "value", "unit"}},
     "phases": [{"phase", "throughput_operations_per_second": INTERVAL, "limits": [resource], "none_of_these": bool,
                 "sentence", "blocks",
                 "resources": [{"squeeze", "resource", "status", "evidence", "elasticity": INTERVAL | null,
                                "p99_elasticity": INTERVAL | null, "slack": float | null, "sentence",
                                "levels": [{"asked_fraction", "left_fraction", "throughput_ratio": INTERVAL,
                                            "loss_bound": float | null,
                                            "blocks"}]}]}]}

``status`` is limits, does_not_limit, inconclusive or not_squeezable; ``evidence`` is experiment, intensity or none; an
INTERVAL is ``{"estimate", "low", "high", "count"}``. ``resource`` is one of ``squeezes/base.py``.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from rackscope.analysis import wording
from rackscope.analysis.adjustment import adjust_for_speed
from rackscope.analysis.elasticity import bounded_slack
from rackscope.analysis.findings import Characterisation, PhaseCharacterisation
from rackscope.analysis.intervals import mean_interval
from rackscope.analysis.pressure import (
    PhaseJudgement,
    ResourceVerdict,
    SqueezeVerdict,
    WeakerEvidence,
    judge_phase,
)
from rackscope.analysis.windows import FREE
from rackscope.runs.directory import RunDirectory
from rackscope.runs.facts import characterise_run
from rackscope.runs.prepare import Prepared
from rackscope.runs.study import MEMBERS, Finding
from rackscope.squeezes.base import Isolation
from rackscope.squeezes.provision import Limits
from rackscope.studies.base import Conduct
from rackscope.studies.bench.interference import Interference
from rackscope.studies.bench.session import Bench
from rackscope.studies.kit import finding, interference_findings, interval_result, measured_again, note
from rackscope.studies.pressure.limits import describe_limits
from rackscope.studies.pressure.measure import MeasuredPhase
from rackscope.studies.pressure.points import RESOURCES, by_resource, worst_of
from rackscope.studies.pressure.tables import (
    Refusal,
    capacity_table,
    charts_of,
    level_table,
    ratio_of,
    refusal_table,
    verdict_table,
)

#: Doubts about a run's own interval, which rests on long repetitions; that of a study rests on blocks.
_OF_REPETITIONS = frozenset({"short_phase", "wide_interval", "too_few_repetitions"})
_STATUS = {"limits": "limits", "does not limit": "does_not_limit", "inconclusive": "inconclusive"}


class Account:
    """Gathers phases as they are measured, and keeps the record up to date with what is known so far."""

    def __init__(self, conduct: Conduct, prepared: Prepared, limits: Limits) -> None:
        self._conduct = conduct
        self._prepared = prepared
        self._limits = limits
        self._started = time.monotonic()
        self._phases: list[MeasuredPhase] = []
        self._refusals: list[Refusal] = []
        self._resources: dict[str, str] = {}
        self._capacities: list[tuple[str, str, float, str, str]] = []
        self._weaker: dict[str, dict[str, WeakerEvidence]] = {}
        self._doubts: list[Finding] = []
        self._interference = Interference()

    def update(self, phase: MeasuredPhase, bench: Bench) -> None:
        """Take over what is known of a phase until now; what it says is on disk when this returns."""
        if self._phases and self._phases[-1].name == phase.name:
            self._phases.pop()
        self._phases.append(phase)
        self._interference = replace(bench.interference)
        self._note(bench)
        self._write()

    def finish(self, isolation: Isolation) -> None:
        """With the run directory closed, add the weaker evidence on what could not be squeezed."""
        characterisation = self._characterise()
        self._weaker = {one.phase: _weaker(one) for one in characterisation.phases if one.kind == "measure"}
        self._doubts = [
            finding(one.sentence, "", "serious" if one.severity == "wrong" else "warning")
            for one in characterisation.warnings
            if one.severity != "note" and one.code not in _OF_REPETITIONS
        ]
        self._doubts += [
            note(f"no {part.replace('_', ' ')} of its own for the system: {reason}")
            for part, reason in isolation.missing.items()
        ]
        self._write()

    def _note(self, bench: Bench) -> None:
        self._refusals = [
            Refusal(name, squeeze.resource, why.reason, why.needs) for name, (squeeze, why) in bench.refused.items()
        ]
        self._resources = {name: one.squeeze.resource for name, one in bench.squeezables.items()}
        self._resources |= {name: squeeze.resource for name, (squeeze, _) in bench.refused.items()}
        self._capacities = [
            (name, one.squeeze.resource, one.capacity.value, one.capacity.unit, one.capacity.source)
            for name, one in bench.squeezables.items()
        ]

    def _characterise(self) -> Characterisation:
        folder = self._conduct.folder / MEMBERS / self._conduct.record.members[0].folder
        return characterise_run(RunDirectory.open(folder))

    def _write(self) -> None:
        record = self._conduct.record
        judged = [(phase, self._judge(phase)) for phase in self._phases]
        record.findings = [finding for phase, verdict in judged for finding in self._findings(phase, verdict)]
        record.findings += interference_findings(
            self._interference, "A limit found here may be due to what was taken away. Study it on a quiet host."
        )
        record.findings += self._doubts
        record.tables = [
            *verdict_table(judged, self._refusals),
            *level_table(judged),
            *capacity_table(self._capacities),
            *refusal_table(self._refusals),
        ]
        record.charts = [chart for phase, verdict in judged for chart in charts_of(phase, verdict)]
        record.method = self._method()
        record.result = {
            "system": self._prepared.system.name,
            "workload": self._prepared.plan.workload,
            "limits": describe_limits(self._limits),
            "seconds": round(time.monotonic() - self._started, 1),
            "capacities": {
                name: {"resource": resource, "value": value, "unit": unit}
                for name, resource, value, unit, _ in self._capacities
            },
            "phases": [self._result(phase, verdict) for phase, verdict in judged],
        }
        self._conduct.save()

    def _judge(self, phase: MeasuredPhase) -> PhaseJudgement:
        return judge_phase(phase.estimates, self._resources, self._weaker.get(phase.name))

    def _findings(self, phase: MeasuredPhase, verdict: PhaseJudgement) -> list[Finding]:
        name, workload = self._prepared.system.name, self._prepared.plan.workload
        subject = f"{name} under {workload}" if len(self._prepared.plan.stages) == 1 else f"{name}, {phase.name}"
        found = [finding(_headline(subject, verdict), _limiting_evidence(verdict))]
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
        for phase in self._phases:
            blocks = max((window.block for window in phase.windows), default=0)
            squeezed = [window for window in phase.windows if window.condition != FREE]
            left_out = sum(estimate.left_out for estimate in phase.estimates)
            lines.append(
                f"{phase.name}: {len(phase.windows)} windows in {blocks} blocks, {len(squeezed)} of them squeezed, "
                f"in an order shuffled from a seed with a free window beside each squeezed one; {left_out} left out"
                + (" because of no throughput in them or beside them." if left_out else ".")
            )
        lines.append(measured_again(self._interference))
        lines += self._speed_lines()
        lines.append(
            "An elasticity is the logarithm of squeezed over neighbouring free throughput, divided by the logarithm of "
            "the part of the resource that was measured to be left. Intervals are 95 %, over blocks; verdicts are "
            "corrected for the number of squeezes (Holm 1979) and for repeated looks between blocks."
        )
        return lines

    def _speed_lines(self) -> list[str]:
        lines = []
        for phase in self._phases:
            slopes = adjust_for_speed(phase.windows).slopes
            if slopes:
                lines.append(
                    f"{phase.name}: throughput was corrected for the speed of the cores, which other "
                    f"guests of this host change: the slope is {slopes[0]:.2f} (1: bound by that speed, 0: not)."
                )
        return lines

    def _result(self, phase: MeasuredPhase, verdict: PhaseJudgement) -> dict[str, Any]:
        free = [window.throughput for window in phase.windows if window.condition == FREE]
        resources = [_squeeze_result(one) for one in verdict.squeezes]
        resources += [_refusal_result(refusal, self._weaker.get(phase.name, {})) for refusal in self._refusals]
        return {
            "phase": phase.name,
            "throughput_operations_per_second": interval_result(mean_interval(free)),
            "limits": list(verdict.limits),
            "none_of_these": verdict.none_limits,
            "sentence": verdict.sentence,
            "blocks": max((window.block for window in phase.windows), default=0),
            "resources": resources,
        }


def _headline(subject: str, verdict: PhaseJudgement) -> str:
    limiting = [RESOURCES[name] for name in verdict.limits]
    unproven = [RESOURCES[one.resource] for one in verdict.resources if one.resource in verdict.open]
    open_words = f"{wording.listing(unproven)} {'is' if len(unproven) == 1 else 'are'} inconclusive" if unproven else ""
    aside = f"; {open_words}" if unproven else ""
    if limiting:
        return f"{subject} is limited by {wording.listing(limiting)}{aside}"
    if verdict.none_limits:
        squeezed = [RESOURCES[one.resource] for one in verdict.resources if one.proven]
        return f"none of these limits {subject}: {wording.listing(squeezed)}{aside}"
    return f"no limit of {subject} was proven: {open_words or 'the study is inconclusive'}"


def _limiting_evidence(verdict: PhaseJudgement) -> str:
    return "; ".join(one.sentence for one in verdict.resources if one.resource in verdict.limits)


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
    judged = one.judged
    return {
        "squeeze": one.squeeze,
        "resource": one.resource,
        "status": _STATUS[one.verdict],
        "evidence": "experiment",
        "elasticity": None if judged is None else interval_result(judged.elasticity),
        "p99_elasticity": None if judged is None else interval_result(judged.p99_elasticity),
        "slack": one.slack,
        "sentence": one.sentence,
        "levels": [
            {
                "asked_fraction": level.requested_fraction,
                "left_fraction": level.achieved_fraction,
                "throughput_ratio": interval_result(ratio_of(level.log_ratio)),
                "loss_bound": level.loss_bound,
                "blocks": len(level.values),
            }
            for level in one.levels
        ],
    }


def _refusal_result(refusal: Refusal, weaker: dict[str, WeakerEvidence]) -> dict[str, Any]:
    evidence = weaker.get(refusal.resource)
    return {
        "squeeze": refusal.squeeze,
        "resource": refusal.resource,
        "status": "not_squeezable",
        "evidence": "none" if evidence is None else "intensity",
        "weaker_status": None if evidence is None else _STATUS[evidence.verdict],
        "elasticity": None,
        "p99_elasticity": None,
        "slack": None,
        "sentence": refusal.reason if evidence is None else f"{refusal.reason}; {evidence.sentence}",
        "levels": [],
    }
