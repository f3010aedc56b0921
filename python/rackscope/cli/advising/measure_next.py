"""Say which server of a catalogue is worth measuring next, before a fleet is bought.

The value of measuring a server is by how much it lowers the cost to be expected of the best choice. Servers without a
measurement of the workload are guessed from their cores and the servers that have one; an amount of the catalogue with
a wide interval is a guess of your own.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.advising.shared import add_catalogue, add_demand, catalogue_of, print_rows, show
from rackscope.units import format_count

if TYPE_CHECKING:
    from rich.console import Console

    from rackscope.advice.measure_next import MeasureNext

HELP = "the server that is worth measuring before a fleet is bought"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_demand(parser)
    parser.add_argument(
        "--error",
        type=common.share,
        default=0.05,
        metavar="FRACTION",
        help="of a measurement: half its 90 %% interval (default 0.05)",
    )
    add_catalogue(parser)
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.advice.measure_next import measure_next

    catalogue, error = catalogue_of(arguments), arguments.error
    ranked = measure_next(
        catalogue, arguments.workload, arguments.rate, arguments.servers, spares=arguments.spares, error=error
    )
    return show(ranked, arguments.json, _print)


def _print(console: Console, ranked: MeasureNext) -> None:
    console.print()
    currency = ranked.currency
    headings = ("server", f"{ranked.unit}/s", "90 %", f"{currency}/year", "90 %", "worth", "changes")
    rows = []
    for row in ranked.rows:
        rate, cost = row.rate_per_second, row.cost_per_year
        low, high = _short(rate.low), _short(rate.high)
        cells = (
            row.name if row.measured else f"{row.name}*",
            _short(rate.value),
            "" if low == high else f"{low} to {high}",
            _short(row.expected_cost_per_year),
            f"{_short(cost.low)} to {_short(cost.high)}",
            _short(row.value_per_year.value),
            f"{row.changes:.1%}",
        )
        rows.append(cells)
    print_rows(
        console,
        headings,
        rows,
        f"*: not measured, guessed from its cores. {currency}/year: of a fleet, expected, modelled. Worth: by how much "
        f"less the best choice would cost a year, were that server known within {ranked.error:.0%}; changes: the "
        "chance that another is then chosen.",
    )


def _short(value: float) -> str:
    return format_count(value) if value >= 1000 else f"{value:.3g}"
