"""What ``study colocate`` says: which pairs fit, and how well pairs that were not measured are predicted.

``StudyRecord.result``::

    {"cores", "bound", "capacities": {RESOURCE: amount},
     "works": [WORK], "labels": {work: str}, "sides": [SIDE + {"values": [float], "crowded": bool,
               "predicted": {"kept", "low", "high", "safe"} | null}],
     "coefficients": {QUANTITY: {"taken": {RESOURCE: float}, "core_cost", "waiting_cost", "form_deviation", "pairs"}},
     "validation": {QUANTITY: {"sides", "mean_error", "p90_error", "textbook_mean_error", "coverage", "called_safe",
                               "wrongly_safe"}},
     "failures": [{"what", "reason"}]}

WORK and SIDE are those of ``models/colocation_record.py``. A side's ``predicted`` is of the pair left out of the fit.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rackscope.analysis.wording import listing, percent
from rackscope.studies.colocate.summary import Summary, summarise

if TYPE_CHECKING:
    from rackscope.models.colocation import Slowdown
    from rackscope.models.colocation_validation import ColocationValidation
    from rackscope.runs.study import Chart, Finding, StudyRecord, Table
    from rackscope.studies.colocate.carry_out import Outcome
    from rackscope.studies.colocate.plan import Plan
    from rackscope.studies.colocate.summary import Measured

_WORDS = {"throughput": "throughput", "p99": "p99"}
#: Fewer rounds than this are no interval to speak of.
_FEWEST_ROUNDS = 2


def describe(record: StudyRecord, plan: Plan, outcome: Outcome, *, whole: bool = True) -> None:
    """Write into ``record`` what is known so far; without ``whole`` pairs are left to a later time."""
    cores = int(record.result.get("cores") or 1)
    summary = summarise(plan, outcome, cores=cores)
    record.findings = [*_findings(plan, outcome, summary), *_warnings(outcome, summary)]
    record.tables = [*_pairs_table(plan, summary), *_validation_table(summary), *_works_table(plan, summary)]
    record.charts = _charts(summary) if whole else []
    record.method = _method(plan, outcome, cores)
    record.result = {**record.result, **result_of(plan, outcome, summary)}


def predictions(summary: Summary) -> dict[tuple[str, str], Slowdown]:
    """Of every side that was measured: what was predicted with its pair left out of the fit."""
    return {
        (side.work.name, side.neighbour.name): predicted
        for validation in summary.validations.values()
        for side, predicted in zip(validation.sides, validation.predicted, strict=True)
    }


def result_of(plan: Plan, outcome: Outcome, summary: Summary) -> dict[str, Any]:
    """For programs."""
    from rackscope.models.colocation_record import side_to_dict, work_to_dict

    predicted = predictions(summary)
    return {
        "bound": plan.bound,
        "capacities": dict(summary.capacities),
        "works": [work_to_dict(work) for work in summary.works.values()],
        "labels": {spec.name: spec.label for spec in plan.works},
        "sides": [
            {
                **side_to_dict(one.side),
                "values": list(one.values),
                "crowded": one.crowded,
                "predicted": _predicted(predicted.get((one.side.work.name, one.side.neighbour.name)), plan.bound),
            }
            for one in summary.measured
        ],
        "coefficients": {
            quantity: {
                "taken": dict(model.taken),
                "core_cost": model.core_cost,
                "waiting_cost": model.waiting_cost,
                "form_deviation": model.form_deviation,
                "pairs": model.pairs,
            }
            for quantity, model in summary.models.items()
        },
        "validation": {
            quantity: {
                "sides": len(one.sides),
                "mean_error": _finite(one.validation.mean_error),
                "p90_error": _finite(one.validation.error_quantile(0.9)),
                "textbook_mean_error": _mean(summary.plain[quantity]),
                "coverage": _finite(one.validation.coverage),
                "called_safe": one.called_safe,
                "wrongly_safe": one.wrongly_safe,
            }
            for quantity, one in summary.validations.items()
        },
        "failures": [{"what": what, "reason": reason} for what, reason in outcome.failures],
    }


def _predicted(one: Slowdown | None, bound: float) -> dict[str, Any] | None:
    if one is None:
        return None
    return {"kept": one.kept.value, "low": one.kept.low, "high": one.kept.high, "safe": one.is_safe(bound)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mean(values: tuple[float, ...]) -> float | None:
    return sum(values) / len(values) if values else None


def _kept(one: Measured) -> tuple[float, float | None, float | None]:
    """What was kept, with the ends of its 95 % interval over rounds."""
    from rackscope.analysis.intervals import student_quantile

    side, count = one.side, len(one.values)
    if count < _FEWEST_ROUNDS:
        return math.exp(side.log_kept), None, None
    # The error is drawn to that of all sides, which is worth four more rounds.
    half = student_quantile(count + 3, 0.95) * side.error
    return math.exp(side.log_kept), math.exp(side.log_kept - half), math.exp(side.log_kept + half)


def _findings(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding

    found = []
    by_pair: dict[str, list[Measured]] = {}
    for one in summary.measured:
        by_pair.setdefault(one.side.pair, []).append(one)
    if by_pair:
        fit = [
            pair
            for pair, sides in by_pair.items()
            if all((low := _kept(one)[1]) is not None and 1 - low < plan.bound for one in sides)
        ]
        what = f"neither side loses {percent(plan.bound)}, as measured"
        found.append(
            Finding(
                sentence=f"{len(fit)} of {len(by_pair)} pairs fit on the same cores: {what}."
                if fit
                else f"None of {len(by_pair)} pairs was shown to fit on the same cores at a loss below "
                f"{percent(plan.bound)} on both sides.",
                evidence="; ".join(fit),
            )
        )
    found += [_quality(quantity, one, summary) for quantity, one in summary.validations.items() if len(one.sides) >= 2]
    for quantity, model in summary.models.items():
        if model.pairs:
            found.append(
                Finding(
                    sentence=f"Beside a neighbour on the core all the time, {_WORDS[quantity]} bound by CPU loses a "
                    f"further {percent(-math.expm1(-model.core_cost))}, other "
                    f"{percent(-math.expm1(-model.waiting_cost))}; a neighbour takes "
                    f"{model.taken['cpu']:.2f} times the CPU time that even sharing gives it.",
                    severity="note",
                    evidence=f"Fitted to {model.pairs} pairs; single sides scatter by "
                    f"{percent(model.form_deviation)} around it.",
                )
            )
    del outcome
    return found


def _quality(quantity: str, one: ColocationValidation, summary: Summary) -> Finding:
    from rackscope.runs.study import Finding

    plain = _mean(summary.plain[quantity])
    return Finding(
        sentence=f"Pairs that were left out are predicted with a mean error of {percent(one.validation.mean_error)} "
        f"of the {_WORDS[quantity]} kept; {one.wrongly_safe} of {one.called_safe} sides that were called safe "
        f"lost {percent(one.bound)} or more.",
        evidence=f"{len(one.sides)} sides, each pair left out in turn: nine in ten are off by at most "
        f"{percent(one.validation.error_quantile(0.9))}; 90 % intervals held "
        f"{percent(one.validation.coverage)} of the time"
        + ("" if plain is None else f"; textbook sharing alone errs by {percent(plain)}")
        + ".",
    )


def _warnings(outcome: Outcome, summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding

    found = [Finding(sentence=f"{what} is missing: {reason}.", severity="warning") for what, reason in outcome.failures]
    seen = outcome.interference
    if seen.kept:
        found.append(
            Finding(
                sentence=f"the host was busy with other things: {listing(sorted(seen.reasons))} in {seen.kept} of the "
                f"{seen.windows - seen.discarded} windows that count",
                severity="warning",
                evidence="Neighbours of another's making are in these figures. Study it on a quiet host.",
            )
        )
    crowded = list(dict.fromkeys(one.side.pair for one in summary.measured if one.crowded))
    if crowded:
        found.append(
            Finding(
                sentence=f"The load generators had no time left with {listing(crowded)}: they count for nothing else.",
                severity="warning",
            )
        )
    unknown = {name: why for work in summary.works.values() for name, why in work.unknown.items()}
    if unknown:
        named = listing([name.replace("_", " ") for name in unknown])
        found.append(
            Finding(
                sentence=f"Not known of these works, and only in the fitted costs: {named}.",
                severity="note",
                evidence="; ".join(f"{name.replace('_', ' ')}: {why}" for name, why in unknown.items()),
            )
        )
    found += [Finding(sentence=note, severity="note") for note in outcome.notes]
    return found


def _pairs_table(plan: Plan, summary: Summary) -> list[Table]:
    from rackscope.runs.study import Column, Table

    predicted = predictions(summary)
    rows: list[list[str | float | int | bool | None]] = []
    for one in summary.measured:
        told = predicted.get((one.side.work.name, one.side.neighbour.name))
        kept, low, high = _kept(one)
        rows.append(
            [
                one.side.work.name,
                one.side.neighbour.name,
                None if told is None else _rounded(1 - told.kept.value),
                None if told is None else _range(told.low, told.high),
                _rounded(1 - kept),
                None if low is None or high is None else _range(1 - high, 1 - low),
                None if told is None else _rounded(told.kept.value / kept - 1),
                None if told is None else ("safe" if told.is_safe(plan.bound) else "not safe"),
            ]
        )
    if not rows:
        return []
    return [
        Table(
            identifier="pairs",
            title="Slowdown beside a neighbour",
            caption="Throughput lost, in percent (for works with a rate, 1 - p99 alone over p99 beside it): predicted "
            "with the pair left out of the fit (modelled), and measured over rounds, each with its interval.",
            columns=[
                Column(name="work"),
                Column(name="beside"),
                Column(name="predicted", unit="ratio"),
                Column(name="90 %", help="Its 90 % interval, in percent"),
                Column(name="measured", unit="ratio"),
                Column(name="95 %", help="Its 95 % interval, in percent"),
                Column(name="error", unit="ratio", help="Of what is kept: predicted over measured, less one"),
                Column(name="called"),
            ],
            rows=rows,
        )
    ]


def _rounded(share: float) -> float:
    """To a hundredth of a percent: far below what noise leaves of it."""
    return round(share, 4) + 0.0


def _range(low: float, high: float) -> str:
    # Adding nothing makes -0 zero.
    return f"{round(100 * low) + 0}…{round(100 * high) + 0}"


def _validation_table(summary: Summary) -> list[Table]:
    from rackscope.runs.study import Column, Table

    rows: list[list[str | float | int | bool | None]] = [
        [
            _WORDS[quantity],
            len(one.sides),
            _finite(one.validation.mean_error),
            _finite(one.validation.error_quantile(0.9)),
            _mean(summary.plain[quantity]),
            _finite(one.validation.coverage),
            one.called_safe,
            one.wrongly_safe,
        ]
        for quantity, one in summary.validations.items()
        if one.sides
    ]
    if not rows:
        return []
    return [
        Table(
            identifier="validation",
            title="Pairs that were left out",
            caption="Errors are of what is kept, as a share of what was measured.",
            columns=[
                Column(name="of"),
                Column(name="sides", unit="count"),
                Column(name="mean error", unit="ratio"),
                Column(name="9 in 10", unit="ratio"),
                Column(name="textbook", unit="ratio", help="Mean error without any measured pair"),
                Column(name="in 90 %", unit="ratio", help="How often the 90 % intervals held"),
                Column(name="called safe", unit="count"),
                Column(name="wrongly", unit="count"),
            ],
            rows=rows,
        )
    ]


def _works_table(plan: Plan, summary: Summary) -> list[Table]:
    from rackscope.runs.study import Column, Table

    rows: list[list[str | float | int | bool | None]] = []
    for name, work in summary.works.items():
        demand = work.demands.get("cpu")
        answer = work.sensitivities.get("cpu")
        rows.append(
            [
                name,
                plan.work(name).label,
                None if demand is None else demand.amount,
                None if answer is None else answer.capacity,
                *(None if answer is None else round(answer.elasticity(left), 2) for left in (1.0, 0.6)),
            ]
        )
    if not rows:
        return []
    return [
        Table(
            identifier="works",
            title="Works",
            caption="CPU time used alone, and the elasticity to it where nothing and where 40 % is taken.",
            columns=[
                Column(name="work"),
                Column(name="what it is"),
                Column(name="uses", unit="cores"),
                Column(name="of", unit="cores"),
                Column(name="elasticity", unit=""),
                Column(name="at 60 %", unit=""),
            ],
            rows=rows,
        )
    ]


def _charts(summary: Summary) -> list[Chart]:
    from rackscope.runs.study import Axis, Chart, Series

    charts = []
    for quantity, one in summary.validations.items():
        if not one.sides:
            continue
        ends = [math.exp(side.log_kept) for side in one.sides] + [case.value for case in _kepts(one)]
        line = [min(ends), max(ends)]
        charts.append(
            Chart(
                identifier=f"predicted-{quantity}",
                title=f"Predicted and measured {_WORDS[quantity]} kept",
                caption="Each side of a pair, predicted with the pair left out of the fit; bars are 90 % intervals. On "
                "the line what was predicted was measured.",
                x=Axis(label="measured", unit="ratio"),
                y=Axis(label="predicted", unit="ratio"),
                series=[
                    Series(
                        label="sides",
                        kind="points",
                        x=[math.exp(side.log_kept) for side in one.sides],
                        y=[kept.value for kept in _kepts(one)],
                        low=[kept.low for kept in _kepts(one)],
                        high=[kept.high for kept in _kepts(one)],
                    ),
                    Series(label="equal", x=line, y=list(line)),
                ],
            )
        )
    return charts


def _kepts(one: ColocationValidation) -> list[Any]:
    return [slowdown.kept for slowdown in one.predicted]


def _method(plan: Plan, outcome: Outcome, cores: int) -> list[str]:
    seen = outcome.interference
    rounds = max((len(one) for one in outcome.rounds.values()), default=0)
    lines = [
        f"All works are up all the time, each in a control group of its own, on the same {cores} "
        f"{'core' if cores == 1 else 'cores'}; only those that are measured have load. A round of a pair is one alone, "
        f"both at once, the other alone, {plan.window_seconds:g} s each, and backwards in every second round; "
        f"{rounds} rounds at most. What is kept is both at once over alone, in the same round.",
        "Works without a rate are asked for all they can do (a closed loop) and judged by throughput; works with one "
        "are asked for that (an open loop), and judged by p99.",
        "Each work was squeezed alone first. Predictions multiply what the squeezes showed with what the neighbour "
        "uses when it is alone (after Bubble-Up, Mars 2011, and SMiTe, Zhang 2014): even sharing of CPU time, and "
        "coefficients fitted to the other pairs.",
    ]
    lines += outcome.conditions
    if seen.discarded:
        lines.append(
            f"{seen.discarded} windows were measured again: {listing(sorted(seen.reasons))} while they lasted."
        )
    return lines
