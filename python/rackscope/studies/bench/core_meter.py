"""What is taken of cores beside whatever else runs on them."""

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
