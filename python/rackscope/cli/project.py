"""Redo the models of papers, number by number, labelled as theirs.

'--model taleb2016' models an in-memory store over Infiniband and TCP as a closed network, with its power, and sets the
paper's figures beside it.
"""

from __future__ import annotations

import argparse

from rackscope.cli import arguments as common

HELP = "reproduce the models of a paper, number by number"
UNDOES_LEFTOVERS = False

#: Packages of ``rackscope.models.papers``.
_PAPERS = ("taleb2016",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be asked for."""
    parser.add_argument("--model", choices=_PAPERS, required=True, help="the paper to reproduce")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--markdown", action="store_true", help="print the page that is in docs")
    common.add_json(shown)


def execute(arguments: argparse.Namespace) -> int:
    """Reproduce and print."""
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
    return 0
