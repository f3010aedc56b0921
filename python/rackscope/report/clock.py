"""When samples were taken: the rows of one source (host sampler or load generator), and buckets where they are many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rackscope.analysis.rates import Samples

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Aggregate = Literal["mean", "minimum", "maximum"]

#: More points than this are not told apart on any screen that a panel is shown on.
MAXIMUM_POINTS = 900


@dataclass(frozen=True)
class Clock:
    """Rows of the samples in which one source wrote, with their seconds since the first phase began."""

    rows: Rows
    seconds: Array

    @classmethod
    def of_source(cls, samples: Samples, *, is_load: bool) -> Clock:
        """Rows where at least one column of the source could be read."""
        names = [
            name
            for name in samples.frame.columns
            if name != "timestamp_ns" and name.startswith("load_") == is_load and samples.frame[name].dtype != pl.Null
        ]
        if not names:
            return cls(np.empty(0, dtype=np.int64), np.empty(0))
        read = samples.frame.select(pl.any_horizontal(pl.col(names).is_not_null()))
        rows = np.flatnonzero(read.to_series().to_numpy()).astype(np.int64)
        return cls(rows, samples.seconds[rows])

    @property
    def is_empty(self) -> bool:
        """Whether there is too little to draw a line."""
        return len(self.rows) < 2

    def place(self, rows: Rows, values: Array) -> Array:
        """Values that are known in some rows as one value for each row of the clock, NaN elsewhere."""
        result = np.full(len(self.rows), np.nan)
        positions = np.searchsorted(self.rows, rows)
        inside = positions < len(self.rows)
        inside[inside] = self.rows[positions[inside]] == rows[inside]
        result[positions[inside]] = values[inside]
        return result

    def inside(self, spans: Iterable[tuple[float, float]]) -> NDArray[np.bool_]:
        """Which rows lie in any of the spans; a row speaks for the interval that ends at it."""
        mask = np.zeros(len(self.seconds), dtype=bool)
        for start, end in spans:
            mask |= (self.seconds > start) & (self.seconds <= end)
        return mask


@dataclass(frozen=True)
class Buckets:
    """Equal windows of time that many samples are gathered into; none when there are few samples."""

    seconds: Array
    #: Bucket of each row; empty when rows are kept as they are.
    assignment: Rows
    width_seconds: float | None

    @classmethod
    def of(cls, seconds: Array, maximum_points: int = MAXIMUM_POINTS) -> Buckets:
        """As many buckets as there may be points, over the whole window."""
        if len(seconds) <= maximum_points:
            return cls(seconds, np.empty(0, dtype=np.int64), None)
        first, last = float(seconds[0]), float(seconds[-1])
        width = (last - first) / maximum_points
        numbers = np.minimum(((seconds - first) / width).astype(np.int64), maximum_points - 1)
        used, assignment = np.unique(numbers, return_inverse=True)
        return cls(first + (used + 0.5) * width, assignment.astype(np.int64), width)

    def gather(self, values: Array, aggregate: Aggregate = "mean") -> Array:
        """One value a bucket, of what could be read; NaN where nothing could."""
        if self.width_seconds is None:
            return values
        size = len(self.seconds)
        read = np.isfinite(values)
        where, kept = self.assignment[read], values[read]
        counts = np.bincount(where, minlength=size)
        if aggregate == "mean":
            sums = np.bincount(where, weights=kept, minlength=size)
            return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
        extreme = np.full(size, np.inf if aggregate == "minimum" else -np.inf)
        (np.minimum if aggregate == "minimum" else np.maximum).at(extreme, where, kept)
        return np.where(counts > 0, extreme, np.nan)
