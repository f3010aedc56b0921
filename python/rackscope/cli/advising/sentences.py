"""Advice as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from rackscope.advice.cost import Advice


def print_advice(console: Console, advice: Sequence[Advice]) -> None:
    """Each sentence, what would change it, and what it stands on."""
    for one in advice:
        console.print(f"• {one.sentence}", style="bold", markup=False)
        console.print(f"  → {one.changes_if}", markup=False)
        console.print(f"  Stands on: {one.stands_on}.", style="dim", markup=False)
