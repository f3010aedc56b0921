"""How much of a window the cores that it ran on stood still, taken beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rackscope.studies.bench.core_meter import CoreMeter


class CoreStalls(CoreMeter):
    """The share of the time that cores stood still, the worst core's.

    It takes the right to real-time priority; without it the share is not known.
    """

    def __init__(self, cores: Iterable[int]) -> None:
        from rackscope import _native

        super().__init__(_native.StallMeter, cores)

    def since(self, before: Sequence[tuple[float, float]]) -> float | None:
        """Share of the time since ``before``, between 0 and 1; ``None`` where it is not known."""
        return max(self._rates_since(before).values(), default=None)
