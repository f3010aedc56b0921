"""What can be measured on this host, what is missing, and what that disables.

Ends with status 1 when something would make results wrong or impossible.
With --repair it only undoes the limits that killed commands left in place; status 1 when some cannot be undone.
"""

from __future__ import annotations

import argparse
import dataclasses

from rackscope.cli import arguments as common
from rackscope.cli.output import open_console, print_json

HELP = "what can be measured on this host, what is missing, and what that disables"
#: It shows which limits are left instead of undoing it first, as the other verbs do.
UNDOES_LEFTOVERS = False

_MARKS = {"ok": ("✓", "green"), "limited": ("–", "yellow"), "bad": ("✗", "red")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    common.add_json(parser)
    common.add_meter(parser)
    parser.add_argument("--repair", action="store_true", help="only undo the limits that killed commands left in place")


def execute(arguments: argparse.Namespace) -> int:
    """Examine and print: what stops everything first."""
    if arguments.repair:
        return _repair(as_json=arguments.json)
    from rackscope.api.host import examine

    checks = examine(arguments.meter)
    bad = any(check.status == "bad" for check in checks)
    if arguments.json:
        print_json({"checks": [dataclasses.asdict(check) for check in checks], "bad": bad})
        return int(bad)
    from rich.padding import Padding
    from rich.text import Text

    console = open_console()
    for check in checks:
        mark, colour = _MARKS[check.status]
        console.print(Text.assemble((f"{mark} ", colour), (f"{check.name}: ", "bold"), check.what))
        for line, style in ((check.effect, ""), (f"→ {check.advice}" if check.advice else "", "dim")):
            if line and check.status != "ok":
                console.print(Padding(Text(line, style=style), (0, 0, 0, 4)))
    limited = sum(check.status == "limited" for check in checks)
    summary = "Something here would make results wrong or impossible." if bad else "Runs can be made here."
    console.print(f"\n{summary} {limited} of {len(checks)} checks found something missing.", style="bold")
    return int(bad)


def _repair(*, as_json: bool) -> int:
    from rackscope.api.host import repair

    said, left = repair()
    if as_json:
        print_json({"repaired": said, "left": left})
    else:
        for sentence in said or ["no limits were left in place"]:
            print(f"{sentence[:1].upper()}{sentence[1:]}.")
    return int(bool(left))
