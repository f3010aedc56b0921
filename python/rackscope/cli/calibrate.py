"""Measure the ceilings of this host: the most that each resource gives when no system limits it.

Later runs are compared with them. Once is enough, on a quiet host. The disk is measured with fio, which is downloaded
without root where it is missing.

Examples:
  rackscope calibrate             everything: about two minutes
  rackscope calibrate --quick     without disks and counters: about fifteen seconds
  rackscope calibrate --show      what was measured before
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.output import open_console, open_table, print_json
from rackscope.errors import RackscopeError
from rackscope.units import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from rackscope.host.ceilings import Ceilings

HELP = "measure the ceilings of this host, with which runs are compared"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="leave out disks and counters")
    parser.add_argument("--if-missing", action="store_true", help="do nothing if this host was calibrated before")
    parser.add_argument("--show", action="store_true", help="print what was measured before, measure nothing")
    parser.add_argument(
        "--only",
        metavar="GROUP",
        action="append",
        help="measure only cpu, memory, network, counters or disk; may be given again",
    )
    parser.add_argument("--cores", metavar="LIST", type=common.cores, help="cores to measure on (default: all)")
    parser.add_argument(
        "--folder", metavar="DIR", type=common.path, help="folder on the disk to measure (default: the current one)"
    )
    parser.add_argument("--no-fetch", action="store_true", help="never download: without fio the disk is left out")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.api.host import calibrate, known_ceilings
    from rackscope.cli.progress import ProgressLine

    if arguments.show or arguments.if_missing:
        known = known_ceilings()
        if known is not None:
            if arguments.show or arguments.json:
                _print(known, as_json=arguments.json)
            return 0
        if arguments.show:
            raise RackscopeError("this host was not calibrated yet", "Run 'rackscope calibrate'.")
    with ProgressLine() as progress:
        measured = calibrate(
            quick=arguments.quick,
            only=arguments.only or (),
            cores=arguments.cores,
            folder=arguments.folder,
            fetch=not arguments.no_fetch,
            progress=progress,
        )
    _print(measured, as_json=arguments.json)
    return 0


def _print(ceilings: Ceilings, *, as_json: bool) -> None:
    if as_json:
        print_json(dataclasses.asdict(ceilings))
        return
    from rich.text import Text

    console = open_console()
    table = open_table("ceiling", "best", "median", "how", left=("how",))
    for ceiling in ceilings.ceilings:
        style = "" if ceiling.trusted else "yellow"
        remark = ceiling.method if ceiling.trusted else f"not trusted: {ceiling.distrust}"
        table.add_row(
            Text(ceiling.name, style=style),
            _quantity(ceiling.value, ceiling.unit),
            _quantity(ceiling.median, ceiling.unit),
            Text(remark, style=style or "dim"),
        )
    console.print(table)
    for check in ceilings.counters:
        style = "" if check.status == "trusted" else "yellow"
        console.print(Text(f"counter {check.column}: {check.status}. {check.reason}", style=style))
    for name, reason in ceilings.missing.items():
        console.print(Text(f"missing {name}: {reason}", style="yellow"))
    for note in ceilings.notes:
        console.print(Text(f"! {note}", style="yellow"))


def _quantity(value: float, unit: str) -> str:
    if unit == "seconds":
        return format_duration(value)
    if unit.startswith("bytes"):
        return f"{format_bytes(value)}/s"
    return f"{format_count(value)}/s"
