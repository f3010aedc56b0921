"""What a pressure study says: verdicts, slack, tables and charts from the estimates of each phase.

``StudyRecord.result``::

    {"system", "workload", "limits": {...}, "seconds",
     "phases": [{"phase", "throughput_operations_per_second": INTERVAL, "limits": [resource], "none_of_these": bool,
                 "sentence", "blocks",
                 "resources": [{"squeeze", "resource", "status", "evidence", "elasticity": INTERVAL | null,
                                "p99_elasticity": INTERVAL | null, "slack": float | null, "sentence",
                                "levels": [{"asked_fraction", "left_fraction", "throughput_ratio": INTERVAL,
                                            "blocks"}]}]}]}

``status`` is limits, does_not_limit, abstains or not_squeezable; ``evidence`` is experiment, intensity or none; an
INTERVAL is ``{"estimate", "low", "high"}``. ``resource`` is one of ``squeezes/base.py``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rackscope.analysis.elasticity import FREE
from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.analysis.pressure import PhaseJudgement, SqueezeVerdict, WeakerEvidence, judge_phase
from rackscope.runs.study import Axis, Chart, Column, Finding, Series, Table
from rackscope.studies.disturbance import Disturbances
from rackscope.studies.limits import describe_limits
from rackscope.units import format_amount

if TYPE_CHECKING:
    from rackscope.analysis.findings import Characterisation, PhaseCharacterisation, ResourceAssessment
    from rackscope.runs.prepare import Prepared
    from rackscope.squeezes.base import Place
    from rackscope.squeezes.provision import Limits
    from rackscope.studies.base import Conduct
    from rackscope.studies.bench import Bench
    from rackscope.studies.pressure import MeasuredPhase

#: What people call them, in the order of Awasthi 2015, Table 4.
RESOURCE_NAMES = {
    "cpu": "CPU",
    "dram_capacity": "DRAM capacity",
    "dram_bandwidth": "DRAM bandwidth",
    "last_level_cache": "last-level cache",
    "disk": "disk",
    "network": "network",
}
#: Which resource of a characterisation is weaker evidence on which of ours.
_CHARACTERISED = {
    "cpu_system": "cpu",
    "dram_capacity": "dram_capacity",
    "dram_bandwidth": "dram_bandwidth",
    "disk": "disk",
    "network": "network",
}
_STATUS = {"limits": "limits", "does not limit": "does_not_limit", "abstains": "abstains"}


@dataclass(frozen=True)
class _Refusal:
    squeeze: str
    resource: str
    reason: str
    needs: str


class Account:
    """Gathers phases as they are measured, and keeps the record up to date with what is known so far."""

    def __init__(self, conduct: Conduct, prepared: Prepared, limits: Limits) -> None:
        self._conduct = conduct
        self._prepared = prepared
        self._limits = limits
        self._started = time.monotonic()
        self._phases: list[MeasuredPhase] = []
        self._refusals: list[_Refusal] = []
        self._resources: dict[str, str] = {}
        self._capacities: list[tuple[str, str, float, str, str]] = []
        self._weaker: dict[str, dict[str, WeakerEvidence]] = {}
        self._doubts: list[Finding] = []
        self._disturbances = Disturbances()

    def update(self, phase: MeasuredPhase, bench: Bench) -> None:
        """Take over what is known of a phase until now; what it says is on disk when this returns."""
        if self._phases and self._phases[-1].name == phase.name:
            self._phases.pop()
        self._phases.append(phase)
        self._disturbances = replace(bench.disturbances)
        self._note(bench)
        self._write()

    def finish(self, place: Place) -> None:
        """With the run directory closed, add the weaker evidence on what could not be squeezed."""
        characterisation = self._characterise()
        self._weaker = {one.phase: _weaker(one) for one in characterisation.phases if one.kind == "measure"}
        self._doubts = [
            Finding(sentence=one.sentence, severity="serious" if one.severity == "wrong" else "warning")
            for one in characterisation.warnings
            if one.severity != "note"
        ]
        self._doubts += [
            Finding(sentence=f"no {part.replace('_', ' ')} of its own for the system: {reason}", severity="note")
            for part, reason in place.missing.items()
        ]
        self._write()

    def _note(self, bench: Bench) -> None:
        self._refusals = [
            _Refusal(name, squeeze.resource, why.reason, why.needs) for name, (squeeze, why) in bench.refused.items()
        ]
        self._resources = {name: one.squeeze.resource for name, one in bench.squeezables.items()}
        self._resources |= {name: squeeze.resource for name, (squeeze, _) in bench.refused.items()}
        self._capacities = [
            (name, one.squeeze.resource, one.capacity.value, one.capacity.unit, one.capacity.source)
            for name, one in bench.squeezables.items()
        ]

    def _characterise(self) -> Characterisation:
        from rackscope.runs.directory import RunDirectory
        from rackscope.runs.facts import characterise_run
        from rackscope.runs.study import MEMBERS

        folder = self._conduct.folder / MEMBERS / self._conduct.record.members[0].folder
        return characterise_run(RunDirectory.open(folder))

    def _write(self) -> None:
        record = self._conduct.record
        judged = [(phase, self._judge(phase)) for phase in self._phases]
        record.findings = [finding for phase, verdict in judged for finding in self._findings(phase, verdict)]
        record.findings += [*self._disturbed(), *self._doubts]
        record.tables = [
            _verdict_table(judged, self._refusals),
            _level_table(judged),
            _capacity_table(self._capacities),
            *([_refusal_table(self._refusals)] if self._refusals else []),
        ]
        record.charts = [chart for phase, verdict in judged for chart in _charts(phase, verdict)]
        record.method = self._method()
        record.result = {
            "system": self._prepared.system.name,
            "workload": self._prepared.plan.workload,
            "limits": describe_limits(self._limits),
            "seconds": round(time.monotonic() - self._started, 1),
            "phases": [self._result(phase, verdict) for phase, verdict in judged],
        }
        self._conduct.save()

    def _judge(self, phase: MeasuredPhase) -> PhaseJudgement:
        return judge_phase(phase.estimates, self._resources, self._weaker.get(phase.name))

    def _findings(self, phase: MeasuredPhase, verdict: PhaseJudgement) -> list[Finding]:
        name, workload = self._prepared.system.name, self._prepared.plan.workload
        subject = f"{name} under {workload}" if len(self._prepared.plan.stages) == 1 else f"{name}, {phase.name}"
        found = [Finding(sentence=_headline(subject, verdict), evidence=_limiting_evidence(verdict))]
        slack = [
            f"{_slack_words(one)} of its {RESOURCE_NAMES[one.resource]}"
            for one in verdict.resources
            if one.slack is not None and one.slack >= 0.1
        ]
        if slack:
            found.append(Finding(sentence=f"{subject} would lose less than 2 % without {_listing(slack)}"))
        return found

    def _disturbed(self) -> list[Finding]:
        """The warning that the host was not this study's alone, where it mattered."""
        seen = self._disturbances
        if not seen.kept:
            return []
        return [
            Finding(
                sentence=f"the host was busy with other things: {_listing(sorted(seen.reasons))} in {seen.kept} of the "
                f"{seen.stretches - seen.discarded} stretches that count",
                severity="warning",
                evidence="What limits here is partly what was taken away by others. Study it on a quiet host.",
            )
        ]

    def _method(self) -> list[str]:
        lines = []
        for phase in self._phases:
            blocks = max((stretch.block for stretch in phase.stretches), default=0)
            squeezed = [stretch for stretch in phase.stretches if stretch.condition != FREE]
            left_out = sum(estimate.left_out for estimate in phase.estimates)
            lines.append(
                f"{phase.name}: {len(phase.stretches)} stretches in {blocks} blocks, {len(squeezed)} of them squeezed, "
                f"in an order shuffled from a seed with a free stretch beside each squeezed one; {left_out} left out"
                + (" for want of throughput in them or beside them." if left_out else ".")
            )
        seen = self._disturbances
        if seen.discarded:
            lines.append(
                f"{seen.discarded} stretches were discarded and measured again, because "
                f"{_listing(sorted(seen.reasons))} while they lasted."
            )
        lines.append(
            "An elasticity is the logarithm of squeezed over neighbouring free throughput, divided by the logarithm of "
            "the part of the resource that was measured to be left. Intervals are 95 %, over blocks; verdicts are "
            "corrected for the number of squeezes (Holm 1979) and for looking between blocks."
        )
        return lines

    def _result(self, phase: MeasuredPhase, verdict: PhaseJudgement) -> dict[str, Any]:
        free = [stretch.throughput for stretch in phase.stretches if stretch.condition == FREE]
        resources = [_squeeze_result(one) for one in verdict.squeezes]
        resources += [_refusal_result(refusal, self._weaker.get(phase.name, {})) for refusal in self._refusals]
        return {
            "phase": phase.name,
            "throughput_operations_per_second": _interval(mean_interval(free)),
            "limits": list(verdict.limits),
            "none_of_these": verdict.none_limits,
            "sentence": verdict.sentence,
            "blocks": max((stretch.block for stretch in phase.stretches), default=0),
            "resources": resources,
        }


