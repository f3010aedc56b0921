"""Where latency crosses a bound, from blocks of windows that are spread over time. Pure.

Within a block a few rates around the estimate are measured; the block's own crossing is where a line through them
meets the bound, with a slope common to all blocks. What differs between blocks is then what the host's mood does to
the answer, and the interval is Student's over blocks: windows that follow each other are more alike than the next
run will be, and an interval over single windows would promise too much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from rackscope.analysis.intervals import Interval, mean_interval

#: log(latency / bound) beyond which an overload only says on which side it lies.
CLIP = 0.7
#: Rates further than this ratio from the middle say nothing about the line at the crossing.
WINDOW = 1.15
#: Latency rises with the rate: a flatter line is noise, and its zero would lie anywhere.
_LEAST_SLOPE = 2.0
#: What differs from one start of a system to the next (where its memory lies, what its neighbours do) is the same for
#: all blocks: half the width of its own 95 % interval. Five studies of one system on a quiet host lay 2.7 % apart
#: (standard deviation), of which their blocks explained 2.5 %.
_BETWEEN_STARTS = 0.02
FEWEST_BLOCKS = 4
#: Steps around the estimate, as shares of it.
_STEPS = (-0.06, -0.02, 0.02, 0.06)


@dataclass(frozen=True)
class Seen:
    """One window: rate in operations a second, log(latency / bound) clipped, number of its block."""

    rate: float
    excess: float
    block: int


def excess(value_seconds: float | None, bound_seconds: float, *, kept_up: bool) -> float:
    """log(latency / bound), clipped; a rate that was not answered is far above the bound."""
    if not kept_up or value_seconds is None or not math.isfinite(value_seconds):
        return CLIP
    if value_seconds <= 0:
        return -CLIP
    return max(-CLIP, min(CLIP, math.log(value_seconds / bound_seconds)))


def block_rates(middle: float, block: int, seed: int) -> list[float]:
    """Rates of one block around ``middle``, in random order, with an offset of its own.

    The offsets differ from block to block, so that a crossing that is a leap is not always looked at from the same
    two sides.
    """
    generator = np.random.default_rng([seed, block])
    offset = generator.uniform(-0.02, 0.02)
    return [float(middle * math.exp(step + offset)) for step in generator.permutation(_STEPS)]


def estimate_crossing(seen: Sequence[Seen], middle: float) -> Interval | None:
    """The rate at which the bound is crossed, with its interval over blocks; ``None`` without anything near
    ``middle``.

    The interval is as wide as honesty asks when the number of blocks was decided by looking at it.
    """
    near = [one for one in seen if 1 / WINDOW <= one.rate / middle <= WINDOW]
    blocks = sorted({one.block for one in near})
    if not blocks:
        return None
    # Least squares with an intercept for each block.
    above = below = 0.0
    centres = []
    for block in blocks:
        own = [one for one in near if one.block == block]
        rate, level = fmean(math.log(one.rate) for one in own), fmean(one.excess for one in own)
        above += math.fsum((math.log(one.rate) - rate) * (one.excess - level) for one in own)
        below += math.fsum((math.log(one.rate) - rate) ** 2 for one in own)
        centres.append((rate, level))
    slope = max(above / below, _LEAST_SLOPE) if below > 0 else _LEAST_SLOPE
    interval = mean_interval([rate - level / slope for rate, level in centres], sequential=True)
    if interval.high is None or len(blocks) < FEWEST_BLOCKS:
        return Interval(math.exp(interval.estimate), None, None, 0.95, len(blocks))
    middle, half = interval.estimate, math.hypot(interval.high - interval.estimate, _BETWEEN_STARTS)
    return replace(interval, low=middle - half, high=middle + half).mapped(math.exp)
