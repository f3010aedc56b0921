"""A run in the terminal: findings first, then the key figures, then what to doubt."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rackscope.analysis.findings import Characterisation, TrustWarning
    from rackscope.runs.directory import RunDirectory


def run_summary(folder: Path) -> dict[str, Any]:
    """The run as one JSON object: status, results, interval, findings."""
    from rackscope.runs.directory import RunDirectory
    from rackscope.runs.facts import characterise_run

    run = RunDirectory.open(folder)
    manifest = run.manifest
    return {
        "status": manifest.status,
        "status_reason": manifest.status_reason,
        "run_directory": str(folder),
        "system": manifest.system.model_dump(),
        "workload": manifest.workload.model_dump(),
        "client": manifest.client.model_dump(),
        "repetition": manifest.repetition.model_dump(),
        "results": [_finite(row) for row in run.results().to_dicts()],
        "characterisation": characterise_run(run).to_dict(),
        "overhead": manifest.overhead.model_dump(),
        "remarks": list(run.remarks),
    }


def print_run(folder: Path) -> None:
    """What a person wants to know after a run."""
    from rackscope.runs.directory import RunDirectory
    from rackscope.runs.facts import characterise_run

    run = RunDirectory.open(folder)
    characterisation = characterise_run(run)
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    for remark in run.remarks:
        console.print(f"! {remark}", style="bold red", markup=False)
    _print_warnings(console, characterisation, serious=True)
    _print_findings(console, characterisation)
    _print_figures(console, run)
    _print_warnings(console, characterisation, serious=False)
    report = folder / "report.html"
    console.print(f"Report: {report}" if report.exists() else f"Run directory: {folder}", markup=False, style="bold")


def _print_findings(console: Any, characterisation: Characterisation) -> None:
    """Everything about a single measured phase; of several, what limits each, and what concerns them all.

    What held back loading and warming up is in the report; here it would bury the answer.
    """
    from rich.padding import Padding
    from rich.text import Text

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
    from rich.text import Text

    chosen = [warning for warning in characterisation.warnings if (warning.severity != "note") == serious]
    by_code: dict[str, list[TrustWarning]] = {}
    for warning in chosen:
        by_code.setdefault(warning.code, []).append(warning)
    for first, *others in by_code.values():
        more = f" The same of {len(others)} other phase{'s' if len(others) > 1 else ''}." if others else ""
        mark, style = ("!", "yellow") if serious else ("note:", "dim")
        console.print(Text(f"{mark} {first.sentence} {first.advice}".rstrip() + more, style=style))
    if chosen:
        console.print()


def _print_figures(console: Any, run: RunDirectory) -> None:
    import polars as pl
    from rich.table import Table

    from rackscope.analysis.intervals import mean_interval
    from rackscope.units import format_bytes, format_count, format_duration

    results = run.results()
    if results.is_empty():
        return
    measured = results.filter((pl.col("kind") == "measure") & pl.col("discarded").is_null())
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("phase", "operations/s", "± 95 %", "p50", "p99", "p99.9", "CPU s/Mop", "resident"):
        table.add_column(heading, justify="left" if heading == "phase" else "right")
    for phase in measured["phase"].unique(maintain_order=True):
        rows = measured.filter(pl.col("phase") == phase)
        throughput = mean_interval(
            rows["throughput_operations_per_second"].to_list(), sequential=run.manifest.repetition.maximum is None
        )

        def middle(column: str, rows: pl.DataFrame = rows) -> float:
            value = rows[column].median()
            return float(value) if isinstance(value, int | float) else math.nan

        width = None if throughput.high is None else (throughput.high - throughput.estimate) / throughput.estimate
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
        console.print(f"{repetition.achieved} repetitions: {repetition.stopping_reason}.\n", style="dim", markup=False)


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }
