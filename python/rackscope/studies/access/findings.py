"""What ``study access`` found, as findings, tables, charts and a result for programs.

``result``::

    {"items", "rounds", "cells": [{"access", "cores", "theta", "writes_percent", "balance", "unsettled_ratio",
                                   "rates_operations_per_second": [float], "median", "low", "high"}],
     "comparisons": [{"cores", "theta", "writes_percent", "first", "second", "ratio", "low", "high", "outcome"}],
     "stores": [{"access", "cores", "partitions", "lost", "overhead_bytes"}]}

``balance`` is the part of what all cores did at full speed that clients can have: where requests go to the core that
owns a key, and some keys are asked for more than others, the busiest core is full before the rest. Every rate here is
multiplied by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rackscope.analysis.intervals import Interval, ratio_of_means
from rackscope.analysis.wording import listing, percent
from rackscope.runs.study import Finding, StudyRecord, Table
from rackscope.studies.access.charts import make_charts
from rackscope.studies.access.measure import Outcome
from rackscope.studies.access.plan import ACCESS_MODES, Plan, Setting
from rackscope.studies.access.summary import Summary, summarise, typical_writes
from rackscope.studies.kit import (
    Row,
    counted,
    finding,
    interference_findings,
    listed,
    measured_again,
    note,
    ratio_words,
    table,
    warning,
)
from rackscope.units import format_count

#: Lookups that met a write in progress again and again: below this fraction they are not worth a sentence.
_FEW_UNSETTLED = 0.001
#: The fraction of full speed that clients have, from which on it is not worth a sentence.
_BALANCED = 0.99


def describe(record: StudyRecord, plan: Plan, outcome: Outcome) -> None:
    """Put what is known now into the record."""
    summary = summarise(outcome)
    record.findings = _findings(plan, outcome, summary)
    record.charts = make_charts(plan, summary)
    record.tables = _table(summary)
    record.method = _method(plan, outcome, summary)
    record.result = _result(plan, outcome, summary)


def _findings(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    findings = [one for cores in sorted(plan.cores, reverse=True) for one in _who_wins(summary, cores)]
    if outcome.rounds > 1:
        findings += [*_under_writes(plan, summary), *_over_cores(plan, summary), *_over_skew(plan, summary)]
    elif summary.cells:
        findings.append(
            note(
                "With one round no difference can be shown: these are only the rates that were seen.",
                "Differences are judged against the variation between rounds: --repetitions 7, a longer --budget.",
            )
        )
    return [*findings, *_notes(plan, outcome, summary)]


def _who_wins(summary: Summary, cores: int) -> list[Finding]:
    verdicts = [one for one in summary.verdicts if one.setting.cores == cores]
    if not verdicts or any(one.next.p_value is None for one in verdicts):
        return []
    parts: list[str] = []
    evidence: list[str] = []
    for access in ACCESS_MODES:
        won = [one for one in verdicts if one.fastest == access and not one.ties]
        if won:
            span = sorted(one.next.ratio.estimate for one in won)
            times = f"{span[0]:.2f} times" if len(won) == 1 else f"{span[0]:.2f} to {span[-1]:.2f} times"
            parts.append(
                f"{access} is fastest in {len(won)} of {len(verdicts)} mixes, with {times} the next one's rate"
            )
            closest = min(won, key=lambda one: one.next.ratio.estimate)
            evidence.append(
                f"{access} is closest to {closest.next.second} with {closest.setting.mix}: "
                f"{ratio_words(closest.next.ratio)}"
            )
    tied = [one for one in verdicts if one.ties]
    if tied and parts:
        mixes = listed([f"{one.setting.mix} ({one.words})" for one in tied])
        parts.append(f"no mode is shown to be faster than both others with {mixes}")
    elif tied:
        parts.append(f"no mode is shown to be faster than both others in any of {len(verdicts)} mixes")
        largest = max(tied, key=lambda one: one.next.ratio.estimate)
        evidence.append(
            f"furthest apart are {largest.fastest} and {largest.next.second} with {largest.setting.mix}: "
            f"{ratio_words(largest.next.ratio)}"
        )
    evidence.append(f"intervals hold for all {len(summary.comparisons) // 2} comparisons together")
    return [finding(f"On {counted(cores, 'core')} {'; '.join(parts)}.", f"{'; '.join(evidence)}.")]


def _under_writes(plan: Plan, summary: Summary) -> list[Finding]:
    cores = max(plan.cores)
    ratios = [
        (setting, summary.ratio(setting, "EREW", "CRCW"))
        for setting in summary.settings(cores)
        if setting.writes_percent
    ]
    if not ratios or ratios[0][1].p_value is None:
        return []
    ahead = [one for one in ratios if one[1].different and one[1].ratio.estimate > 1]
    least = min(ratios, key=lambda one: one[1].ratio.estimate)
    most = max(ratios, key=lambda one: one[1].ratio.estimate)
    where = "all" if len(ahead) == len(ratios) else f"{len(ahead)} of"
    return [
        finding(
            f"Under writes EREW is shown to be faster than CRCW in {where} {len(ratios)} mixes on "
            f"{counted(cores, 'core')}: by {least[1].ratio.estimate:.2f} ({least[0].mix}) to "
            f"{most[1].ratio.estimate:.2f} times ({most[0].mix}).",
            f"{ratio_words(least[1].ratio)} and {ratio_words(most[1].ratio)}, for all comparisons together.",
        )
    ]


def _gains(summary: Summary, before: Setting, after: Setting) -> list[tuple[str, Interval]]:
    """What each mode's rate becomes from one setting to another; empty where a mode was not measured in both."""
    rates = [(summary.cells.get((access, after)), summary.cells.get((access, before))) for access in ACCESS_MODES]
    gains = [ratio_of_means(one.rates, other.rates) for one, other in rates if one is not None and other is not None]
    return list(zip(ACCESS_MODES, gains, strict=True)) if len(gains) == len(ACCESS_MODES) else []


