"""Arguments that several verbs have in common, and their types: a mistake becomes one clear line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rackscope import units
from rackscope.errors import RackscopeError, UsageError
from rackscope.runs.redaction import redact_command

if TYPE_CHECKING:
    from rackscope.api.settings import RunSettings

_Value = TypeVar("_Value")


def checked(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """``parse`` as an argparse type."""

    def convert(text: str) -> _Value:
        try:
            return parse(text)
        except RackscopeError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _path(text: str) -> Path:
    if not text or "\0" in text:
        raise UsageError("invalid path: the name is empty", "Write '.' for the current folder.")
    return Path(text)


path = checked(_path)
duration = checked(units.parse_duration_seconds)
size = checked(units.parse_size_bytes)
count = checked(units.parse_count)
positive_count = checked(units.parse_positive_count)
positive_number = checked(units.parse_positive_number)
rate = checked(units.parse_rate_per_second)
share = checked(units.parse_share)
cores = checked(units.parse_cores)


def setting(text: str) -> tuple[str, str]:
    """``name=value``."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip() or not value.strip():
        raise argparse.ArgumentTypeError(f"'{text}' is not a setting: expected NAME=VALUE. Write it like threads=8.")
    return name.strip(), value.strip()


def settings_mapping(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """The ``--set`` pairs; the same name twice is a mistake. Raises UsageError."""
    mapping: dict[str, str] = {}
    for name, value in pairs:
        if name in mapping and mapping[name] != value:
            raise UsageError(f"--set {name} is given twice, as {mapping[name]} and {value}", "Give it once.")
        mapping[name] = value
    return mapping


def kept_command_line(argv: Sequence[str]) -> tuple[str, ...]:
    """The command line as a run remembers it: without passwords, tokens and communities."""
    return ("rackscope", *redact_command(argv))


def _meter(text: str) -> str:
    from rackscope.host.meters import parse_meter

    parse_meter(text)
    return text


meter = checked(_meter)


def add_meter(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--meter",
        metavar="METER",
        action="append",
        type=meter,
        default=[],
        help="also read this power meter: snmp:ADDRESS,preset=apc,outlet=4, file:PATH,unit=watts or "
        "command:ARGUMENTS,unit=watts; 'none' reads no meter of this host either (docs/power-meters.md)",
    )


def add_json(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output, nothing else")


def add_system_settings(parser: argparse._ActionsContainer, what: str) -> None:
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", type=setting, default=[], help=what)
    parser.add_argument("--tuned", action="store_true", help="start from the values of the knobs that the papers tuned")
    _add_cores(parser)
    parser.add_argument("--endpoint", choices=("tcp", "unix"), default="tcp", help="loopback TCP or a unix socket")
    parser.add_argument("--port", type=int, metavar="N", help="TCP port (default: a free one)")
    _add_no_fetch(parser)


def add_load(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--connections", metavar="N", type=count, default=50, help="connections of the load generator (default 50)"
    )
    _add_client(parser)
    parser.add_argument("--no-verify", action="store_true", help="do not check returned values")
    add_meter(parser)


def place_settings(arguments: argparse.Namespace) -> RunSettings:
    """What ``add_places`` declared, as ``rackscope.run`` takes it."""
    return {
        "cores": arguments.cores,
        "client_cores": arguments.client_cores,
        "seed": arguments.seed,
        "meters": tuple(arguments.meter),
        "fetch": not arguments.no_fetch,
    }


def load_settings(arguments: argparse.Namespace) -> RunSettings:
    """What ``add_load`` and ``add_system_settings`` declared, as ``rackscope.run`` takes it. Raises UsageError."""
    return {
        **place_settings(arguments),
        "settings": settings_mapping(arguments.set),
        "tuned": arguments.tuned,
        "connections": arguments.connections,
        "endpoint_kind": arguments.endpoint,
        "port": arguments.port,
        "verify": not arguments.no_verify,
    }


def add_places(parser: argparse._ActionsContainer) -> None:
    _add_cores(parser)
    _add_client(parser)
    _add_no_fetch(parser)
    add_meter(parser)


def _add_cores(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--cores", metavar="LIST", type=cores, help="cores that the system runs on, such as 0 or 0-3")


def _add_client(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--client-cores", metavar="LIST", type=cores, help="cores that the load generator runs on")
    parser.add_argument("--seed", type=int, default=42, help="seed of keys, values and arrivals (default 42)")


def _add_no_fetch(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--no-fetch", action="store_true", help="never download: the system must be installed already")


def add_server(parser: argparse._ActionsContainer) -> None:
    """``--server`` and ``--share``: what a host without a power meter is modelled from."""
    parser.add_argument(
        "--server",
        metavar="FILE[:NAME]",
        help="TOML file with idle_watts and full_watts of the server: power is modelled from them without a meter",
    )
    parser.add_argument(
        "--share",
        metavar="FRACTION",
        type=_part_of_server,
        help="fraction of the server that this guest has, such as 8/64",
    )


def _part_of_server(text: str) -> float:
    part, slash, whole = text.partition("/")
    try:
        value = float(part) / float(whole) if slash else float(part)
    except (ValueError, ZeroDivisionError):
        value = -1.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(
            f"invalid --share '{text}': expected a fraction of a server, such as 8/64 or 0.125"
        )
    return value
