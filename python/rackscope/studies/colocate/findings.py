"""What ``study colocate`` says: which pairs fit, and how well pairs that were not measured are predicted."""

from __future__ import annotations

import math
from typing import Any

from rackscope.analysis.intervals import student_quantile
from rackscope.analysis.wording import listing, percent
from rackscope.models.colocation import Side, Slowdown
from rackscope.models.colocation_record import side_to_dict, workload_to_dict
from rackscope.models.colocation_validation import ColocationValidation
from rackscope.runs.study import Chart, Finding, StudyRecord, Table
from rackscope.studies import kit
from rackscope.studies.colocate.measure import Outcome
from rackscope.studies.colocate.plan import Plan
from rackscope.studies.colocate.summary import Measured, Summary, summarise
from rackscope.studies.kit import axis, chart, finding, line, note, picked, table_of, warning, when

#: Fewer rounds than this are no interval to speak of.
_FEWEST_ROUNDS = 2
_COEFFICIENTS = ("taken", "core_cost", "waiting_cost", "form_deviation", "pairs")


def describe(record: StudyRecord, plan: Plan, outcome: Outcome) -> None:
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
        _names(side): predicted
        for validation in summary.validations.values()
        for side, predicted in zip(validation.sides, validation.predicted, strict=True)
    }


def _names(side: Side) -> tuple[str, str]:
    return side.workload.name, side.neighbour.name


def result_of(plan: Plan, outcome: Outcome, summary: Summary) -> dict[str, Any]:
    predicted = predictions(summary)
    return {
        "bound": plan.bound,
        "capacities": dict(summary.capacities),
        "workloads": [workload_to_dict(one) for one in summary.workloads.values()],
        "labels": {spec.name: spec.label for spec in plan.workloads},
        "sides": [
            {
                **side_to_dict(one.side),
                **picked(one, "values", "crowded"),
                "predicted": _predicted(predicted.get(_names(one.side)), plan.bound),
            }
            for one in summary.measured
        ],
        "coefficients": {quantity: picked(model, *_COEFFICIENTS) for quantity, model in summary.models.items()},
        "validation": {quantity: _errors(quantity, summary) for quantity in summary.validations},
        "failures": [{"what": what, "reason": reason} for what, reason in outcome.failures],
    }


def _errors(quantity: str, summary: Summary) -> dict[str, Any]:
    one = summary.validations[quantity]
    return {
        "sides": len(one.sides),
        "mean_error": _finite(one.validation.mean_error),
        "p90_error": _finite(one.validation.error_quantile(0.9)),
        "textbook_mean_error": _mean(summary.plain[quantity]),
        "coverage": _finite(one.validation.coverage),
        **picked(one, "called_safe", "wrongly_safe"),
    }


def _predicted(one: Slowdown | None, bound: float) -> dict[str, Any] | None:
    if one is None:
        return None
    return {"kept": one.kept.value, **picked(one.kept, "low", "high"), "safe": one.is_safe(bound)}


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
    by_pair: dict[str, list[float | None]] = {}
    for one in summary.measured:
        by_pair.setdefault(one.side.pair, []).append(_kept(one)[1])
    fit = [pair for pair, lows in by_pair.items() if all(low is not None and 1 - low < plan.bound for low in lows)]
    limit, count = percent(plan.bound), len(by_pair)
    fitting = f"{len(fit)} of {count} pairs fit on the same cores: both sides lose less than {limit}."
    none = f"None of {count} pairs was shown to fit on the same cores with a loss below {limit} on both sides."
    return [
        *when(by_pair, finding(fitting, "; ".join(fit)) if fit else finding(none)),
        *(_quality(quantity, one, summary) for quantity, one in summary.validations.items() if len(one.sides) >= 2),
        *(
            note(
                "Fitted costs of a neighbour that uses the core all the time: a CPU-bound workload loses a further "
                f"{percent(-math.expm1(-model.core_cost))} of its {quantity}, one that waits "
                f"{percent(-math.expm1(-model.waiting_cost))}; the neighbour takes {model.taken['cpu']:.2f} times "
                "the CPU time that equal sharing gives it.",
                f"Fitted to {model.pairs} pairs; single sides scatter by {percent(model.form_deviation)}.",
            )
            for quantity, model in summary.models.items()
            if model.pairs
        ),
    ]


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
    found += kit.interference_findings(outcome.interference, "The figures include this interference. Use a quiet host.")
    crowded = listing(list(dict.fromkeys(one.side.pair for one in summary.measured if one.crowded)))
    reasons = {name: why for one in summary.workloads.values() for name, why in one.unknown.items()}
    unknown = {name.replace("_", " "): why for name, why in reasons.items()}
    full = f"The load generators were fully busy with {crowded}: these pairs are left out of fits and errors."
    sentence = f"Not known of these workloads, and only part of the fitted costs: {listing(list(unknown))}."
    return [
        *found,
        *when(crowded, warning(full)),
        *when(unknown, note(sentence, "; ".join(f"{name}: {why}" for name, why in unknown.items()))),
        *(note(text) for text in outcome.notes),
    ]


