"""Phases found from the data: where the level of the resource series changes, whatever the workload declares.

What is found is the segmentation that is cheapest under a squared-error cost and a penalty for each change, as by PELT
(Killick, Fearnhead, Eckley 2012). Series are brought to the scale of their noise first, so the penalty is that of the
Bayesian information criterion (Schwarz 1978), and does not depend on units. Rows are averaged into at most
``_MOST_ROWS``: what is looked for lasts seconds, not ticks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rackscope.analysis.findings import PhaseOverlap, PhasesFound
from rackscope.analysis.thresholds import packaged_thresholds

Array = NDArray[np.float64]

#: 3 minutes at 10 Hz; the time that it takes grows with the square of the rows.
_MOST_ROWS = 1800
_SHORTEST_SECONDS, _TOLERANCE_SECONDS = 1.0, 1.0
#: Of a normal distribution: its standard deviation in units of the median absolute deviation.
_NORMAL_DEVIATION = 1.4826


@dataclass(frozen=True)
class FoundPhase:
    """A window in which the series keep their levels; ``means`` by column, without columns that had no value."""

    start_ns: int
    end_ns: int
    means: Mapping[str, float]


@dataclass(frozen=True)
class DeclaredPhase:
    """A window that the workload says is a phase."""

    name: str
    start_ns: int
    end_ns: int


def find_phases(frame: pl.DataFrame) -> list[FoundPhase]:
    """Phases of a frame of rates and levels (not raw counters): ``timestamp_ns``, and a column for each series.

    Missing values are carried over from their neighbours; columns that say nothing (no values, no change) are not
    looked at. A frame without rows has no phases.
    """
    if frame.height == 0:
        return []
    frame = frame.sort("timestamp_ns")
    times = frame["timestamp_ns"].to_numpy().astype(np.int64)
    names = [name for name in frame.columns if name != "timestamp_ns"]
    values = {name: frame[name].cast(float, strict=False).to_numpy().astype(np.float64) for name in names}
    rows = [filled for name in names if (filled := _filled(values[name])) is not None]
    changes = _changes(times, np.vstack(rows)) if rows else []
    edges = [0, *changes, len(times)]
    ends = np.append(times[edges[1:-1]], times[-1])
    return [
        FoundPhase(
            int(times[start]),
            int(end),
            {name: mean for name in names if (mean := _mean(values[name][start:stop])) is not None},
        )
        for start, stop, end in zip(edges[:-1], edges[1:], ends, strict=True)
    ]


def match_declared(found: Sequence[FoundPhase], declared: Sequence[DeclaredPhase]) -> PhasesFound:
    """Which declared phases were found, which were split, and which boundaries are not declared.

    Each found phase belongs to the declared one that it overlaps most; a declared one is found where one of them
    overlaps it by ``phases.overlap``. A boundary within a second of where a declared phase starts or ends is declared.
    """
    parts: Counter[int] = Counter()
    for phase in found:
        shares = [_shared_ns(phase, one) for one in declared]
        best = max(range(len(declared)), key=lambda place: shares[place], default=None)
        if best is not None and shares[best] > 0:
            parts[best] += 1
    least = packaged_thresholds().limit("phases.overlap")
    matched = []
    for place, one in enumerate(declared):
        overlap = max((_overlap(phase, one) for phase in found), default=0.0)
        start, end = one.start_ns / 1e9, one.end_ns / 1e9
        matched.append(PhaseOverlap(one.name, start, end, overlap >= least, parts[place], overlap))
    known = [edge for one in declared for edge in (one.start_ns, one.end_ns)]
    undeclared = [
        phase.start_ns / 1e9
        for phase in found[1:]
        if all(abs(phase.start_ns - edge) > _TOLERANCE_SECONDS * 1e9 for edge in known)
    ]
    seconds = tuple((phase.start_ns / 1e9, phase.end_ns / 1e9) for phase in found)
    return PhasesFound(seconds, tuple(matched), tuple(undeclared))


def _changes(times: NDArray[np.int64], series: Array) -> list[int]:
    """Rows at which a new level begins."""
    width = -(-len(times) // _MOST_ROWS)
    averaged = _averaged(series, width)
    scaled = _scaled(averaged)
    count = averaged.shape[1]
    seconds = float(times[-1] - times[0]) / 1e9
    shortest = max(3, round(_SHORTEST_SECONDS * count / seconds)) if seconds > 0 else 3
    if len(scaled) == 0 or count < 2 * shortest:
        return []
    return [int(change) * width for change in _partition(scaled.T, shortest)]


def _partition(signal: Array, shortest: int) -> list[int]:
    """Changes of the mean, each worth at least the penalty of its parameters (Schwarz 1978).

    The exact optimum, which is also PELT's (Killick, Fearnhead, Eckley 2012): of so few rows all ends and starts are
    tried (Jackson et al. 2005), which takes less time than importing a library that prunes them.
    """
    count, width = signal.shape
    # A change costs its place and a level for each series; noise that is not white or not normal costs a factor.
    penalty = packaged_thresholds().limit("phases.penalty") * (width + 1) * float(np.log(count))
    sums = np.vstack([np.zeros(width), np.cumsum(signal, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum(np.sum(signal**2, axis=1))])
    # Of the rows before each: the least cost, and where the last level of that partition begins.
    least = np.full(count + 1, np.inf)
    least[0] = -penalty
    begins = np.zeros(count + 1, dtype=np.int64)
    for end in range(shortest, count + 1):
        starts = slice(0, end - shortest + 1)
        lengths = np.arange(end, shortest - 1, -1)
        squared_error = squares[end] - squares[starts] - np.sum((sums[end] - sums[starts]) ** 2, axis=1) / lengths
        costs = least[starts] + squared_error
        begins[end] = int(np.argmin(costs))
        least[end] = costs[begins[end]] + penalty
    changes = []
    end = count
    while (end := int(begins[end])) > 0:
        changes.append(end)
    return changes[::-1]


def _scaled(series: Array) -> Array:
    """Series without bursts, over the deviation of their noise; those that never change are left out."""
    kept = []
    for row in series:
        spread = float(np.std(row))
        if spread <= 1e-12 * max(1.0, float(np.max(np.abs(row)))):
            continue
        # A series that mostly stands still and then jumps has no noise; a twentieth of its spread is the scale then.
        kept.append((_without_bursts(row) - np.median(row)) / max(_noise(row), spread / 20))
    return np.array(kept)


def _noise(row: Array) -> float:
    """Deviation of the noise, from steps; neighbours that depend on each other are alike, so the largest lag counts."""
    lags = [lag for lag in (1, 2, 4, 8) if lag < len(row) // 4] or [1]
    return max(_NORMAL_DEVIATION * float(np.median(np.abs(row[lag:] - row[:-lag]))) / 2**0.5 for lag in lags)


def _without_bursts(row: Array) -> Array:
    """Medians of five: bursts of two rows vanish, edges stay where they are."""
    if len(row) < 5:
        return row
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(row, 2, mode="edge"), 5)
    return np.asarray(np.median(windows, axis=1), dtype=np.float64)


def _averaged(series: Array, width: int) -> Array:
    starts = np.arange(0, series.shape[1], width)
    lengths = np.diff(np.append(starts, series.shape[1]))
    return np.asarray(np.add.reduceat(series, starts, axis=1) / lengths, dtype=np.float64)


def _filled(values: Array) -> Array | None:
    """Missing values between known ones on the line between them; ``None`` with fewer than two known ones."""
    known = np.flatnonzero(np.isfinite(values))
    if len(known) < 2:
        return None
    return np.asarray(np.interp(np.arange(len(values)), known, values[known]), dtype=np.float64)


def _mean(values: Array) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _shared_ns(phase: FoundPhase, declared: DeclaredPhase) -> int:
    return max(0, min(phase.end_ns, declared.end_ns) - max(phase.start_ns, declared.start_ns))


def _overlap(phase: FoundPhase, declared: DeclaredPhase) -> float:
    shared = _shared_ns(phase, declared)
    union = phase.end_ns - phase.start_ns + declared.end_ns - declared.start_ns - shared
    return shared / union if union > 0 else 0.0
