"""What a sweep shows, in words, a table and charts, written into the study's record."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rackscope.studies.sweep.summary import CellSummary, Summary, summarise

if TYPE_CHECKING:
    from rackscope.analysis.factor_effects import FactorEffect
    from rackscope.analysis.intervals import Interval
    from rackscope.analysis.multiple import Comparison
    from rackscope.runs.study import Finding, StudyRecord, Table
    from rackscope.studies.sweep.carry_out import Outcome
    from rackscope.studies.sweep.claims import Answer
    from rackscope.studies.sweep.plan import SweepPlan
    from rackscope.studies.sweep.presets import Claim, Preset

#: Names that one sentence lists; the others are counted, and the table has them all.
_LISTED = 4
#: Reads that found nothing beyond which cells are not compared as they stand. Our choice.
_FEW_MISSES = 0.999
_OUTCOMES = {
    "different": "different",
    "equivalent": "the same",
    "no difference seen": "not shown",
    "too few repetitions": "too few runs",
}


def describe(record: StudyRecord, plan: SweepPlan, outcome: Outcome) -> None:
    """Replace the record's findings, table, charts, method and result by what ``outcome`` shows."""
    from rackscope.studies.sweep.charts import make_charts

    summary = summarise(plan, outcome)
    record.findings = [
        *_claim_findings(plan, summary.answers),
        *_effect_findings(summary),
        *_best_findings(summary),
        *_comparison_findings(summary),
        *_warnings(plan, outcome, summary),
    ]
    record.tables = [_table(summary)] if summary.cells else []
    record.charts = make_charts(plan, summary)
    record.method = _method(plan, outcome, summary)
    record.result |= {
        "cells": [_cell_result(cell, summary) for cell in summary.cells],
        "factors": [
            {**asdict(effect), "lowest": effect.lowest, "highest": effect.highest, "span": effect.span}
            for effect in summary.effects.factors
        ],
        "claims": [_claim_result(answer) for answer in summary.answers],
        "failures": [
            {"cell": cell, "label": plan.cells[cell].label, "reason": reasons[-1]}
            for cell, reasons in sorted(outcome.failures.items())
        ],
    }


def _claim_findings(plan: SweepPlan, answers: list[Answer]) -> list[Finding]:
    from rackscope.runs.study import Finding
    from rackscope.studies.sweep.claims import by_claim
    from rackscope.studies.sweep.presets import load_presets

    if not plan.preset:
        return []
    preset = load_presets()[plan.preset]
    findings = []
    for claim, given in by_claim(answers).items():
        here = "; ".join(answer.sentence() for answer in given)
        findings.append(
            Finding(
                sentence=f"{preset.source}: {claim.said}. Here, {here}{_cores_words(plan, preset, claim)}.",
                evidence=f"The paper measured on {preset.host}. Intervals are over {plan.repetitions} rounds, 95 % for "
                f"all {len(answers)} comparisons together; flat is within a tenth either way.",
            )
        )
    unanswered = [claim.said for claim in preset.claims if not any(one.claim == claim for one in answers)]
    if unanswered:
        findings.append(
            Finding(
                sentence=f"{preset.source} also found that {'; that '.join(unanswered)}: the values that this "
                "takes were not measured here.",
                severity="note",
            )
        )
    return findings


def _cores_words(plan: SweepPlan, preset: Preset, claim: Claim) -> str:
    """Why a factor that uses cores answers otherwise here, where there are fewer."""
    [factor] = [one for one in preset.factors if one.name == claim.factor]
    if factor.cores is None or plan.system_cores >= factor.cores:
        return ""
    cores = f"{plan.system_cores} core{'s' if plan.system_cores != 1 else ''}"
    return f"; the system has {cores} here, and the paper's had {factor.cores} hardware threads"


def _effect_findings(summary: Summary) -> list[Finding]:
    from rackscope.analysis.thresholds import packaged_thresholds
    from rackscope.runs.study import Finding

    effects = summary.effects
    findings = []
    smallest = 1 + packaged_thresholds().limit("comparison.smallest_ratio")
    shown = [one for one in effects.factors if one.p_value is not None and one.p_value < 0.05 and one.span >= smallest]
    for place, effect in enumerate(shown):
        lead = "matters most" if place == 0 and len(effects.factors) > 1 else "matters"
        findings.append(Finding(sentence=f"{_effect_words(effect, lead)}.", evidence=_effect_evidence(effect)))
    hidden = [one for one in effects.factors if one not in shown]
    untested = [one for one in hidden if one.p_value is None]
    if untested:
        names = ", ".join(f"{one.factor} (x{one.span:.2f} between {one.lowest} and {one.highest})" for one in untested)
        findings.append(
            Finding(
                sentence=f"With one repetition nothing can be shown of {names}.",
                severity="note",
                evidence="An effect is judged against what repetitions of one cell differ by: --repeat 3.",
            )
        )
    else:
        for one in hidden:
            findings.append(
                Finding(
                    sentence=f"{one.factor} is not shown to matter for throughput (x{one.span:.2f} between levels).",
                    severity="note",
                    evidence=_effect_evidence(one),
                )
            )
    if effects.interaction_p_value is not None and effects.interaction_p_value < 0.05 <= effects.interaction_share * 2:
        findings.append(
            Finding(
                sentence=f"What one factor does depends on the others: {effects.interaction_share:.0%} of the "
                "variation between cells is in their combinations.",
                severity="note",
                evidence=f"p = {effects.interaction_p_value:.2g}; read single cells rather than averages.",
            )
        )
    return findings


