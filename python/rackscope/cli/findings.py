"""A run in the terminal: findings first, then the key figures, then what to doubt."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rackscope.analysis.findings import Characterisation, TrustWarning
from rackscope.analysis.intervals import mean_interval, relative_half_width
from rackscope.api.run import Run
from rackscope.cli.output import open_console, open_table, print_json
from rackscope.report.energy import RunPower, summary_lines
from rackscope.runs.manifest import RepetitionPart
from rackscope.units import format_bytes, format_count, format_duration

_MARKS = {"wrong": ("!", "bold red"), "doubt": ("!", "yellow"), "note": ("note:", "dim")}


def print_run(run: Run, *, as_json: bool = False, report: Path | None = None) -> None:
    """A run for a person, or as one JSON object. ``report`` is where its page is, if not in it."""
    if as_json:
        print_json(run.to_dict() | ({} if report is None else {"report": str(report)}))
        return
    characterisation = run.characterisation
    console = open_console()
    for remark in run.remarks:
        console.print(f"! {remark}", style="bold red", markup=False)
    for warning in run.manifest.warnings:
        console.print(f"! {warning.text}", style="yellow", markup=False)
    _print_warnings(console, characterisation, serious=True)
    _print_findings(console, characterisation)
    _print_figures(console, run)
    _print_power(console, characterisation, run.power)
    _print_warnings(console, characterisation, serious=False)
    page = report or run.report
    # On one line whatever its length, so that it can be clicked and copied.
    where = f"Report: {page}" if page is not None else f"Run directory: {run.path}"
    console.print(where, markup=False, style="bold", soft_wrap=True)


def _print_findings(console: Any, characterisation: Characterisation) -> None:
    """All of a single measured phase; of several, what limits each. Loading and warming up are in the report."""
    measured = {phase.phase for phase in characterisation.phases if phase.kind == "measure"}
    kept = [one for one in characterisation.findings if not measured or one.phase is None or one.phase in measured]
    if len(measured) > 1:
        kept = [one for one in kept if one.kind == "verdict" or one.phase is None]
    for finding in kept:
        console.print(Text(f"• {finding.sentence}", style="bold" if finding.kind == "verdict" else ""))
        if finding.advice:
            console.print(Padding(Text(f"→ {finding.advice}", style="dim"), (0, 0, 0, 2)))
    if len(measured) > 1:
        console.print(Text("More about each phase is in the report.", style="dim"))
    console.print()


def _print_warnings(console: Any, characterisation: Characterisation, *, serious: bool) -> None:
    """One line a kind of warning; phases after the first that share it are counted."""
    chosen = [warning for warning in characterisation.warnings if (warning.severity != "note") == serious]
    by_code: dict[str, list[TrustWarning]] = {}
    for warning in chosen:
        by_code.setdefault(warning.code, []).append(warning)
    for first, *others in by_code.values():
        more = f" The same of {len(others)} other phase{'s' if len(others) > 1 else ''}." if others else ""
        mark, style = _MARKS[first.severity]
        console.print(Text(f"{mark} {first.sentence} {first.advice}".rstrip() + more, style=style))
    if chosen:
        console.print()


def _print_figures(console: Any, run: Run) -> None:
    results = run.results
    if results.is_empty():
        return
    measured = results.filter((pl.col("kind") == "measure") & pl.col("discarded").is_null())
    table = open_table("phase", "operations/s", "± 95 %", "p50", "p99", "p99.9", "CPU s/Mop", "resident")
    for phase in measured["phase"].unique(maintain_order=True):
        rows = measured.filter(pl.col("phase") == phase)
        throughput = mean_interval(
            rows["throughput_operations_per_second"].to_list(), sequential=run.manifest.repetition.maximum is None
        )

        def middle(column: str, rows: pl.DataFrame = rows) -> float:
            value = rows[column].median()
            return float(value) if isinstance(value, int | float) else math.nan

        width = relative_half_width(throughput)
        operations, cpu = float(rows["operations"].sum()), float(rows["system_cpu_seconds"].sum())
        table.add_row(
            str(phase),
            format_count(throughput.estimate),
            "-" if width is None else f"{width:.1%}",
            format_duration(middle("response_p50_seconds")),
            format_duration(middle("response_p99_seconds")),
            format_duration(middle("response_p999_seconds")),
            f"{cpu / operations * 1e6:.2f}" if operations and cpu else "-",
            format_bytes(middle("system_resident_bytes")),
        )
    if table.row_count:
        console.print(table)
        repetition = run.manifest.repetition
        console.print(f"{_repetitions(repetition)}.\n", style="dim", markup=False)


def _print_power(console: Any, characterisation: Characterisation, power: RunPower) -> None:
    """A row a measured phase, and in words what the watts are of; nothing where none are known."""
    shown = summary_lines(power, [phase.phase for phase in characterisation.phases if phase.kind == "measure"])
    if shown is None:
        return
    energy, rows = shown
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    word = "modelled power" if energy.modelled else "power"
    width = "90 %" if energy.modelled else "± 95 %"
    headings = ["phase", word, width, "an operation", "a joule", "idle", "dynamic"]
    # What is modelled of the dynamic part is the rest of the row, and the row must fit.
    shown_columns = headings[:-1] if energy.modelled else headings
    for heading in shown_columns:
        table.add_column(heading, justify="left" if heading == "phase" else "right", no_wrap=heading != "phase")
    for row in rows:
        done = row.operations_per_joule if row.operations_per_joule == "–" else f"{row.operations_per_joule} op"
        cells = (row.phase, row.watts, row.interval, row.energy_per_operation, done, row.idle, row.dynamic)
        table.add_row(*cells[: len(shown_columns)])
    console.print(table)
    # Of modelled power the same stands among the notes.
    for sentence in () if energy.modelled else energy.sentences:
        console.print(Padding(Text(sentence, style="dim"), (0, 0, 0, 0)))
    console.print()


def _repetitions(part: RepetitionPart) -> str:
    count = f"{part.achieved} repetition{'' if part.achieved == 1 else 's'}"
    if part.maximum is not None:
        return f"{count}, as asked for" if part.achieved == part.maximum else f"{count} of {part.maximum}"
    return f"{count}: {part.stopping_reason or 'the run ended early'}"
