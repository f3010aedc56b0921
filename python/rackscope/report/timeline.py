"""Samples as numpy arrays on the run's own clock: counters become rates, long runs become buckets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

Array = NDArray[np.float64]
Aggregate = Literal["mean", "minimum", "maximum"]

#: More points than this are not told apart on any screen that a panel is shown on.
MAXIMUM_POINTS = 900
_NAME = re.compile(r"^(?P<name>[a-z0-9_]+)(?:\{(?P<labels>.*)\})?$")
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def split_metric(column: str) -> tuple[str, dict[str, str]]:
    """``disk_reads_total{device="vda"}`` as its name and its labels."""
    match = _NAME.match(column)
    if match is None:
        return column, {}
    return match["name"], dict(_LABEL.findall(match["labels"] or ""))


@dataclass(frozen=True)
class Timeline:
    """The rows of one source (host sampler or load generator): seconds since the first phase began, and columns."""

    seconds: Array
    columns: dict[str, Array]

    @property
    def is_empty(self) -> bool:
        """Whether there is too little to draw a line."""
        return len(self.seconds) < 2

    def column(self, name: str) -> Array | None:
        """A gauge as it was read; None when the column is absent or was never readable."""
        return self.columns.get(name)

    def labelled(self, name: str) -> list[tuple[dict[str, str], Array]]:
        """Every column of a metric, with its labels, in the order of the file."""
        found = []
        for column, values in self.columns.items():
            base, labels = split_metric(column)
            if base == name:
                found.append((labels, values))
        return found

    def rate(self, values: Array) -> Array:
        """Growth a second of a counter, at the end of each interval; NaN where unread and where it went backwards."""
        result = np.full(len(values), np.nan)
        read = np.flatnonzero(~np.isnan(values))
        if len(read) < 2:
            return result
        elapsed = np.diff(self.seconds[read])
        growth = np.diff(values[read])
        valid = (elapsed > 0) & (growth >= 0)
        result[read[1:][valid]] = growth[valid] / elapsed[valid]
        return result

    def counter_rate(self, name: str) -> Array | None:
        """``rate`` of a column; None when it is absent."""
        values = self.columns.get(name)
        return None if values is None else self.rate(values)

    def inside(self, windows: Iterable[tuple[float, float]]) -> NDArray[np.bool_]:
        """Which rows lie in any of the windows (seconds)."""
        mask = np.zeros(len(self.seconds), dtype=bool)
        for start, end in windows:
            mask |= (self.seconds > start) & (self.seconds <= end)
        return mask


def split_sources(samples: pl.DataFrame, origin_ns: int) -> tuple[Timeline, Timeline]:
    """The host's rows and the load generator's rows; columns that were never readable are left out."""
    load_columns = [name for name in samples.columns if name.startswith("load_")]
    host_columns = [name for name in samples.columns if name != "timestamp_ns" and not name.startswith("load_")]
    return _timeline(samples, host_columns, origin_ns), _timeline(samples, load_columns, origin_ns)


def _timeline(samples: pl.DataFrame, names: list[str], origin_ns: int) -> Timeline:
    import polars as pl

    if not names or samples.is_empty():
        return Timeline(np.empty(0), {})
    numeric = [pl.col(name).cast(pl.Float64).fill_nan(None) for name in names]
    frame = samples.select("timestamp_ns", *numeric)
    frame = frame.filter(pl.any_horizontal(pl.col(names).is_not_null())).sort("timestamp_ns")
    seconds = (frame["timestamp_ns"].to_numpy() - origin_ns) / 1e9
    columns = {}
    for name in names:
        values = frame[name].to_numpy().astype(np.float64)
        if not np.isnan(values).all():
            columns[name] = values
    return Timeline(seconds.astype(np.float64), columns)


@dataclass(frozen=True)
class Buckets:
    """Equal stretches of time that many samples are gathered into; none when there are few samples."""

    seconds: Array
    #: Bucket of each row; empty when rows are kept as they are.
    assignment: NDArray[np.int64]
    width_seconds: float | None

    @classmethod
    def of(cls, seconds: Array, maximum_points: int = MAXIMUM_POINTS) -> Buckets:
        """As many buckets as there may be points, over the whole stretch."""
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
        read = ~np.isnan(values)
        where, kept = self.assignment[read], values[read]
        counts = np.bincount(where, minlength=size)
        if aggregate == "mean":
            sums = np.bincount(where, weights=kept, minlength=size)
            with np.errstate(invalid="ignore", divide="ignore"):
                return np.where(counts > 0, sums / counts, np.nan)
        extreme = np.full(size, np.inf if aggregate == "minimum" else -np.inf)
        (np.minimum if aggregate == "minimum" else np.maximum).at(extreme, where, kept)
        return np.where(counts > 0, extreme, np.nan)