def _effect_words(effect: FactorEffect, lead: str) -> str:
    name = "" if effect.factor == "system" else f"{effect.factor}="
    return (
        f"{effect.factor} {lead}: throughput with {name}{effect.highest} is {effect.span:.2f} times that with "
        f"{name}{effect.lowest}, all else equal"
    )


def _effect_evidence(effect: FactorEffect) -> str:
    p_value = "" if effect.p_value is None else f"; p = {effect.p_value:.2g}, corrected for the number of factors"
    return f"{effect.share:.0%} of the variation of throughput between cells{p_value}."


def _best_findings(summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding
    from rackscope.units import format_count, format_duration

    if len(summary.cells) < 2:
        return []
    best = max(summary.cells, key=lambda cell: cell.throughput.estimate)
    others = _indistinct(summary.pairs_with(best))
    rest = f"; not shown to differ from it: {_listed(others)}" if others else ""
    if len(others) == len(summary.cells) - 1:
        rest = "; no other cell is shown to differ from it"
    throughput = best.throughput
    rivals = "the other cell" if len(summary.cells) == 2 else f"all {len(summary.cells) - 1} other cells"
    findings = [
        Finding(
            sentence=f"The highest throughput is {format_count(throughput.estimate)} operations/s, with "
            f"{best.label}{rest}.",
            evidence=f"{_plus_minus(throughput)}; compared with {rivals}"
            f"{', corrected for all pairs' if len(summary.cells) > 2 else ''}.",
        )
    ]
    timed = [cell for cell in summary.cells if cell.p99 is not None]
    if timed:
        quick = min(timed, key=lambda cell: cell.p99.estimate if cell.p99 is not None else 0.0)
        assert quick.p99 is not None
        findings.append(
            Finding(
                sentence=f"The lowest 99th percentile is {format_duration(quick.p99.estimate)}, with {quick.label}.",
                severity="note",
                evidence=_plus_minus(quick.p99),
            )
        )
    return findings


def _comparison_findings(summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding

    comparisons = list(summary.against_baseline.values())
    if not comparisons or all(one.p_value is None for one in comparisons):
        return []
    different = [one for one in comparisons if one.different]
    open_ones = _indistinct(comparisons)
    same = [one.first for one in comparisons if one.outcome == "equivalent"]
    baseline = comparisons[0].second
    parts = [f"{len(different)} of {len(comparisons)} cells are shown to differ from {baseline} in throughput"]
    if 0 < len(open_ones) < len(comparisons):
        parts.append(f"not shown to differ: {_listed(open_ones)}")
    if same:
        parts.append(f"shown to be the same within 2 %: {_listed(same)}")
    return [
        Finding(
            sentence=f"{'; '.join(parts)}.",
            severity="note",
            evidence=f"Welch's test on logarithms, corrected for {len(comparisons)} comparisons after Holm.",
        )
    ]


def _indistinct(comparisons: list[Comparison]) -> list[str]:
    return [one.first for one in comparisons if one.outcome in ("no difference seen", "too few repetitions")]


def _listed(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _warnings(plan: SweepPlan, outcome: Outcome, summary: Summary) -> list[Finding]:
    from rackscope.analysis.thresholds import packaged_thresholds
    from rackscope.runs.study import Finding

    findings = []
    able = [number for number in range(len(plan.cells)) if number not in outcome.failures]
    missing = sum(1 for number in able for one in range(plan.repetitions) if (number, one + 1) not in outcome.figures)
    if missing and not outcome.discarded:
        findings.append(
            Finding(
                sentence=f"{missing} of {plan.runs} runs are missing: the sweep was stopped.",
                severity="warning",
                evidence="'rackscope study sweep --resume DIR' with this directory goes on with it.",
            )
        )
    by_reason: dict[str, list[str]] = {}
    for cell, reasons in sorted(outcome.failures.items()):
        by_reason.setdefault(reasons[-1], []).append(plan.cells[cell].label)
    for reason, labels in by_reason.items():
        findings.append(Finding(sentence=f"{_listed(labels)} could not run: {reason}.", severity="warning"))
    findings += [
        Finding(sentence=f"A run failed, and its repetition is missing: {text}.", severity="warning")
        for text in outcome.discarded
    ]
    least = packaged_thresholds().limit("generator.idle_minimum")
    full = [cell.label for cell in summary.cells if cell.idle is not None and cell.idle < least]
    if full:
        findings.append(
            Finding(
                sentence=f"The load generator had no time left with {_listed(full)}: there the system can do more "
                "than was measured.",
                severity="warning",
                evidence="Give it more cores with --client-cores, or let requests be pipelined.",
            )
        )
    missed = [cell.label for cell in summary.cells if cell.hit_ratio is not None and cell.hit_ratio < _FEW_MISSES]
    if missed:
        lowest = min(cell.hit_ratio for cell in summary.cells if cell.hit_ratio is not None)
        findings.append(
            Finding(
                sentence=f"Reads missed (down to {lowest:.1%} hits) with {_listed(missed)}: a miss is cheaper than "
                "a hit, so throughput flatters these.",
                severity="warning",
            )
        )
    return findings


def _table(summary: Summary) -> Table:
    from rackscope.runs.study import Column, Table

    first = summary.cells[0]
    with_hits = any(cell.hit_ratio is not None and cell.hit_ratio < _FEW_MISSES for cell in summary.cells)
    rows: list[list[str | float | int | bool | None]] = []
    for cell in summary.cells:
        against = summary.against_baseline.get(cell.label)
        row: list[str | float | int | bool | None] = [
            cell.label,
            cell.throughput.estimate,
            _half_width(cell.throughput),
            None if cell.p99 is None else cell.p99.estimate,
            None if cell.p99 is None else _half_width(cell.p99),
            None if against is None else f"x{against.ratio.estimate:.2f}",
            "baseline" if cell is first else None if against is None else _OUTCOMES[against.outcome],
        ]
        rows.append([*row, cell.hit_ratio] if with_hits else row)
    columns = [
        Column(name="cell"),
        Column(name="throughput", unit="operations/s"),
        Column(name="±", unit="ratio", help="Half of the 95 % interval"),
        Column(name="p99", unit="seconds"),
        Column(name="±", unit="ratio", help="Half of the 95 % interval"),
        Column(name="against", help="Throughput over that of the first cell"),
        Column(name="it is", help="Corrected for the number of cells"),
    ]
    return Table(
        identifier="cells",
        title="Cells",
        caption=f"Means over repetitions with 95 % intervals; throughput is compared with that of {first.label}.",
        columns=[*columns, Column(name="hits", unit="ratio")] if with_hits else columns,
        rows=rows,
    )


def _half_width(interval: Interval) -> float | None:
    from rackscope.analysis.intervals import relative_half_width

    return relative_half_width(interval)


def _plus_minus(interval: Interval) -> str:
    width = _half_width(interval)
    return "its interval is not known" if width is None else f"± {width:.1%} over {interval.count} runs"


def _method(plan: SweepPlan, outcome: Outcome, summary: Summary) -> list[str]:
    options = plan.options
    stages = max((cell.stages for cell in summary.cells), default=1)
    lines = [
        f"{len(plan.cells)} cells, each measured {plan.repetitions} times for {options.duration_seconds:g} s after a "
        f"fresh start, loading and {options.warm_up_seconds:g} s of warming up; {len(outcome.figures)} of {plan.runs} "
        "runs count.",
        "Rounds hold every cell once: the first of two is shuffled (seed "
        f"{options.seed}), the second is the first backwards, so that drift falls on all cells alike.",
    ]
    if stages > 1:
        lines.append(
            f"Throughput is over all {stages} stages of the workload; latencies are those of the slowest stage."
        )
    if options.rate_per_second is not None:
        lines.append(f"Requests arrived at {options.rate_per_second:g} a second, whatever the system did.")
    if outcome.kept:
        lines.append(f"{outcome.kept} runs were kept from before the sweep was taken up again.")
    lines += plan.notes
    lines.append(
        "Effects: analysis of variance of the logarithms of throughput, rounds as blocks, tested against repetitions. "
        "Cells: Welch's intervals and tests on logarithms, corrected after Holm."
    )
    return lines


def _cell_result(cell: CellSummary, summary: Summary) -> dict[str, Any]:
    against = summary.against_baseline.get(cell.label)
    return {
        "label": cell.label,
        "levels": dict(cell.levels),
        "repetitions": cell.throughput.count,
        "throughput_operations_per_second": _interval(cell.throughput),
        "response_mean_seconds": _interval(cell.mean),
        "response_p50_seconds": _interval(cell.p50),
        "response_p99_seconds": _interval(cell.p99),
        "hit_ratio": cell.hit_ratio,
        "generator_idle_ratio": cell.idle,
        "against_baseline": None
        if against is None
        else {"ratio": _interval(against.ratio), "p_value": against.p_value, "outcome": against.outcome},
    }


def _claim_result(answer: Answer) -> dict[str, Any]:
    return {
        "system": answer.system,
        "said": answer.claim.said,
        "factor": answer.claim.factor,
        "quantity": answer.claim.quantity,
        "from": answer.start,
        "to": answer.end,
        "paper": answer.claim.direction,
        "here": answer.direction,
        "agrees": answer.agrees,
        "ratio": _interval(answer.ratio),
    }


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high, "count": interval.count}
