"""Say what to do, each sentence with what it stands on and what would change it.

'rackscope advise ADVICE --help' says more about each.
"""

from __future__ import annotations

import argparse
from importlib import import_module

HELP = "advise what to buy, run together or measure next, and what would change the advice"
UNDOES_LEFTOVERS = False

#: Modules of ``cli.advising``, in the order of ``--help``.
_ADVICE = ("provision", "scale", "colocate", "measure-next")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(title="advice", metavar="ADVICE", required=True, dest="advice")
    for name in _ADVICE:
        module = import_module(f"rackscope.cli.advising.{name.replace('-', '_')}")
        one = kinds.add_parser(name, help=module.HELP, description=(module.__doc__ or module.HELP).strip())
        module.add_arguments(one)
        one.set_defaults(give_advice=module.execute)


def execute(arguments: argparse.Namespace) -> int:
    return int(arguments.give_advice(arguments))
