"""What is measured of cores while other things run on them: their speed, and for how long they were preempted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Protocol, Self


class _Counters(Protocol):
    """What ``rackscope._native`` gives: counts of each core until it is stopped, and the seconds they were taken in."""

    def read(self) -> Sequence[tuple[float, float]]: ...
    def stop(self) -> None: ...


class CoreMeter:
    """Counters of ``cores``, from its making until ``stop`` or the end of the ``with`` block.

    Where cores cannot be read nothing is known of them; nothing else changes.
    """

    def __init__(self, start: Callable[[list[int]], _Counters], cores: Iterable[int]) -> None:
        self._cores = sorted(set(cores))
        self._counters: _Counters | None
        try:
            self._counters = start(self._cores)
        except (OSError, RuntimeError, ValueError):
            self._counters = None

    def read(self) -> Sequence[tuple[float, float]]:
        """Where the counters stand, for ``since``."""
        return self._counters.read() if self._counters is not None else []

    def _rates_since(self, before: Sequence[tuple[float, float]]) -> dict[int, float]:
        """Counts a second since ``before`` of every core for which time was counted; empty where nothing is known."""
        after = self.read()
        if not before or len(after) != len(before):
            return {}
        return {
            core: (late - early) / (end - start)
            for core, (early, start), (late, end) in zip(self._cores, before, after, strict=True)
            if end > start
        }

    def stop(self) -> None:
        """End it. Idempotent."""
        if self._counters is not None:
            self._counters.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


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


class CoreStalls(CoreMeter):
    """The fraction of time for which the worst core was preempted; not known without real-time priority."""

    def __init__(self, cores: Iterable[int]) -> None:
        from rackscope import _native

        super().__init__(_native.StallMeter, cores)

    def since(self, before: Sequence[tuple[float, float]]) -> float | None:
        """Fraction of the time since ``before``, between 0 and 1; ``None`` where it is not known."""
        return max(self._rates_since(before).values(), default=None)
