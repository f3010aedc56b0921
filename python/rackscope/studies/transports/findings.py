"""What ``study transports`` found, in sentences and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rackscope.analysis.multiple import Comparison
from rackscope.analysis.wording import listing, numbers, percent
from rackscope.runs.study import Finding, StudyRecord
from rackscope.studies import kit
from rackscope.studies.kit import counted, finding, listed, note, picked, plain, ratio_words, warning, when
from rackscope.studies.transports.figures import make_charts, make_tables
from rackscope.studies.transports.measure import Outcome
from rackscope.studies.transports.plan import (
    BASE,
    CONDITIONS,
    KEY_BYTES,
    VALUE_BYTES,
    Condition,
    Contender,
    Pair,
    Plan,
)
from rackscope.studies.transports.summary import Summary, summarise
from rackscope.units import format_duration

#: Of reads, how many must find their value for the rest not to be mentioned.
_FEW_MISSES = 0.9999
#: The load at which latency is told in a sentence.
_HALF = 0.5


def describe(record: StudyRecord, plan: Plan, outcome: Outcome) -> None:
    summary = summarise(plan, outcome)
    record.findings = [
        *_pairs(plan, summary),
        *_one_round(outcome, summary),
        *_cpu(plan, summary),
        *_latency(plan, summary),
        *_warnings(plan, outcome, summary),
        *(note(text) for text in outcome.notes),
    ]
    record.charts = make_charts(plan, outcome, summary)
    record.tables = make_tables(plan, outcome, summary)
    record.method = _method(plan, outcome, summary)
    record.result = _result(plan, outcome, summary)


def _pairs(plan: Plan, summary: Summary) -> list[Finding]:
    findings: list[Finding] = []
    for pair in plan.pairs:
        known = {one: found for one in CONDITIONS if (found := summary.ratios.get((pair, one))) is not None}
        if not known or any(found.p_value is None for found in known.values()):
            continue
        costs = summary.costs.get((pair, BASE))
        evidence = "; ".join(f"{one.label} {ratio_words(found.ratio)}" for one, found in known.items())
        evidence += f". CPU time of the server for a request: {ratio_words(costs.ratio)}." if costs else "."
        if not findings:
            evidence += f" Intervals hold for all {len(summary.ratios)} comparisons together."
        findings.append(finding(f"{kit.capital(pair.words)}: {_verdict(pair, known, costs)}.", evidence))
    return findings


def _verdict(pair: Pair, known: Mapping[Condition, Comparison], costs: Comparison | None) -> str:
    """What is shown of a pair: that all loads, or some, differ in throughput; and that the server's CPU time does."""
    shown = {
        word: [one.label for one, found in known.items() if found.different and (found.ratio.estimate > 1) == is_higher]
        for word, is_higher in (("higher", True), ("lower", False))
    }
    # The base is what is told; where it is not known, the first that is.
    base, first = next(iter(known.items()))
    parts = []
    if len(known) in map(len, shown.values()):
        parts.append(f"{first.ratio.estimate:.2f} times the throughput")
    elif any(shown.values()):
        words = listing([f"{word} with {listing(labels)}" for word, labels in shown.items() if labels])
        parts.append(f"throughput is shown to be {words} ({first.ratio.estimate:.2f} times with {base.label})")
    else:
        parts.append("no difference in throughput is shown")
    if costs is not None and costs.different:
        parts.append(f"{costs.ratio.estimate:.2f} times the server's CPU time for a request")
    elif not any(shown.values()):
        return f"{pair.first} and {pair.second} are not shown to differ"
    return ", and ".join(parts) if any(shown.values()) else ", but ".join(parts)


def _one_round(outcome: Outcome, summary: Summary) -> list[Finding]:
    most = max((len(figures) for figures in outcome.closed.values()), default=0)
    sentence = "With one round no difference can be shown: these are only the throughputs that were seen."
    evidence = "Differences are judged against the variation between rounds: --repetitions 6, a longer --budget."
    return when(most == 1 and summary.cells, note(sentence, evidence))


def _cpu(plan: Plan, summary: Summary) -> list[Finding]:
    words = []
    for one in summary.measured(plan.transports):
        cell = summary.cells.get((one.name, BASE))
        if cell is not None and cell.server_cpu is not None and cell.client_cpu is not None:
            server, client = (format_duration(end.estimate / 1e6) for end in (cell.server_cpu, cell.client_cpu))
            words.append(f"{one.name} {server} + {client}")
    return when(
        words,
        finding(
            f"CPU time of server + client for a request: {'; '.join(words)}.",
            f"{kit.capital(BASE.label)}. It moves less than throughput does where others use the host.",
        ),
    )


def _latency(plan: Plan, summary: Summary) -> list[Finding]:
    if not plan.loads:
        return []
    load = min(plan.loads, key=lambda one: abs(one - _HALF))
    words, behind = [], []
    for one in plan.transports:
        cell = summary.loaded.get((one.name, load))
        if cell is None or cell.p50 is None or cell.p99 is None:
            continue
        if cell.keeps_up:
            words.append(f"{one.name} {format_duration(cell.p50.estimate)} / {format_duration(cell.p99.estimate)}")
        else:
            behind.append(one.name)
    if behind:
        words.append(f"{listing(behind)} did not keep up")
    sentence = f"p50 / p99 at {percent(load)} of each one's own highest throughput: {'; '.join(words)}."
    return when(words, finding(sentence, f"{kit.capital(BASE.label)}; the loads differ, see the table."))


