"""The pressure-point matrix of Awasthi 2015 (Table 4) over studies and runs, as a study's record.

Rows are systems under workloads, columns are resources. The paper marks what its authors judged from plots; here each
cell shows its evidence: an elasticity with its interval where the resource was squeezed, else how much it was used.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import rackscope
from rackscope.analysis import wording
from rackscope.runs.study import Finding, Member, StudyRecord, Table
from rackscope.studies.kit import Row, finding, listed, table, table_of, warning, when
from rackscope.studies.pressure.points import RESOURCES, Cell, PressureRow, Source

LEGEND = (
    "● limits and · does not limit: proven by squeezing the resource; elasticity of throughput with its 95 % interval, "
    "and the slack, which can be taken away without loss. ~ inconclusive. "
    "◐ may limit and ◌ has capacity to spare: judged by use / ceiling only, which proves nothing. ? not known."
)
#: Characters of a reason in the table of inconclusive cells.
_LONGEST_REASON = 90
_PROVEN = {"limits": "●", "does not limit": "·", "inconclusive": "~", "not known": "?"}
_LIKELY = {"limits": "◐", "does not limit": "◌", "inconclusive": "~", "not known": "?"}


def matrix_record(sources: Sequence[Source], command_line: Sequence[str]) -> StudyRecord:
    """The matrix as a record that ``report.study`` shows; its ``result`` is ``matrix_result``."""
    named = label_rows(sources)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    hosts = {str(source.host.get("identity")): dict(source.host) for source in sources}
    findings = [_finding(label, row) for label, row, _ in named]
    findings += _notes(sources, len(hosts))
    return StudyRecord(
        rackscope_version=rackscope.__version__,
        kind="matrix",
        title="Pressure points",
        status="complete",
        command_line=list(command_line),
        started_at=now,
        finished_at=now,
        host=next(iter(hosts.values())) if len(hosts) == 1 else {},
        findings=findings,
        tables=[*_matrix(named), *_unknown(named), *_evidence(named)],
        method=_method(sources),
        members=[
            Member(folder=str(source.path), label=_describe(source), discarded="; ".join(source.damage))
            for source in sources
        ],
        result=matrix_result(sources),
    )


def matrix_result(sources: Sequence[Source]) -> dict[str, Any]:
    """``{"rows": [{"label", "path", "kind", "system", "workload", "phase", "limits", "cells": {RESOURCE: CELL}}]}``.

    A CELL has ``verdict``, ``basis`` (experiment, intensity or none), ``sentence``, ``elasticity`` and
    ``p99_elasticity`` (``{"estimate", "low", "high"}`` or null), ``slack`` and ``intensity`` (or null). ``limits`` are
    the resources that were proven to.
    """
    return {
        "rows": [
            {
                "label": label,
                "path": str(source.path),
                "kind": source.kind,
                "system": row.system,
                "workload": row.workload,
                "phase": row.phase,
                "limits": [name for name, cell in row.cells.items() if _is(cell, "limits", "experiment")],
                "cells": {name: asdict(cell) for name, cell in row.cells.items()},
            }
            for label, row, source in label_rows(sources)
        ]
    }


def label_rows(sources: Sequence[Source]) -> list[tuple[str, PressureRow, Source]]:
    """``memcached under ycsb-b``, with the phase where a source has several, and its folder where labels repeat."""
    rows = [(_label(row, source), row, source) for source in sources for row in source.rows]
    times = Counter(label for label, _, _ in rows)
    return [
        (f"{label} ({source.path.name or source.path})" if times[label] > 1 else label, row, source)
        for label, row, source in rows
    ]


def show_cell(cell: Cell) -> str:
    """The cell in a few characters, line by line: ``● 0.97``, ``0.91…1.02``, ``slack 3 %``."""
    if cell.verdict == "not known":
        return _PROVEN["not known"]
    if cell.basis != "experiment":
        figure = "" if cell.intensity is None else f" {wording.percent(cell.intensity)}"
        return f"{_LIKELY[cell.verdict]}{figure}\nintensity"
    lines = [_PROVEN[cell.verdict]]
    if cell.elasticity is not None:
        lines[0] += f" {_figure(cell.elasticity.estimate)}"
        if cell.elasticity.low is not None and cell.elasticity.high is not None:
            lines.append(f"{_figure(cell.elasticity.low)}…{_figure(cell.elasticity.high)}")
    if cell.slack is not None:
        lines.append(f"slack {wording.percent(cell.slack)}")
    return "\n".join(lines)


def _label(row: PressureRow, source: Source) -> str:
    label = f"{row.system} under {row.workload}"
    return f"{label}, {row.phase}" if len({one.phase for one in source.rows}) > 1 else label


def _figure(value: float) -> str:
    text = f"{value:.2f}"
    return "0.00" if text == "-0.00" else text


def _is(cell: Cell, verdict: str, basis: str) -> bool:
    return cell.verdict == verdict and cell.basis == basis


def _finding(label: str, row: PressureRow) -> Finding:
    def named(verdict: str, basis: str) -> list[str]:
        return [RESOURCES[name] for name, cell in row.cells.items() if _is(cell, verdict, basis)]

    limits, likely = named("limits", "experiment"), named("limits", "intensity")
    harmless = named("does not limit", "experiment")
    unknown = [RESOURCES[name] for name, cell in row.cells.items() if cell.verdict in ("inconclusive", "not known")]
    parts = []
    if limits:
        parts.append(f"limited by {wording.listing(limits)}")
    elif likely:
        parts.append(f"may be limited by {wording.listing(likely)}: high use, which proves nothing")
    elif harmless:
        parts.append(f"none of the squeezed resources limits it ({wording.listing(harmless)})")
    else:
        parts.append("no limit was proven")
    if limits and likely:
        parts.append(f"perhaps also by {wording.listing(likely)}: high use, not squeezed")
    figures = [
        f"{RESOURCES[name]}: {cell.sentence}"
        for name, cell in row.cells.items()
        if cell.verdict == "limits" and cell.sentence
    ]
    evidence = ". ".join([*figures, *([f"Inconclusive or not known: {wording.listing(unknown)}"] if unknown else [])])
    return finding(f"{label}: {'; '.join(parts)}.", evidence)


def _notes(sources: Sequence[Source], hosts: int) -> list[Finding]:
    differ = f"These were measured on {hosts} different hosts: what limits here may not limit there."
    remarks = [warning(f"{remark.rstrip('.')}.") for source in sources for remark in source.remarks]
    return remarks + when(hosts > 1, warning(differ))


def _matrix(named: Sequence[tuple[str, PressureRow, Source]]) -> list[Table]:
    return table(
        "matrix",
        "Pressure points",
        ["", *(name[:1].upper() + name[1:] for name in RESOURCES.values())],
        [[label, *(show_cell(row.cells[name]) for name in RESOURCES)] for label, row, _ in named],
        caption=LEGEND,
    )


def _unknown(named: Sequence[tuple[str, PressureRow, Source]]) -> list[Table]:
    """Why cells are inconclusive or not known, in brief; the table of evidence has it in full."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for label, row, _ in named:
        for name, cell in row.cells.items():
            if cell.verdict in ("not known", "inconclusive"):
                reasons.setdefault((RESOURCES[name], _brief(cell.sentence)), []).append(label)
    order = list(RESOURCES.values())
    rows: list[Row] = [
        [resource, "every row" if len(labels) == len(named) > 1 else listed(labels, 2), why]
        for (resource, why), labels in sorted(reasons.items(), key=lambda item: order.index(item[0][0]))
    ]
    return table("open", "Inconclusive or not known, and why", ["resource", "where", "why"], rows)


