"""The speed of the cores that a stretch ran on, taken beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rackscope._native import Speedometer


class CoreSpeeds:
    """Instructions a second of two groups of cores, the system's and the client's, from its making on.

    Where cores cannot be read the speeds are not known; nothing else changes.
    """

    def __init__(self, system: Sequence[int], client: Sequence[int]) -> None:
        from rackscope import _native

        self._groups = [tuple(system), tuple(core for core in client if core not in system)]
        self._cores = sorted({core for group in self._groups for core in group})
        self._speedometer: Speedometer | None
        try:
            self._speedometer = _native.Speedometer(self._cores)
        except (OSError, RuntimeError, ValueError):
            self._speedometer = None

    def read(self) -> list[tuple[int, float]]:
        """Where the counters stand, for ``since``."""
        return self._speedometer.read() if self._speedometer is not None else []

    def since(self, before: Sequence[tuple[int, float]]) -> tuple[float, ...]:
        """Mean speed of each group since ``before``; empty where some core was not read in between."""
        after = self.read()
        if not before or len(after) != len(before):
            return ()
        by_core: dict[int, float] = {}
        for core, (early, start), (late, end) in zip(self._cores, before, after, strict=True):
            if late <= early or end <= start:
                return ()
            by_core[core] = (late - early) / (end - start)
        return tuple(sum(by_core[core] for core in group) / len(group) for group in self._groups if group)

    def stop(self) -> None:
        """End it."""
        if self._speedometer is not None:
            self._speedometer.stop()


@contextmanager
def core_speeds(system: Sequence[int], client: Sequence[int]) -> Iterator[CoreSpeeds]:
    """Take speeds within."""
    speeds = CoreSpeeds(system, client)
    try:
        yield speeds
    finally:
        speeds.stop()
