"""The speed of the cores that a window ran on, taken beside it."""

from __future__ import annotations

from collections.abc import Sequence

from rackscope.studies.bench.core_meter import CoreMeter


class CoreSpeeds(CoreMeter):
    """Instructions a second of two groups of cores, the system's and the client's."""

    def __init__(self, system: Sequence[int], client: Sequence[int]) -> None:
        from rackscope import _native

        self._groups = [tuple(system), tuple(core for core in client if core not in system)]
        super().__init__(_native.Speedometer, (*system, *client))

    def since(self, before: Sequence[tuple[float, float]]) -> tuple[float, ...]:
        """Mean speed of each group since ``before``; empty where some core was not read in between."""
        speeds = {core: speed for core, speed in self._rates_since(before).items() if speed > 0}
        if len(speeds) < len(self._cores):
            return ()
        return tuple(sum(speeds[core] for core in group) / len(group) for group in self._groups if group)
