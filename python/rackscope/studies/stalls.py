"""How much of a stretch the cores that it ran on stood still, taken beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rackscope._native import StallMeter


class CoreStalls:
    """The share of the time that cores stood still, the worst core's, from its making on.

    Where cores cannot be watched (it takes the right to real-time priority) the share is not known; nothing else
    changes.
    """

    def __init__(self, cores: Sequence[int]) -> None:
        from rackscope import _native

        self._meter: StallMeter | None
        try:
            self._meter = _native.StallMeter(sorted(set(cores)))
        except (OSError, RuntimeError, ValueError):
            self._meter = None

    def read(self) -> list[tuple[float, float]]:
        """Where the counters stand, for ``since``."""
        return self._meter.read() if self._meter is not None else []

    def since(self, before: Sequence[tuple[float, float]]) -> float | None:
        """Share of the time since ``before``, between 0 and 1; ``None`` where it is not known."""
        after = self.read()
        if not before or len(after) != len(before):
            return None
        shares = [
            (late - early) / (end - start)
            for (early, start), (late, end) in zip(before, after, strict=True)
            if end > start
        ]
        return max(shares, default=None)

    def stop(self) -> None:
        """End it."""
        if self._meter is not None:
            self._meter.stop()


@contextmanager
def core_stalls(cores: Sequence[int]) -> Iterator[CoreStalls]:
    """Watch cores within."""
    stalls = CoreStalls(cores)
    try:
        yield stalls
    finally:
        stalls.stop()
