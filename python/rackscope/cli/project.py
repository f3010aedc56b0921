"""Say what to expect where nothing was measured, or reproduce the models of a paper.

'--model issa2012' sets every number that the paper computes beside the same computed here from the paper's own data,
and says which do not follow. '--model taleb2016' models an in-memory store over Infiniband and TCP as a closed network,
with its power, and sets the paper's figures beside it. Those are the papers' models: nothing of yours is projected with
them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common

if TYPE_CHECKING:
    from rich.console import Console

    from rackscope.models.papers.reproduction import Reproduction

HELP = "reproduce the models of a paper, number by number"
UNDOES_LEFTOVERS = False

#: Packages of ``rackscope.models.papers``: of some each printed number is followed up, others are a page of their own.
_REPRODUCTIONS = ("issa2012",)
_PAGES = ("taleb2016",)
_COLUMNS = ("what", "printed", "computed", "difference", "verdict")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be asked for."""
    parser.add_argument("--model", choices=(*_REPRODUCTIONS, *_PAGES), required=True, help="the paper to reproduce")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--markdown", action="store_true", help="print the page that is in docs")
    common.add_json(shown)


def execute(arguments: argparse.Namespace) -> int:
    """Reproduce and print; a printed number that does not follow is an answer, no failure."""
    if arguments.model in _PAGES:
        _show_page(arguments)
    else:
        _show_reproduction(arguments)
    return 0


def _show_page(arguments: argparse.Namespace) -> None:
    from importlib import import_module

    from rackscope.cli.document import print_document
    from rackscope.cli.output import open_console, print_json
    from rackscope.models.papers.document import Document

    document: Document = import_module(f"rackscope.models.papers.{arguments.model}.page").document()
    if arguments.json:
        print_json(document.values)
    elif arguments.markdown:
        print(document.markdown(), end="")
    else:
        print_document(open_console(), document)


def _show_reproduction(arguments: argparse.Namespace) -> None:
    from importlib import import_module

    from rackscope.cli.output import open_console, print_json

    reproduction: Reproduction = import_module(f"rackscope.models.papers.{arguments.model}").reproduce()
    if arguments.json:
        print_json(reproduction.to_dict())
    elif arguments.markdown:
        from rackscope.models.papers.page import markdown_page

        print(markdown_page(reproduction), end="")
    else:
        _print(open_console(), reproduction)


def _print(console: Console, reproduction: Reproduction) -> None:
    console.print(reproduction.citation, style="dim", markup=False)
    for section in reproduction.sections:
        console.print(f"\n{section.title}", style="bold", markup=False)
        if section.note:
            console.print(section.note, style="dim", markup=False)
        if section.comparisons:
            rows = [one.cells() for one in section.comparisons]
            _print_table(console, _COLUMNS, rows, [one.counted and not one.follows for one in section.comparisons])
        for derived in section.derived:
            console.print(f"{derived.title}:", markup=False)
            _print_table(console, derived.columns, derived.cells())
            if derived.note:
                console.print(derived.note, style="dim", markup=False)
    console.print()
    for remark in reproduction.remarks:
        console.print(f"• {remark.title}", style="bold", markup=False)
        console.print(f"  {remark.text}", style="dim", markup=False)
    console.print(f"\n{reproduction.summary()}", style="bold", markup=False)
    for section, one in reproduction.not_following():
        where = section.title.partition(":")[0]
        console.print(f"! {where}, {one.item}: printed {one.printed}, computed {one.cells()[2]}", markup=False)


def _print_table(
    console: Console, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], marked: list[bool] | None = None
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(Text(column), justify="left" if column == _COLUMNS[-1] or column == columns[0] else "right")
    for place, row in enumerate(rows):
        table.add_row(*(Text(cell) for cell in row), style="yellow" if marked and marked[place] else None)
    console.print(table)