def _headline(subject: str, verdict: PhaseJudgement) -> str:
    limiting = [RESOURCE_NAMES[name] for name in verdict.limits]
    unproven = [RESOURCE_NAMES[one.resource] for one in verdict.resources if one.resource in verdict.open]
    aside = f"; {_listing(unproven)} could not be decided by experiment" if unproven else ""
    if limiting:
        return f"{subject} is limited by {_listing(limiting)}{aside}"
    if verdict.none_limits:
        squeezed = [RESOURCE_NAMES[one.resource] for one in verdict.resources if one.proven]
        return f"none of these limits {subject}: {_listing(squeezed)}{aside}"
    return f"what limits {subject} could not be decided{aside}"


def _limiting_evidence(verdict: PhaseJudgement) -> str:
    return "; ".join(one.sentence for one in verdict.resources if one.resource in verdict.limits)


def _slack_words(one: Any) -> str:
    return f"{100 * one.slack:.0f} %"


def _listing(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _weaker(phase: PhaseCharacterisation) -> dict[str, WeakerEvidence]:
    by_resource: dict[str, list[ResourceAssessment]] = {}
    for one in phase.resources:
        resource = _CHARACTERISED.get(one.resource)
        if resource is not None:
            by_resource.setdefault(resource, []).append(one)
    return {resource: _weaker_of(members) for resource, members in by_resource.items()}


def _weaker_of(members: Sequence[ResourceAssessment]) -> WeakerEvidence:
    order = ("limits", "near", "unknown", "spare")
    worst = min(members, key=lambda one: order.index(one.status))
    if worst.intensity is not None:
        shown = f"{worst.label} worked at {100 * worst.intensity:.0f} % of its ceiling"
    else:
        shown = f"{worst.label}: {worst.intensity_reason or 'its use is not known'}"
    saturation = f", with {worst.saturation} signs of waiting" if worst.saturation not in (None, "none") else ""
    if worst.status == "limits":
        return WeakerEvidence("limits", f"{shown}{saturation}")
    return WeakerEvidence("does not limit" if worst.status == "spare" else "abstains", f"{shown}{saturation}")


def _verdict_table(judged: Sequence[tuple[MeasuredPhase, PhaseJudgement]], refusals: Sequence[_Refusal]) -> Table:
    rows: list[list[str | float | int | bool | None]] = []
    for phase, verdict in judged:
        for resource in sorted(verdict.resources, key=lambda one: list(RESOURCE_NAMES).index(one.resource)):
            strongest = _strongest(resource.squeezes)
            elasticity = strongest.judged.elasticity if strongest is not None and strongest.judged is not None else None
            p99 = strongest.judged.p99_elasticity if strongest is not None and strongest.judged is not None else None
            rows.append(
                [
                    phase.name,
                    RESOURCE_NAMES[resource.resource],
                    resource.verdict,
                    None if elasticity is None else round(elasticity.estimate, 2),
                    _range(elasticity),
                    None if p99 is None else round(p99.estimate, 2),
                    resource.slack,
                    "experiment" if resource.proven else "intensity",
                ]
            )
        known = {one.resource for one in verdict.resources}
        rows += [
            [phase.name, RESOURCE_NAMES[name], "not known", None, None, None, None, "none"]
            for name in dict.fromkeys(refusal.resource for refusal in refusals)
            if name not in known
        ]
    return Table(
        identifier="pressure",
        title="Pressure points",
        caption="Elasticity: 1 where throughput falls as the resource does, 0 where it does not matter; that of p99 is "
        "negative where latency rises. Slack: what could be taken away at a loss below 2 %.",
        columns=[
            Column(name="phase"),
            Column(name="resource"),
            Column(name="verdict"),
            Column(name="elasticity", unit=""),
            Column(name="95 % interval"),
            Column(name="of p99", unit=""),
            Column(name="slack", unit="ratio"),
            Column(name="evidence"),
        ],
        rows=rows,
    )


def _strongest(squeezes: Sequence[SqueezeVerdict]) -> SqueezeVerdict | None:
    """The squeeze that a resource's elasticity is shown of."""
    known = [one for one in squeezes if one.judged is not None and one.judged.elasticity is not None]

    def estimate(one: SqueezeVerdict) -> float:
        assert one.judged is not None
        assert one.judged.elasticity is not None
        return one.judged.elasticity.estimate

    return max(known, key=estimate, default=None)


def _level_table(judged: Sequence[tuple[MeasuredPhase, PhaseJudgement]]) -> Table:
    rows: list[list[str | float | int | bool | None]] = []
    for phase, verdict in judged:
        for squeeze in verdict.squeezes:
            for level in sorted(squeeze.levels, key=lambda level: -level.requested_fraction):
                ratio = _ratio(level.log_ratio)
                rows.append(
                    [
                        f"{phase.name}: {squeeze.squeeze}",
                        level.requested_fraction,
                        level.achieved_fraction,
                        ratio.estimate if math.isfinite(ratio.estimate) else None,
                        _range(ratio, percent=True),
                        len(level.values),
                    ]
                )
    return Table(
        identifier="levels",
        title="Squeezes",
        columns=[
            Column(name="squeeze"),
            Column(name="asked to leave", unit="ratio"),
            Column(name="measured to be left", unit="ratio"),
            Column(name="throughput kept", unit="ratio"),
            Column(name="95 % interval"),
            Column(name="blocks", unit="count"),
        ],
        rows=rows,
    )


def _capacity_table(capacities: Sequence[tuple[str, str, float, str, str]]) -> Table:
    return Table(
        identifier="capacities",
        title="What there was to squeeze",
        columns=[Column(name="squeeze"), Column(name="resource"), Column(name="capacity"), Column(name="which is")],
        rows=[
            [name, RESOURCE_NAMES[resource], format_amount(value, unit), source]
            for name, resource, value, unit, source in capacities
        ],
    )


def _refusal_table(refusals: Sequence[_Refusal]) -> Table:
    return Table(
        identifier="not-squeezable",
        title="Not squeezable here",
        columns=[Column(name="squeeze"), Column(name="resource"), Column(name="why"), Column(name="it would need")],
        rows=[[one.squeeze, RESOURCE_NAMES[one.resource], one.reason, one.needs or None] for one in refusals],
    )


def _charts(phase: MeasuredPhase, verdict: PhaseJudgement) -> list[Chart]:
    shown = [one for one in verdict.squeezes if one.judged is not None and one.judged.elasticity is not None]
    names = [one.squeeze for one in shown]
    intervals = [one.judged.elasticity for one in shown if one.judged is not None and one.judged.elasticity is not None]
    elasticity = Chart(
        identifier=f"elasticity-{phase.name}",
        title=f"Elasticity of throughput: {phase.name}",
        caption="How much of a small loss of the resource the throughput follows, with 95 % intervals.",
        x=Axis(label="squeeze", scale="category", categories=names),
        y=Axis(label="elasticity"),
        series=[
            Series(
                label="elasticity",
                kind="bars",
                x=[float(place) for place in range(len(names))],
                y=[interval.estimate for interval in intervals],
                low=[interval.low for interval in intervals],
                high=[interval.high for interval in intervals],
            )
        ],
    )
    kept = Chart(
        identifier=f"kept-{phase.name}",
        title=f"Throughput kept: {phase.name}",
        caption="Throughput as a part of that of the free stretches beside, over what was left of the resource.",
        x=Axis(label="left of the resource", unit="ratio"),
        y=Axis(label="throughput kept", unit="ratio"),
        series=[series for one in verdict.squeezes if (series := _kept(one)).x],
    )
    return [elasticity, kept]


def _kept(squeeze: SqueezeVerdict) -> Series:
    series = Series(label=squeeze.squeeze, x=[], y=[], low=[], high=[])
    for level in sorted(squeeze.levels, key=lambda level: level.achieved_fraction or 0):
        ratio = _ratio(level.log_ratio)
        if level.achieved_fraction is None or not math.isfinite(ratio.estimate):
            continue
        series.x.append(level.achieved_fraction)
        series.y.append(ratio.estimate)
        series.low.append(ratio.low)
        series.high.append(ratio.high)
    if series.x:
        series.x.append(1.0)
        series.y.append(1.0)
        series.low.append(None)
        series.high.append(None)
    return series


def _squeeze_result(one: SqueezeVerdict) -> dict[str, Any]:
    judged = one.judged
    return {
        "squeeze": one.squeeze,
        "resource": one.resource,
        "status": _STATUS[one.verdict],
        "evidence": "experiment",
        "elasticity": None if judged is None else _interval(judged.elasticity),
        "p99_elasticity": None if judged is None else _interval(judged.p99_elasticity),
        "slack": one.slack,
        "sentence": one.sentence,
        "levels": [
            {
                "asked_fraction": level.requested_fraction,
                "left_fraction": level.achieved_fraction,
                "throughput_ratio": _interval(_ratio(level.log_ratio)),
                "blocks": len(level.values),
            }
            for level in one.levels
        ],
    }


def _refusal_result(refusal: _Refusal, weaker: dict[str, WeakerEvidence]) -> dict[str, Any]:
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


def _ratio(log_ratio: Interval) -> Interval:
    def power(value: float | None) -> float | None:
        return None if value is None else math.exp(value)

    estimate = math.exp(log_ratio.estimate) if math.isfinite(log_ratio.estimate) else math.nan
    return Interval(estimate, power(log_ratio.low), power(log_ratio.high), log_ratio.confidence, log_ratio.count)


def _interval(interval: Interval | None) -> dict[str, float | None] | None:
    if interval is None or not math.isfinite(interval.estimate):
        return None
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high}


def _range(interval: Interval | None, *, percent: bool = False) -> str | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    if percent:
        return f"{100 * interval.low:.1f} to {100 * interval.high:.1f} %"
    return f"{interval.low:.2f} to {interval.high:.2f}"