def _warnings(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    shared = [workers for workers, (server, client) in outcome.cores.items() if set(server) & set(client)]
    findings = [
        warning(
            f"With {counted(workers, 'worker')} the client shares cores {numbers(outcome.cores[workers][0])} with the "
            "server: what one of them saves, the other one gets.",
            "Ratios of throughput are those of both ends' CPU time together. Use a host with more cores.",
        )
        for workers in shared
    ]
    findings += kit.interference_findings(outcome.interference)
    findings += kit.failure_findings(
        (f"{name} ({what})" if what not in ("transports", "modes") else name, reason)
        for what, name, reason in outcome.failures
    )
    # Where cores are shared, the client waits for the server's turns too.
    alone = {one.name for one in plan.contenders if one.workers not in shared}
    cells = {f"{name} ({condition.label})": cell for (name, condition), cell in summary.cells.items() if name in alone}
    findings += kit.generator_findings(
        {label: cell.idle_ratio for label, cell in cells.items()}, "Compare CPU times instead of throughputs."
    )
    findings += kit.miss_findings(
        {f"{name} ({one.label})": cell.hit_ratio for (name, one), cell in summary.cells.items()}, _FEW_MISSES
    )
    lost = [f"{name} {ratio:.3%}" for name, ratio in summary.lost.items() if ratio]
    sentence = f"Datagrams were lost: at most {listed(lost)} of the requests of a window."
    return findings + when(lost, note(sentence, "A lost request is given up after a second, and counts as an error."))


def _method(plan: Plan, outcome: Outcome, summary: Summary) -> list[str]:
    cores = [
        f"{counted(workers, 'worker')} on {_cores(server)}, the client on {_cores(client)}"
        for workers, (server, client) in outcome.cores.items()
    ]
    names = "; ".join(f"{one.name} is {one.words}" for one in summary.measured(plan.contenders))
    lines = [
        f"What is compared: {names}.",
        f"{plan.keys:,} keys of {KEY_BYTES} bytes with values of {VALUE_BYTES}, which fit into the caches: what is "
        "measured is the way to the server. All values that are read are checked.",
        f"The base is {BASE.label}. One factor is varied at a time: {'; '.join(one.label for one in CONDITIONS[1:])}. "
        "Other combinations are not measured.",
        f"{kit.capital('; '.join(cores))}." if cores else "",
        f"Transports are started side by side and measured in turns, for {plan.seconds:g} s in each of "
        f"{plan.repetitions} rounds at most; then modes. The order of a round is drawn from a seed, and every second "
        "round is the one before it backwards; the others are idle meanwhile.",
        "TCP, unix socket and UDP stay inside this host (loopback); AF_XDP goes over a veth between two network "
        "namespaces, in the kernel's copy mode. Neither is a network card.",
        "CPU time of the server is what the scheduler measured of all its threads, that of the client of its own. What "
        "the kernel does for either in interrupts may be charged to neither.",
        "Throughputs: means with Student's t intervals over rounds. Ratios: Welch's interval on logarithms, "
        "simultaneous for all comparisons; differences by Welch's test, corrected after Holm.",
        kit.measured_again(outcome.interference),
    ]
    return [one for one in lines if one]


def _cores(cores: Sequence[int]) -> str:
    return f"{'core' if len(cores) == 1 else 'cores'} {numbers(cores)}"


def _result(plan: Plan, outcome: Outcome, summary: Summary) -> dict[str, Any]:
    def told(one: Contender) -> dict[str, Any]:
        return {
            **picked(one, "name", "words", "system", "workers", "outstanding"),
            "lost_ratio": summary.lost[one.name],
        }

    return {
        "base": BASE.name,
        "conditions": [picked(one, "name", "theta", "reads_percent") for one in CONDITIONS],
        "contenders": [told(one) for one in summary.measured(plan.contenders)],
        "cells": [
            {
                "contender": name,
                "condition": condition.name,
                "rates_operations_per_second": [one.rate for one in outcome.closed[name, condition]],
                **picked(cell, "rate", "idle_ratio", "hit_ratio"),
                "server_cpu_seconds_per_million": plain(cell.server_cpu),
                "client_cpu_seconds_per_million": plain(cell.client_cpu),
            }
            for (name, condition), cell in summary.cells.items()
        ],
        "comparisons": [
            {
                **picked(pair, "first", "second", "words"),
                "condition": condition.name,
                "ratio": plain(one.ratio),
                "outcome": one.outcome,
                "server_cpu_ratio": plain(costs.ratio) if (costs := summary.costs.get((pair, condition))) else None,
            }
            for (pair, condition), one in summary.ratios.items()
        ],
        "loads": [
            {
                "contender": name,
                "load": load,
                "offered_operations_per_second": load * (outcome.best(name) or 0.0),
                **picked(cell, "rate", "keeps_up"),
                "p50_seconds": plain(cell.p50),
                "p99_seconds": plain(cell.p99),
            }
            for (name, load), cell in summary.loaded.items()
        ],
        "failures": [{"what": what, "contender": name, "reason": reason} for what, name, reason in outcome.failures],
    }
