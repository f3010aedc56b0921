"""Threads on spare cores that use a resource, held as squeezes are. They end with this process: nothing to journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Applied, NotSqueezable, Subject


class Stoppable(Protocol):
    """What ``rackscope._native`` gives: something that goes on until it is stopped."""

    def stop(self) -> object:
        """End it; idempotent."""


class HeldAntagonist(Applied):
    """An antagonist that is going on."""

    def __init__(self, antagonist: Stoppable) -> None:
        self._antagonist = antagonist

    def release(self) -> None:
        """End its threads."""
        self._antagonist.stop()


def hold_antagonist(name: str, start: Callable[[], Stoppable]) -> HeldAntagonist:
    """Start it. Raises SqueezeError with what stood in the way."""
    try:
        return HeldAntagonist(start())
    except (OSError, ValueError, RuntimeError) as error:
        raise SqueezeError(f"{name}: {error}") from error


def start_threads(name: str, kind: str, subject: Subject, fraction: float) -> HeldAntagonist:
    """``kind`` on every spare core, for the share of the time that is to be taken away. Raises SqueezeError."""
    from rackscope import _native

    duty = min(max(1 - fraction, 0.01), 1.0)
    return hold_antagonist(name, lambda: _native.Antagonist(kind, list(subject.spare_cores), duty=duty))


def no_spare_core(what: str) -> NotSqueezable:
    """Why there is no antagonist here."""
    return NotSqueezable(
        f"there is no core to spare for threads that take {what} away, and no resctrl",
        "a core that neither the system nor its client needs, or a processor and kernel with resctrl",
    )
