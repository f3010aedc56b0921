"""Phases that the resource series of a run show, beside those that the workload declares."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from rackscope.analysis import wording
from rackscope.analysis.context import Run
from rackscope.analysis.findings import Evidence, Finding, PhasesFound
from rackscope.analysis.phases import DeclaredPhase, FoundPhase, find_phases, match_declared
from rackscope.analysis.rates import Series

#: What a change of behaviour shows in, with what it is called, and the least that is worth a word.
_SERIES = (
    ("process_cpu_cores", {"process": "system"}, "the system's CPU use", 0.05),
    ("process_kernel_share_ratio", {"process": "system"}, "the kernel's share of the system's CPU time", 0.05),
    ("process_read_bytes_per_second", {"process": "system"}, "what the system reads", 1e6),
    ("process_write_bytes_per_second", {"process": "system"}, "what the system writes", 1e6),
    ("cgroup_refaults_per_second", {"cgroup": "system"}, "pages read again", 100.0),
)
_BIN_SECONDS = 0.1
#: Declared phases of the same name that follow each other within this are repetitions of one behaviour.
_SAME_SECONDS = 1.0
#: A step of a series by less than this share is not what a person would call a change of behaviour.
_LEAST_STEP = 0.2
_MOST_FINDINGS = 3


@dataclass(frozen=True)
class _Shown:
    """A series that phases are looked for in, what people call it, and the least level worth a word."""

    series: Series
    title: str
    least: float

    def step(self, before: FoundPhase, after: FoundPhase) -> float:
        """How much it changed, as a share of the larger level; 0 where that is too little or not known."""
        first, second = before.means.get(self.series.name), after.means.get(self.series.name)
        if first is None or second is None:
            return 0.0
        largest = max(abs(first), abs(second))
        return abs(second - first) / largest if largest >= self.least else 0.0


def find_phases_of(run: Run) -> tuple[PhasesFound, list[Finding]] | None:
    """Phases from the data, and changes that no phase declares; ``None`` of runs with squeezes, or too little data."""
    if any(window.kind == "squeezed" for window in run.facts.phases):
        return None
    declared = _declared(run)
    series = [
        _Shown(one, title, least)
        for name, labels, title, least in _SERIES
        if (one := run.samples.find(name, **labels)) is not None
    ]
    if not declared or not series:
        return None
    found = find_phases(_frame(series, declared))
    if not found:
        return None
    summary = match_declared(found, declared)
    return summary, _findings(summary, found, series)


def _declared(run: Run) -> list[DeclaredPhase]:
    """The run's phases on its own clock, repetitions of one behaviour as one."""
    merged: list[DeclaredPhase] = []
    origin = run.samples.origin_ns
    for window in sorted(run.facts.phases, key=lambda window: window.start_ns):
        start, end = window.start_ns - origin, window.end_ns - origin
        if end <= start:
            continue
        last = merged[-1] if merged else None
        if last is not None and last.name == window.name and start - last.end_ns < _SAME_SECONDS * 1e9:
            merged[-1] = DeclaredPhase(last.name, last.start_ns, end)
        else:
            merged.append(DeclaredPhase(window.name, start, end))
    return merged


def _frame(shown: list[_Shown], declared: list[DeclaredPhase]) -> pl.DataFrame:
    start = min(one.start_ns for one in declared) / 1e9
    end = max(one.end_ns for one in declared) / 1e9
    columns: dict[str, dict[int, float]] = {}
    for one in shown:
        binned = one.series.bins(((start, end),), _BIN_SECONDS)
        columns[one.series.name] = {round(first * 1e9): value for first, _, value in binned}
    times = sorted({time for values in columns.values() for time in values})
    frame: dict[str, list[float | int | None]] = {"timestamp_ns": list(times)}
    frame |= {name: [values.get(time) for time in times] for name, values in columns.items()}
    return pl.DataFrame(frame, schema_overrides={"timestamp_ns": pl.Int64, **dict.fromkeys(columns, pl.Float64)})


def _findings(match: PhasesFound, found: list[FoundPhase], shown: list[_Shown]) -> list[Finding]:
    findings = []
    for before, after in pairwise(found):
        at = after.start_ns / 1e9
        most = max(shown, key=lambda one: one.step(before, after))
        inside = next((one for one in match.declared if one.start_seconds < at < one.end_seconds), None)
        undeclared = at in match.undeclared_boundaries_seconds
        if not undeclared or most.step(before, after) < _LEAST_STEP or inside is None:
            continue
        series, unit = most.series, most.series.quantity.unit
        levels = before.means[series.name], after.means[series.name]
        around = ((before.start_ns / 1e9, after.end_ns / 1e9),)
        findings.append(
            Finding(
                "insight",
                60,
                inside.name,
                f"Its behaviour changed at {at:.1f} s without a phase being declared: {most.title} went from "
                f"{wording.quantity(levels[0], unit)} to {wording.quantity(levels[1], unit)}",
                (Evidence(series.columns, around, series.name, levels[1], unit),),
                "Look at that moment in the report; means over the whole phase hide it.",
            )
        )
    return findings[:_MOST_FINDINGS]
