"""Say what to expect of a server that is not here.

'project RUN... --to server.toml' takes what was measured here (run directories, and those of 'study pressure', 'sweep'
and 'slo') to servers that a TOML file describes: throughput, response times, power, work per watt and per unit of
currency, each with its 90 % interval, or a line that says why not. '--describe' prints such a file of the host that
was measured.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common
from rackscope.cli.output import complain, print_json
from rackscope.errors import RackscopeError, UsageError

if TYPE_CHECKING:
    from rackscope.advice.projecting.project import Projection
    from rackscope.advice.projecting.trained import Trained
    from rackscope.models.catalogue import ServerFile

HELP = "project what was measured to another server"
UNDOES_LEFTOVERS = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="*", type=common.path, help="run or study directories")
    parser.add_argument("--to", metavar="FILE", type=common.path, help="servers to project to (TOML)")
    parser.add_argument("--server", metavar="NAME", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument(
        "--cores",
        metavar="N",
        type=common.positive_count,
        help="hardware threads to use there (default: the same fraction as here)",
    )
    parser.add_argument(
        "--rate", metavar="N", type=common.rate, help="offered rate at which to state response times and power"
    )
    parser.add_argument(
        "--fit",
        metavar="FOLDER",
        type=common.path,
        help="tables of servers to train models on (default: $RACKSCOPE_DATA, else the fits that rackscope carries)",
    )
    parser.add_argument("--phase", metavar="NAME", help="which phase, if the runs have several")
    parser.add_argument("--out", metavar="FILE", type=common.path, help="write a page with plots")
    parser.add_argument(
        "--catalogue-out",
        metavar="FILE",
        type=common.path,
        help="write a catalogue with the projected rates and watts, for 'cost' and 'advise'",
    )
    parser.add_argument("--describe", action="store_true", help="print a server file of the measured host instead")
    # It moved to 'rackscope paper': said for one version.
    parser.add_argument("--model", help=argparse.SUPPRESS)
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Project; what cannot be projected is named with the reason."""
    _check(arguments)
    _project(arguments)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Raises UsageError for arguments that do not go together."""

    if arguments.model is not None:
        raise UsageError("papers have a verb of their own", f"Write 'rackscope paper {arguments.model}'.")
    if not arguments.runs:
        raise UsageError("no run is named", "Write 'rackscope project RUN... --to server.toml'.")
    if arguments.describe:
        unused = ("to", "server", "cores", "rate", "out", "catalogue_out", "json")
        given = next((one for one in unused if getattr(arguments, one)), None)
        if given is not None:
            raise UsageError(f"--{given.replace('_', '-')} has no effect with --describe", "Leave out one of them.")
    elif arguments.to is None:
        raise UsageError(
            "no server is named",
            "Give --to server.toml; 'rackscope project RUN --describe' prints one of the host here to start from.",
        )


def _project(arguments: argparse.Namespace) -> None:
    from rackscope.advice.measured_runs import read_measurements
    from rackscope.cli.progress import ProgressLine

    # On a terminal only: what is read in a moment needs no lines in a log.
    with ProgressLine(quiet=not sys.stderr.isatty()) as progress:
        progress.say("reading what was measured")
        measured = read_measurements(arguments.runs, arguments.phase)
    if arguments.describe:
        from rackscope.advice.projecting.describe import describe_source

        print(describe_source(measured), end="")
        return
    from rackscope.advice.catalogue import read_servers
    from rackscope.advice.projecting.project import project
    from rackscope.cli.projecting import print_projection

    servers = read_servers(arguments.to)
    with ProgressLine(quiet=not sys.stderr.isatty()) as progress:
        trained = _trained(arguments)
        progress.say("projecting")
        projection = project(
            measured,
            servers,
            arguments.server,
            cores=arguments.cores,
            rate_per_second=arguments.rate,
            trained=trained,
        )
    written = {}
    if arguments.out is not None:
        from rackscope.advice.projecting.page import record_of
        from rackscope.report.study import write_study_page

        write_study_page(record_of(projection, arguments.command_line), arguments.out)
        written["report"] = str(arguments.out)
    if arguments.catalogue_out is not None:
        # What a fleet is planned with is what a server can do, and its watts then: not those at some rate.
        flat_out = projection
        if arguments.rate is not None:
            flat_out = project(measured, servers, arguments.server, cores=arguments.cores)
        _write_catalogue(arguments, flat_out, servers)
        written["catalogue"] = str(arguments.catalogue_out)
    if arguments.json:
        print_json({**projection.to_dict(), **written})
        return
    print_projection(projection)
    for path in written.values():
        print(f"Written: {path}")


def _trained(arguments: argparse.Namespace) -> Trained:
    """Models of the tables in --fit, else of those that RACKSCOPE_DATA names, else the fits that rackscope carries."""
    from rackscope.advice.projecting.trained import TABLES, Trained
    from rackscope.cli.model_tables import chosen_folder, read_tables

    folder = arguments.fit if arguments.fit is not None else chosen_folder()
    return Trained() if folder is None else Trained(str(folder), read_tables(folder, TABLES).frames)


def _write_catalogue(arguments: argparse.Namespace, projection: Projection, servers: ServerFile) -> None:
    from rackscope.advice.projecting.describe import projected_catalogue
    from rackscope.runs.files import write_atomically

    text, left_out = projected_catalogue(projection, servers)
    if not text:
        raise RackscopeError(f"{arguments.catalogue_out} was not written: {left_out[0]}")
    try:
        write_atomically(arguments.catalogue_out, f"{text.rstrip()}\n".encode())
    except RackscopeError as error:
        raise RackscopeError(error.what, "Name another file with --catalogue-out.") from error
    for sentence in left_out:
        complain(f"not in {arguments.catalogue_out}: {sentence}")