def _gain_words(gains: Sequence[tuple[str, Interval]]) -> str:
    return "; ".join(f"{access} {ratio_words(gain)}" for access, gain in gains) + "."


def _over_cores(plan: Plan, summary: Summary) -> list[Finding]:
    few, many = min(plan.cores), max(plan.cores)
    if few == many:
        return []
    findings = []
    for theta in plan.thetas:
        writes = typical_writes(plan)
        ends = [Setting(few, theta, writes), Setting(many, theta, writes)]
        gains = _gains(summary, ends[0], ends[1])
        if not gains:
            continue
        words = listing([f"{access} {gain.estimate:.2f} times" for access, gain in gains])
        findings.append(
            finding(
                f"From {counted(few, 'core')} to {many}, with {ends[0].mix}, the rate becomes: {words}.",
                _gain_words(gains),
            )
        )
    return findings


def _over_skew(plan: Plan, summary: Summary) -> list[Finding]:
    cores, writes = max(plan.cores), typical_writes(plan)
    even, skewed = (Setting(cores, theta, writes) for theta in (plan.thetas[0], plan.thetas[-1]))
    gains = _gains(summary, even, skewed)
    if even == skewed or not gains:
        return []
    words = listing([f"{access} {gain.estimate:.2f} times" for access, gain in gains])
    return [
        note(
            f"With {skewed.keys} instead of {even.keys} keys, {writes} % writes on {counted(cores, 'core')}, "
            f"the rate becomes: {words}.",
            _gain_words(gains) + " Popular keys stay in caches, and several cores access them at the same time.",
        )
    ]


