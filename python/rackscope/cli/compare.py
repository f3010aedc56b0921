"""Set two runs side by side, with the interval of each difference."""

from __future__ import annotations

import argparse
from pathlib import Path

from rackscope.cli import arguments as common

HELP = "set two runs side by side, with the interval of each difference"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be asked for."""
    parser.add_argument("a", metavar="A", type=Path, help="the run to compare with")
    parser.add_argument("b", metavar="B", type=Path, help="the run that is compared")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Read both, compare, print."""
    import json

    from rackscope.analysis.comparison import compare
    from rackscope.runs.directory import RunDirectory
    from rackscope.runs.facts import comparison_settings

    a, b = RunDirectory.open(arguments.a), RunDirectory.open(arguments.b)
    comparison = compare(
        a.results(),
        b.results(),
        settings_a=comparison_settings(a.manifest),
        settings_b=comparison_settings(b.manifest),
    )
    if arguments.json:
        print(json.dumps({"a": str(arguments.a), "b": str(arguments.b), **comparison.to_dict()}))
        return 0
    from rackscope.cli.comparing import print_comparison

    print_comparison(comparison, str(arguments.a), str(arguments.b), (*a.remarks, *b.remarks))
    return 0
