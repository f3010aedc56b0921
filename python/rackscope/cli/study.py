"""Conduct a study: a designed set of runs that answers one question.

Examples:
  rackscope study pressure memcached ycsb-b
  rackscope study slo cache ycsb-b --bound 'p99<1ms'
  rackscope study sweep redis ycsb-a --vary value_size=64,1k,25k
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackscope.cli import arguments as common
from rackscope.studies import list_studies, load_study

if TYPE_CHECKING:
    from rackscope.api.settings import RunSettings
    from rackscope.studies.base import Option, Study

HELP = "answer one question with a designed set of runs: squeeze, sweep, tune, search"

#: Subjects of studies whose load is described on the command line.
_WITH_LOAD = ("workload", "optional")


class _Kinds(dict[str, argparse.ArgumentParser]):
    """The studies by name, and one in a file of the user's by its path, which is loaded when it is asked for."""

    def __init__(self, load: Callable[[str], None]) -> None:
        super().__init__()
        self._load = load
        self._asked: set[str] = set()

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and name.endswith(".py") and name not in self._asked:
            self._asked.add(name)
            self._load(name)
        return super().__contains__(name)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(
        title="studies", metavar="STUDY", required=True, description="One of these, or the path of a .py file with one."
    )

    def add(name: str, study: Study) -> None:
        kind = kinds.add_parser(name, help=study.help, description=study.description)
        _add_study(kind, study)
        kind.set_defaults(study=study, kind=name)

    kinds.choices = kinds._name_parser_map = _Kinds(lambda name: add(name, load_study(Path(name))))
    for study in list_studies():
        add(study.name, study)


def _add_study(parser: argparse.ArgumentParser, study: Study) -> None:
    optional: dict[str, Any] = {"nargs": "?", "default": ""} if study.subject == "optional" else {}
    if study.subject == "workloads":
        parser.add_argument("workloads", metavar="SYSTEM:WORKLOAD", nargs="*", help="such as memcached:ycsb-b,cpu=0.4")
    elif study.subject != "none":
        parser.add_argument("system", metavar="SYSTEM", help="what to study, such as memcached", **optional)
    if study.subject in _WITH_LOAD:
        parser.add_argument("workload", metavar="WORKLOAD", help="the load to run, such as ycsb-b", **optional)
    own = parser.add_argument_group("study")
    for option in study.options:
        _add_option(own, option)
    if study.subject in _WITH_LOAD:
        common.add_load(parser.add_argument_group("load"))
        common.add_system_settings(
            parser.add_argument_group("system"), "a knob of the system or a parameter of the workload"
        )
    elif study.subject in ("system", "workloads"):
        common.add_places(parser.add_argument_group("host"))
    output = parser.add_argument_group("output")
    output.add_argument("--out", metavar="DIR", type=common.path, help="study directory (default: a new one in runs/)")
    common.add_json(output)


def _add_option(group: argparse._ActionsContainer, option: Option) -> None:
    from rackscope.api.studying import parse_option

    flag = f"--{option.name}"
    if option.kind == "flag":
        group.add_argument(flag, action="store_true", help=option.help)
        return
    parse = common.checked(partial(parse_option, option))
    shown = "" if option.default is None else f" (default {option.default})"
    settings: dict[str, Any] = {"type": parse, "help": f"{option.help}{shown}".replace("%", "%%")}
    if option.choices:
        settings["choices"] = option.choices
    else:
        settings["metavar"] = option.metavar or {"duration": "TIME", "count": "N", "size": "SIZE"}.get(
            option.kind, option.kind.upper()
        )
    if option.repeated:
        group.add_argument(flag, action="append", default=[], **settings)
    else:
        group.add_argument(flag, default=None if option.default is None else parse(option.default), **settings)


def execute(arguments: argparse.Namespace) -> int:
    from rackscope.api.studying import study
    from rackscope.cli.progress import ProgressLine
    from rackscope.cli.studying import print_study

    kind: Study = arguments.study
    settings: RunSettings = {}
    if kind.subject in _WITH_LOAD:
        settings = common.load_settings(arguments)
    elif kind.subject != "none":
        settings = common.place_settings(arguments)
    settings["out"], settings["command_line"] = arguments.out, arguments.command_line
    with ProgressLine() as progress:
        done = study(
            arguments.kind,
            getattr(arguments, "system", ""),
            getattr(arguments, "workload", ""),
            workloads=getattr(arguments, "workloads", ()),
            options={option.name: getattr(arguments, option.name.replace("-", "_")) for option in kind.options},
            progress=progress,
            **settings,
        )
    print_study(done, as_json=arguments.json)
    return 0