def _pairs_table(plan: Plan, summary: Summary) -> list[Table]:
    predicted = predictions(summary)
    return table_of(
        "pairs",
        "Slowdown beside a neighbour",
        [(one.side, _kept(one), predicted.get(_names(one.side))) for one in summary.measured],
        [
            ("workload", lambda one: one[0].workload.name),
            ("beside", lambda one: one[0].neighbour.name),
            (("predicted", "ratio"), lambda one: one[2] and _rounded(1 - one[2].kept.value)),
            (
                ("90 %", "text", "Its 90 % interval, in percent"),
                lambda one: one[2] and _lost(one[2].kept.low, one[2].kept.high),
            ),
            (("measured", "ratio"), lambda one: _rounded(1 - one[1][0])),
            (
                ("95 %", "text", "Its 95 % interval, in percent"),
                lambda one: _lost(*one[1][1:]),
            ),
            (
                ("error", "ratio", "Of what is kept: predicted / measured - 1"),
                lambda one: one[2] and _rounded(one[2].kept.value / one[1][0] - 1),
            ),
            ("called", lambda one: one[2] and ("safe" if one[2].is_safe(plan.bound) else "not safe")),
        ],
        "Throughput lost, in percent (for workloads with a rate, 1 - p99 alone / p99 beside it): predicted with the "
        "pair left out of the fit (modelled), and measured over rounds, each with its interval.",
    )


def _rounded(ratio: float) -> float:
    """To a hundredth of a percent: far below what noise leaves of it."""
    return round(ratio, 4) + 0.0


def _lost(low: float | None, high: float | None) -> str | None:
    """The ends of what is lost, in percent, from those of what is kept."""
    # Adding nothing makes -0 zero.
    return None if low is None or high is None else f"{round(100 * (1 - high)) + 0}…{round(100 * (1 - low)) + 0}"


def _validation_table(summary: Summary) -> list[Table]:
    return table_of(
        "validation",
        "Pairs that were left out of the fit",
        [(quantity, _errors(quantity, summary)) for quantity, one in summary.validations.items() if one.sides],
        [
            ("of", lambda one: one[0]),
            (("sides", "count"), lambda one: one[1]["sides"]),
            (("mean error", "ratio"), lambda one: one[1]["mean_error"]),
            (("9 in 10", "ratio"), lambda one: one[1]["p90_error"]),
            (
                ("equal sharing", "ratio", "Mean error of equal sharing, without any measured pair"),
                lambda one: one[1]["textbook_mean_error"],
            ),
            (
                ("in 90 %", "ratio", "How many of the 90 % intervals contained what was measured"),
                lambda one: one[1]["coverage"],
            ),
            (("called safe", "count"), lambda one: one[1]["called_safe"]),
            (("wrongly", "count"), lambda one: one[1]["wrongly_safe"]),
        ],
        "Errors are of what is kept, as a fraction of what was measured.",
    )


def _workloads_table(plan: Plan, summary: Summary) -> list[Table]:
    workloads = [(one, one.demands.get("cpu"), one.sensitivities.get("cpu")) for one in summary.workloads.values()]
    return table_of(
        "workloads",
        "Workloads",
        workloads,
        [
            ("workload", lambda one: one[0].name),
            ("what it is", lambda one: plan.workload(one[0].name).label),
            (("uses", "cores"), lambda one: one[1] and one[1].amount),
            (("of", "cores"), lambda one: one[2] and one[2].capacity),
            (("elasticity", ""), lambda one: one[2] and round(one[2].elasticity(1.0), 2)),
            (("at 60 %", ""), lambda one: one[2] and round(one[2].elasticity(0.6), 2)),
        ],
        "CPU time used alone, and the elasticity to it with all of it and with 60 % of it.",
    )


def _charts(summary: Summary) -> list[Chart]:
    charts = []
    for quantity, one in summary.validations.items():
        measured = [math.exp(side.log_kept) for side in one.sides]
        kept = [slowdown.kept for slowdown in one.predicted]
        everything = [*measured, *(case.value for case in kept)]
        if not everything:
            continue
        sides = line("sides", measured, [case.value for case in kept], "points")
        sides.low, sides.high = [case.low for case in kept], [case.high for case in kept]
        ends = [min(everything), max(everything)]
        charts.append(
            chart(
                f"predicted-{quantity}",
                f"Predicted and measured {quantity} kept",
                axis("measured", "ratio"),
                axis("predicted", "ratio"),
                [sides, line("equal", ends, ends)],
                caption="Each side of a pair, predicted with the pair left out of the fit; bars are 90 % intervals. On "
                "the line prediction and measurement are equal.",
            )
        )
    return charts


def _method(plan: Plan, outcome: Outcome, cores: int) -> list[str]:
    rounds = max((len(one) for one in outcome.rounds.values()), default=0)
    return [
        "All workloads are up all the time, each in a control group of its own, on the same "
        f"{kit.counted(cores, 'core')}; only those that are measured have load. A round of a pair is one alone, both "
        f"at once, the other alone, {plan.window_seconds:g} s each, and backwards in every second round; "
        f"{rounds} rounds at most. What is kept is both at once divided by alone, in the same round.",
        "Workloads without a rate run in a closed loop and are judged by throughput; workloads with a rate run in an "
        "open loop and are judged by p99.",
        "Each workload was squeezed alone first. Predictions multiply what the squeezes showed with what the neighbour "
        "uses when it is alone (after Bubble-Up, Mars 2011, and SMiTe, Zhang 2014): equal sharing of CPU time, and "
        "coefficients fitted to the other pairs.",
        *outcome.conditions,
        kit.measured_again(outcome.interference),
    ]
