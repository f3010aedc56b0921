"""Plan the cheapest fleet for a demand out of a catalogue of servers.

Without --catalogue these are the servers of the papers.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.advising.shared import add_catalogue, add_demand, catalogue_of, show

if TYPE_CHECKING:
    from rich.console import Console

    from rackscope.advice.provision import Provision

HELP = "the cheapest fleet for a demand"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_demand(parser)
    parser.add_argument(
        "--p99",
        type=common.duration,
        metavar="TIME",
        help="bound for the 99th percentile of response time (M/M/c queue, modelled)",
    )
    parser.add_argument("--watts", type=common.positive_number, help="largest power, PUE included")
    parser.add_argument("--budget", type=common.positive_number, metavar="MONEY", help="largest cost per year")
    parser.add_argument(
        "--purchase", type=common.positive_number, metavar="MONEY", help="largest purchase price of all servers"
    )
    add_catalogue(parser)
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.advice.provision import Objective, provision
    from rackscope.models.provision import Demand

    catalogue = catalogue_of(arguments)
    demand = Demand(
        arguments.rate,
        arguments.spares,
        watts=arguments.watts,
        budget_per_year=arguments.budget,
        purchase_budget=arguments.purchase,
    )
    objective = None if arguments.p99 is None else Objective(arguments.p99)
    planned = provision(catalogue, arguments.workload, demand, arguments.servers, objective=objective)
    return show(planned, arguments.json, _print)


def _print(console: Console, planned: Provision) -> None:
    fleet, watts = planned.fleet, f"{planned.site_watts:,.0f} W with the PUE"
    console.print(f"{fleet.servers} servers, {watts}, {fleet.price:,.0f} {planned.currency} to buy.", markup=False)
