"""What ``study peers`` found, in sentences and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rackscope.analysis import wording
from rackscope.analysis.multiple import Comparison
from rackscope.runs.study import Finding, StudyRecord
from rackscope.studies import kit
from rackscope.studies.kit import finding, listed, note, picked, plain, ratio_words, warning, when
from rackscope.studies.peers.figures import make_charts, make_tables
from rackscope.studies.peers.measure import Outcome
from rackscope.studies.peers.plan import MEMORY_ITEMS, Plan, Setting
from rackscope.studies.peers.summary import Summary, summarise
from rackscope.units import format_bytes, format_count, format_duration

#: Of reads, how many must find their value for the rest not to be mentioned.
_FEW_MISSES = 0.9999
#: Of items that were put in, how many a system must still have to be said to hold them.
_HELD = 0.999


def describe(record: StudyRecord, plan: Plan, outcome: Outcome) -> None:
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
    """In the first setting in which it is known of the subject."""
    for setting in summary.settings:
        cells = {name: summary.cells.get((setting.name, name)) for name in plan.systems}
        words = {
            name: f"{name} {format_duration(cell.both_cpu)} ({format_duration(cell.server_cpu.estimate)} the server)"
            for name, cell in cells.items()
            if cell is not None and cell.both_cpu is not None and cell.server_cpu is not None
        }
        if plan.subject in words:
            costs = _over_peers(plan, {peer: summary.costs.get((setting.name, peer)) for peer in plan.peers})
            return [
                finding(
                    f"CPU time of both ends together, for a million operations of {setting.label}: "
                    f"{wording.listing(list(words.values()))}.",
                    f"Server: {costs}" if costs else "",
                )
            ]
    return []


def _over_peers(plan: Plan, compared: Mapping[str, Comparison | None]) -> str:
    known = {peer: one for peer, one in compared.items() if one is not None}
    words = [f"{plan.subject} over {peer} {ratio_words(one.ratio)}" for peer, one in known.items()]
    return f"{'; '.join(words)}." if words else ""


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
    rate = format_count(load * outcome.best_rate)
    return [
        finding(
            f"p99 at {wording.percent(load)} of {plan.baseline}'s highest throughput ({rate} operations/s): "
            f"{wording.listing(words)}.",
            _over_peers(plan, {peer: summary.tails.get((load, peer)) for peer in plan.peers}),
        )
    ]


def _memory(plan: Plan, summary: Summary) -> list[Finding]:
    sizes = {name: summary.memory[name][0] for name in plan.systems if name in summary.memory}
    own, scaled = sizes.get(plan.subject), summary.memory_is_scaled
    ratios = [f"{own / sizes[peer]:.2f} times {peer}'s" for peer in plan.peers if own is not None and peer in sizes]
    millions = MEMORY_ITEMS // 1_000_000
    how = "Measured once."
    if scaled:
        how = (
            f"Scaled from {plan.memory_items:,} items: tables that double make that wrong by their size; "
            f"--memory {millions}m measures it."
        )
    words = wording.listing([f"{name} {format_bytes(size)}" for name, size in sizes.items()])
    return when(
        sizes,
        finding(
            f"Memory that holds {millions} M items of 32 + 64 bytes{', scaled' if scaled else ''}: {words}.",
            f"{plan.subject} takes {wording.listing(ratios)}. {how}" if ratios else how,
        ),
    )


def _warnings(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    findings = kit.interference_findings(outcome.interference)
    by_reason: dict[tuple[str, str], list[str]] = {}
    for what, name, reason in outcome.failures:
        by_reason.setdefault((name, reason), []).append(what)
    findings += [
        warning(f"{name} is missing from {listed(whats)}: {reason}.") for (name, reason), whats in by_reason.items()
    ]
    cells = {
        (setting.label, name): cell
        for setting in summary.settings
        for name in plan.systems
        if (cell := summary.cells.get((setting.name, name))) is not None
    }
    findings += kit.generator_findings(
        {f"{label} ({name})": cell.idle_ratio for (label, name), cell in cells.items()},
        "Give it more cores with --client-cores, or compare CPU times instead of throughputs.",
    )
    hits = {f"{label}, {name}": cell.hit_ratio for (label, name), cell in cells.items()}
    findings += kit.miss_findings(hits, _FEW_MISSES)
    lost = [
        f"{name} ({use.hit_ratio:.1%})"
        for name, use in outcome.memory.items()
        if use.hit_ratio is not None and use.hit_ratio < _HELD
    ]
    sentence = "Some systems evicted items while their memory was measured. Reads that found their item:"
    return findings + when(lost, warning(f"{sentence} {wording.listing(lost)}."))


def _notes(plan: Plan, outcome: Outcome) -> list[Finding]:
    absent = [name for name, reason in plan.missing.items() if reason.endswith("on PATH")]
    others = [f"{name} is left out: {reason}." for name, reason in plan.missing.items() if name not in absent]
    return [
        *when(absent, note(f"Not found on PATH: {', '.join(absent)}.")),
        *(note(text) for text in [*others, *outcome.notes]),
    ]


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
        "TCP connections of all systems have the host's congestion control, "
        f"{plan.congestion_control or 'which could not be read'}.",
        "CPU time of the server is what the scheduler measured of all its threads, that of the client of its own.",
        "Throughputs: means with Student's t intervals over rounds. Ratios: Welch's interval on logarithms, "
        "simultaneous for all comparisons; differences by Welch's test, corrected after Holm.",
        kit.measured_again(outcome.interference),
    ]
    if outcome.memory:
        lines.append("Memory is resident bytes after all items were put in and read for a moment, with uniform keys.")
    return lines


def _result(plan: Plan, outcome: Outcome, summary: Summary) -> dict[str, Any]:
    settings = [
        {
            **picked(setting, "name", "label"),
            "systems": {
                name: {
                    "rates_operations_per_second": [one.rate for one in outcome.closed[setting.name, name]],
                    **picked(cell, "rate", "idle_ratio", "hit_ratio"),
                    "server_cpu_seconds_per_million": plain(cell.server_cpu),
                    "client_cpu_seconds_per_million": plain(cell.client_cpu),
                    **_compared("ratio", summary.ratios.get((setting.name, name))),
                }
                for name in plan.systems
                if (cell := summary.cells.get((setting.name, name))) is not None
            },
        }
        for setting in summary.settings
    ]
    loads = [
        {
            "load": load,
            "systems": {
                name: {
                    "offered_operations_per_second": load * (outcome.best_rate or 0.0),
                    **picked(cell, "rate", "keeps_up"),
                    "p50_seconds": plain(cell.p50),
                    "p99_seconds": plain(cell.p99),
                    **_compared("p99_ratio", summary.tails.get((load, name))),
                }
                for name in plan.systems
                if (cell := summary.loaded.get((load, name))) is not None
            },
        }
        for load in plan.loads
    ]
    memory = {
        name: {
            **plain(use),
            "bytes_of_10m_items": summary.memory[name][0],
            "scaled": not summary.memory[name][1],
        }
        for name, use in outcome.memory.items()
    }
    return {
        "subject": plan.subject,
        "baseline": plan.baseline,
        "best_rate_operations_per_second": outcome.best_rate,
        "missing": dict(plan.missing),
        "settings": settings,
        "loads": [one for one in loads if one["systems"]],
        "memory": memory,
        "failures": [{"what": what, "system": name, "reason": reason} for what, name, reason in outcome.failures],
    }


def _compared(name: str, comparison: Comparison | None) -> dict[str, Any]:
    return {} if comparison is None else {name: plain(comparison.ratio), "outcome": comparison.outcome}
