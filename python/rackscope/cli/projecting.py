"""A projection in the terminal: each figure with its interval, what it stands on, and what would change it."""

from __future__ import annotations

import shutil
import textwrap

from rich.text import Text

from rackscope.advice.projecting.answers import ServerProjection
from rackscope.advice.projecting.page import written
from rackscope.advice.projecting.project import Projection
from rackscope.cli.output import complain, open_console, open_table


def print_projection(projection: Projection) -> None:
    console = open_console()
    measured = projection.measured
    console.print(
        f"{measured.system} under {measured.workload}, measured on {measured.source.processor or 'this host'}",
        style="dim",
        markup=False,
    )
    for remark in measured.remarks:
        console.print(f"! {remark}", style="yellow", markup=False)
    said: set[str] = set()
    for one in projection.servers:
        _print_server(one, said)
    for refusal in projection.refused:
        complain(f"not projected: {refusal}")


def _print_server(one: ServerProjection, said: set[str]) -> None:
    """``said`` are the sentences that were printed of servers before, which are not repeated."""
    console = open_console()
    console.print()
    console.print(f"{one.server.name}, {one.cores} of {one.threads} hardware threads", style="bold", markup=False)
    known = [answer for answer in one.answers if answer.prediction is not None]
    table = open_table("", "", "90 % interval")
    for answer in known:
        assert answer.prediction is not None
        value, low, high = written(answer.prediction)
        table.add_row(Text(answer.what), Text(value, style="bold"), Text(f"{low} to {high}"))
    console.print(table)
    for answer in known:
        stands, changes = f"{answer.what}: evidence: {answer.stands_on}.", f"→ {answer.changes_if}"
        if stands not in said:
            _paragraph(stands, dim=True)
        if answer.changes_if and (stands not in said or changes not in said):
            _paragraph(changes, dim=False)
        said |= {stands, changes}
    for answer in one.answers:
        if answer.refused:
            _paragraph(f"! {answer.what}: not projected. {answer.refused}", dim=False)
    for note in one.notes:
        if note not in said:
            _paragraph(f"Assumed: {note}.", dim=True)
        said.add(note)


def _paragraph(text: str, *, dim: bool) -> None:

    console = open_console()
    width = min(console.width, shutil.get_terminal_size().columns)
    for line in textwrap.wrap(text, max(width, 20), initial_indent="  ", subsequent_indent="    "):
        console.print(line, style="dim" if dim else "", markup=False)
