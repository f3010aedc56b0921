"""Run a workload against a system, sample the host, and say what limits it.

Examples:
  rackscope run cache ycsb-b
  rackscope run memcached ycsb-a --set threads=2 --set value_size=25k
  rackscope run redis ycsb-c --rate 20k --duration 10s --json
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.errors import UsageError

if TYPE_CHECKING:
    from rackscope.api.settings import RunSettings

HELP = "run a workload against a system and say what limits it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("system", nargs="?", metavar="SYSTEM", help="what to test, such as memcached")
    parser.add_argument("workload", nargs="?", metavar="WORKLOAD", help="what to ask of it, such as ycsb-b")
    parser.add_argument("--list", action="store_true", help="list systems, workloads and their settings")
    load = parser.add_argument_group("load")
    load.add_argument(
        "--rate",
        metavar="N",
        type=common.rate,
        help="open loop: N operations/s; latency counts from the intended start (default: closed loop)",
    )
    load.add_argument(
        "--arrivals",
        choices=("poisson", "constant"),
        default="poisson",
        help="open loop: how requests are spaced in time (default poisson)",
    )
    common.add_load(load)
    length = parser.add_argument_group("length")
    length.add_argument(
        "--duration",
        metavar="TIME",
        type=common.duration,
        default=5.0,
        help="length of one measured repetition (default 5s)",
    )
    length.add_argument(
        "--warm-up", metavar="TIME", type=_warm_up, default=2.0, help="unmeasured load before that (default 2s)"
    )
    often = length.add_mutually_exclusive_group()
    often.add_argument(
        "--repeat",
        metavar="N",
        type=common.count,
        help="number of repetitions (default: until the 95 %% interval of throughput is within ± 2 %%)",
    )
    often.add_argument(
        "--budget",
        metavar="TIME",
        type=common.duration,
        help="longest measuring time of all repetitions together (default 40s; at least three are made)",
    )
    system = parser.add_argument_group("system")
    common.add_system_settings(system, "a knob of the system or a parameter of the workload")
    power = parser.add_argument_group("power, where there is no meter")
    common.add_server(power)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--sample-rate", metavar="HZ", type=common.rate, default=10.0, help="samples of the host a second (1 to 100)"
    )
    output.add_argument("--out", metavar="DIR", type=common.path, help="run directory (default: a new one under runs/)")
    common.add_json(output)


def _warm_up(text: str) -> float:
    return 0.0 if text in ("0", "0s") else common.duration(text)


def execute(arguments: argparse.Namespace) -> int:
    if arguments.list:
        from rackscope.cli.listing import print_listing

        print_listing(arguments.json)
        return 0
    if arguments.system is None or arguments.workload is None:
        raise UsageError("no system and workload are named", "For example: rackscope run memcached ycsb-b.")
    from rackscope.api.running import run
    from rackscope.cli.findings import print_run
    from rackscope.cli.progress import ProgressLine

    with ProgressLine() as progress:
        done = run(
            arguments.system,
            arguments.workload,
            server=arguments.server,
            share=arguments.share,
            progress=progress,
            **_settings(arguments),
        )
    print_run(done, as_json=arguments.json)
    return 0


def _settings(arguments: argparse.Namespace) -> RunSettings:
    return {
        **common.load_settings(arguments),
        "rate_per_second": arguments.rate,
        "arrivals": arguments.arrivals,
        "duration_seconds": arguments.duration,
        "warm_up_seconds": arguments.warm_up,
        "repetitions": arguments.repeat,
        **({"budget_seconds": arguments.budget} if arguments.budget else {}),
        "sample_interval_seconds": 1.0 / arguments.sample_rate,
        "out": arguments.out,
        "command_line": arguments.command_line,
    }
