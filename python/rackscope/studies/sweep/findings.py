"""What a sweep shows, in words, a table and charts, written into the study's record."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rackscope.analysis.factor_effects import FactorEffect
from rackscope.analysis.intervals import Interval, relative_half_width
from rackscope.analysis.multiple import Comparison
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.runs.study import Finding, StudyRecord, Table
from rackscope.studies import kit
from rackscope.studies.kit import Row, finding, interval_result, listed, note, table, warning
from rackscope.studies.sweep.charts import make_charts
from rackscope.studies.sweep.claims import Answer, by_claim
from rackscope.studies.sweep.measure import Outcome
from rackscope.studies.sweep.plan import SweepPlan
from rackscope.studies.sweep.presets import Claim, Preset, load_presets
from rackscope.studies.sweep.summary import CellSummary, Summary, summarise
from rackscope.units import format_count, format_duration

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
    summary = summarise(plan, outcome)
    record.findings = [
        *_claim_findings(plan, summary.answers),
        *_effect_findings(summary),
        *_best_findings(summary),
        *_comparison_findings(summary),
        *_warnings(plan, outcome, summary),
    ]
    record.tables = _table(summary)
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
    if not plan.preset:
        return []
    preset = load_presets()[plan.preset]
    findings = []
    for claim, given in by_claim(answers).items():
        here = "; ".join(answer.sentence() for answer in given)
        findings.append(
            finding(
                f"{preset.source}: {claim.said}. Here, {here}{_cores_words(plan, preset, claim)}.",
                f"The paper measured on {preset.host}. Intervals are over {plan.repetitions} rounds, 95 % for "
                f"all {len(answers)} comparisons together; flat is within a tenth either way.",
            )
        )
    unanswered = [claim.said for claim in preset.claims if not any(one.claim == claim for one in answers)]
    if unanswered:
        findings.append(
            note(
                f"{preset.source} also found that {'; that '.join(unanswered)}: the values that this "
                "takes were not measured here."
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
    effects = summary.effects
    findings = []
    smallest = 1 + packaged_thresholds().limit("comparison.smallest_ratio")
    shown = [one for one in effects.factors if one.p_value is not None and one.p_value < 0.05 and one.span >= smallest]
    for place, effect in enumerate(shown):
        lead = "matters most" if place == 0 and len(effects.factors) > 1 else "matters"
        findings.append(finding(f"{_effect_words(effect, lead)}.", _effect_evidence(effect)))
    hidden = [one for one in effects.factors if one not in shown]
    untested = [one for one in hidden if one.p_value is None]
    if untested:
        names = ", ".join(f"{one.factor} (x{one.span:.2f} between {one.lowest} and {one.highest})" for one in untested)
        findings.append(
            note(
                f"With one repetition no effect can be shown of {names}.",
                "Effects are judged against the variation between repetitions of one cell: --repeat 3.",
            )
        )
    else:
        for one in hidden:
            findings.append(
                note(
                    f"{one.factor} is not shown to matter for throughput (x{one.span:.2f} between levels).",
                    _effect_evidence(one),
                )
            )
    if effects.interaction_p_value is not None and effects.interaction_p_value < 0.05 <= effects.interaction_share * 2:
        findings.append(
            note(
                f"The effect of one factor depends on the others: {effects.interaction_share:.0%} of the "
                "variation between cells is in their combinations.",
                f"p = {effects.interaction_p_value:.2g}; read single cells rather than averages.",
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
    if len(summary.cells) < 2:
        return []
    best = max(summary.cells, key=lambda cell: cell.throughput.estimate)
    others = _indistinct(summary.pairs_with(best))
    rest = f"; not shown to differ from it: {listed(others)}" if others else ""
    if len(others) == len(summary.cells) - 1:
        rest = "; no other cell is shown to differ from it"
    throughput = best.throughput
    rivals = "the other cell" if len(summary.cells) == 2 else f"all {len(summary.cells) - 1} other cells"
    findings = [
        finding(
            f"The highest throughput is {format_count(throughput.estimate)} operations/s, with {best.label}{rest}.",
            f"{_plus_minus(throughput)}; compared with {rivals}"
            f"{', corrected for all pairs' if len(summary.cells) > 2 else ''}.",
        )
    ]
    timed = [cell for cell in summary.cells if cell.p99 is not None]
    if timed:
        quick = min(timed, key=lambda cell: cell.p99.estimate if cell.p99 is not None else 0.0)
        assert quick.p99 is not None
        findings.append(
            note(
                f"The lowest 99th percentile is {format_duration(quick.p99.estimate)}, with {quick.label}.",
                _plus_minus(quick.p99),
            )
        )
    return findings


def _comparison_findings(summary: Summary) -> list[Finding]:
    comparisons = list(summary.against_baseline.values())
    if not comparisons or all(one.p_value is None for one in comparisons):
        return []
    different = [one for one in comparisons if one.different]
    open_ones = _indistinct(comparisons)
    same = [one.first for one in comparisons if one.outcome == "equivalent"]
    baseline = comparisons[0].second
    parts = [f"{len(different)} of {len(comparisons)} cells are shown to differ from {baseline} in throughput"]
    if 0 < len(open_ones) < len(comparisons):
        parts.append(f"not shown to differ: {listed(open_ones)}")
    if same:
        parts.append(f"shown to be the same within 2 %: {listed(same)}")
    return [
        note(
            f"{'; '.join(parts)}.",
            f"Welch's test on logarithms, corrected for {len(comparisons)} comparisons after Holm.",
        )
    ]


def _indistinct(comparisons: list[Comparison]) -> list[str]:
    return [one.first for one in comparisons if one.outcome in ("no difference seen", "too few repetitions")]


def _warnings(plan: SweepPlan, outcome: Outcome, summary: Summary) -> list[Finding]:
    findings = []
    able = [number for number in range(len(plan.cells)) if number not in outcome.failures]
    missing = sum(1 for number in able for one in range(plan.repetitions) if (number, one + 1) not in outcome.figures)
    if missing and not outcome.discarded:
        findings.append(
            warning(
                f"{missing} of {plan.runs} runs are missing: the sweep was stopped.",
                "'rackscope study sweep --resume DIR' with this directory goes on with it.",
            )
        )
    by_reason: dict[str, list[str]] = {}
    for cell, reasons in sorted(outcome.failures.items()):
        by_reason.setdefault(reasons[-1], []).append(plan.cells[cell].label)
    findings += kit.failure_findings(by_reason)
    findings += [warning(f"A run failed, and its repetition is missing: {text}.") for text in outcome.discarded]
    least = packaged_thresholds().limit("generator.idle_minimum")
    findings += kit.generator_findings(
        [cell.label for cell in summary.cells if cell.idle is not None and cell.idle < least],
        "Give it more cores with --client-cores, or pipeline requests.",
    )
    findings += kit.miss_findings(
        [
            f"{cell.label} ({cell.hit_ratio:.1%} hits)"
            for cell in summary.cells
            if cell.hit_ratio is not None and cell.hit_ratio < _FEW_MISSES
        ]
    )
    return findings


def _table(summary: Summary) -> list[Table]:
    if not summary.cells:
        return []
    first = summary.cells[0]
    with_hits = any(cell.hit_ratio is not None and cell.hit_ratio < _FEW_MISSES for cell in summary.cells)
    rows: list[Row] = []
    for cell in summary.cells:
        against = summary.against_baseline.get(cell.label)
        row: Row = [
            cell.label,
            cell.throughput.estimate,
            relative_half_width(cell.throughput),
            None if cell.p99 is None else cell.p99.estimate,
            None if cell.p99 is None else relative_half_width(cell.p99),
            None if against is None else f"x{against.ratio.estimate:.2f}",
            "baseline" if cell is first else None if against is None else _OUTCOMES[against.outcome],
        ]
        rows.append([*row, cell.hit_ratio] if with_hits else row)
    columns = [
        "cell",
        ("throughput", "operations/s"),
        ("±", "ratio", "Half of the 95 % interval"),
        ("p99", "seconds"),
        ("±", "ratio", "Half of the 95 % interval"),
        ("against", "text", "Throughput over that of the first cell"),
        ("it is", "text", "Corrected for the number of cells"),
    ]
    return table(
        "cells",
        "Cells",
        [*columns, ("hits", "ratio")] if with_hits else columns,
        rows,
        caption=f"Means over repetitions with 95 % intervals; throughput is compared with that of {first.label}.",
    )


def _plus_minus(interval: Interval) -> str:
    width = relative_half_width(interval)
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
        "throughput_operations_per_second": interval_result(cell.throughput),
        "response_mean_seconds": interval_result(cell.mean),
        "response_p50_seconds": interval_result(cell.p50),
        "response_p99_seconds": interval_result(cell.p99),
        "hit_ratio": cell.hit_ratio,
        "generator_idle_ratio": cell.idle,
        "against_baseline": None
        if against is None
        else {"ratio": interval_result(against.ratio), "p_value": against.p_value, "outcome": against.outcome},
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
        "ratio": interval_result(answer.ratio),
    }
