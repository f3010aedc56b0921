"""Say which measured workloads fit on the same cores."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.advising.shared import print_advice
from rackscope.cli.output import complain, open_console, print_json

if TYPE_CHECKING:
    from rackscope.advice.colocate import Colocation

HELP = "which workloads fit on the same cores"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "directories",
        metavar="STUDY-OR-RUN",
        nargs="+",
        type=common.path,
        help="left by 'study colocate' (workloads and pairs), 'study pressure' (workloads) or 'run' (use only)",
    )
    parser.add_argument(
        "--slowdown", type=common.share, default=0.05, metavar="SHARE", help="largest acceptable slowdown (default 5%%)"
    )
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.advice.colocate import advise_colocation

    found = advise_colocation(arguments.directories, arguments.slowdown)
    if arguments.json:
        print_json(asdict(found))
    else:
        _print(found)
    return 0


def _print(found: Colocation) -> None:
    console = open_console()
    fit = sum(pair.fits for pair in found.pairs)
    cores = "1 core" if found.cores == 1 else f"{found.cores} cores"
    console.print(
        f"{fit} of {len(found.pairs)} pairs fit on {cores}, where each side may lose at most {100 * found.bound:g} %; "
        "modelled.",
        markup=False,
    )
    print_advice(console, [pair.advice for pair in found.pairs])
    for sentence in found.refused:
        complain(f"not compared: {sentence}.")
    for sentence in found.remarks:
        complain(f"{sentence}.")
