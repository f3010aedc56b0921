"""A pressure study in tables and charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackscope.analysis.intervals import Interval
from rackscope.runs.study import Axis, Chart, Column, Series, Table
from rackscope.studies.pressure.points import RESOURCES
from rackscope.units import format_amount

if TYPE_CHECKING:
    from rackscope.analysis.pressure import PhaseJudgement, SqueezeVerdict
    from rackscope.studies.pressure.study import MeasuredPhase


@dataclass(frozen=True)
class Refusal:
    squeeze: str
    resource: str
    reason: str
    needs: str


def verdict_table(judged: Sequence[tuple[MeasuredPhase, PhaseJudgement]], refusals: Sequence[Refusal]) -> Table:
    rows: list[list[str | float | int | bool | None]] = []
    for phase, verdict in judged:
        for resource in sorted(verdict.resources, key=lambda one: list(RESOURCES).index(one.resource)):
            strongest = _strongest(resource.squeezes)
            elasticity = strongest.judged.elasticity if strongest is not None and strongest.judged is not None else None
            p99 = strongest.judged.p99_elasticity if strongest is not None and strongest.judged is not None else None
            rows.append(
                [
                    phase.name,
                    RESOURCES[resource.resource],
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
            [phase.name, RESOURCES[name], "not known", None, None, None, None, "none"]
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


def level_table(judged: Sequence[tuple[MeasuredPhase, PhaseJudgement]]) -> Table:
    rows: list[list[str | float | int | bool | None]] = []
    for phase, verdict in judged:
        for squeeze in verdict.squeezes:
            for level in sorted(squeeze.levels, key=lambda level: -level.requested_fraction):
                ratio = ratio_of(level.log_ratio)
                rows.append(
                    [
                        f"{phase.name}: {squeeze.squeeze}",
                        level.requested_fraction,
                        level.achieved_fraction,
                        ratio.estimate if math.isfinite(ratio.estimate) else None,
                        _range(ratio, percent=True),
                        level.loss_bound,
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
            Column(name="lost at most", unit="ratio"),
            Column(name="blocks", unit="count"),
        ],
        rows=rows,
    )


def capacity_table(capacities: Sequence[tuple[str, str, float, str, str]]) -> Table:
    return Table(
        identifier="capacities",
        title="What there was to squeeze",
        columns=[Column(name="squeeze"), Column(name="resource"), Column(name="capacity"), Column(name="which is")],
        rows=[
            [name, RESOURCES[resource], format_amount(value, unit), source]
            for name, resource, value, unit, source in capacities
        ],
    )


def refusal_table(refusals: Sequence[Refusal]) -> Table:
    return Table(
        identifier="not-squeezable",
        title="Not squeezable here",
        columns=[Column(name="squeeze"), Column(name="resource"), Column(name="why"), Column(name="it would need")],
        rows=[[one.squeeze, RESOURCES[one.resource], one.reason, one.needs or None] for one in refusals],
    )


def charts_of(phase: MeasuredPhase, verdict: PhaseJudgement) -> list[Chart]:
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
        caption="Throughput as a part of that of the free windows beside, over what was left of the resource.",
        x=Axis(label="left of the resource", unit="ratio"),
        y=Axis(label="throughput kept", unit="ratio"),
        series=[series for one in verdict.squeezes if (series := _kept(one)).x],
    )
    return [elasticity, kept]


def _kept(squeeze: SqueezeVerdict) -> Series:
    series = Series(label=squeeze.squeeze, x=[], y=[], low=[], high=[])
    for level in sorted(squeeze.levels, key=lambda level: level.achieved_fraction or 0):
        ratio = ratio_of(level.log_ratio)
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


def ratio_of(log_ratio: Interval) -> Interval:
    def power(value: float | None) -> float | None:
        return None if value is None else math.exp(value)

    estimate = math.exp(log_ratio.estimate) if math.isfinite(log_ratio.estimate) else math.nan
    return Interval(estimate, power(log_ratio.low), power(log_ratio.high), log_ratio.confidence, log_ratio.count)


def _range(interval: Interval | None, *, percent: bool = False) -> str | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    if percent:
        return f"{100 * interval.low:.1f} to {100 * interval.high:.1f} %"
    return f"{interval.low:.2f} to {interval.high:.2f}"
