"""``--server`` and ``--share``: what a host without a power meter is modelled from."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rackscope.errors import UsageError

if TYPE_CHECKING:
    from rackscope.models.modelled_power import ServerWatts
    from rackscope.runs.manifest import ServerPart


def add_server(parser: argparse._ActionsContainer) -> None:
    """Declare both."""
    parser.add_argument(
        "--server",
        metavar="FILE[:NAME]",
        help="TOML with the server's idle_watts and full_watts: power is modelled from them where no meter is",
    )
    parser.add_argument(
        "--share", metavar="SHARE", type=_share, help="a guest's part of the server, such as 8/64 (with --server)"
    )


def _share(text: str) -> float:
    part, slash, whole = text.partition("/")
    try:
        value = float(part) / float(whole) if slash else float(part)
    except (ValueError, ZeroDivisionError):
        value = -1.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no part of a server. Write it like 8/64 or 0.125.")
    return value


def given_server(arguments: argparse.Namespace) -> tuple[ServerWatts | None, float | None]:
    """The server that was named and the guest's share of it. Raises RackscopeError."""
    if arguments.server is None:
        if arguments.share is not None:
            raise UsageError("--share is of a server that is not named", "Name it with --server FILE.")
        return None, None
    from rackscope.advice.catalogue import read_server_watts

    return read_server_watts(arguments.server), arguments.share


def server_part(arguments: argparse.Namespace) -> ServerPart | None:
    """The same for the manifest, checked against this host before the run. Raises RackscopeError."""
    server, share = given_server(arguments)
    if server is None:
        return None
    from dataclasses import asdict

    from rackscope.host.inventory import read_inventory
    from rackscope.models.modelled_power import host_watts
    from rackscope.runs.manifest import AmountPart, ServerPart

    host_watts(read_inventory().to_dict(), server, share)
    idle, full = (AmountPart.model_validate(asdict(one)) for one in (server.idle, server.full))
    return ServerPart(name=server.name, source=server.source, idle_watts=idle, full_watts=full, share=share)
