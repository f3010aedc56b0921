"""Compare two runs: the ratio of each metric with its 95 % interval."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.output import open_console, print_json
from rackscope.units import format_bytes, format_count, format_duration, format_joules, format_watts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rackscope.analysis.comparison import Comparison, ComparisonRow
    from rackscope.analysis.intervals import Interval

HELP = "compare two runs: the ratio of each metric with its 95 % interval"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", type=common.path, help="the run directory to compare with")
    parser.add_argument("b", metavar="B", type=common.path, help="the run directory that is compared with A")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.api.run import Run

    a, b = Run.open(arguments.a), Run.open(arguments.b)
    comparison = a.compare(b)
    if arguments.json:
        remarks = {"remarks_a": list(a.remarks), "remarks_b": list(b.remarks)}
        print_json({"a": str(arguments.a), "b": str(arguments.b), **remarks, **comparison.to_dict()})
        return 0
    _print(comparison, str(arguments.a), str(arguments.b), (*a.remarks, *b.remarks))
    return 0


def _print(comparison: Comparison, a: str, b: str, remarks: Sequence[str]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    console.print(Text(f"A  {a}\nB  {b}\n", style="dim"))
    for remark in (*remarks, *comparison.warnings):
        console.print(Text(f"! {remark}", style="yellow"))
    if remarks or comparison.warnings:
        console.print()
    for row in comparison.rows:
        if row.verdict in ("higher", "lower"):
            console.print(Text(f"• {row.sentence}", style=_style(row)))
    several = len({row.phase for row in comparison.rows}) > 1
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in (["phase"] if several else []) + ["metric"]:
        table.add_column(heading, no_wrap=True)
    for heading in ("A", "B", "B / A", "95 %"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for row in comparison.rows:
        ratio = row.ratio
        table.add_row(
            *([row.phase] if several else []),
            row.label,
            _quantity(row.a.estimate, row.unit),
            _quantity(row.b.estimate, row.unit),
            "-" if ratio is None else f"{ratio.estimate:.3f}",
            _bounds(ratio),
            Text("" if row.verdict == "no difference seen" else row.verdict, style=_style(row)),
        )
    console.print()
    console.print(table)
    console.print(
        Text(
            "\nA row without a word at its end: the interval of the ratio contains 1, no difference was seen.",
            style="dim",
        )
    )


def _style(row: ComparisonRow) -> str:
    if row.b_is_better is None:
        return ""
    return "green" if row.b_is_better else "red"


def _bounds(ratio: Interval | None) -> str:
    if ratio is None or ratio.low is None or ratio.high is None:
        return "-"
    return f"{ratio.low:.3f}–{ratio.high:.3f}"


def _quantity(value: float, unit: str) -> str:
    if unit == "seconds":
        return format_duration(value)
    if unit == "bytes":
        return format_bytes(value)
    if unit in ("watts", "joules"):
        return format_watts(value) if unit == "watts" else format_joules(value)
    return format_count(value)
