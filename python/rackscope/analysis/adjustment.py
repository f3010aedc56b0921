"""Taking out of windows what came from the cores' own speed, which interference changes and no squeeze does.

On a shared host a core runs a third slower while the hardware thread beside it is busy with somebody else's work, for
tenths of a second at a time. Throughput follows as far as the workload is bound by its cores. The logarithm of
throughput is regressed on the logarithm of the measured speeds, within conditions, and corrected to the median speed
(analysis of covariance: Fisher 1932; the idea of CUPED, Deng et al. 2013). A workload that does not depend on its
cores gets a slope near zero, and is left as it was.

Differences within a band around the median are left alone (``adjustment.band`` of ``thresholds.toml``): the bursts read
a core a little faster or slower by what ran there before them, so that a squeeze, which changes that, would seem to
change the core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.analysis.windows import Window


@dataclass(frozen=True)
class Adjustment:
    """Windows at the median speed. ``slopes``: how much throughput follows each speed; empty where not adjusted."""

    windows: tuple[Window, ...]
    slopes: tuple[float, ...] = ()


def adjust_for_speed(windows: Sequence[Window]) -> Adjustment:
    """Windows as they would be at the cores' median speed; those without speeds are corrected as neighbours."""
    plain = Adjustment(tuple(windows))
    known = [place for place, one in enumerate(windows) if one.core_speeds and _positive(one.throughput)]
    widths = {len(windows[place].core_speeds) for place in known}
    if len(widths) != 1:
        return plain
    width = widths.pop()
    conditions = [windows[place].condition for place in known]
    spare = len(known) - len(set(conditions)) - width
    if spare < packaged_thresholds().limit("adjustment.degrees"):
        return plain
    speeds = np.log(np.array([windows[place].core_speeds for place in known], dtype=np.float64))
    slopes = _slopes(speeds, np.log([windows[place].throughput for place in known]), conditions)
    if slopes is None:
        return plain
    values = [windows[place].p99_seconds or 0.0 for place in known]
    p99_slopes = _slopes(speeds, np.log(values), conditions) if all(map(_positive, values)) else None
    beyond = _beyond_band(speeds)
    corrections = _spread(known, beyond @ slopes, len(windows))
    p99 = np.zeros(len(windows)) if p99_slopes is None else _spread(known, beyond @ p99_slopes, len(windows))
    adjusted = tuple(
        replace(
            one,
            throughput=one.throughput * math.exp(-corrections[place]),
            p99_seconds=None if one.p99_seconds is None else one.p99_seconds * math.exp(-p99[place]),
        )
        for place, one in enumerate(windows)
    )
    return Adjustment(adjusted, tuple(float(slope) for slope in slopes))


def _slopes(
    speeds: NDArray[np.float64], values: NDArray[np.float64], conditions: Sequence[str]
) -> NDArray[np.float64] | None:
    """Least squares within conditions; ``None`` where the speeds did not change."""
    speeds, values = speeds.copy(), values.copy()
    for condition in set(conditions):
        members = [place for place, one in enumerate(conditions) if one == condition]
        speeds[members] -= speeds[members].mean(axis=0)
        values[members] -= values[members].mean()
    if not np.all(np.isfinite(speeds)) or float(np.abs(speeds).max()) < 1e-9:
        return None
    found, *_ = np.linalg.lstsq(speeds, values, rcond=1e-6)
    return np.asarray(found, dtype=np.float64)


def _beyond_band(speeds: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far speeds are from their median, where that is more than what readings differ by."""
    away = speeds - np.median(speeds, axis=0)
    return np.where(np.abs(away) > packaged_thresholds().limit("adjustment.band"), away, 0.0)


def _spread(places: Sequence[int], corrections: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """One correction a window; those without take the mean of the nearest on either side."""
    windows = np.arange(count)
    before = np.clip(np.searchsorted(places, windows, side="right") - 1, 0, None)
    after = np.clip(np.searchsorted(places, windows, side="left"), None, len(places) - 1)
    return np.asarray((corrections[before] + corrections[after]) / 2, dtype=np.float64)


def _positive(value: float) -> bool:
    return math.isfinite(value) and value > 0
