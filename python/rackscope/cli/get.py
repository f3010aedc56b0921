"""Find a system or a tool on PATH, or download its package and unpack it without root."""

from __future__ import annotations

import argparse

from rackscope.cli import arguments as common
from rackscope.cli.output import print_json

HELP = "find a system on PATH, or download its package without root"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+", help="such as memcached, redis or fio")
    parser.add_argument("--no-fetch", action="store_true", help="only look, never download")
    common.add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.api.systems import get
    from rackscope.cli.progress import ProgressLine

    with ProgressLine() as progress:
        acquired = [get(name, fetch=not arguments.no_fetch, progress=progress) for name in arguments.names]
    if arguments.json:
        kept = ("name", "program", "version", "source")
        print_json({"acquired": [{name: str(getattr(item, name)) for name in kept} for item in acquired]})
        return 0
    for item in acquired:
        print(f"{item.name} {item.version}, from {item.source}: {item.program}")
    return 0
