"""What kinds of advice share: the catalogue that they read, sentences and tables as people read them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

from rackscope.cli import arguments as common
from rackscope.cli.output import complain, open_console, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from rackscope.advice.cost import Advice, CostComparison
    from rackscope.advice.measure_next import MeasureNext
    from rackscope.advice.provision import Provision
    from rackscope.models.catalogue import Catalogue

Answer = TypeVar("Answer", "CostComparison", "MeasureNext", "Provision")


def add_catalogue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--catalogue",
        metavar="FILE",
        type=common.path,
        help="servers and prices (TOML; default: the servers of the papers)",
    )


def add_demand(parser: argparse.ArgumentParser) -> None:
    """``WORKLOAD``, ``SERVER``, ``--rate``, ``--spares``."""
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload of the catalogue's [[server.measured]]")
    parser.add_argument("servers", metavar="SERVER", nargs="*", default=[], help="only these servers")
    parser.add_argument("--rate", type=common.rate, required=True, help="operations (or jobs) a second, such as 5M")
    parser.add_argument(
        "--spares", type=common.count, default=0, metavar="K", help="tolerate the loss of any K servers (default 0)"
    )


def catalogue_of(arguments: argparse.Namespace) -> Catalogue:
    """The catalogue of ``--catalogue``, or that of the papers. Raises CatalogueError."""
    from rackscope.advice.catalogue import read_catalogue, sample_catalogue

    return sample_catalogue() if arguments.catalogue is None else read_catalogue(arguments.catalogue)


def show(found: Answer, as_json: bool, print_answer: Callable[[Console, Answer], None]) -> int:
    """The answer as JSON; or its advice, what ``print_answer`` adds to it, and on standard error what was left out."""
    if as_json:
        print_json(asdict(found))
        return 0
    console = open_console()
    print_advice(console, found.advice)
    print_answer(console, found)
    for sentence in found.left_out:
        complain(f"left out: {sentence}.")
    return 0


def print_advice(console: Console, advice: Sequence[Advice]) -> None:
    """Each sentence, what would change it, and its evidence, where that is not the evidence of the one before."""
    before = ""
    for one in advice:
        console.print(f"• {one.sentence}", style="bold", markup=False)
        console.print(f"  → {one.changes_if}", markup=False)
        stands_on = "the same" if one.stands_on == before else one.stands_on
        console.print(f"  Evidence: {stands_on}.", style="dim", markup=False)
        before = one.stands_on


def print_rows(console: Console, headings: Sequence[str], rows: Iterable[Sequence[str]], note: str) -> None:
    """A table of which the first column names the row, and a note below it."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for number, heading in enumerate(headings):
        # Nothing is cut off where the terminal is narrow.
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
    console.print(note, style="dim", markup=False)
