"""Say what to expect of a server that is not here, or reproduce the models of a paper.

'project RUN... --to server.toml' takes what was measured here (run directories, and those of 'study pressure', 'sweep'
and 'slo') to servers that a TOML file describes: throughput, response times, power, work per watt and per unit of
currency, each with its 90 % interval, or a line that says why not. '--describe' prints such a file of the host that
was measured.

'--model issa2012' sets every number that the paper computes beside the same computed here from the paper's own data,
and says which do not follow. '--model taleb2016' models an in-memory store over Infiniband and TCP as a closed network,
with its power, and sets the paper's figures beside it. Those are the papers' models: nothing of yours is projected with
them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rackscope.cli import arguments as common

if TYPE_CHECKING:
    from rich.console import Console

    from rackscope.advice.projecting.project import Projection
    from rackscope.advice.projecting.trained import Trained
    from rackscope.models.catalogue import ServerFile
    from rackscope.models.papers.reproduction import Reproduction

HELP = "project what was measured to another server; or reproduce a paper's models"
UNDOES_LEFTOVERS = False

#: Packages of ``rackscope.models.papers``: of some each printed number is followed up, others are a page of their own.
_REPRODUCTIONS = ("issa2012", "sevilla2013")
_PAGES = ("taleb2016",)
_COLUMNS = ("what", "printed", "computed", "difference", "verdict")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what can be asked for."""
    parser.add_argument("runs", metavar="RUN", nargs="*", type=common.path, help="run or study directories")
    parser.add_argument("--to", metavar="FILE", type=common.path, help="servers to project to (TOML)")
    parser.add_argument("--server", metavar="NAME", action="append", default=[], help="only this one; may be repeated")
    parser.add_argument(
        "--cores", metavar="N", type=common.positive_count, help="hardware threads for it (default: its share)"
    )
    parser.add_argument("--rate", metavar="N", type=common.rate, help="operations a second to state times and power at")
    parser.add_argument(
        "--fit",
        metavar="FOLDER",
        type=common.path,
        help="tables of servers to train models on (default: what RACKSCOPE_DATA names, if set)",
    )
    parser.add_argument("--phase", metavar="NAME", help="of runs with several phases")
    parser.add_argument("--out", metavar="FILE", type=common.path, help="write a page with plots")
    parser.add_argument(
        "--catalogue-out", metavar="FILE", type=common.path, help="write the servers with this, for 'cost' and 'advise'"
    )
    parser.add_argument("--describe", action="store_true", help="print a file of the host of the runs instead")
    parser.add_argument("--model", choices=(*_REPRODUCTIONS, *_PAGES), help="a paper to reproduce instead")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--markdown", action="store_true", help="print the page that is in docs (with --model)")
    common.add_json(shown)


