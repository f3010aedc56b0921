"""Set two runs side by side, with the interval of each difference."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.output import print_json
from rackscope.errors import RunDirectoryError

if TYPE_CHECKING:
    from rackscope.runs.directory import RunDirectory

HELP = "set two runs side by side, with the interval of each difference"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be asked for."""
    parser.add_argument("a", metavar="A", type=common.path, help="the run to compare with")
    parser.add_argument("b", metavar="B", type=common.path, help="the run that is compared")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Read both, compare, print."""
    from rackscope.analysis.comparison import compare
    from rackscope.runs.energy import results_with_energy
    from rackscope.runs.facts import comparison_settings

    a, b = _open(arguments.a), _open(arguments.b)
    (results_a, power_a), (results_b, power_b) = results_with_energy(a), results_with_energy(b)
    comparison = compare(
        results_a,
        results_b,
        power_a=power_a,
        power_b=power_b,
        settings_a=comparison_settings(a.manifest),
        settings_b=comparison_settings(b.manifest),
    )
    if arguments.json:
        remarks = {"remarks_a": list(a.remarks), "remarks_b": list(b.remarks)}
        print_json({"a": str(arguments.a), "b": str(arguments.b), **remarks, **comparison.to_dict()})
        return 0
    from rackscope.cli.comparing import print_comparison

    print_comparison(comparison, str(arguments.a), str(arguments.b), (*a.remarks, *b.remarks))
    return 0


def _open(path: Path) -> RunDirectory:
    """A run that measured something. Raises RunDirectoryError."""
    from rackscope.runs.directory import RunDirectory

    run = RunDirectory.open(path)
    results = run.results()
    if results.is_empty() or not (results["kind"] == "measure").any():
        why = run.damage or run.remarks or ("no measured phase was completed",)
        raise RunDirectoryError(
            f"{path} has nothing to compare: {why[0]}", "Name a run whose measured phase was completed."
        )
    return run
