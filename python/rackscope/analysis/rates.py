"""Counters to rates, gauges to levels: values over windows of time and row by row, from one set of definitions.

A counter that goes backwards was reset: the step across the reset is unknown, never negative and never zero. What
could not be read stays missing. A step counts for a window with the share of it that lies in the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from rackscope.analysis.columns import split_column
from rackscope.analysis.quantities import QUANTITIES, Quantity, Term, core_set_quantities
from rackscope.metrics import format_metric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

#: Windows of time in seconds since the run's origin, in order and apart.
Windows = tuple[tuple[float, float], ...]

#: A step this many times longer than usual is a gap: plots show no line across it.
GAP_STEPS = 3.5


@dataclass(frozen=True)
class Reading:
    """A quantity over some windows.

    ``value`` is ``None`` when nothing happened that it could be a ratio of (the latency of no requests), or when
    less than the wanted share of the windows was sampled; ``reason`` then says which. ``lowest`` and ``highest`` are
    of single samples of a level, and equal to ``value`` otherwise.
    """

    value: float | None
    seconds: float
    lowest: float | None = None
    highest: float | None = None
    last: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class _Steps:
    """Growth between one row and the next that could both be read. Times are seconds since the origin."""

    rows: NDArray[np.int64]
    times: Array
    numerator: Array
    denominator: Array
    valid: NDArray[np.bool_]

    @cached_property
    def cumulative(self) -> tuple[Array, Array, Array]:
        """Numerator, denominator and readable seconds since the first row, at each row."""

        def running(part: Array) -> Array:
            return np.concatenate(([0.0], np.cumsum(np.where(self.valid, part, 0.0))))

        return running(self.numerator), running(self.denominator), running(np.diff(self.times))

    def between(self, starts: Array, ends: Array) -> tuple[Array, Array, Array]:
        """Numerator, denominator and readable seconds of each window, steps cut at its edges."""
        parts = [np.interp(ends, self.times, part) - np.interp(starts, self.times, part) for part in self.cumulative]
        return parts[0], parts[1], parts[2]


class Series:
    """One derived series: a quantity with its labels, over the columns it is derived from."""

    def __init__(
        self,
        samples: Samples,
        quantity: Quantity,
        labels: Mapping[str, str],
        numerator: Sequence[tuple[str, float]],
        denominator: Sequence[tuple[str, float]],
    ) -> None:
        self.quantity = quantity
        self.labels = dict(labels)
        self.name = format_metric(quantity.name, labels)
        self.columns = tuple(dict.fromkeys(name for name, _ in (*numerator, *denominator)))
        self._samples = samples
        self._numerator = numerator
        self._denominator = denominator

    @property
    def _grows(self) -> bool:
        return self.quantity.kind in ("rate", "ratio")

    @cached_property
    def _steps(self) -> _Steps:
        rows, times, values = self._readable()
        growth = np.diff(values, axis=1)
        valid = np.all(growth >= 0, axis=0) & (np.diff(times) > 0)
        return _Steps(rows, times, self._total(growth, self._numerator), self._total(growth, self._denominator), valid)

    @cached_property
    def _levels(self) -> tuple[NDArray[np.int64], Array, Array]:
        rows, times, values = self._readable()
        level = self._total(values, self._numerator) * self.quantity.factor
        if self.quantity.kind == "share":
            whole = self._total(values, self._denominator)
            with np.errstate(divide="ignore", invalid="ignore"):
                level = np.where(whole != 0, level / whole, np.nan)
            known = np.isfinite(level)
            rows, times, level = rows[known], times[known], level[known]
        return rows, times, level

    def _total(self, values: Array, terms: Sequence[tuple[str, float]]) -> Array:
        """Rows of columns added up."""
        signed = [sign * values[self.columns.index(name)] for name, sign in terms]
        return np.sum(signed, axis=0) if signed else np.zeros(values.shape[1])

    def _readable(self) -> tuple[NDArray[np.int64], Array, Array]:
        values = np.vstack([self._samples.values(name) for name in self.columns])
        rows = np.flatnonzero(np.all(np.isfinite(values), axis=0))
        return rows, self._samples.seconds[rows], values[:, rows]

    def over(self, windows: Windows) -> Reading:
        """The quantity over all windows together: growth by time (or by growth), or the mean of a level."""
        wanted = sum(end - start for start, end in windows)
        if wanted <= 0:
            return Reading(None, 0.0, reason="the phase has no length")
        if not self._grows:
            return self._level_over(windows, wanted)
        steps = self._steps
        if len(steps.times) < 2:
            return Reading(None, 0.0, reason=f"{self.columns[0]} was read fewer than twice")
        edges = np.asarray(windows, dtype=np.float64)
        numerator, denominator, seconds = (float(part.sum()) for part in steps.between(edges[:, 0], edges[:, 1]))
        if seconds < self._samples.minimum_coverage * wanted:
            return self._uncovered(seconds, wanted)
        below = seconds if self.quantity.kind == "rate" else denominator
        if below <= 0:
            return Reading(None, seconds, reason="nothing happened that it could be a ratio of")
        value = numerator / below * self.quantity.factor
        return Reading(value, seconds, value, value, value)

    def growth(self, windows: Windows) -> float | None:
        """How much a rate's counters grew in the windows; ``None`` when they were not sampled enough."""
        reading = self.over(windows)
        return None if reading.value is None else reading.value * sum(end - start for start, end in windows)

    def bins(self, windows: Windows, bin_seconds: float) -> list[tuple[float, float, float]]:
        """(start, end, value) of equal bins of each window; bins without a value are left out."""
        found = []
        for start, end in windows:
            count = max(1, round((end - start) / bin_seconds))
            edges = np.linspace(start, end, count + 1)
            values = self._bin_values(edges)
            found += [
                (float(edges[place]), float(edges[place + 1]), float(value))
                for place, value in enumerate(values)
                if math.isfinite(value)
            ]
        return found

    def by_row(self) -> tuple[NDArray[np.int64], Array]:
        """Row numbers and values: a rate at the row that ends its step; nothing across a gap or a reset."""
        if not self._grows:
            rows, _, level = self._levels
            return rows, level
        steps = self._steps
        if len(steps.times) < 2:
            return np.empty(0, dtype=np.int64), np.empty(0)
        seconds = np.diff(steps.times)
        below = seconds if self.quantity.kind == "rate" else steps.denominator
        known = steps.valid & (below > 0) & (seconds <= GAP_STEPS * np.median(seconds))
        return steps.rows[1:][known], steps.numerator[known] / below[known] * self.quantity.factor

    def _bin_values(self, edges: Array) -> Array:
        if self._grows:
            steps = self._steps
            if len(steps.times) < 2:
                return np.full(len(edges) - 1, np.nan)
            numerator, denominator, seconds = steps.between(edges[:-1], edges[1:])
            enough = seconds >= self._samples.minimum_coverage * np.diff(edges)
            below = seconds if self.quantity.kind == "rate" else denominator
            known = enough & (below > 0)
            return np.where(known, numerator / np.where(known, below, 1.0) * self.quantity.factor, np.nan)
        _, times, level = self._levels
        place = np.searchsorted(edges, times, side="left") - 1
        inside = (place >= 0) & (place < len(edges) - 1)
        counts = np.bincount(place[inside], minlength=len(edges) - 1)
        sums = np.bincount(place[inside], weights=level[inside], minlength=len(edges) - 1)
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    def _level_over(self, windows: Windows, wanted: float) -> Reading:
        _, times, level = self._levels
        inside = np.zeros(len(times), dtype=bool)
        for start, end in windows:
            # A row says what was so in the interval that ends at it.
            inside |= (times > start) & (times <= end)
        chosen = level[inside]
        if len(chosen) == 0:
            return Reading(None, 0.0, reason=f"{self.columns[0]} was not read in these seconds")
        usual = float(np.median(np.diff(times))) if len(times) > 1 else wanted
        seconds = min(wanted, len(chosen) * usual)
        # A window shorter than two steps may rightly hold one row only.
        if seconds < self._samples.minimum_coverage * wanted - usual:
            return self._uncovered(seconds, wanted)
        return Reading(float(chosen.mean()), seconds, float(chosen.min()), float(chosen.max()), float(chosen[-1]))

    def _uncovered(self, seconds: float, wanted: float) -> Reading:
        reason = f"{self.columns[0]} was read in {seconds:.1f} of {wanted:.1f} s only"
        return Reading(None, seconds, reason=reason)


