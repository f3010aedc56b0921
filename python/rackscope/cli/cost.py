"""Set servers beside each other by what they do for each watt and for each unit of currency.

Servers, prices and what each does of a workload come from a catalogue in TOML (--catalogue; without one, the servers
of the papers). What is uncertain in it is drawn many times: intervals hold 90 % of the draws.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.advising.shared import add_catalogue, catalogue_of, print_rows, show
from rackscope.cli.output import print_json
from rackscope.units import format_count

if TYPE_CHECKING:
    from rich.console import Console

    from rackscope.advice.cost import CostComparison
    from rackscope.models.cost import Amount

HELP = "compare servers by performance per watt and per dollar"
UNDOES_LEFTOVERS = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload of the catalogue's [[server.measured]]")
    parser.add_argument("servers", metavar="SERVER", nargs="*", default=[], help="only these servers")
    add_catalogue(parser)
    parser.add_argument("--out", metavar="FILE", type=common.path, help="write a page with the Pareto plot")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.advice.cost import compare_costs

    catalogue = catalogue_of(arguments)
    comparison = compare_costs(catalogue, arguments.workload, arguments.servers)
    if arguments.out is None:
        return show(comparison, arguments.json, _print)
    from rackscope.advice.cost_charts import record_of
    from rackscope.report.study import write_study_page

    write_study_page(record_of(comparison, catalogue.file, arguments.command_line), arguments.out)
    if arguments.json:
        print_json({**asdict(comparison), "report": str(arguments.out)})
        return 0
    show(comparison, False, _print)
    print(f"Written: {arguments.out}")
    return 0


def _print(console: Console, comparison: CostComparison) -> None:
    from rackscope.advice.cost import by_energy

    unit = comparison.rows[0].unit
    energy = by_energy(comparison.rows[0])[0]
    headings = (
        "server", f"{comparison.currency} a year", "of it power", f"{unit}/{energy}", f"{unit}/{comparison.currency}"
    )  # fmt: skip
    rows = []
    for row in comparison.rows:
        amounts = (row.total_per_year, row.power_per_year, by_energy(row)[1], row.rate_per_money)
        cells = (row.name, *(_amount(one) for one in amounts), f"{100 * row.on_front:.1f} %")
        rows.append(cells)
    print_rows(console, (*headings, "in the Pareto set"), rows, "Medians, with the interval of 90 % of the draws.")


def _amount(amount: Amount) -> str:
    value, low, high = (
        format_count(one) if one >= 1e5 else f"{one:,.0f}" if one >= 100 else f"{one:.3g}"
        for one in (amount.value, amount.low, amount.high)
    )
    return f"{value} ({low} to {high})"
