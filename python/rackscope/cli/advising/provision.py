"""Plan the cheapest fleet for a demand out of a catalogue of servers.

Without --catalogue these are the servers of the papers.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.output import complain, open_console, print_json

if TYPE_CHECKING:
    from rackscope.advice.provision import Provision

HELP = "the cheapest fleet for a demand"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be asked for."""
    parser.add_argument("workload", metavar="WORKLOAD", help="a workload of the catalogue's [[server.measured]]")
    parser.add_argument("servers", metavar="SERVER", nargs="*", default=[], help="only these servers")
    parser.add_argument("--rate", type=common.rate, required=True, help="operations (or jobs) a second, such as 5M")
    parser.add_argument(
        "--spares", type=common.count, default=0, metavar="K", help="tolerate the loss of any K servers (default 0)"
    )
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
    parser.add_argument("--catalogue", metavar="FILE", type=common.path, help="servers and prices (TOML)")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Plan and print."""
    from rackscope.advice.catalogue import read_catalogue, sample_catalogue
    from rackscope.advice.provision import Objective, provision
    from rackscope.models.provision import Demand

    catalogue = sample_catalogue() if arguments.catalogue is None else read_catalogue(arguments.catalogue)
    demand = Demand(
        arguments.rate,
        arguments.spares,
        watts=arguments.watts,
        budget_per_year=arguments.budget,
        purchase_budget=arguments.purchase,
    )
    objective = None if arguments.p99 is None else Objective(arguments.p99)
    planned = provision(catalogue, arguments.workload, demand, arguments.servers, objective=objective)
    if arguments.json:
        print_json(planned.to_dict())
    else:
        _print(planned)
    return 0


def _print(planned: Provision) -> None:
    from rackscope.cli.advising.sentences import print_advice

    console = open_console()
    print_advice(console, planned.advice)
    fleet, watts = planned.fleet, f"{planned.site_watts:,.0f} W with the PUE"
    console.print(f"{fleet.servers} servers, {watts}, {fleet.price:,.0f} {planned.currency} to buy.", markup=False)
    for sentence in planned.left_out:
        complain(f"left out: {sentence}.")
