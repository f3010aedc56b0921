"""H2 histograms: values in buckets whose width doubles every power of two, each power cut into 2^g buckets.

The layout is that of the Rust crate ``histogram`` (its ``Config``): indices below 2^(g+1) are the values themselves;
above, with s the number of low bits that a bucket drops, index = (s << g) + (value >> s). A bucket is therefore at
most 2^-g of its lower bound wide, which bounds the error of every quantile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

_NANOSECONDS = 1e9


@dataclass(frozen=True, eq=False)
class Histogram:
    """The non-empty buckets of an H2 histogram of nanoseconds, by rising index."""

    grouping_power: int
    max_value_power: int
    index: NDArray[np.uint64]
    count: NDArray[np.uint64]

    def __post_init__(self) -> None:
        if not 0 <= self.grouping_power < self.max_value_power <= 64:
            raise ValueError(
                f"an H2 histogram with grouping power {self.grouping_power} and maximum value power "
                f"{self.max_value_power} cannot be"
            )
        if len(self.index) != len(self.count):
            raise ValueError(f"{len(self.index)} bucket indices came with {len(self.count)} counts")
        if len(self.index) and int(self.index.max()) >= self.total_buckets:
            raise ValueError(f"bucket {int(self.index.max())} is beyond the {self.total_buckets} that there are")
        if len(self.index) > 1 and not bool(np.all(self.index[1:] > self.index[:-1])):
            raise ValueError("bucket indices do not rise")

    @classmethod
    def of(cls, grouping_power: int, max_value_power: int, index: Sequence[int], count: Sequence[int]) -> Histogram:
        """From plain lists. Raises ValueError when they do not make a histogram."""
        return cls(
            int(grouping_power),
            int(max_value_power),
            np.asarray(index, dtype=np.uint64),
            np.asarray(count, dtype=np.uint64),
        )

    @property
    def total_buckets(self) -> int:
        """Buckets that the layout has, empty or not."""
        return (self.max_value_power - self.grouping_power + 1) << self.grouping_power

    @property
    def total(self) -> int:
        """Values recorded."""
        return int(self.count.sum())

    def bounds(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Lowest and highest value (inclusive, nanoseconds) of each bucket in ``index``."""
        power = np.uint64(self.grouping_power)
        one = np.uint64(1)
        group = self.index >> power
        within = self.index & ((one << power) - one)
        shift = np.where(group > 0, group - one, np.uint64(0)).astype(np.uint64)
        lower = np.where(group > 0, (within + (one << power)) << shift, within).astype(np.uint64)
        return lower, lower + ((one << shift) - one)

    def quantile_seconds(self, quantile: float) -> float | None:
        """The highest value of the bucket that holds the quantile (rank ceil(q x total)); ``None`` when empty.

        Never below the exact quantile, and above it by at most 2^-grouping_power of it.
        """
        values = self.quantiles_seconds((quantile,))
        return None if values is None else values[0]

    def quantiles_seconds(self, quantiles: Sequence[float]) -> list[float] | None:
        """``quantile_seconds`` of several, in one pass."""
        for quantile in quantiles:
            if not 0 <= quantile <= 1:
                raise ValueError(f"a quantile lies between 0 and 1, not at {quantile}")
        total = self.total
        if total == 0:
            return None
        cumulative = np.cumsum(self.count)
        ranks = np.array([max(1, math.ceil(round(quantile * total, 6))) for quantile in quantiles], dtype=np.uint64)
        upper = self.bounds()[1]
        return [float(upper[place]) / _NANOSECONDS for place in np.searchsorted(cumulative, ranks)]

    def mean_seconds(self) -> float | None:
        """Mean of the buckets' middles: within 2^-(grouping_power + 1) of the exact mean; ``None`` when empty."""
        total = self.total
        if total == 0:
            return None
        lower, upper = self.bounds()
        middles = (lower.astype(np.float64) + upper.astype(np.float64)) / 2
        return float(np.dot(middles, self.count.astype(np.float64))) / total / _NANOSECONDS

    def merge(self, other: Histogram) -> Histogram:
        """Both histograms' values in one. Raises ValueError when their layouts differ."""
        if (self.grouping_power, self.max_value_power) != (other.grouping_power, other.max_value_power):
            raise ValueError(
                f"histograms of layouts ({self.grouping_power}, {self.max_value_power}) and "
                f"({other.grouping_power}, {other.max_value_power}) do not merge"
            )
        together = np.concatenate((self.index, other.index))
        index, place = np.unique(together, return_inverse=True)
        count = np.zeros(len(index), dtype=np.uint64)
        np.add.at(count, place, np.concatenate((self.count, other.count)))
        return Histogram(self.grouping_power, self.max_value_power, index, count)


def select_histogram(
    latency: pl.DataFrame,
    *,
    phase: str,
    kind: str = "response",
    operation: str | None = None,
    repetition: int | None = None,
) -> Histogram | None:
    """All rows that match, merged; ``None`` when none does. Raises ValueError with the row that holds none."""
    needed = ("phase", "kind", "operation", "repetition", "grouping_power", "max_value_power", "index", "count")
    if latency.is_empty() or any(column not in latency.columns for column in needed):
        return None
    chosen = latency.filter((pl.col("phase") == phase) & (pl.col("kind") == kind))
    if operation is not None:
        chosen = chosen.filter(pl.col("operation") == operation)
    if repetition is not None:
        chosen = chosen.filter(pl.col("repetition") == repetition)
    merged: Histogram | None = None
    for row in chosen.iter_rows(named=True):
        histogram = _of_row(row)
        merged = histogram if merged is None else merged.merge(histogram)
    return merged


def _of_row(row: dict[str, Any]) -> Histogram:
    try:
        return Histogram.of(row["grouping_power"], row["max_value_power"], row["index"], row["count"])
    except (TypeError, ValueError) as error:
        where = f"{row['phase']}, repetition {row['repetition']}, {row['operation']}, {row['kind']}"
        raise ValueError(f"the latency row of {where} holds no histogram: {error}") from error
