"""What ``study access`` found, as findings, tables, charts and a result for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from rackscope.analysis.intervals import ratio_of_means
from rackscope.analysis.wording import listing, percent
from rackscope.runs.study import Finding, StudyRecord, Table
from rackscope.studies import kit
from rackscope.studies.access.charts import make_charts
from rackscope.studies.access.measure import Outcome
from rackscope.studies.access.peers import METHOD as PEER_METHOD
from rackscope.studies.access.peers import peer_findings, peer_tables
from rackscope.studies.access.plan import ACCESS_MODES, Plan, Setting
from rackscope.studies.access.program import Filled
from rackscope.studies.access.summary import Summary, Verdict, summarise, typical_writes
from rackscope.studies.kit import counted, finding, note, picked, ratio_words, table_of, warning, when
from rackscope.units import format_count

#: Lookups that the owner would have to be asked for: below this fraction they are not worth a sentence.
_FEW_UNSETTLED = 0.001
#: Stores of one comparison whose memory is in huge pages to fractions further apart than this are not alike.
_PAGES_ALIKE = 0.1
#: The fraction of full speed that clients have, from which on it is not worth a sentence.
_BALANCED = 0.99


def describe(record: StudyRecord, plan: Plan, outcome: Outcome) -> None:
    summary = summarise(outcome)
    record.findings = _findings(plan, outcome, summary)
    record.charts = make_charts(plan, summary)
    record.tables = [*_table(summary), *peer_tables(summary), *_layouts(outcome)]
    record.method = _method(plan, outcome, summary)
    record.result = _result(plan, outcome, summary)


def _findings(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    findings = [one for cores in sorted(plan.cores, reverse=True) for one in _who_wins(summary, cores)]
    if outcome.rounds > 1:
        findings += [*_under_writes(plan, summary), *peer_findings(outcome, summary)]
        findings += [*_over_cores(plan, summary), *_over_skew(plan, summary)]
    else:
        sentence = "With one round no difference can be shown: these are only the rates that were seen."
        evidence = "Differences are judged against the variation between rounds: --repetitions 7, a longer --budget."
        findings += when(summary.cells, note(sentence, evidence))
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
        mixes = kit.listed([f"{one.setting.mix} ({one.words})" for one in tied])
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
    settings = [setting for setting in summary.settings(cores) if setting.writes_percent]
    ratios = sorted(
        ((summary.ratio(setting, "EREW", "CRCW"), setting) for setting in settings),
        key=lambda one: one[0].ratio.estimate,
    )
    if not ratios or ratios[0][0].p_value is None:
        return []
    ahead = [one for one, _ in ratios if one.different and one.ratio.estimate > 1]
    (least, least_in), (most, most_in) = ratios[0], ratios[-1]
    where = "all" if len(ahead) == len(ratios) else f"{len(ahead)} of"
    return [
        finding(
            f"Under writes EREW is shown to be faster than CRCW in {where} {len(ratios)} mixes on "
            f"{counted(cores, 'core')}; over all of them its rate is {least.ratio.estimate:.2f} ({least_in.mix}) to "
            f"{most.ratio.estimate:.2f} ({most_in.mix}) times CRCW's.",
            f"{ratio_words(least.ratio)} and {ratio_words(most.ratio)}, for all comparisons together.",
        )
    ]


def _gains(summary: Summary, before: Setting, after: Setting) -> tuple[str, str]:
    """What each mode's rate becomes from one setting to another, and that with intervals; empty where a mode was not
    measured in both."""
    pairs = {
        access: (summary.cells.get((access, after)), summary.cells.get((access, before))) for access in ACCESS_MODES
    }
    gains = {access: ratio_of_means(one.rates, other.rates) for access, (one, other) in pairs.items() if one and other}
    if len(gains) < len(ACCESS_MODES):
        return "", ""
    words = listing([f"{access} {gain.estimate:.2f} times" for access, gain in gains.items()])
    return words, "; ".join(f"{access} {ratio_words(gain)}" for access, gain in gains.items()) + "."


def _over_cores(plan: Plan, summary: Summary) -> list[Finding]:
    few, many, writes = min(plan.cores), max(plan.cores), typical_writes(plan)
    findings = []
    for theta in plan.thetas:
        before = Setting(few, theta, writes)
        words, evidence = _gains(summary, before, Setting(many, theta, writes))
        sentence = f"From {counted(few, 'core')} to {many}, with {before.mix}, the rate becomes: {words}."
        findings += when(words and few != many, finding(sentence, evidence))
    return findings


def _over_skew(plan: Plan, summary: Summary) -> list[Finding]:
    cores, writes = max(plan.cores), typical_writes(plan)
    even, skewed = (Setting(cores, theta, writes) for theta in (plan.thetas[0], plan.thetas[-1]))
    words, evidence = _gains(summary, even, skewed)
    return when(
        words and even != skewed,
        note(
            f"With {skewed.keys} instead of {even.keys} keys, {writes} % writes on {counted(cores, 'core')}, "
            f"the rate becomes: {words}.",
            f"{evidence} Popular keys stay in caches, and several cores access them at the same time.",
        ),
    )


def _notes(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    findings = kit.interference_findings(outcome.interference, what="measurements")
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
                "Lookups that met a write in progress again and again, or an item about to be evicted, count as done, "
                f"although the owner would have to be asked: up to {percent(worst.unsettled_ratio)} ({worst.access}, "
                f"{counted(worst.setting.cores, 'core')}, {worst.setting.mix})."
            )
        )
    lost = [
        warning(f"{one.lost} of {format_count(plan.items)} items could not be stored ({access}): no free slot.")
        for (access, _), one in outcome.filled.items()
        if one.lost
    ]
    return findings + _unlike(outcome) + lost[:1] + [note(text) for text in outcome.notes]


def _table(summary: Summary) -> list[Table]:
    def rate(access: str, one: Verdict) -> float:
        return summary.cells[access, one.setting].median.estimate

    columns: list[tuple[str | Sequence[str], Callable[[Verdict], Any]]] = [
        ("cores, keys, writes", lambda one: f"{one.setting.cores}, {one.setting.keys}, {one.setting.writes_percent} %"),
        *(((access, "operations/s"), partial(rate, access)) for access in ACCESS_MODES),
        (
            ("fastest", "text", "Several where they are not shown to differ"),
            lambda one: None if one.next.p_value is None else one.words,
        ),
        (
            "fastest / next",
            lambda one: None if one.next.p_value is None else f"{one.next.second} {ratio_words(one.next.ratio)}",
        ),
    ]
    return table_of(
        "modes",
        "Which mode is fastest where",
        sorted(summary.verdicts, key=lambda one: (-one.setting.cores, *one.setting.order[1:])),
        columns,
        "Medians over rounds. The last column is the mean of the fastest mode divided by that of the next one, with an "
        "interval that holds for all comparisons of this study together (95 %).",
    )


def _layouts(outcome: Outcome) -> list[Table]:
    columns: list[tuple[str | Sequence[str], Callable[[tuple[tuple[str, int], Filled]], Any]]] = [
        ("cores, mode", lambda one: f"{one[0][1]}, {one[0][0]}"),
        (("partitions", "", "Of all cores together"), lambda one: one[1].partitions),
        (("log of each", "bytes"), lambda one: one[1].log_bytes),
        (("indexes", "bytes", "Of all partitions together"), lambda one: one[1].index_bytes),
        (
            ("in huge pages", "ratio", "What of the items and indexes came in huge pages"),
            lambda one: one[1].huge_page_ratio,
        ),
        (
            ("overhead", "bytes", "Of an item, beside its key and value, index included"),
            lambda one: one[1].overhead_bytes,
        ),
    ]
    return table_of("layout", "What is worked on", outcome.filled.items(), columns)


def _unlike(outcome: Outcome) -> list[Finding]:
    """Said where modes that are compared have their memory in different pages, which the kernel decides."""
    spans = {}
    for cores in dict.fromkeys(cores for _, cores in outcome.filled):
        ratios = {
            access: one.huge_page_ratio
            for (access, its), one in outcome.filled.items()
            if its == cores and one.huge_page_ratio is not None
        }
        if ratios and max(ratios.values()) - min(ratios.values()) > _PAGES_ALIKE:
            spans[cores] = listing([f"{access} {percent(ratio)}" for access, ratio in ratios.items()])
    return [
        warning(
            f"On {counted(cores, 'core')} the kernel gave the stores different parts of their memory in huge pages: "
            f"{words}.",
            "What they differ in is then not the structure alone: free memory, or echo always > "
            "/sys/kernel/mm/transparent_hugepage/defrag, and measure again.",
        )
        for cores, words in spans.items()
    ]


def _method(plan: Plan, outcome: Outcome, summary: Summary) -> list[str]:
    return [
        f"{format_count(plan.items)} items of 8 + 8 bytes in each store; keys are drawn beforehand and asked for in "
        "bursts of 256, and what is read is checked. A core's thread is kept on it.",
        f"{len(plan.cells)} combinations, each measured for {plan.seconds:g} s in each of {outcome.rounds} rounds; the "
        "order of a round is drawn from a seed, and that of every second round is the one before it backwards.",
        "EREW: a core works on its own partitions only, with its own keys, as clients that know the partitions would "
        "send them. CREW: it reads any partition and writes to its own. CRCW: it reads and writes any partition, and "
        "locks one to write to it. All modes have the same number of partitions of the same size.",
        "The stores are those of the cache server's workers. Reads are noted as the server does it, for the eviction "
        "of what was not read: once a minute for each item, by EREW and CREW in a core's own partitions, by CRCW under "
        "the lock. The server's clock is read for every burst.",
        *([PEER_METHOD] if plan.with_peers else []),
        kit.measured_again(outcome.interference, "measurements"),
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
                **picked(cell, "access", "balance", "unsettled_ratio"),
                "rates_operations_per_second": list(cell.rates),
                "median": cell.median.estimate,
                **picked(cell.median, "low", "high"),
            }
            for cell in summary.cells.values()
        ],
        "comparisons": [
            {
                **asdict(setting),
                **picked(one, "first", "second", "outcome"),
                "ratio": one.ratio.estimate,
                **picked(one.ratio, "low", "high"),
            }
            for (setting, first, second), one in summary.comparisons.items()
            if plan.structures.index(first) < plan.structures.index(second)
        ],
        "stores": [
            {
                "access": access,
                "cores": cores,
                **picked(filled, "partitions", "log_bytes", "index_bytes", "huge_page_bytes", "lost", "overhead_bytes"),
            }
            for (access, cores), filled in outcome.filled.items()
        ],
    }