def _brief(sentence: str) -> str:
    """The first clause, cut at a word where it is still long."""
    clause = re.split(r"[;.] | \(", sentence, maxsplit=1)[0].strip() or "no reason was recorded"
    return textwrap.shorten(clause, _LONGEST_REASON, placeholder=" ...")


def _evidence(named: Sequence[tuple[str, PressureRow, Source]]) -> list[Table]:
    cells = [(label, RESOURCES[name], cell) for label, row, _ in named for name, cell in row.cells.items()]
    return table_of(
        "evidence",
        "Evidence for each cell",
        cells,
        [
            ("what", lambda one: one[0]),
            ("resource", lambda one: one[1]),
            ("verdict", lambda one: one[2].verdict),
            (
                ("basis", "text", "experiment: it was squeezed; intensity: use / ceiling, and queueing"),
                lambda one: one[2].basis,
            ),
            (
                ("elasticity", "", "d ln(throughput) / d ln(resource)"),
                lambda one: one[2].elasticity and one[2].elasticity.estimate,
            ),
            (("from", ""), lambda one: one[2].elasticity and one[2].elasticity.low),
            (("to", "", "ends of the 95 % interval"), lambda one: one[2].elasticity and one[2].elasticity.high),
            (
                ("of p99", "", "elasticity of the 99th percentile of response time"),
                lambda one: one[2].p99_elasticity and one[2].p99_elasticity.estimate,
            ),
            (("slack", "ratio"), lambda one: one[2].slack),
            (("intensity", "ratio"), lambda one: one[2].intensity),
            ("in words", lambda one: one[2].sentence or None),
        ],
    )


def _method(sources: Sequence[Source]) -> list[str]:
    counts = Counter(source.kind for source in sources)
    names = {"study": ("pressure study", "pressure studies"), "run": ("run", "runs")}
    parts = [f"{count} {names[kind][count > 1]}" for kind, count in counts.items()]
    return [
        f"Read from {wording.listing(parts)}; nothing was measured again.",
        "A pressure study squeezes a resource and measures how throughput responds; its verdicts are used unchanged. "
        "A run shows use against ceiling and signs of waiting.",
        "The form is that of the pressure-point matrix of Awasthi 2015, Table 4.",
    ]


def _describe(source: Source) -> str:
    systems = dict.fromkeys(f"{row.system} under {row.workload}" for row in source.rows)
    return f"{'pressure study' if source.kind == 'study' else 'run'} of {wording.listing(list(systems))}"
