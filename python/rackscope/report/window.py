"""The phases of a run on its own clock: seconds since the first phase began."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rackscope.runs.manifest import Manifest


@dataclass(frozen=True)
class Window:
    """One phase, or one repetition of one."""

    name: str
    kind: str
    repetition: int | None
    start_seconds: float
    end_seconds: float
    #: The run ended while this phase lasted.
    cut_short: bool = False

    @property
    def label(self) -> str:
        """What stands above it in a chart."""
        name = self.name if self.repetition is None else f"{self.name} {self.repetition}"
        return f"{name} (cut short)" if self.cut_short else name


@dataclass(frozen=True)
class PhaseGroup:
    """All repetitions of one phase: what is summed up together."""

    name: str
    kind: str
    windows: tuple[Window, ...]

    @property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """Windows in seconds."""
        return tuple((window.start_seconds, window.end_seconds) for window in self.windows)


def origin_ns(manifest: Manifest, first_sample_ns: int | None) -> int:
    """Where the run's clock is zero: the start of its first phase, as in the evidence of findings."""
    if manifest.phases:
        return min(phase.start_ns for phase in manifest.phases)
    return first_sample_ns or 0


def windows_of(manifest: Manifest, origin: int, last_seconds: float | None) -> tuple[Window, ...]:
    """Every phase in order; one that never ended lasts until the last sample."""
    windows = []
    for phase in manifest.phases:
        start = (phase.start_ns - origin) / 1e9
        if phase.end_ns is not None:
            end = (phase.end_ns - origin) / 1e9
        else:
            end = max(start, last_seconds if last_seconds is not None else start)
        if end > start:
            windows.append(Window(phase.name, phase.kind, phase.repetition, start, end, phase.end_ns is None))
    return tuple(windows)


def groups_of(windows: Sequence[Window], discarded: Collection[tuple[str, int | None]] = ()) -> tuple[PhaseGroup, ...]:
    """Windows by name, preparations first; discarded repetitions are left out, unless all of a phase were."""
    order = list(dict.fromkeys((window.name, window.kind) for window in windows))
    order.sort(key=lambda item: item[1] == "measure")
    groups = []
    for name, kind in order:
        every = tuple(window for window in windows if (window.name, window.kind) == (name, kind))
        kept = tuple(window for window in every if (window.name, window.repetition) not in discarded)
        groups.append(PhaseGroup(name, kind, kept or every))
    return tuple(groups)