class Samples:
    """The samples frame with everything that can be derived from it, worked out when asked for.

    ``origin_ns`` is where seconds count from. ``core_sets`` names sets of cores (empty: the whole host).
    """

    def __init__(
        self,
        frame: pl.DataFrame,
        *,
        origin_ns: int | None = None,
        core_sets: Mapping[str, tuple[int, ...]] | None = None,
        minimum_coverage: float = 0.5,
    ) -> None:
        if "timestamp_ns" not in frame.columns:
            frame = pl.DataFrame({"timestamp_ns": pl.Series([], dtype=pl.Int64)})
        # Which start, host and driver a row is of is no metric.
        frame = frame.drop("start", "host", "driver", strict=False)
        self.frame = frame.filter(pl.col("timestamp_ns").is_not_null()).sort("timestamp_ns")
        timestamps = self.frame["timestamp_ns"].cast(pl.Int64).to_numpy()
        if origin_ns is None:
            origin_ns = int(timestamps[0]) if len(timestamps) else 0
        self.origin_ns = origin_ns
        self.seconds: Array = (timestamps - origin_ns) / 1e9
        self.minimum_coverage = minimum_coverage
        self.quantities = (
            *QUANTITIES,
            *(one for name, cores in (core_sets or {}).items() for one in core_set_quantities(name, cores)),
        )
        self._values: dict[str, Array] = {}
        self._columns: dict[str, list[tuple[str, dict[str, str]]]] = {}
        for column in self.frame.columns:
            metric, labels = split_column(column)
            self._columns.setdefault(metric, []).append((column, labels))

    def columns_of(self, metric: str) -> list[tuple[str, dict[str, str]]]:
        """Columns of a metric with their labels, in the order of the frame."""
        return list(self._columns.get(metric, ()))

    def values(self, column: str) -> Array:
        """A column as it was sampled, NaN where it could not be read."""
        if column not in self._values:
            numbers = self.frame[column].cast(pl.Float64, strict=False).to_numpy()
            self._values[column] = np.asarray(numbers, dtype=np.float64)
        return self._values[column]

    @cached_property
    def series(self) -> dict[str, list[Series]]:
        """Every series that the columns allow, by the quantity's name; quantities without columns are absent."""
        found: dict[str, list[Series]] = {}
        for quantity in self.quantities:
            resolved = list(self._resolve(quantity))
            if resolved:
                found.setdefault(quantity.name, []).extend(resolved)
        return found

    def find(self, name: str, **labels: str) -> Series | None:
        """The first series of a quantity that has these labels."""
        return next(iter(self.find_all(name, **labels)), None)

    def find_all(self, name: str, **labels: str) -> list[Series]:
        """All series of a quantity that have these labels."""
        return [
            series
            for series in self.series.get(name, ())
            if all(series.labels.get(key) == value for key, value in labels.items())
        ]

    def _resolve(self, quantity: Quantity) -> Iterable[Series]:
        numerators = [self._grouped(term, quantity.by) for term in quantity.numerator]
        shared = quantity.by if quantity.denominator_by is None else quantity.denominator_by
        denominators = [self._grouped(term, shared) for term in quantity.denominator]
        for key in numerators[0]:
            group = dict(zip(quantity.by, key, strict=True))
            shared_key = tuple(group[label] for label in shared)
            parts = [grouped.get(key) for grouped in numerators]
            wholes = [grouped.get(shared_key) for grouped in denominators]
            if None in parts or None in wholes:
                continue
            yield Series(
                self,
                quantity,
                {**quantity.labels, **group},
                _signed(quantity.numerator, parts),
                _signed(quantity.denominator, wholes),
            )

    def _grouped(self, term: Term, by: tuple[str, ...]) -> dict[tuple[str, ...], list[str]]:
        """Columns of a term by the labels that make one series each; groups without a listed value are left out."""
        groups: dict[tuple[str, ...], list[str]] = {}
        for column, labels in self._columns.get(term.metric, ()):
            if any(labels.get(key) not in allowed for key, allowed in term.labels.items()):
                continue
            if all(key in labels for key in by):
                groups.setdefault(tuple(labels[key] for key in by), []).append(column)
        needed = math.prod(len(allowed) for key, allowed in term.labels.items() if key not in by)
        return {key: columns for key, columns in groups.items() if len(columns) >= needed}


def _signed(terms: Sequence[Term], columns: Sequence[list[str] | None]) -> list[tuple[str, float]]:
    return [(name, term.sign) for term, names in zip(terms, columns, strict=True) for name in names or ()]
