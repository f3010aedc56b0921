"""The throughput-latency curve: its knee, and whether its points can be believed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.analysis import wording
from rackscope.analysis.thresholds import packaged_thresholds


@dataclass(frozen=True)
class CurvePoint:
    """One load level. Rates in operations a second, times in seconds.

    ``mean_outstanding`` is the mean number of requests in the system, counted apart from the response times: the
    connections times their depth of a closed loop, or what the generator counted as sent and not yet answered.
    ``offered`` is ``None`` in a closed loop; ``errors`` counts requests without an answer, of ``operations``.
    """

    achieved: float
    latency_seconds: float
    offered: float | None = None
    mean_response_seconds: float | None = None
    mean_outstanding: float | None = None
    errors: int = 0
    operations: int = 0


@dataclass(frozen=True)
class Knee:
    """The point after which latency grows faster than throughput. ``index`` is that of the point in the input."""

    index: int
    throughput: float
    latency_seconds: float


@dataclass(frozen=True)
class LittleCheck:
    """Whether a point agrees with Little's law; ``ratio`` is N / (X R). ``agrees`` is ``None`` where N is unknown."""

    agrees: bool | None
    ratio: float | None
    reason: str


def find_knee(points: Sequence[CurvePoint]) -> Knee | None:
    """The knee, after Kneedle (Satopaa et al. 2011) on the logarithm of latency over achieved throughput.

    Both axes are scaled to 0 to 1; the knee of this convex curve is where throughput is furthest ahead of log latency.
    ``None`` with fewer than five usable points, where latency does not rise by ``knee.rise``, or where no point is
    ahead by ``knee.distance``: a straight line has no knee. Overloaded points, whose throughput fell
    back below what was reached at a lower offered rate, are not looked at.
    """
    usable = [
        index for index, point in enumerate(points) if point.achieved > 0 and 0 < point.latency_seconds < math.inf
    ]
    limit = packaged_thresholds().limit
    rising: list[int] = []
    for index in sorted(usable, key=lambda index: (points[index].offered or points[index].achieved, index)):
        if not rising or points[index].achieved > points[rising[-1]].achieved:
            rising.append(index)
    if len(rising) < 5:
        return None
    # Noise makes latency fall with load here and there; the curve is the highest latency so far.
    logs: list[float] = []
    for index in rising:
        logs.append(max(math.log(points[index].latency_seconds), *logs[-1:], -math.inf))
    first, last = points[rising[0]].achieved, points[rising[-1]].achieved
    rise = logs[-1] - logs[0]
    if rise < math.log(limit("knee.rise")):
        return None
    ahead = [
        (points[index].achieved - first) / (last - first) - (log - logs[0]) / rise
        for index, log in zip(rising, logs, strict=True)
    ]
    place = max(range(len(ahead)), key=lambda place: ahead[place])
    if ahead[place] < limit("knee.distance"):
        return None
    found = rising[place]
    return Knee(found, points[found].achieved, points[found].latency_seconds)


def check_little(point: CurvePoint) -> LittleCheck:
    """Whether mean requests in the system = throughput x mean response time (Little 1961), and what breaks it.

    The law holds for any stable system whatever its distributions, so a point that breaks it was measured wrongly, or
    was not in a steady state.
    """
    if point.mean_outstanding is None or point.mean_response_seconds is None:
        return LittleCheck(None, None, "requests in the system were not counted apart from response times")
    expected = point.achieved * point.mean_response_seconds
    if not expected > 0 or not math.isfinite(expected):
        return LittleCheck(None, None, "nothing was answered")
    ratio = point.mean_outstanding / expected
    if abs(ratio - 1) <= packaged_thresholds().limit("little.tolerance"):
        return LittleCheck(True, ratio, "requests in the system = throughput x mean response time")
    return LittleCheck(False, ratio, f"N is {ratio:.2f} of X R: {_broken(point, ratio)}")


def _broken(point: CurvePoint, ratio: float) -> str:
    limit = packaged_thresholds().limit
    if point.operations > 0 and point.errors / point.operations > limit("errors.ratio"):
        share = wording.percent(point.errors / point.operations)
        return f"{share} of the requests had no answer, so that they were in the system but in no response time"
    if point.offered is not None and point.achieved < limit("generator.offered_met") * point.offered:
        return "less was answered than was offered, so that requests piled up: no steady state"
    if ratio > 1:
        return "requests waited where no response time saw it"
    return "response times hold time that was not spent in the system"
