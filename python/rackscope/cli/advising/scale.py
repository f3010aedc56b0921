"""Say whether a job is better done by one bigger server or by a cluster of small ones.

FROM is a file of measured jobs, a CSV with the columns server,machines,data_bytes,seconds (and cores, if not all were
used) or a TOML file with the same keys under [[job]]; or the directory of a 'study wall' (how much memory a byte of
data takes, and with SERVER=DIR how long one server takes), or SERVER=DIR of a 'study sweep' over threads. Prices,
memory and watts are those of the catalogue's servers.

Examples:
  rackscope advise scale jobs.csv --data 120G --catalogue mine.toml
  rackscope advise scale jobs.csv runs/WALL --data 120G --deadline 1h --jobs-per-day 24
  rackscope advise scale jobs.csv --like big=small --data 500G
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.advising.shared import add_catalogue, catalogue_of, print_advice, print_rows
from rackscope.cli.output import complain, open_console, print_json
from rackscope.units import parse_size_bytes

if TYPE_CHECKING:
    from rackscope.advice.scale_types import ScaleAdvice

HELP = "one bigger server or a cluster of small ones, for a job and its data"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sources", metavar="FROM", nargs="+", help="[SERVER=]PATH of measured jobs or a study")
    parser.add_argument(
        "--data", type=common.checked(parse_size_bytes), required=True, metavar="SIZE", help="of a job, such as 120G"
    )
    parser.add_argument(
        "--deadline", type=common.duration, metavar="TIME", help="95 %% of the jobs must finish within it"
    )
    parser.add_argument(
        "--jobs-per-day",
        type=common.rate,
        metavar="N",
        help="the machines run only these jobs (default: other jobs share them)",
    )
    parser.add_argument(
        "--like", type=_pair, action="append", default=[], metavar="NEW=MEASURED",
        help="NEW was not measured; it is MEASURED with more cores and memory",
    )  # fmt: skip
    parser.add_argument("--most", type=common.positive_count, metavar="N", help="most machines for one job")
    parser.add_argument(
        "--workload", metavar="NAME", help="use the watts measured under this workload (default: full_watts)"
    )
    add_catalogue(parser)
    common.add_json(parser)


def _pair(text: str) -> tuple[str, str]:
    new, sign, measured = text.partition("=")
    if not sign or not new.strip() or not measured.strip():
        raise argparse.ArgumentTypeError(f"'{text}' is not two servers. Write it like NEW=MEASURED.")
    return new.strip(), measured.strip()


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.advice.job_evidence import read_job_evidence
    from rackscope.advice.scale import advise_scale
    from rackscope.advice.scale_types import Job

    catalogue = catalogue_of(arguments)
    given = advise_scale(
        read_job_evidence(arguments.sources),
        catalogue,
        Job(arguments.data, arguments.deadline, arguments.jobs_per_day),
        like=common.settings_mapping(arguments.like),
        most_machines=arguments.most,
        workload=arguments.workload,
    )
    if arguments.json:
        print_json(asdict(given))
    else:
        _print(given)
    return 0


def _print(given: ScaleAdvice) -> None:
    from rackscope.advice.scale_words import figure, spell, spell_between

    console = open_console()
    print_advice(console, given.advice)
    console.print()
    headings = ["machines", "a job", "90 %"]
    headings += [] if given.job.deadline_seconds is None else ["in time"]
    headings += ["fastest"]
    per = "job" if given.job.jobs_per_day is None else "year"
    headings += [] if given.rows[0].cost is None else [f"{given.currency}/{per}", "90 %", "cheapest"]
    rows = []
    for row in given.rows:
        seconds, cost = row.seconds, row.cost
        beyond = "*" if seconds.extrapolated else ""
        cells = [row.name, f"{spell(seconds.value)}{beyond}", spell_between(seconds.value, seconds.low, seconds.high)]
        cells += [] if row.in_time is None else [f"{row.in_time:.1%}"]
        cells += [f"{row.fastest:.1%}"]
        if cost is not None and row.cheapest is not None:
            cells += [figure(cost.value), f"{figure(cost.low)} to {figure(cost.high)}", f"{row.cheapest:.1%}"]
        rows.append(cells)
    print_rows(
        console,
        headings,
        rows,
        "All modelled. 90 %: of the next jobs, and of the draws of prices and models; fastest and cheapest: in "
        "which fraction of the draws. *: outside of what was measured. Time and money only: what else a cluster gives "
        "(it outlives a machine, it grows) is not in it.",
    )
    for sentence in given.refused:
        complain(f"left out: {sentence}.")
    for sentence in given.left_out:
        complain(f"{sentence}.")
