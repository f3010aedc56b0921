"""What a sweep shows, in words, a table and charts, written into the study's record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rackscope.analysis.factor_effects import FactorEffect
from rackscope.analysis.intervals import Interval, relative_half_width
from rackscope.analysis.multiple import Comparison
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.runs.study import Finding, StudyRecord, Table
from rackscope.studies import kit
from rackscope.studies.kit import finding, listed, note, picked, plain, table_of, warning, when
from rackscope.studies.sweep.charts import make_charts
from rackscope.studies.sweep.claims import Answer
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
        "factors": [{**plain(one), **picked(one, "lowest", "highest", "span")} for one in summary.effects.factors],
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
    by_claim = {claim: [one for one in answers if one.claim == claim] for claim in preset.claims}
    findings = [
        finding(
            f"{preset.source}: {claim.said}. Here, {'; '.join(one.sentence() for one in given)}"
            f"{_cores_words(plan, preset, claim)}.",
            f"The paper measured on {preset.host}. Intervals are over {plan.repetitions} rounds, 95 % for "
            f"all {len(answers)} comparisons together; flat is within a tenth either way.",
        )
        for claim, given in by_claim.items()
        if given
    ]
    missing = "; that ".join(claim.said for claim, given in by_claim.items() if not given)
    sentence = f"{preset.source} also found that {missing}: the values that this takes were not measured here."
    return findings + when(missing, note(sentence))


def _cores_words(plan: SweepPlan, preset: Preset, claim: Claim) -> str:
    """Why a factor that uses cores may show another direction here, where there are fewer."""
    [factor] = [one for one in preset.factors if one.name == claim.factor]
    if factor.cores is None or plan.system_cores >= factor.cores:
        return ""
    cores = kit.counted(plan.system_cores, "core")
    return f"; the system has {cores} here, and the paper's had {factor.cores} hardware threads"


def _effect_findings(summary: Summary) -> list[Finding]:
    effects = summary.effects
    smallest = 1 + packaged_thresholds().limit("comparison.smallest_ratio")
    shown = [one for one in effects.factors if one.p_value is not None and one.p_value < 0.05 and one.span >= smallest]
    leads = ["matters most" if len(effects.factors) > 1 else "matters"] + ["matters"] * len(shown)
    hidden = [one for one in effects.factors if one not in shown]
    untested = [
        f"{one.factor} (x{one.span:.2f} between {one.lowest} and {one.highest})"
        for one in hidden
        if one.p_value is None
    ]
    untested_note = note(
        f"With one repetition no effect can be shown of {', '.join(untested)}.",
        "Effects are judged against the variation between repetitions of one cell: --repeat 3.",
    )
    not_shown = [
        note(
            f"{one.factor} is not shown to matter for throughput (x{one.span:.2f} between levels).",
            _effect_evidence(one),
        )
        for one in hidden
        if not untested
    ]
    p_value, share = effects.interaction_p_value, effects.interaction_share
    together = p_value is not None and p_value < 0.05 <= share * 2
    return [
        *(
            finding(f"{_effect_words(one, lead)}.", _effect_evidence(one))
            for one, lead in zip(shown, leads, strict=False)
        ),
        *when(untested, untested_note),
        *not_shown,
        *when(
            together,
            note(
                f"The effect of one factor depends on the others: {share:.0%} of the variation between cells is in "
                "their combinations.",
                f"p = {p_value or 0.0:.2g}; read single cells rather than averages.",
            ),
        ),
    ]


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
    rivals = f"all {len(summary.cells) - 1} other cells, corrected for all pairs"
    if len(summary.cells) == 2:
        rivals = "the other cell"
    throughput = format_count(best.throughput.estimate)
    sentence = f"The highest throughput is {throughput} operations/s, with {best.label}{rest}."
    findings = [finding(sentence, f"{_plus_minus(best.throughput)}; compared with {rivals}.")]
    timed = [(cell.p99, cell.label) for cell in summary.cells if cell.p99 is not None]
    if timed:
        p99, label = min(timed, key=lambda one: one[0].estimate)
        sentence = f"The lowest 99th percentile is {format_duration(p99.estimate)}, with {label}."
        findings.append(note(sentence, _plus_minus(p99)))
    return findings


def _comparison_findings(summary: Summary) -> list[Finding]:
    comparisons = list(summary.against_baseline.values())
    if all(one.p_value is None for one in comparisons):
        return []
    different = sum(one.different for one in comparisons)
    unclear = _indistinct(comparisons)
    same = [one.first for one in comparisons if one.outcome == "equivalent"]
    baseline = comparisons[0].second
    parts = [f"{different} of {len(comparisons)} cells are shown to differ from {baseline} in throughput"]
    if 0 < len(unclear) < len(comparisons):
        parts.append(f"not shown to differ: {listed(unclear)}")
    if same:
        parts.append(f"shown to be the same within 2 %: {listed(same)}")
    evidence = f"Welch's test on logarithms, corrected for {len(comparisons)} comparisons after Holm."
    return [note(f"{'; '.join(parts)}.", evidence)]


def _indistinct(comparisons: list[Comparison]) -> list[str]:
    return [one.first for one in comparisons if one.outcome in ("no difference seen", "too few repetitions")]


def _warnings(plan: SweepPlan, outcome: Outcome, summary: Summary) -> list[Finding]:
    able = [number for number in range(len(plan.cells)) if number not in outcome.failures]
    missing = sum(plan.repetitions - len(outcome.of(number)) for number in able)
    resume = "'rackscope study sweep --resume DIR' with this directory goes on with it."
    return [
        *when(
            missing and not outcome.discarded,
            warning(f"{missing} of {plan.runs} runs are missing: the sweep was stopped.", resume),
        ),
        *kit.failure_findings(
            (plan.cells[cell].label, reasons[-1]) for cell, reasons in sorted(outcome.failures.items())
        ),
        *(warning(f"A run failed, and its repetition is missing: {text}.") for text in outcome.discarded),
        *kit.generator_findings(
            {cell.label: cell.generator_idle_ratio for cell in summary.cells},
            "Give it more cores with --client-cores, or pipeline requests.",
        ),
        *kit.miss_findings({cell.label: cell.hit_ratio for cell in summary.cells}, _FEW_MISSES),
    ]


def _table(summary: Summary) -> list[Table]:
    if not summary.cells:
        return []
    first = summary.cells[0]
    help_of_half = "Half of the 95 % interval"

    def verdict(cell: CellSummary) -> str | None:
        against = summary.against_baseline.get(cell.label)
        return "baseline" if cell is first else None if against is None else _OUTCOMES[against.outcome]

    def ratio(cell: CellSummary) -> str | None:
        against = summary.against_baseline.get(cell.label)
        return None if against is None else f"x{against.ratio.estimate:.2f}"

    columns: list[tuple[str | Sequence[str], Callable[[CellSummary], Any]]] = [
        ("cell", lambda one: one.label),
        (("throughput", "operations/s"), lambda one: one.throughput.estimate),
        (("±", "ratio", help_of_half), lambda one: relative_half_width(one.throughput)),
        (("p99", "seconds"), lambda one: kit.value(one.p99)),
        (("±", "ratio", help_of_half), lambda one: one.p99 and relative_half_width(one.p99)),
        (("against", "text", "Throughput over that of the first cell"), ratio),
        (("it is", "text", "Corrected for the number of cells"), verdict),
    ]
    if any(cell.hit_ratio is not None and cell.hit_ratio < _FEW_MISSES for cell in summary.cells):
        columns.append((("hits", "ratio"), lambda one: one.hit_ratio))
    caption = f"Means over repetitions with 95 % intervals; throughput is compared with that of {first.label}."
    return table_of("cells", "Cells", summary.cells, columns, caption)


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
        **picked(cell, "label", "levels", "hit_ratio", "generator_idle_ratio"),
        "repetitions": cell.throughput.count,
        "throughput_operations_per_second": plain(cell.throughput),
        "response_mean_seconds": plain(cell.mean),
        "response_p50_seconds": plain(cell.p50),
        "response_p99_seconds": plain(cell.p99),
        "against_baseline": against and picked(against, "ratio", "p_value", "outcome"),
    }


def _claim_result(answer: Answer) -> dict[str, Any]:
    return {
        **picked(answer, "system", "agrees", "ratio"),
        **picked(answer.claim, "said", "factor", "quantity"),
        "from": answer.start,
        "to": answer.end,
        "paper": answer.claim.direction,
        "here": answer.direction,
    }
