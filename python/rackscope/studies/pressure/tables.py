"""A pressure study in tables and charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.analysis.intervals import Interval
from rackscope.analysis.pressure import PhaseJudgement, SqueezeVerdict
from rackscope.runs.study import Chart, Series, Table
from rackscope.studies.kit import Row, axis, chart, estimates, table
from rackscope.studies.pressure.measure import MeasuredPhase
from rackscope.studies.pressure.points import RESOURCES
from rackscope.units import format_amount


@dataclass(frozen=True)
class Refusal:
    squeeze: str
    resource: str
    reason: str
    needs: str


def verdict_table(judged: Sequence[tuple[MeasuredPhase, PhaseJudgement]], refusals: Sequence[Refusal]) -> list[Table]:
    rows: list[Row] = []
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
    return table(
        "pressure",
        "Pressure points",
        [
            "phase",
            "resource",
            "verdict",
            ("elasticity", ""),
            "95 % interval",
            ("of p99", ""),
            ("slack", "ratio"),
            "evidence",
        ],
        rows,
        caption="Elasticity: 1 where throughput falls in proportion to the resource, 0 where it does not matter; "
        "that of p99 is "
        "negative where latency rises. Slack: what could be taken away at a loss below 2 %.",
    )


def _strongest(squeezes: Sequence[SqueezeVerdict]) -> SqueezeVerdict | None:
    """The squeeze that a resource's elasticity is shown of."""
    known = [one for one in squeezes if one.judged is not None and one.judged.elasticity is not None]

    def estimate(one: SqueezeVerdict) -> float:
        assert one.judged is not None
        assert one.judged.elasticity is not None
        return one.judged.elasticity.estimate

    return max(known, key=estimate, default=None)


def level_table(judged: Sequence[tuple[MeasuredPhase, PhaseJudgement]]) -> list[Table]:
    rows: list[Row] = []
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
    return table(
        "levels",
        "Squeezes",
        [
            "squeeze",
            ("asked to leave", "ratio"),
            ("measured to be left", "ratio"),
            ("throughput kept", "ratio"),
            "95 % interval",
            ("lost at most", "ratio"),
            ("blocks", "count"),
        ],
        rows,
    )


def capacity_table(capacities: Sequence[tuple[str, str, float, str, str]]) -> list[Table]:
    return table(
        "capacities",
        "What there was to squeeze",
        ["squeeze", "resource", "capacity", "which is"],
        [
            [name, RESOURCES[resource], format_amount(value, unit), source]
            for name, resource, value, unit, source in capacities
        ],
    )


def refusal_table(refusals: Sequence[Refusal]) -> list[Table]:
    return table(
        "not-squeezable",
        "Not squeezable here",
        ["squeeze", "resource", "why", "what is missing"],
        [[one.squeeze, RESOURCES[one.resource], one.reason, one.needs or None] for one in refusals],
    )


def charts_of(phase: MeasuredPhase, verdict: PhaseJudgement) -> list[Chart]:
    """Elasticities, and throughput over what was left."""
    shown = [
        (one.squeeze, one.judged.elasticity)
        for one in verdict.squeezes
        if one.judged is not None and one.judged.elasticity is not None
    ]
    elasticities = estimates("elasticity", ((float(at), one) for at, (_, one) in enumerate(shown)), "bars")
    elasticity = chart(
        f"elasticity-{phase.name}",
        f"Elasticity of throughput: {phase.name}",
        axis("squeeze", categories=[name for name, _ in shown]),
        axis("elasticity"),
        [elasticities],
        caption="Relative loss of throughput for a small relative loss of the resource, with 95 % intervals.",
    )
    kept = chart(
        f"kept-{phase.name}",
        f"Throughput kept: {phase.name}",
        axis("left of the resource", "ratio"),
        axis("throughput kept", "ratio"),
        [series for one in verdict.squeezes if (series := _kept(one)).x],
        caption="Throughput as a fraction of that of neighbouring free windows, over what was left of the resource.",
    )
    return [elasticity, kept]


def _kept(squeeze: SqueezeVerdict) -> Series:
    known = [
        (level.achieved_fraction, ratio)
        for level in sorted(squeeze.levels, key=lambda level: level.achieved_fraction or 0)
        if level.achieved_fraction is not None and math.isfinite((ratio := ratio_of(level.log_ratio)).estimate)
    ]
    whole = [(1.0, Interval(1.0, None, None, 0.95, 0))] if known else []
    return estimates(squeeze.squeeze, [*known, *whole], "line")


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
