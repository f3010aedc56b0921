"""``--server`` and ``--share``: what a host without a power meter is modelled from."""

from __future__ import annotations

import argparse


def add_server(parser: argparse._ActionsContainer) -> None:
    """Declare both."""
    parser.add_argument(
        "--server",
        metavar="FILE[:NAME]",
        help="TOML file with idle_watts and full_watts of the server: power is modelled from them without a meter",
    )
    parser.add_argument(
        "--share", metavar="FRACTION", type=_share, help="fraction of the server that this guest has, such as 8/64"
    )


def _share(text: str) -> float:
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