def _notes(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    findings = interference_findings(outcome.interference, what="measurements")
    cells = list(summary.cells.values())
    worst = min(cells, key=lambda cell: cell.balance, default=None)
    if worst is not None and worst.balance < _BALANCED:
        findings.append(
            note(
                "Where requests go to the core that owns a key, the busiest core is full first: with "
                f"{worst.setting.mix} on {counted(worst.setting.cores, 'core')} clients of {worst.access} get "
                f"{percent(worst.balance)} of what its cores do at full speed.",
                "Rates are those that clients can get.",
            )
        )
    worst = max(cells, key=lambda cell: cell.unsettled_ratio, default=None)
    if worst is not None and worst.unsettled_ratio > _FEW_UNSETTLED:
        findings.append(
            note(
                "Lookups that met a write in progress again and again count as done, although they would have to ask "
                f"the owner: up to {percent(worst.unsettled_ratio)} ({worst.access}, "
                f"{counted(worst.setting.cores, 'core')}, {worst.setting.mix})."
            )
        )
    lost = [(access, filled) for (access, _), filled in outcome.filled.items() if filled.lost]
    if lost:
        access, filled = lost[0]
        findings.append(
            warning(f"{filled.lost} of {format_count(plan.items)} items could not be stored ({access}): no free slot.")
        )
    return findings + [note(text) for text in outcome.notes]


def _table(summary: Summary) -> list[Table]:
    rows: list[Row] = []
    for verdict in sorted(summary.verdicts, key=lambda one: (-one.setting.cores, *one.setting.order[1:])):
        setting = verdict.setting
        rates = [summary.cells[access, setting].median.estimate for access in ACCESS_MODES]
        known = verdict.next.p_value is not None
        ratio = f"{verdict.next.second} {ratio_words(verdict.next.ratio)}" if known else None
        name = f"{setting.cores}, {setting.keys}, {setting.writes_percent} %"
        rows.append([name, *rates, verdict.words if known else None, ratio])
    columns: list[Sequence[str]] = ["cores, keys, writes", *((access, "operations/s") for access in ACCESS_MODES)]
    columns += [("fastest", "text", "Several where they are not shown to differ"), "fastest / next"]
    return table(
        "modes",
        "Which mode is fastest where",
        columns,
        rows,
        "Medians over rounds. The last column is the mean of the fastest mode divided by that of the next one, with an "
        "interval that holds for all comparisons of this study together (95 %).",
    )


def _method(plan: Plan, outcome: Outcome, summary: Summary) -> list[str]:
    return [
        f"{format_count(plan.items)} items of 8 + 8 bytes in each store; keys are drawn beforehand and asked for in "
        "bursts of 256, and what is read is checked. A core's thread is kept on it.",
        f"{len(plan.cells)} combinations, each measured for {plan.seconds:g} s in each of {outcome.rounds} rounds; the "
        "order of a round is drawn from a seed, and that of every second round is the one before it backwards.",
        "EREW: a core works on its own partition only, with its own keys, as clients that know the partitions would "
        "send them. CREW: it reads any partition and writes to its own. CRCW: it reads and writes any of 16 partitions "
        "a core, and locks one to write to it. With one core there is one partition.",
        measured_again(outcome.interference, "measurements"),
        f"Medians have bootstrap intervals over rounds (BCa). Modes are compared by Welch's test on logarithms of "
        f"means, corrected after Holm for all {len(summary.comparisons) // 2} comparisons; intervals are simultaneous.",
    ]


def _result(plan: Plan, outcome: Outcome, summary: Summary) -> dict[str, Any]:
    return {
        "items": plan.items,
        "rounds": outcome.rounds,
        "cells": [
            {
                **asdict(cell.setting),
                "access": cell.access,
                "balance": cell.balance,
                "unsettled_ratio": cell.unsettled_ratio,
                "rates_operations_per_second": list(cell.rates),
                **_ends("median", cell.median),
            }
            for cell in summary.cells.values()
        ],
        "comparisons": [
            {**asdict(setting), "first": first, "second": second, **_ends("ratio", one.ratio), "outcome": one.outcome}
            for (setting, first, second), one in summary.comparisons.items()
            if ACCESS_MODES.index(first) < ACCESS_MODES.index(second)
        ],
        "stores": [
            {
                "access": access,
                "cores": cores,
                "partitions": filled.partitions,
                "lost": filled.lost,
                "overhead_bytes": filled.overhead_bytes,
            }
            for (access, cores), filled in outcome.filled.items()
        ],
    }


def _ends(name: str, interval: Interval) -> dict[str, float | None]:
    return {name: interval.estimate, "low": interval.low, "high": interval.high}
