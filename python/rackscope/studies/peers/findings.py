"""What ``study peers`` found, in sentences and for programs.

``StudyRecord.result``::

    {"subject", "baseline", "best_rate_operations_per_second", "versions": {system: str}, "missing": {system: str},
     "settings": [{"name", "label", "systems": {system: {"rates_operations_per_second": [float], "rate": interval,
                   "server_cpu_seconds_per_million", "client_cpu_seconds_per_million": interval, "idle_ratio",
                   "hit_ratio", "ratio": interval, "outcome"}}}],
     "loads": [{"load", "systems": {system: {"offered_operations_per_second", "rate", "p50_seconds", "p99_seconds":
                interval, "keeps_up", "p99_ratio": interval, "outcome"}}}],
     "memory": {system: {"items", "empty_bytes", "full_bytes", "hit_ratio", "bytes_of_10m_items", "scaled": bool}},
     "failures": [{"what", "system", "reason"}]}

An interval is ``{"estimate", "low", "high", "count"}``. ``ratio`` is the subject's throughput over that system's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rackscope.analysis import wording
from rackscope.analysis.multiple import Comparison
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.runs.study import Finding, StudyRecord
from rackscope.studies import kit
from rackscope.studies.kit import finding, interval_result, listed, note, ratio_words, warning
from rackscope.studies.peers.figures import make_charts, make_tables
from rackscope.studies.peers.measure import Outcome
from rackscope.studies.peers.plan import MEMORY_ITEMS, Plan, Setting
from rackscope.studies.peers.summary import Cell, Summary, summarise
from rackscope.units import format_bytes, format_count, format_duration

#: Of reads, how many must find their value for the rest not to be mentioned.
_FEW_MISSES = 0.9999
#: Of items that were put in, how many a system must still have to be said to hold them.
_HELD = 0.999


def describe(record: StudyRecord, plan: Plan, outcome: Outcome) -> None:
    """Put what is known now into the record."""
    summary = summarise(plan, outcome)
    record.findings = [
        *(one for peer in plan.peers for one in _against(plan, summary, peer)),
        *_cpu(plan, summary),
        *_tail(plan, outcome, summary),
        *_memory(plan, summary),
        *_warnings(plan, outcome, summary),
        *_notes(plan, outcome),
    ]
    record.charts = make_charts(plan, outcome, summary)
    record.tables = make_tables(plan, outcome, summary)
    record.method = _method(plan, outcome)
    record.result = {**record.result, **_result(plan, outcome, summary)}


def _against(plan: Plan, summary: Summary, peer: str) -> list[Finding]:
    ratios = [(setting, one) for setting, one in summary.ratios_with(peer) if one.p_value is not None]
    if not ratios:
        return []
    ahead = [pair for pair in ratios if pair[1].different and pair[1].ratio.estimate > 1]
    behind = [pair for pair in ratios if pair[1].different and pair[1].ratio.estimate < 1]
    rest = [pair for pair in ratios if not pair[1].different]
    parts: list[str] = []
    for word, pairs in (("ahead of", ahead), ("behind", behind)):
        if pairs:
            who = f"{word} {peer}" if not parts else word.removesuffix(" of")
            parts.append(f"{who} in {len(pairs)} of {len(ratios)} settings, with {_span(pairs)} its throughput")
    if rest:
        named = listed([setting.label for setting, _ in rest])
        parts.append(
            f"not shown to differ in {len(rest)} ({named})"
            if parts
            else f"not shown to differ from {peer} in any of {len(rest)} settings"
        )
    lowest, highest = (choose(ratios, key=lambda pair: pair[1].ratio.estimate) for choose in (min, max))
    evidence = [f"{setting.label}: {ratio_words(one.ratio)}" for setting, one in dict.fromkeys((lowest, highest))]
    return [
        finding(
            f"{plan.subject} is {'; '.join(parts)}.",
            f"{'; '.join(evidence)}. Intervals hold for all {len(summary.ratios)} comparisons together.",
        )
    ]


def _span(pairs: Sequence[tuple[Setting, Comparison]]) -> str:
    estimates = sorted(one.ratio.estimate for _, one in pairs)
    if len(estimates) == 1:
        return f"{estimates[0]:.2f} times"
    return f"{estimates[0]:.2f} to {estimates[-1]:.2f} times"


def _cpu(plan: Plan, summary: Summary) -> list[Finding]:
    for setting in summary.settings:
        cells = [(name, summary.cells.get((setting.name, name))) for name in plan.systems]
        known = [
            (name, cell.both_cpu, cell.server_cpu)
            for name, cell in cells
            if cell is not None and cell.both_cpu is not None and cell.server_cpu is not None
        ]
        if known and known[0][0] == plan.subject:
            words = [
                f"{name} {format_duration(both)} ({format_duration(server.estimate)} the server)"
                for name, both, server in known
            ]
            costs = [
                f"{plan.subject} over {peer} {ratio_words(summary.costs[setting.name, peer].ratio)}"
                for peer in plan.peers
                if (setting.name, peer) in summary.costs
            ]
            return [
                finding(
                    f"CPU time of both ends together, for a million operations of {setting.label}: "
                    f"{wording.listing(words)}.",
                    f"Server: {'; '.join(costs)}." if costs else "",
                )
            ]
    return []


def _tail(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    if not plan.loads or not outcome.best_rate:
        return []
    load = min(plan.loads, key=lambda load: abs(load - 0.5))
    known = [(name, summary.loaded[load, name]) for name in plan.systems if (load, name) in summary.loaded]
    words = [
        f"{name} {format_duration(cell.p99.estimate)}" if cell.keeps_up else f"{name} did not keep up"
        for name, cell in known
        if cell.p99 is not None
    ]
    if not words:
        return []
    ratios = [
        f"{plan.subject} over {peer} {ratio_words(summary.tails[load, peer].ratio)}"
        for peer in plan.peers
        if (load, peer) in summary.tails
    ]
    rate = format_count(load * outcome.best_rate)
    return [
        finding(
            f"p99 at {wording.percent(load)} of {plan.baseline}'s highest throughput ({rate} operations/s): "
            f"{wording.listing(words)}.",
            f"{'; '.join(ratios)}." if ratios else "",
        )
    ]


def _memory(plan: Plan, summary: Summary) -> list[Finding]:
    if not summary.memory:
        return []
    words = [f"{name} {format_bytes(summary.memory[name][0])}" for name in plan.systems if name in summary.memory]
    own = summary.memory.get(plan.subject)
    ratios = [
        f"{own[0] / summary.memory[peer][0]:.2f} times {peer}'s"
        for peer in plan.peers
        if own is not None and peer in summary.memory
    ]
    how = (
        f"Scaled from {plan.memory_items:,} items: tables that double make that wrong by their size; "
        f"--memory {MEMORY_ITEMS // 1_000_000}m measures it."
        if summary.memory_is_scaled
        else "Measured once."
    )
    return [
        finding(
            f"Memory that holds {MEMORY_ITEMS // 1_000_000} M items of 32 + 64 bytes"
            f"{', scaled' if summary.memory_is_scaled else ''}: {wording.listing(words)}.",
            f"{plan.subject} takes {wording.listing(ratios)}. {how}" if ratios else how,
        )
    ]


def _warnings(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    findings = kit.interference_findings(outcome.interference)
    by_reason: dict[tuple[str, str], list[str]] = {}
    for what, name, reason in outcome.failures:
        by_reason.setdefault((name, reason), []).append(what)
    findings += [
        warning(f"{name} is missing from {listed(whats)}: {reason}.") for (name, reason), whats in by_reason.items()
    ]
    cells: list[tuple[str, str, Cell]] = [
        (setting.label, name, cell)
        for setting in summary.settings
        for name in plan.systems
        if (cell := summary.cells.get((setting.name, name))) is not None
    ]
    least = packaged_thresholds().limit("generator.idle_minimum")
    findings += kit.generator_findings(
        [f"{label} ({name})" for label, name, cell in cells if cell.idle_ratio is not None and cell.idle_ratio < least],
        "Give it more cores with --client-cores, or compare CPU times instead of throughputs.",
    )
    findings += kit.miss_findings(
        [
            f"{label} ({name}, {cell.hit_ratio:.1%} hits)"
            for label, name, cell in cells
            if cell.hit_ratio is not None and cell.hit_ratio < _FEW_MISSES
        ]
    )
    lost = [
        f"{name} ({use.hit_ratio:.1%})"
        for name, use in outcome.memory.items()
        if use.hit_ratio is not None and use.hit_ratio < _HELD
    ]
    if lost:
        findings.append(
            warning(
                "Some systems evicted items while their memory was measured. Reads that found their item: "
                f"{wording.listing(lost)}."
            )
        )
    return findings


def _notes(plan: Plan, outcome: Outcome) -> list[Finding]:
    absent = [name for name, reason in plan.missing.items() if reason.endswith("on PATH")]
    findings = []
    if absent:
        findings.append(note(f"Not found on PATH: {', '.join(absent)}."))
    findings += [note(f"{name} is left out: {reason}.") for name, reason in plan.missing.items() if name not in absent]
    return findings + [note(text) for text in outcome.notes]


def _method(plan: Plan, outcome: Outcome) -> list[str]:
    words = {one.label.removesuffix(" mixed"): one.words for one in plan.settings}
    settings = "; ".join(f"{label} is {what}" for label, what in words.items())
    lines = [
        f"In each setting all systems are started on the same cores, filled with {plan.keys:,} keys (large values: "
        f"fewer) and warmed up, and then measured in turns for {plan.seconds:g} s, {plan.repetitions} times. The "
        "order of a round is drawn from the seed, and every second round is the one before it backwards; the other "
        "systems are idle meanwhile.",
        f"Settings (mixed: 95 % reads and 5 % updates; the rest are reads): {settings}.",
        "As many threads as the systems have cores, the same memory, otherwise each system's defaults; the same load "
        "generator on its own core, over TCP unless it says otherwise, 50 connections, zipfian keys, and every value "
        "that is read is checked.",
        "CPU time of the server is what the scheduler measured of all its threads, that of the client of its own.",
        "Throughputs: means with Student's t intervals over rounds. Ratios: Welch's interval on logarithms, "
        "simultaneous for all comparisons; differences by Welch's test, corrected after Holm.",
        kit.measured_again(outcome.interference),
    ]
    if outcome.memory:
        lines.append("Memory is resident bytes after all items were put in and read for a moment, with uniform keys.")
    return lines


def _result(plan: Plan, outcome: Outcome, summary: Summary) -> dict[str, Any]:
    return {
        "subject": plan.subject,
        "baseline": plan.baseline,
        "best_rate_operations_per_second": outcome.best_rate,
        "missing": dict(plan.missing),
        "settings": [
            {
                "name": setting.name,
                "label": setting.label,
                "systems": {
                    name: {
                        "rates_operations_per_second": [one.rate for one in outcome.closed[setting.name, name]],
                        "rate": interval_result(cell.rate),
                        "server_cpu_seconds_per_million": interval_result(cell.server_cpu),
                        "client_cpu_seconds_per_million": interval_result(cell.client_cpu),
                        "idle_ratio": cell.idle_ratio,
                        "hit_ratio": cell.hit_ratio,
                        **_compared("ratio", summary.ratios.get((setting.name, name))),
                    }
                    for name in plan.systems
                    if (cell := summary.cells.get((setting.name, name))) is not None
                },
            }
            for setting in summary.settings
        ],
        "loads": [
            {
                "load": load,
                "systems": {
                    name: {
                        "offered_operations_per_second": load * (outcome.best_rate or 0.0),
                        "rate": interval_result(cell.rate),
                        "p50_seconds": interval_result(cell.p50),
                        "p99_seconds": interval_result(cell.p99),
                        "keeps_up": cell.keeps_up,
                        **_compared("p99_ratio", summary.tails.get((load, name))),
                    }
                    for name in plan.systems
                    if (cell := summary.loaded.get((load, name))) is not None
                },
            }
            for load in plan.loads
            if any((load, name) in summary.loaded for name in plan.systems)
        ],
        "memory": {
            name: {
                **asdict(use),
                "bytes_of_10m_items": summary.memory[name][0],
                "scaled": not summary.memory[name][1],
            }
            for name, use in outcome.memory.items()
        },
        "failures": [{"what": what, "system": name, "reason": reason} for what, name, reason in outcome.failures],
    }


def _compared(name: str, comparison: Comparison | None) -> dict[str, Any]:
    return {} if comparison is None else {name: interval_result(comparison.ratio), "outcome": comparison.outcome}
