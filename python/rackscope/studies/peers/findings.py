"""What ``study peers`` found, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rackscope.analysis import wording
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.studies.peers.plan import MEMORY_ITEMS
from rackscope.studies.peers.summary import ratio_words, summarise
from rackscope.units import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from rackscope.analysis.multiple import Comparison
    from rackscope.runs.study import Finding, StudyRecord
    from rackscope.studies.peers.carry_out import Outcome
    from rackscope.studies.peers.plan import Plan, Setting
    from rackscope.studies.peers.summary import Summary

#: Settings that a sentence names.
_LISTED = 4
#: Of reads, how many must find their value for the rest not to be mentioned.
_FEW_MISSES = 0.9999
#: Of items that were put in, how many a system must still have to be said to hold them.
_HELD = 0.999


def describe(record: StudyRecord, plan: Plan, outcome: Outcome) -> None:
    """Put what is known now into the record."""
    from rackscope.studies.peers.charts import make_charts
    from rackscope.studies.peers.result import result_of
    from rackscope.studies.peers.tables import loads_table, memory_table, settings_table

    summary = summarise(plan, outcome)
    record.findings = [
        *(finding for peer in plan.peers for finding in _against(plan, summary, peer)),
        *_cpu(plan, summary),
        *_tail(plan, outcome, summary),
        *_memory(plan, summary),
        *_warnings(plan, outcome, summary),
        *_notes(plan, outcome),
    ]
    record.charts = make_charts(plan, outcome, summary)
    record.tables = [
        *settings_table(plan, summary),
        *loads_table(plan, outcome, summary),
        *memory_table(plan, outcome, summary),
    ]
    record.method = _method(plan, outcome)
    record.result = {**record.result, **result_of(plan, outcome, summary)}


def _against(plan: Plan, summary: Summary, peer: str) -> list[Finding]:
    from rackscope.runs.study import Finding

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
        named = _listed([setting.label for setting, _ in rest])
        parts.append(
            f"not shown to differ in {len(rest)} ({named})"
            if parts
            else f"not shown to differ from {peer} in any of {len(rest)} settings"
        )
    lowest, highest = (choose(ratios, key=lambda pair: pair[1].ratio.estimate) for choose in (min, max))
    evidence = [f"{setting.label}: {ratio_words(one)}" for setting, one in dict.fromkeys((lowest, highest))]
    return [
        Finding(
            sentence=f"{plan.subject} is {'; '.join(parts)}.",
            evidence=f"{'; '.join(evidence)}. Intervals hold for all {len(summary.ratios)} comparisons together.",
        )
    ]


def _span(pairs: Sequence[tuple[Setting, Comparison]]) -> str:
    estimates = sorted(one.ratio.estimate for _, one in pairs)
    if len(estimates) == 1:
        return f"{estimates[0]:.2f} times"
    return f"{estimates[0]:.2f} to {estimates[-1]:.2f} times"


def _cpu(plan: Plan, summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding

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
                f"{plan.subject} over {peer} {ratio_words(summary.costs[setting.name, peer])}"
                for peer in plan.peers
                if (setting.name, peer) in summary.costs
            ]
            return [
                Finding(
                    sentence=f"CPU time of both ends together, for a million operations of {setting.label}: "
                    f"{wording.listing(words)}.",
                    evidence=f"Server: {'; '.join(costs)}." if costs else "",
                )
            ]
    return []


def _tail(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding

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
        f"{plan.subject} over {peer} {ratio_words(summary.tails[load, peer])}"
        for peer in plan.peers
        if (load, peer) in summary.tails
    ]
    rate = format_count(load * outcome.best_rate)
    return [
        Finding(
            sentence=f"p99 at {wording.percent(load)} of {plan.baseline}'s best load ({rate} operations/s): "
            f"{wording.listing(words)}.",
            evidence=f"{'; '.join(ratios)}." if ratios else "",
        )
    ]


def _memory(plan: Plan, summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding

    if not summary.memory:
        return []
    words = [f"{name} {format_bytes(summary.memory[name][0])}" for name in plan.systems if name in summary.memory]
    is_scaled = any(not measured for _, measured in summary.memory.values())
    own = summary.memory.get(plan.subject)
    ratios = [
        f"{own[0] / summary.memory[peer][0]:.2f} times {peer}'s"
        for peer in plan.peers
        if own is not None and peer in summary.memory
    ]
    how = (
        f"Scaled from {plan.memory_items:,} items: tables that double make that wrong by their size; "
        f"--memory {MEMORY_ITEMS // 1_000_000}m measures it."
        if is_scaled
        else "Measured once."
    )
    return [
        Finding(
            sentence=f"Memory that holds {MEMORY_ITEMS // 1_000_000} M items of 32 + 64 bytes"
            f"{', scaled' if is_scaled else ''}: {wording.listing(words)}.",
            evidence=f"{plan.subject} takes {wording.listing(ratios)}. {how}" if ratios else how,
        )
    ]


def _warnings(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding

    findings = []
    seen = outcome.interference
    if seen.kept:
        findings.append(
            Finding(
                sentence=f"the host was busy with other things in {seen.kept} of the {seen.windows - seen.discarded} "
                "windows that count",
                severity="warning",
                evidence=", ".join(sorted(seen.reasons)),
            )
        )
    by_reason: dict[tuple[str, str], list[str]] = {}
    for what, name, reason in outcome.failures:
        by_reason.setdefault((name, reason), []).append(what)
    findings += [
        Finding(sentence=f"{name} is missing from {_listed(whats)}: {reason}.", severity="warning")
        for (name, reason), whats in by_reason.items()
    ]
    least = packaged_thresholds().limit("generator.idle_minimum")
    full = [
        f"{setting.label} ({name})"
        for setting in summary.settings
        for name in plan.systems
        if (cell := summary.cells.get((setting.name, name))) is not None
        and cell.idle_ratio is not None
        and cell.idle_ratio < least
    ]
    if full:
        findings.append(
            Finding(
                sentence=f"The load generator had no time left with {_listed(full)}: there the system can do more, and "
                "CPU time says more than throughput.",
                severity="warning",
                evidence="Give it more cores with --client-cores.",
            )
        )
    missed = [
        f"{setting.label} ({name}, {cell.hit_ratio:.1%} hits)"
        for setting in summary.settings
        for name in plan.systems
        if (cell := summary.cells.get((setting.name, name))) is not None
        and cell.hit_ratio is not None
        and cell.hit_ratio < _FEW_MISSES
    ]
    if missed:
        findings.append(
            Finding(
                sentence=f"Reads missed with {_listed(missed)}: a miss is cheaper than a hit, so that throughput "
                "flatters these.",
                severity="warning",
            )
        )
    lost = [
        f"{name} ({use.hit_ratio:.1%})"
        for name, use in outcome.memory.items()
        if use.hit_ratio is not None and use.hit_ratio < _HELD
    ]
    if lost:
        findings.append(
            Finding(
                sentence="Not all items that memory was measured with are still there. Reads that find theirs: "
                f"{wording.listing(lost)}.",
                severity="warning",
            )
        )
    return findings


def _notes(plan: Plan, outcome: Outcome) -> list[Finding]:
    from rackscope.runs.study import Finding

    absent = [name for name, reason in plan.missing.items() if reason.endswith("on PATH")]
    findings = []
    if absent:
        findings.append(Finding(sentence=f"Not found on PATH: {', '.join(absent)}.", severity="note"))
    findings += [
        Finding(sentence=f"{name} is left out: {reason}.", severity="note")
        for name, reason in plan.missing.items()
        if name not in absent
    ]
    return findings + [Finding(sentence=note, severity="note") for note in outcome.notes]


def _method(plan: Plan, outcome: Outcome) -> list[str]:
    seen = outcome.interference
    words = {one.label.removesuffix(" mixed"): one.words for one in plan.settings}
    settings = "; ".join(f"{label} is {what}" for label, what in words.items())
    lines = [
        f"In each setting all systems are started on the same cores, filled with {plan.keys:,} keys (large values: "
        f"fewer) and warmed up, and then measured by turns for {plan.seconds:g} s, {plan.repetitions} times. The "
        "order of a round is drawn from the seed, and every second round is the one before it backwards; those whose "
        "turn it is not are idle.",
        f"Settings (mixed: 95 % reads and 5 % updates; others are reads): {settings}.",
        "As many threads as the systems have cores, the same memory, otherwise their own defaults; the same load "
        "generator on its own core, over TCP unless it says otherwise, 50 connections, zipfian keys, and every value "
        "that is read is checked.",
        "CPU time of the server is what the scheduler measured of all its threads, that of the client of its own.",
        "Throughputs: means with Student's t intervals over rounds. Ratios: Welch's interval on logarithms, "
        "simultaneous for all comparisons; differences by Welch's test, corrected after Holm.",
        f"{seen.discarded} windows were discarded and measured again because others took part of the host.",
    ]
    if outcome.memory:
        lines.append("Memory is resident bytes after all items were put in and read for a moment, with uniform keys.")
    return lines


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
