"""Say which server of a catalogue is worth measuring next, before a fleet is bought.

The value of measuring a server is by how much it lowers the cost to be expected of the best choice. Servers without a
measurement of the workload are guessed from their cores and the servers that have one; an amount of the catalogue with
a wide interval is a guess of your own.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.output import complain, open_console, print_json
from rackscope.units import format_count

if TYPE_CHECKING:
    from rackscope.advice.measure_next import MeasureNext

HELP = "the server that is worth measuring before a fleet is bought"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be asked for."""
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload of the catalogue's [[server.measured]]")
    parser.add_argument("servers", metavar="SERVER", nargs="*", default=[], help="only these servers")
    parser.add_argument("--rate", type=common.rate, required=True, help="operations (or jobs) a second, such as 5M")
    parser.add_argument(
        "--spares", type=common.count, default=0, metavar="K", help="tolerate the loss of any K servers (default 0)"
    )
    parser.add_argument(
        "--error",
        type=common.share,
        default=0.05,
        metavar="FRACTION",
        help="of a measurement: half its 90 %% interval (default 0.05)",
    )
    parser.add_argument("--catalogue", metavar="FILE", type=common.path, help="servers and prices (TOML)")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Rank and print."""
    from rackscope.advice.catalogue import read_catalogue, sample_catalogue
    from rackscope.advice.measure_next import measure_next

    catalogue = sample_catalogue() if arguments.catalogue is None else read_catalogue(arguments.catalogue)
    ranked = measure_next(
        catalogue,
        arguments.workload,
        arguments.rate,
        arguments.servers,
        spares=arguments.spares,
        error=arguments.error,
    )
    if arguments.json:
        print_json(ranked.to_dict())
    else:
        _print(ranked)
    return 0


def _print(ranked: MeasureNext) -> None:
    from rich.table import Table
    from rich.text import Text

    from rackscope.cli.advising.sentences import print_advice

    console = open_console()
    print_advice(console, ranked.advice)
    console.print()
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    currency = ranked.currency
    headings = ("server", f"{ranked.unit}/s", "90 %", f"{currency}/year", "90 %", "worth", "changes")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
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
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    console.print(
        f"*: not measured, guessed from its cores. {currency}/year: of a fleet, expected, modelled. Worth: by how much "
        f"less the best choice would cost a year, were that server known within {ranked.error:.0%}; changes: the "
        "chance that another is then chosen.",
        style="dim",
        markup=False,
    )
    for sentence in ranked.left_out:
        complain(f"left out: {sentence}.")


def _short(value: float) -> str:
    return format_count(value) if value >= 1000 else f"{value:.3g}"
