"""A pressure study in tables and charts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rackscope.analysis.intervals import Interval
from rackscope.analysis.pressure import PhaseJudgement, ResourceVerdict, SqueezeVerdict
from rackscope.runs.study import Chart, Series, Table
from rackscope.studies.bench.session import Bench
from rackscope.studies.kit import axis, chart, estimates, table_of
from rackscope.studies.pressure.measure import MeasuredPhase
from rackscope.studies.pressure.points import RESOURCES
from rackscope.units import format_amount

_Judged = Sequence[tuple[MeasuredPhase, PhaseJudgement]]


def make_tables(judged: _Judged, bench: Bench) -> list[Table]:
    """Verdicts, levels, what there was to squeeze and what could not be: those of which there is something."""
    return [
        *_verdict_table(judged, bench),
        *_level_table(judged),
        *table_of(
            "capacities",
            "What there was to squeeze",
            bench.squeezables.values(),
            [
                ("squeeze", lambda one: one.squeeze.name),
                ("resource", lambda one: RESOURCES[one.squeeze.resource]),
                ("capacity", lambda one: format_amount(one.capacity.value, one.capacity.unit)),
                ("which is", lambda one: one.capacity.source),
            ],
        ),
        *table_of(
            "not-squeezable",
            "Not squeezable here",
            bench.refused.values(),
            [
                ("squeeze", lambda one: one[0].name),
                ("resource", lambda one: RESOURCES[one[0].resource]),
                ("why", lambda one: one[1].reason),
                ("what is missing", lambda one: one[1].needs or None),
            ],
        ),
    ]


def _verdict_table(judged: _Judged, bench: Bench) -> list[Table]:
    rows: list[tuple[str, ResourceVerdict | str]] = []
    for phase, verdict in judged:
        rows += [
            (phase.name, one) for one in sorted(verdict.resources, key=lambda one: list(RESOURCES).index(one.resource))
        ]
        known = {one.resource for one in verdict.resources}
        refused = dict.fromkeys(squeeze.resource for squeeze, _ in bench.refused.values())
        rows += [(phase.name, name) for name in refused if name not in known]
    return table_of(
        "pressure",
        "Pressure points",
        [(phase, *_cells(one)) for phase, one in rows],
        [
            ("phase", lambda one: one[0]),
            ("resource", lambda one: RESOURCES[one[1]]),
            ("verdict", lambda one: one[2]),
            (("elasticity", ""), lambda one: one[3] and round(one[3].estimate, 2)),
            ("95 % interval", lambda one: _range(one[3])),
            (("of p99", ""), lambda one: one[4] and round(one[4].estimate, 2)),
            (("slack", "ratio"), lambda one: one[5]),
            ("evidence", lambda one: one[6]),
        ],
        caption="Elasticity: 1 where throughput falls in proportion to the resource, 0 where it does not matter; "
        "that of p99 is negative where latency rises. Slack: what could be taken away at a loss below 2 %.",
    )


def _cells(one: ResourceVerdict | str) -> tuple[str, str, Interval | None, Interval | None, float | None, str]:
    """A resource, its verdict, elasticities of throughput and p99, slack, and what that rests on."""
    if isinstance(one, str):
        return one, "not known", None, None, None, "none"
    strongest = max(
        (squeeze.judged for squeeze in one.squeezes if _elasticity(squeeze) is not None),
        key=lambda level: level.elasticity.estimate if level and level.elasticity else -math.inf,
        default=None,
    )
    elasticity, p99 = (strongest.elasticity, strongest.p99_elasticity) if strongest is not None else (None, None)
    return one.resource, one.verdict, elasticity, p99, one.slack, "experiment" if one.proven else "intensity"


def _elasticity(squeeze: SqueezeVerdict) -> Interval | None:
    return None if squeeze.judged is None else squeeze.judged.elasticity


def _level_table(judged: _Judged) -> list[Table]:
    levels = [
        (f"{phase.name}: {squeeze.squeeze}", level, level.log_ratio.exponential())
        for phase, verdict in judged
        for squeeze in verdict.squeezes
        for level in sorted(squeeze.levels, key=lambda level: -level.requested_fraction)
    ]
    return table_of(
        "levels",
        "Squeezes",
        levels,
        [
            ("squeeze", lambda one: one[0]),
            (("asked to leave", "ratio"), lambda one: one[1].requested_fraction),
            (("measured to be left", "ratio"), lambda one: one[1].achieved_fraction),
            (("throughput kept", "ratio"), lambda one: one[2].estimate if math.isfinite(one[2].estimate) else None),
            ("95 % interval", lambda one: _range(one[2], percent=True)),
            (("lost at most", "ratio"), lambda one: one[1].loss_bound),
            (("blocks", "count"), lambda one: len(one[1].values)),
        ],
    )


def charts_of(phase: MeasuredPhase, verdict: PhaseJudgement) -> list[Chart]:
    """Elasticities, and throughput over what was left."""
    shown = [(one.squeeze, known) for one in verdict.squeezes if (known := _elasticity(one)) is not None]
    elasticity = chart(
        f"elasticity-{phase.name}",
        f"Elasticity of throughput: {phase.name}",
        axis("squeeze", categories=[name for name, _ in shown]),
        axis("elasticity"),
        [estimates("elasticity", ((float(at), one) for at, (_, one) in enumerate(shown)), "bars")],
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
        if level.achieved_fraction is not None and math.isfinite((ratio := level.log_ratio.exponential()).estimate)
    ]
    whole = [(1.0, Interval(1.0, None, None, 0.95, 0))] if known else []
    return estimates(squeeze.squeeze, [*known, *whole], "line")


def _range(interval: Interval | None, *, percent: bool = False) -> str | None:
    if interval is None or interval.low is None or interval.high is None:
        return None
    if percent:
        return f"{100 * interval.low:.1f} to {100 * interval.high:.1f} %"
    return f"{interval.low:.2f} to {interval.high:.2f}"
