"""Time of a job over the size of its data, up to the wall: t = start + bytes x seconds per byte.

The wall (Sevilla 2013) is the size from which time breaks away from that line: more than chance and by a quarter at the
largest size, as in ``analysis.wall``, which has no start-up in it and is not used where there is one. Nothing is said
past the wall, nor past the largest size measured, where a wall may stand that no smaller size shows, unless the caller
knows that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.errors import RackscopeError
from rackscope.models.estimates import EXTRAPOLATED, Prediction, require_points, require_positive
from rackscope.models.gates import ProjectionRefused
from rackscope.models.non_negative import BASIS, NonNegativeFit, fit_non_negative
from rackscope.models.uncertain import Array
from rackscope.units import format_bytes

#: A line takes three sizes and a break two more.
_FEWEST_SIZES = 5
_FEWEST_ON_LINE = 3
_NAMES = ("start", "size")


@dataclass(frozen=True)
class SizeWall:
    """Above ``low_bytes``, at or below ``high_bytes``; ``slowdown``: time of the largest size over the line's."""

    low_bytes: float
    high_bytes: float
    slowdown: float


@dataclass(frozen=True)
class DataSizeModel:
    """``start_seconds`` and ``seconds_per_byte`` below the wall; ``line_bytes`` is the largest size on the line."""

    start_seconds: float
    seconds_per_byte: float
    smallest_bytes: float
    line_bytes: float
    wall: SizeWall | None
    no_wall_below_bytes: float
    fit: NonNegativeFit

    def predict(self, data_bytes: float) -> Prediction:
        """Seconds for ``data_bytes``. Raises ProjectionRefused past the wall, and past what is known to have none."""
        require_positive([data_bytes], "the size of data")
        if data_bytes > self.line_bytes:
            self._refuse_beyond(data_bytes)
        value, low, high = self.fit.interval((1.0, data_bytes))
        extrapolated = not self.smallest_bytes <= data_bytes <= self.line_bytes
        return Prediction(value, low, high, "seconds", BASIS + EXTRAPOLATED * extrapolated, extrapolated)

    def _refuse_beyond(self, data_bytes: float) -> None:
        asked = format_bytes(data_bytes)
        if self.wall is not None:
            between = f"between {format_bytes(self.wall.low_bytes)} and {format_bytes(self.wall.high_bytes)}"
            raise ProjectionRefused(
                f"{asked} may be past the wall, which is {between}: time breaks away from its line there",
                "Ask for less data, or measure with more of what ran out.",
            )
        if data_bytes > self.no_wall_below_bytes:
            raise ProjectionRefused(
                f"no wall was met up to {format_bytes(self.line_bytes)}, "
                f"and no larger size was measured: {asked} is beyond",
                "Measure with larger data.",
            )


def fit_data_size(
    data_bytes: Sequence[float], seconds: Sequence[float], *, no_wall_below_bytes: float | None = None
) -> DataSizeModel:
    """Fit from five sizes; nothing runs out below ``no_wall_below_bytes``. RackscopeError, or ProjectionRefused."""
    require_points(_FEWEST_SIZES, "sizes", size_of_data=data_bytes, time=seconds)
    wall = _find_wall(np.asarray(data_bytes, dtype=np.float64), np.asarray(seconds, dtype=np.float64))
    limit = max(data_bytes) if wall is None else wall.low_bytes
    if wall is not None and no_wall_below_bytes is not None and no_wall_below_bytes > wall.high_bytes:
        raise RackscopeError(
            f"the measurements have a wall below {format_bytes(wall.high_bytes)}, where there was assumed to be none",
            "Leave out no_wall_below_bytes, or the sizes past the wall.",
        )
    fit = _line(data_bytes, seconds, limit)
    if fit.negative:
        raise ProjectionRefused(
            f"no projection over size: time does not follow a line in size (negative {fit.negative[0]})",
            "Measure sizes that are nearer to those you ask for.",
        )
    start, each = fit.coefficients
    return DataSizeModel(start, each, min(data_bytes), limit, wall, max(no_wall_below_bytes or 0.0, limit), fit)


def _line(data_bytes: Sequence[float], seconds: Sequence[float], limit: float) -> NonNegativeFit:
    points = [(size, time) for size, time in zip(data_bytes, seconds, strict=True) if size <= limit]
    return fit_non_negative([(1.0, size) for size, _ in points], [time for _, time in points], _NAMES)


def _find_wall(sizes: Array, seconds: Array) -> SizeWall | None:
    """The break that the Bayesian information criterion prefers to one line, if strongly, and if it slows enough."""
    distinct = np.unique(sizes)
    # Points that lie on their lines exactly would make any difference infinite.
    floor = len(sizes) * 1e-6**2
    straight = max(float(np.sum(_errors(sizes, seconds, distinct[-1]) ** 2)), floor)
    best: tuple[float, SizeWall] | None = None
    for place in range(_FEWEST_ON_LINE, len(distinct)):
        last = float(distinct[place - 1])
        on_line = sizes <= last
        if np.count_nonzero(on_line) <= len(_NAMES):
            continue
        errors = _errors(sizes, seconds, last)
        beyond = errors[~on_line]
        slowdown = math.exp(float(np.mean(errors[sizes == distinct[-1]])))
        # A line of its own in logarithms for what is past the wall.
        past = np.log(sizes[~on_line])
        unknowns = 2 if len(np.unique(past)) > 1 else 1
        rest = beyond - np.polyval(np.polyfit(past, beyond, unknowns - 1), past)
        squares = max(float(np.sum(errors[on_line] ** 2) + np.sum(rest**2)), floor)
        gain = len(sizes) * math.log(straight / squares) - (unknowns + 1) * math.log(len(sizes))
        if (
            gain > packaged_thresholds().limit("wall.evidence")
            and slowdown > packaged_thresholds().limit("wall.slowdown")
            and (best is None or gain > best[0])
        ):
            best = gain, SizeWall(last, float(distinct[place]), slowdown)
    return None if best is None else best[1]


def _errors(sizes: Array, seconds: Array, limit: float) -> Array:
    """Logarithms of the times over those of the line through the sizes up to ``limit``."""
    start, each = _line(sizes.tolist(), seconds.tolist(), limit).coefficients
    return np.asarray(np.log(seconds / np.maximum(start + each * sizes, 1e-300)))
