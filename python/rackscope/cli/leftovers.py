"""What commands that were killed left squeezed: undone by the next one, shown by the doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.cli.output import complain

if TYPE_CHECKING:
    from rackscope.host.checks import Check


def undo_leftovers() -> None:
    """Undo them, with a line each on standard error. Where there is nothing, only a folder is looked at."""
    from rackscope.squeezes.recovery import recover

    for sentence in recover():
        complain(f"{sentence}.")


def check_leftovers() -> Check:
    """For the doctor, who only looks unless asked to repair."""
    from rackscope.host.checks import Check
    from rackscope.squeezes.recovery import find_leftovers

    left = find_leftovers()
    if not left:
        return Check("squeezes", "ok", "no limits are left from killed commands")
    return Check(
        "squeezes",
        "bad",
        "; ".join(left),
        "what is measured here is slower than it would be",
        "Run 'rackscope doctor --repair'; any other verb repairs it at its start too.",
    )


def repair() -> tuple[list[str], list[str]]:
    """Undo them; what was said, and what is still left."""
    from rackscope.squeezes.recovery import find_leftovers, recover

    return recover(), find_leftovers()
