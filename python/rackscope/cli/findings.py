"""A run in the terminal: findings first, then the key figures, then what to doubt."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rackscope.analysis.findings import Characterisation
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
    from rich.padding import Padding
    from rich.text import Text

    measured = {phase.phase for phase in characterisation.phases if phase.kind == "measure"}
    for finding in characterisation.findings:
        # What held back loading and warming up is in the report; here it would bury the answer.
        if measured and finding.phase is not None and finding.phase not in measured:
            continue
        console.print(Text(f"• {finding.sentence}", style="bold" if finding.kind == "verdict" else ""))
        if finding.advice:
            console.print(Padding(Text(f"→ {finding.advice}", style="dim"), (0, 0, 0, 2)))
    console.print()


def _print_warnings(console: Any, characterisation: Characterisation, *, serious: bool) -> None:
    from rich.text import Text

    chosen = [warning for warning in characterisation.warnings if (warning.severity != "note") == serious]
    for warning in chosen:
        mark = "!" if serious else "note:"
        style = "yellow" if serious else "dim"
        console.print(Text(f"{mark} {warning.sentence} {warning.advice}".rstrip(), style=style))
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
