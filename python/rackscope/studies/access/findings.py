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
from typing import TYPE_CHECKING, Any

from rackscope.analysis import wording
from rackscope.studies.access.plan import ACCESS_MODES, Setting, cores_words
from rackscope.studies.access.summary import is_useful, summarise, typical_writes
from rackscope.units import format_count

if TYPE_CHECKING:
    from rackscope.analysis.intervals import Interval
    from rackscope.analysis.multiple import Comparison
    from rackscope.runs.study import Finding, StudyRecord, Table
    from rackscope.studies.access.carry_out import Outcome
    from rackscope.studies.access.plan import Plan
    from rackscope.studies.access.summary import Summary

#: Lookups that a writer kept from their item: below this share they are not worth a word.
_FEW_UNSETTLED = 0.001
#: Mixes that a sentence names.
_LISTED = 4
#: Of clients' requests, how much may be kept waiting by the busiest core before it is said.
_BALANCED = 0.99


def describe(record: StudyRecord, plan: Plan, outcome: Outcome) -> None:
    """Put what is known now into the record."""
    from rackscope.studies.access.charts import make_charts

    summary = summarise(outcome)
    record.findings = _findings(plan, outcome, summary)
    record.charts = make_charts(plan, summary)
    record.tables = [_table(summary)] if summary.verdicts else []
    record.method = _method(plan, outcome, summary)
    record.result = _result(plan, outcome, summary)


def _findings(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding

    findings: list[Finding] = []
    for cores in sorted(plan.cores, reverse=True):
        findings += _who_wins(summary, cores)
    if outcome.rounds > 1:
        findings += [*_under_writes(plan, summary), *_over_cores(plan, summary), *_over_skew(plan, summary)]
    elif summary.cells:
        findings.append(
            Finding(
                sentence="With one round nothing can be said but which rates were seen.",
                severity="note",
                evidence="A difference is judged against what rounds differ by: --repetitions 7, a longer --budget.",
            )
        )
    return findings + _notes(plan, outcome, summary)


def _who_wins(summary: Summary, cores: int) -> list[Finding]:
    from rackscope.runs.study import Finding

    verdicts = [one for one in summary.verdicts if one.setting.cores == cores]
    if not verdicts or any(one.next.p_value is None for one in verdicts):
        return []
    parts: list[str] = []
    evidence: list[str] = []
    for access in ACCESS_MODES:
        won = [one for one in verdicts if one.fastest == access and not one.ties]
        if won:
            span = sorted(one.next.ratio.estimate for one in won)
            times = _times(span[0]) if len(won) == 1 else f"{span[0]:.2f} to {_times(span[-1])}"
            parts.append(
                f"{access} is fastest in {len(won)} of {len(verdicts)} mixes, with {times} the next one's rate"
            )
            closest = min(won, key=lambda one: one.next.ratio.estimate)
            evidence.append(
                f"{access} is closest to {closest.next.second} with {closest.setting.mix}: {_ratio(closest.next)}"
            )
    open_ones = [one for one in verdicts if one.ties]
    if open_ones and parts:
        mixes = [f"{one.setting.mix} ({one.words})" for one in open_ones]
        more = [f"{len(mixes) - _LISTED} more"] if len(mixes) > _LISTED else []
        parts.append(f"none is shown to be ahead of both others with {wording.listing([*mixes[:_LISTED], *more])}")
    elif open_ones:
        parts.append(f"no mode is shown to be ahead of both others in any of {len(verdicts)} mixes")
        largest = max(open_ones, key=lambda one: one.next.ratio.estimate)
        evidence.append(
            f"furthest apart are {largest.fastest} and {largest.next.second} with {largest.setting.mix}: "
            f"{_ratio(largest.next)}"
        )
    evidence.append(f"intervals hold for all {len(summary.comparisons) // 2} comparisons together")
    return [Finding(sentence=f"On {cores_words(cores)} {'; '.join(parts)}.", evidence=_line(evidence))]


def _under_writes(plan: Plan, summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding

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
        Finding(
            sentence=f"Under writes EREW is shown to be ahead of CRCW in {where} {len(ratios)} mixes on "
            f"{cores_words(cores)}: by {least[1].ratio.estimate:.2f} ({least[0].mix}) to "
            f"{_times(most[1].ratio.estimate)} ({most[0].mix}).",
            evidence=f"{_ratio(least[1])} and {_ratio(most[1])}, for all comparisons together.",
        )
    ]


def _over_cores(plan: Plan, summary: Summary) -> list[Finding]:
    from rackscope.analysis.intervals import ratio_of_means
    from rackscope.runs.study import Finding

    few, many = min(plan.cores), max(plan.cores)
    if few == many:
        return []
    findings = []
    for theta in plan.thetas:
        writes = typical_writes(plan)
        ends = [Setting(few, theta, writes), Setting(many, theta, writes)]
        if any((access, end) not in summary.cells for access in ACCESS_MODES for end in ends):
            continue
        gains = [
            (access, ratio_of_means(summary.cells[access, ends[1]].rates, summary.cells[access, ends[0]].rates))
            for access in ACCESS_MODES
        ]
        words = wording.listing([f"{access} {_times(gain.estimate)}" for access, gain in gains])
        findings.append(
            Finding(
                sentence=f"From {cores_words(few)} to {many}, with {ends[0].mix}, the rate becomes: {words}.",
                evidence=_line([f"{access} {_interval(gain)}" for access, gain in gains]),
            )
        )
    return findings


def _over_skew(plan: Plan, summary: Summary) -> list[Finding]:
    from rackscope.analysis.intervals import ratio_of_means
    from rackscope.runs.study import Finding

    cores, writes = max(plan.cores), typical_writes(plan)
    even, skewed = (Setting(cores, theta, writes) for theta in (plan.thetas[0], plan.thetas[-1]))
    if even == skewed or any((access, one) not in summary.cells for access in ACCESS_MODES for one in (even, skewed)):
        return []
    gains = [
        (access, ratio_of_means(summary.cells[access, skewed].rates, summary.cells[access, even].rates))
        for access in ACCESS_MODES
    ]
    words = wording.listing([f"{access} {_times(gain.estimate)}" for access, gain in gains])
    return [
        Finding(
            sentence=f"With {skewed.keys} keys instead of {even.keys} ones, {writes} % writes on {cores_words(cores)}, "
            f"the rate becomes: {words}.",
            severity="note",
            evidence=_line([f"{access} {_interval(gain)}" for access, gain in gains])
            + " Popular keys stay in caches, and are wanted by several cores at a time.",
        )
    ]


def _notes(plan: Plan, outcome: Outcome, summary: Summary) -> list[Finding]:
    from rackscope.runs.study import Finding

    findings = []
    seen = outcome.interference
    if seen.kept:
        findings.append(
            Finding(
                sentence=f"the host was busy with other things in {seen.kept} of the {seen.windows - seen.discarded} "
                "measurements that count",
                severity="warning",
                evidence=", ".join(sorted(seen.reasons)),
            )
        )
    uneven = [cell for cell in summary.cells.values() if cell.balance < _BALANCED]
    if uneven:
        worst = min(uneven, key=lambda cell: cell.balance)
        findings.append(
            Finding(
                sentence="Where requests go to the core that owns a key, the busiest core is full first: with "
                f"{worst.setting.mix} on {cores_words(worst.setting.cores)} clients of {worst.access} have "
                f"{wording.percent(worst.balance)} of what its cores do at full speed.",
                severity="note",
                evidence="Rates are what clients can have.",
            )
        )
    unsettled = [cell for cell in summary.cells.values() if cell.unsettled_ratio > _FEW_UNSETTLED]
    if unsettled:
        worst = max(unsettled, key=lambda cell: cell.unsettled_ratio)
        findings.append(
            Finding(
                sentence=f"Lookups that found their item being written time and again count as done, though they would "
                f"have to ask its owner: up to {wording.percent(worst.unsettled_ratio)} ({worst.access}, "
                f"{cores_words(worst.setting.cores)}, {worst.setting.mix}).",
                severity="note",
            )
        )
    lost = [(access, filled) for (access, _), filled in outcome.filled.items() if filled.lost]
    if lost:
        findings.append(
            Finding(
                sentence=f"{lost[0][1].lost} of {format_count(plan.items)} items found no place in a store "
                f"({lost[0][0]}).",
                severity="warning",
            )
        )
    return findings + [Finding(sentence=note, severity="note") for note in outcome.notes]


def _table(summary: Summary) -> Table:
    from rackscope.runs.study import Column, Table

    rows: list[list[str | float | int | bool | None]] = []
    for verdict in sorted(summary.verdicts, key=lambda one: (-one.setting.cores, *one.setting.order[1:])):
        setting = verdict.setting
        rates = [summary.cells[access, setting].median.estimate for access in ACCESS_MODES]
        known = verdict.next.p_value is not None
        rows.append(
            [
                f"{setting.cores}, {setting.keys}, {setting.writes_percent} %",
                *rates,
                verdict.words if known else None,
                f"{verdict.next.second} {_ratio(verdict.next)}" if known else None,
            ]
        )
    return Table(
        identifier="modes",
        title="Which mode wins where",
        caption="Medians over rounds. The last column is the fastest mode's mean over the next one's, with an interval "
        "that holds for all comparisons of this study together (95 %).",
        columns=[
            Column(name="cores, keys, writes"),
            *(Column(name=access, unit="operations/s") for access in ACCESS_MODES),
            Column(name="fastest", help="Several where they are not shown to differ"),
            Column(name="over the next"),
        ],
        rows=rows,
    )


def _method(plan: Plan, outcome: Outcome, summary: Summary) -> list[str]:
    seen = outcome.interference
    return [
        f"{format_count(plan.items)} items of 8 + 8 bytes in each store; keys are drawn beforehand and asked for in "
        "bursts of 256, and what is read is checked. A core's thread is kept on it.",
        f"{len(plan.cells)} combinations, each measured for {plan.seconds:g} s in each of {outcome.rounds} rounds; the "
        "order of a round is drawn from a seed, and that of every second round is the one before it backwards.",
        "EREW: a core works on its own partition only, with its own keys, as clients that know the partitions would "
        "send them. CREW: it reads any partition and writes to its own. CRCW: it reads and writes any of 16 partitions "
        "a core, and locks one to write to it. With one core there is one partition.",
        f"{seen.discarded} measurements were discarded and made again because others took part of the host.",
        f"Medians have bootstrap intervals over rounds (BCa). Modes are compared by Welch's test on logarithms of "
        f"means, corrected after Holm for all {len(summary.comparisons) // 2} comparisons; intervals are simultaneous.",
    ]


def _result(plan: Plan, outcome: Outcome, summary: Summary) -> dict[str, Any]:
    return {
        "items": plan.items,
        "rounds": outcome.rounds,
        "cells": [
            {
                **_setting(cell.setting),
                "access": cell.access,
                "balance": cell.balance,
                "unsettled_ratio": cell.unsettled_ratio,
                "rates_operations_per_second": list(cell.rates),
                "median": cell.median.estimate,
                "low": cell.median.low,
                "high": cell.median.high,
            }
            for cell in summary.cells.values()
        ],
        "comparisons": [
            {
                **_setting(setting),
                "first": first,
                "second": second,
                "ratio": one.ratio.estimate,
                "low": one.ratio.low,
                "high": one.ratio.high,
                "outcome": one.outcome,
            }
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


def _setting(setting: Setting) -> dict[str, Any]:
    return {"cores": setting.cores, "theta": setting.theta, "writes_percent": setting.writes_percent}


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times"


def _ratio(comparison: Comparison) -> str:
    return _interval(comparison.ratio)


def _interval(interval: Interval) -> str:
    if not is_useful(interval):
        return f"x{interval.estimate:.2f} (no useful interval)"
    return f"x{interval.estimate:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def _line(parts: Sequence[str]) -> str:
    return f"{'; '.join(parts)}."
