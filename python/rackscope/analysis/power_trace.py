"""What one meter's column says: joules and watts over windows of time, with what was not read left out.

An energy counter gives the difference between two readings, exactly, however long it was not read in between; only a
window that begins or ends in such a gap does not know its share of it. A gauge of watts is integrated by trapezoids
between readings that follow each other; what it showed across a gap is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from rackscope.analysis.rates import GAP_STEPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rackscope.analysis.rates import Samples

    Array = NDArray[np.float64]

POWER, ENERGY = "power_watts", "energy_joules_total"


@dataclass(frozen=True)
class Energy:
    """``joules`` in the ``seconds`` that were read of the ``wanted_seconds`` of a window."""

    joules: float
    seconds: float
    wanted_seconds: float

    @property
    def coverage(self) -> float:
        """Share of the window that was read, 0 to 1."""
        return self.seconds / self.wanted_seconds if self.wanted_seconds > 0 else 0.0

    @property
    def watts(self) -> float | None:
        """Mean watts over what was read; ``None`` when that is nothing."""
        return self.joules / self.seconds if self.seconds > 0 else None


class PowerTrace:
    """One column of one meter over the whole run. Seconds count from the run's first phase."""

    def __init__(self, domain: str, meter: str, column: str, seconds: Array, values: Array, *, counts: bool) -> None:
        read = np.isfinite(values)
        self.domain, self.meter, self.column = domain, meter, column
        #: Whether it is a counter of joules; else it is a gauge of watts.
        self.counts = counts
        #: Everything that was read, repeated values too.
        self.readings = values[read]
        self.times, self.values = seconds[read], values[read]
        if counts and len(self.values):
            # A meter that is slower than the ticks shows its last value again: what it counted lies between changes.
            moved = np.concatenate(([True], np.diff(self.values) != 0))
            self.times, self.values = self.times[moved], self.values[moved]

    @property
    def name(self) -> str:
        """``package-0 by rapl_perf``: how sentences call it."""
        return f"{self.domain} by {self.meter}"

    def over(self, start: float, end: float) -> Energy:
        whole = max(end - start, 0.0)
        if len(self.times) < 2 or whole == 0:
            return Energy(0.0, 0.0, whole)
        before, after = self._at(start), self._at(end)
        joules, seconds = after[0] - before[0], after[1] - before[1]
        within = self._gaps & (self.times[:-1] >= start) & (self.times[1:] <= end)
        joules += float(self._joules[within].sum())
        seconds += float(self._seconds[within].sum())
        return Energy(joules, min(seconds, whole), whole)

    @cached_property
    def watts(self) -> Array:
        """Watts of each step (of a counter) or reading (of a gauge)."""
        if not self.counts:
            return self.values
        known = (self._seconds > 0) & (self._joules >= 0)
        return self._joules[known] / self._seconds[known]

    def watts_at(self, seconds: Array) -> Array:
        """Watts at each moment: of a counter's step around it, or as a gauge last read; NaN in gaps and outside."""
        if len(self.times) < 2:
            return np.full(len(seconds), np.nan)
        if self.counts:
            step = np.clip(np.searchsorted(self.times, seconds, side="left") - 1, 0, len(self._seconds) - 1)
            known = self._steps[step] & (seconds > self.times[0]) & (seconds <= self.times[-1])
            return np.where(
                known, self._joules[step] / np.where(self._seconds[step] > 0, self._seconds[step], 1), np.nan
            )
        last = np.searchsorted(self.times, seconds, side="right") - 1
        age = seconds - self.times[np.maximum(last, 0)]
        return np.where((last >= 0) & (age <= GAP_STEPS * self._usual), self.values[np.maximum(last, 0)], np.nan)

    @property
    def resets(self) -> int:
        return int(np.count_nonzero(self._joules < 0)) if self.counts else 0

    @cached_property
    def _seconds(self) -> Array:
        return np.diff(self.times)

    @cached_property
    def _joules(self) -> Array:
        """Of each step; negative where a counter was reset."""
        if self.counts:
            return np.diff(self.values)
        return self._seconds * (self.values[1:] + self.values[:-1]) / 2

    @cached_property
    def _long(self) -> NDArray[np.bool_]:
        return self._seconds > GAP_STEPS * self._usual

    @cached_property
    def _usual(self) -> float:
        """Seconds between readings, as a rule."""
        forward = self._seconds[self._seconds > 0]
        return float(np.median(forward)) if len(forward) else 0.0

    @cached_property
    def _steps(self) -> NDArray[np.bool_]:
        """Steps that may be cut anywhere."""
        known = (self._seconds > 0) & ~self._long
        return known & (self._joules >= 0) if self.counts else known

    @cached_property
    def _gaps(self) -> NDArray[np.bool_]:
        """Steps of a counter that are known as a whole only."""
        return self._long & (self._joules >= 0) & self.counts

    @cached_property
    def _cumulative(self) -> tuple[Array, Array]:
        joules = np.concatenate(([0.0], np.cumsum(np.where(self._steps, self._joules, 0.0))))
        seconds = np.concatenate(([0.0], np.cumsum(np.where(self._steps, self._seconds, 0.0))))
        return joules, seconds

    def _at(self, moment: float) -> tuple[float, float]:
        """Joules and readable seconds from the first reading until ``moment``, gaps left out.

        A gauge's first and last readings hold for one usual step beyond them, as slow meters need at the run's ends.
        """
        joules, seconds = self._cumulative
        held = 0.0 if self.counts else self._usual
        if moment <= self.times[0]:
            beyond = min(float(self.times[0]) - moment, held)
            return -beyond * float(self.values[0]) if beyond else 0.0, -beyond
        if moment >= self.times[-1]:
            beyond = min(moment - float(self.times[-1]), held)
            return float(joules[-1]) + (beyond * float(self.values[-1]) if beyond else 0.0), float(seconds[-1]) + beyond
        step = int(np.searchsorted(self.times, moment, side="right")) - 1
        if not self._steps[step]:
            return float(joules[step]), float(seconds[step])
        past, whole = moment - float(self.times[step]), float(self._seconds[step])
        if self.counts:
            part = float(self._joules[step]) * past / whole
        else:
            first, last = float(self.values[step]), float(self.values[step + 1])
            part = first * past + (last - first) * past * past / whole / 2
        return float(joules[step]) + part, float(seconds[step]) + past


def power_traces(samples: Samples) -> tuple[PowerTrace, ...]:
    """Every column of watts or joules that was ever read, in the order of the columns."""
    found = []
    for metric in (ENERGY, POWER):
        for column, labels in samples.columns_of(metric):
            values = samples.values(column)
            if not {"domain", "meter"} <= set(labels) or not np.isfinite(values).any():
                continue
            found.append(
                PowerTrace(labels["domain"], labels["meter"], column, samples.seconds, values, counts=metric == ENERGY)
            )
    return tuple(found)
