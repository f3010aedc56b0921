"""Compare two runs: the ratio of each metric with its 95 % interval."""

from __future__ import annotations

import argparse

from rackscope.cli import arguments as common
from rackscope.cli.output import print_json

HELP = "compare two runs: the ratio of each metric with its 95 % interval"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be asked for."""
    parser.add_argument("a", metavar="A", type=common.path, help="the run directory to compare with")
    parser.add_argument("b", metavar="B", type=common.path, help="the run directory that is compared with A")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Read both, compare, print."""
    from rackscope.api.run import Run

    a, b = Run.open(arguments.a), Run.open(arguments.b)
    comparison = a.compare(b)
    if arguments.json:
        remarks = {"remarks_a": list(a.remarks), "remarks_b": list(b.remarks)}
        print_json({"a": str(arguments.a), "b": str(arguments.b), **remarks, **comparison.to_dict()})
        return 0
    from rackscope.cli.comparing import print_comparison

    print_comparison(comparison, str(arguments.a), str(arguments.b), (*a.remarks, *b.remarks))
    return 0
