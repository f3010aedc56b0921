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
from typing import Any

from rackscope.analysis.intervals import student_quantile
from rackscope.analysis.wording import listing, percent
from rackscope.models.colocation import Slowdown
from rackscope.models.colocation_record import side_to_dict, work_to_dict
from rackscope.models.colocation_validation import ColocationValidation
from rackscope.runs.study import Chart, Finding, StudyRecord, Table
from rackscope.studies.colocate.measure import Outcome
from rackscope.studies.colocate.plan import Plan
from rackscope.studies.colocate.summary import Measured, Summary, summarise
from rackscope.studies.kit import (
    Row,
    axis,
    chart,
    counted,
    finding,
    interference_findings,
    line,
    measured_again,
    note,
    table,
    warning,
)

#: Fewer rounds than this are no interval to speak of.
_FEWEST_ROUNDS = 2


def describe(record: StudyRecord, plan: Plan, outcome: Outcome) -> None:
    """Put what is known now into the record."""
    cores = int(record.result.get("cores") or 1)
    summary = summarise(plan, outcome, cores=cores)
    record.findings = [*_findings(plan, summary), *_warnings(outcome, summary)]
    record.tables = [*_pairs_table(plan, summary), *_validation_table(summary), *_workloads_table(plan, summary)]
    record.charts = _charts(summary)
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
    predicted = predictions(summary)
    return {
        "bound": plan.bound,
        "capacities": dict(summary.capacities),
        "works": [work_to_dict(work) for work in summary.works.values()],
        "labels": {spec.name: spec.label for spec in plan.workloads},
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
    side, count = one.side, len(one.values)
    if count < _FEWEST_ROUNDS:
        return math.exp(side.log_kept), None, None
    # The error is drawn to that of all sides, which is worth four more rounds.
    half = student_quantile(count + 3, 0.95) * side.error
    return math.exp(side.log_kept), math.exp(side.log_kept - half), math.exp(side.log_kept + half)


def _findings(plan: Plan, summary: Summary) -> list[Finding]:
    found = []
    by_pair: dict[str, list[Measured]] = {}
    for one in summary.measured:
        by_pair.setdefault(one.side.pair, []).append(one)
    fit = [
        pair
        for pair, sides in by_pair.items()
        if all((low := _kept(one)[1]) is not None and 1 - low < plan.bound for one in sides)
    ]
    limit = percent(plan.bound)
    if fit:
        sentence = f"{len(fit)} of {len(by_pair)} pairs fit on the same cores: both sides lose less than {limit}."
        found.append(finding(sentence, "; ".join(fit)))
    elif by_pair:
        found.append(
            finding(
                f"None of {len(by_pair)} pairs was shown to fit on the same cores with a loss below {limit} on both "
                "sides."
            )
        )
    found += [_quality(quantity, one, summary) for quantity, one in summary.validations.items() if len(one.sides) >= 2]
    for quantity, model in summary.models.items():
        if model.pairs:
            found.append(
                note(
                    "Fitted costs of a neighbour that uses the core all the time: a CPU-bound workload loses a further "
                    f"{percent(-math.expm1(-model.core_cost))} of its {quantity}, one that waits "
                    f"{percent(-math.expm1(-model.waiting_cost))}; the neighbour takes {model.taken['cpu']:.2f} times "
                    "the CPU time that equal sharing gives it.",
                    f"Fitted to {model.pairs} pairs; single sides scatter by {percent(model.form_deviation)}.",
                )
            )
    return found


def _quality(quantity: str, one: ColocationValidation, summary: Summary) -> Finding:
    plain = _mean(summary.plain[quantity])
    return finding(
        f"Predictions of pairs that were left out of the fit have a mean error of {percent(one.validation.mean_error)} "
        f"of the {quantity} kept; {one.wrongly_safe} of {one.called_safe} sides that were called safe lost "
        f"{percent(one.bound)} or more.",
        f"{len(one.sides)} sides, each pair left out in turn: nine in ten are off by at most "
        f"{percent(one.validation.error_quantile(0.9))}; {percent(one.validation.coverage)} of the 90 % intervals "
        "contained what was measured"
        + ("" if plain is None else f"; equal sharing without any fit errs by {percent(plain)}")
        + ".",
    )


def _warnings(outcome: Outcome, summary: Summary) -> list[Finding]:
    found = [warning(f"{what} is missing: {reason}.") for what, reason in outcome.failures]
    found += interference_findings(outcome.interference, "The figures include this interference. Use a quiet host.")
    crowded = list(dict.fromkeys(one.side.pair for one in summary.measured if one.crowded))
    if crowded:
        pairs = listing(crowded)
        found.append(
            warning(f"The load generators were fully busy with {pairs}: these pairs are left out of fits and errors.")
        )
    unknown = {name: why for work in summary.works.values() for name, why in work.unknown.items()}
    if unknown:
        named = listing([name.replace("_", " ") for name in unknown])
        found.append(
            note(
                f"Not known of these workloads, and only part of the fitted costs: {named}.",
                "; ".join(f"{name.replace('_', ' ')}: {why}" for name, why in unknown.items()),
            )
        )
    return found + [note(text) for text in outcome.notes]


def _pairs_table(plan: Plan, summary: Summary) -> list[Table]:
    predicted = predictions(summary)
    rows: list[Row] = []
    for one in summary.measured:
        told = predicted.get((one.side.work.name, one.side.neighbour.name))
        kept, low, high = _kept(one)
        measured = None if low is None or high is None else _range(1 - high, 1 - low)
        row: Row = [one.side.work.name, one.side.neighbour.name, None, None, _rounded(1 - kept), measured, None, None]
        if told is not None:
            row[2:4] = [_rounded(1 - told.kept.value), _range(told.low, told.high)]
            row[6:] = [_rounded(told.kept.value / kept - 1), "safe" if told.is_safe(plan.bound) else "not safe"]
        rows.append(row)
    columns = [
        "workload",
        "beside",
        ("predicted", "ratio"),
        ("90 %", "text", "Its 90 % interval, in percent"),
        ("measured", "ratio"),
        ("95 %", "text", "Its 95 % interval, in percent"),
        ("error", "ratio", "Of what is kept: predicted / measured - 1"),
        "called",
    ]
    caption = (
        "Throughput lost, in percent (for workloads with a rate, 1 - p99 alone / p99 beside it): predicted with the "
        "pair left out of the fit (modelled), and measured over rounds, each with its interval."
    )
    return table("pairs", "Slowdown beside a neighbour", columns, rows, caption)


def _rounded(ratio: float) -> float:
    """To a hundredth of a percent: far below what noise leaves of it."""
    return round(ratio, 4) + 0.0


def _range(low: float, high: float) -> str:
    # Adding nothing makes -0 zero.
    return f"{round(100 * low) + 0}…{round(100 * high) + 0}"


def _validation_table(summary: Summary) -> list[Table]:
    rows: list[Row] = [
        [
            quantity,
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
    columns = [
        "of",
        ("sides", "count"),
        ("mean error", "ratio"),
        ("9 in 10", "ratio"),
        ("equal sharing", "ratio", "Mean error of equal sharing, without any measured pair"),
        ("in 90 %", "ratio", "How many of the 90 % intervals contained what was measured"),
        ("called safe", "count"),
        ("wrongly", "count"),
    ]
    caption = "Errors are of what is kept, as a fraction of what was measured."
    return table("validation", "Pairs that were left out of the fit", columns, rows, caption)


def _workloads_table(plan: Plan, summary: Summary) -> list[Table]:
    rows: list[Row] = []
    for name, work in summary.works.items():
        demand, response = work.demands.get("cpu"), work.sensitivities.get("cpu")
        rows.append(
            [
                name,
                plan.workload(name).label,
                None if demand is None else demand.amount,
                None if response is None else response.capacity,
                *(None if response is None else round(response.elasticity(left), 2) for left in (1.0, 0.6)),
            ]
        )
    columns = ["workload", "what it is", ("uses", "cores"), ("of", "cores"), ("elasticity", ""), ("at 60 %", "")]
    caption = "CPU time used alone, and the elasticity to it with all of it and with 60 % of it."
    return table("works", "Workloads", columns, rows, caption)


def _charts(summary: Summary) -> list[Chart]:
    charts = []
    for quantity, one in summary.validations.items():
        if not one.sides:
            continue
        measured = [math.exp(side.log_kept) for side in one.sides]
        kept = [slowdown.kept for slowdown in one.predicted]
        ends = [min([*measured, *(case.value for case in kept)]), max([*measured, *(case.value for case in kept)])]
        sides = line("sides", measured, [case.value for case in kept], "points")
        sides.low, sides.high = [case.low for case in kept], [case.high for case in kept]
        charts.append(
            chart(
                f"predicted-{quantity}",
                f"Predicted and measured {quantity} kept",
                axis("measured", "ratio"),
                axis("predicted", "ratio"),
                [sides, line("equal", ends, list(ends))],
                caption="Each side of a pair, predicted with the pair left out of the fit; bars are 90 % intervals. On "
                "the line prediction and measurement are equal.",
            )
        )
    return charts


def _method(plan: Plan, outcome: Outcome, cores: int) -> list[str]:
    rounds = max((len(one) for one in outcome.rounds.values()), default=0)
    return [
        f"All workloads are up all the time, each in a control group of its own, on the same {counted(cores, 'core')}; "
        "only those that are measured have load. A round of a pair is one alone, both at once, the other alone, "
        f"{plan.window_seconds:g} s each, and backwards in every second round; {rounds} rounds at most. What is kept "
        "is both at once divided by alone, in the same round.",
        "Workloads without a rate run in a closed loop and are judged by throughput; workloads with a rate run in an "
        "open loop and are judged by p99.",
        "Each workload was squeezed alone first. Predictions multiply what the squeezes showed with what the neighbour "
        "uses when it is alone (after Bubble-Up, Mars 2011, and SMiTe, Zhang 2014): equal sharing of CPU time, and "
        "coefficients fitted to the other pairs.",
        *outcome.conditions,
        measured_again(outcome.interference),
    ]
