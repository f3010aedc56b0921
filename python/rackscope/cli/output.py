"""What goes to standard output and standard error, whatever these can show and whether or not they are there."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import sys
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: What characters become where the terminal's encoding lacks them.
_PLAINER = {
    "•": "*", "→": "->", "–": "-", "±": "+-", "µ": "u", "×": "x", "…": "...", "━": "=", "╌": "-", "✓": "+", "✗": "x",
    "≤": "<=", "≥": ">=",
    "●": "#", "◐": "+", "◌": "-", "·": ".",
}  # fmt: skip
_NARROWEST, _USUAL_WIDTH = 20, 80
_HANDLER = "rackscope-plainer"


def make_printable() -> None:
    """Let every character be printed somehow: names come from anywhere, and so do terminals."""
    codecs.register_error(_HANDLER, _plainer)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # It was closed before we started (>&-): whatever is opened next must not become it.
            # Not in a block that closes it: it stays the stream for as long as the program runs.
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
            setattr(sys, name, stream)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_HANDLER)


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAINER.get(character, "?") for character in text), error.end


def complain(text: str) -> None:
    """One line on standard error; where that is closed there is nobody to tell."""
    with contextlib.suppress(OSError):
        print(f"rackscope: {' '.join(text.split())}", file=sys.stderr, flush=True)


def print_json(content: Mapping[str, Any]) -> None:
    """The one object of ``--json``; what JSON cannot say, such as infinity, becomes null."""
    from rackscope.analysis.findings import plain

    print(json.dumps(plain(content), allow_nan=False), flush=True)


def open_console() -> Console:
    """Where people read: as wide as their terminal, unless what it says of its width cannot be."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.width < _NARROWEST:
        console.width = _USUAL_WIDTH
    return console


def open_table(*headings: str, left: Collection[str] = ()) -> Table:
    """A table without lines; the columns are to the right, but for the first and those named ``left``."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number and heading not in left else "left")
    return table


def abandon_output() -> None:
    """Stop writing to standard output, so that the interpreter does not try once more at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
