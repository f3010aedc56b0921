"""Judging what a load of our own got under a squeeze."""

from __future__ import annotations

from collections.abc import Callable

from rackscope.squeezes.base import Achieved
from rackscope.units import format_amount

#: How far what was measured may be off, as a share of what was asked for.
TOLERANCE = 0.1
_ATTEMPTS = 3


def measure_under(limit: float, measure: Callable[[], float]) -> float:
    """The most of up to three attempts: interference only lowers what is measured."""
    best = 0.0
    for _ in range(_ATTEMPTS):
        best = max(best, measure())
        if best >= limit * (1 - TOLERANCE):
            break
    return best


def verify_rate(
    unit: str,
    capacity: float,
    fraction: float,
    measure_free: Callable[[], float],
    measure_held: Callable[[float], float],
) -> Achieved:
    """Judge a limit of a rate by a load that gets ``measure_free`` without it and ``measure_held(fraction)`` with it.

    On a busy host, or where one process cannot drive the device, the load alone stays below the limit. Then the limit
    is tried where the load reaches it, at half of what it gets, and what it got there tells how the limit is kept.
    """
    limit = capacity * fraction
    free = measure_free()
    if free <= 0:
        return Achieved(None, "the load that was to measure what is left completed nothing", effective=False)
    trial = limit if free > limit * (1 + TOLERANCE) else free / 2
    rate = measure_under(trial, lambda: measure_held(trial / capacity))
    if trial == limit:
        return judge(rate / capacity, fraction, f"got {format_amount(rate, unit)} of {format_amount(limit, unit)}")
    tried = (
        f"got {format_amount(rate, unit)} of {format_amount(trial, unit)} in a trial, as it gets only "
        f"{format_amount(free, unit)} where {format_amount(limit, unit)} are allowed"
    )
    return judge(rate / trial * fraction, fraction, tried)


def judge(fraction: float, wanted: float, sentence: str) -> Achieved:
    """Effective when it is within the tolerance of what was wanted; otherwise the sentence says on which side it is."""
    off = fraction / wanted - 1
    if abs(off) <= TOLERANCE:
        return Achieved(fraction, f"{sentence}: {fraction:.1%} of the capacity, {wanted:.1%} asked for", effective=True)
    why = (
        "the limit was not kept"
        if off > 0
        else "the limit takes more than it should, or other processes used the resource"
    )
    return Achieved(
        fraction, f"{sentence}: {fraction:.1%} of the capacity instead of {wanted:.1%}; {why}", effective=False
    )