def execute(arguments: argparse.Namespace) -> int:
    """Project, or reproduce; a printed number that does not follow is an answer, no failure."""
    _check(arguments)
    if arguments.model is None:
        _project(arguments)
    elif arguments.model in _PAGES:
        _show_page(arguments)
    else:
        _show_reproduction(arguments)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Raises UsageError for arguments that do not go together."""
    from rackscope.errors import UsageError

    if arguments.model is not None:
        if arguments.runs or arguments.to or arguments.describe:
            raise UsageError("--model reproduces a paper, and no runs of yours", "Leave out --model, or the runs.")
        _refuse(arguments, "--model", ("server", "cores", "rate", "phase", "out", "catalogue_out"))
        return
    if arguments.markdown:
        raise UsageError("--markdown is of --model", "Use --out for a page with plots.")
    if not arguments.runs:
        raise UsageError(
            "there is nothing to project", "Write 'rackscope project RUN... --to server.toml', or --model issa2012."
        )
    if arguments.describe:
        _refuse(arguments, "--describe", ("to", "server", "cores", "rate", "out", "catalogue_out", "json"))
    elif arguments.to is None:
        raise UsageError(
            "no server is named",
            "Give --to server.toml; 'rackscope project RUN --describe' prints one of the host here to start from.",
        )


def _refuse(arguments: argparse.Namespace, option: str, others: Sequence[str]) -> None:
    """Raises UsageError where ``option`` was given with one that it would not heed."""
    from rackscope.errors import UsageError

    given = next((one for one in others if getattr(arguments, one)), None)
    if given is not None:
        raise UsageError(f"--{given.replace('_', '-')} says nothing to {option}", "Leave out one of them.")


def _project(arguments: argparse.Namespace) -> None:
    from rackscope.advice.measured_runs import read_measurements
    from rackscope.cli.output import print_json
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
        if trained is not None:
            progress.say("fitting models to tables of servers")
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


def _trained(arguments: argparse.Namespace) -> Trained | None:
    """Models of the tables in --fit, else of the folder that RACKSCOPE_DATA names. Raises UsageError for no folder."""
    from rackscope.advice.projecting.trained import TABLES, Trained
    from rackscope.cli.model_tables import chosen_folder, read_tables

    folder = arguments.fit if arguments.fit is not None else chosen_folder()
    if folder is None:
        return None
    return Trained(str(folder), read_tables(folder, TABLES).frames)


def _write_catalogue(arguments: argparse.Namespace, projection: Projection, servers: ServerFile) -> None:
    from rackscope.advice.projecting.describe import projected_catalogue
    from rackscope.cli.output import complain
    from rackscope.errors import RackscopeError
    from rackscope.runs.files import write_atomically

    text, left_out = projected_catalogue(projection, servers)
    if not text:
        raise RackscopeError(f"nothing is written to {arguments.catalogue_out}: {left_out[0]}")
    try:
        write_atomically(arguments.catalogue_out, f"{text.rstrip()}\n".encode())
    except RackscopeError as error:
        raise RackscopeError(error.what, "Name another file with --catalogue-out.") from error
    for sentence in left_out:
        complain(f"not in {arguments.catalogue_out}: {sentence}")


def _show_page(arguments: argparse.Namespace) -> None:
    from importlib import import_module

    from rackscope.cli.document import print_document
    from rackscope.cli.output import open_console, print_json
    from rackscope.cli.progress import ProgressLine
    from rackscope.models.papers.document import Document

    # On a terminal only, as above: a page takes some seconds.
    with ProgressLine(quiet=not sys.stderr.isatty()) as progress:
        document: Document = import_module(f"rackscope.models.papers.{arguments.model}.page").document(progress.say)
    if arguments.json:
        print_json(document.values)
    elif arguments.markdown:
        print(document.markdown(), end="")
    else:
        print_document(open_console(), document)


def _show_reproduction(arguments: argparse.Namespace) -> None:
    from importlib import import_module

    from rackscope.cli.output import open_console, print_json

    reproduction: Reproduction = import_module(f"rackscope.models.papers.{arguments.model}").reproduce()
    if arguments.json:
        print_json(reproduction.to_dict())
    elif arguments.markdown:
        from rackscope.models.papers.page import markdown_page

        print(markdown_page(reproduction), end="")
    else:
        _print(open_console(), reproduction)


def _print(console: Console, reproduction: Reproduction) -> None:
    console.print(reproduction.citation, style="dim", markup=False)
    for section in reproduction.sections:
        console.print(f"\n{section.title}", style="bold", markup=False)
        if section.note:
            console.print(section.note, style="dim", markup=False)
        if section.comparisons:
            rows = [one.cells() for one in section.comparisons]
            _print_table(console, _COLUMNS, rows, [one.counted and not one.follows for one in section.comparisons])
        for derived in section.derived:
            console.print(f"{derived.title}:", markup=False)
            _print_table(console, derived.columns, derived.cells())
            if derived.note:
                console.print(derived.note, style="dim", markup=False)
    console.print()
    for remark in reproduction.remarks:
        console.print(f"• {remark.title}", style="bold", markup=False)
        console.print(f"  {remark.text}", style="dim", markup=False)
    console.print(f"\n{reproduction.summary()}", style="bold", markup=False)
    for section, one in reproduction.not_following():
        where = section.title.partition(":")[0]
        console.print(f"! {where}, {one.item}: printed {one.printed}, computed {one.cells()[2]}", markup=False)


def _print_table(
    console: Console, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], marked: list[bool] | None = None
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(Text(column), justify="left" if column == _COLUMNS[-1] or column == columns[0] else "right")
    for place, row in enumerate(rows):
        table.add_row(*(Text(cell) for cell in row), style="yellow" if marked and marked[place] else None)
    console.print(table)
