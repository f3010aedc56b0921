"""Show what a paper prints beside what follows from it, or what was measured here.

'paper issa2012' sets every number that the paper computes beside the same computed here from the paper's own data, and
says which do not follow. 'paper awasthi2015 --runs DIR...' sets its pressure-point matrix beside that of your own
pressure studies. The models are the papers': 'rackscope project' uses its own.
"""

from __future__ import annotations

import argparse
import sys

from rackscope.cli import arguments as common
from rackscope.cli.output import open_console, print_json
from rackscope.errors import UsageError

HELP = "show what a paper prints beside what is computed or measured here"
UNDOES_LEFTOVERS = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="the paper; --list names them")
    parser.add_argument("--list", action="store_true", help="list the papers")
    parser.add_argument(
        "--runs", metavar="DIR", nargs="+", type=common.path, default=[], help="study directories to set beside it"
    )
    parser.add_argument("--out", metavar="FILE", type=common.path, help="write the page as HTML, too")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--markdown", action="store_true", help="print the page as Markdown")
    common.add_json(shown)


def execute(arguments: argparse.Namespace) -> int:
    """Show the paper; a printed number that does not follow is a result, no failure."""
    from rackscope.cli.document import print_document
    from rackscope.cli.progress import ProgressLine
    from rackscope.papers.base import find_paper

    if arguments.list:
        _list(as_json=arguments.json)
        return 0
    if arguments.name is None:
        raise UsageError("no paper is named", "Write 'rackscope paper NAME'; 'rackscope paper --list' has the names.")
    paper = find_paper(arguments.name)
    # On a terminal only: a page takes some seconds, and lines of progress are no use in a log.
    with ProgressLine(quiet=not sys.stderr.isatty()) as progress:
        document = paper.page(arguments.runs, progress.say)
    written = {}
    if arguments.out is not None:
        from rackscope.report.build import asset, write_page

        style = asset("report.css")
        write_page(arguments.out, lambda: document.html(style), "Name another file with --out.")
        written["report"] = str(arguments.out)
    if arguments.json:
        print_json({**document.values, **written})
    elif arguments.markdown:
        print(document.markdown(), end="")
    else:
        console = open_console()
        print_document(console, document)
        for path in written.values():
            console.print(f"\nWritten: {path}", markup=False, style="bold", soft_wrap=True)
    return 0


def _list(*, as_json: bool) -> None:
    from rackscope.papers.base import all_papers

    papers = all_papers().values()
    if as_json:
        kept = ("name", "title", "citation", "studies")
        print_json({"papers": [{name: getattr(paper, name) for name in kept} for paper in papers]})
        return
    for paper in papers:
        print(f"{paper.name:<14}{paper.title}")
