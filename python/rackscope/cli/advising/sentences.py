"""Advice as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from rackscope.advice.cost import Advice


def print_advice(console: Console, advice: Sequence[Advice]) -> None:
    """Each sentence, what would change it, and what it stands on, where that is not what the one before stands on."""
    before = ""
    for one in advice:
        console.print(f"• {one.sentence}", style="bold", markup=False)
        console.print(f"  → {one.changes_if}", markup=False)
        stands_on = "the same" if one.stands_on == before else one.stands_on
        console.print(f"  Evidence: {stands_on}.", style="dim", markup=False)
        before = one.stands_on
