"""From values to places in a drawing. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rackscope.report.svg.ticks import LARGEST, SMALLEST, step_of

Kind = Literal["linear", "logarithmic", "category"]


@dataclass(frozen=True)
class Scale:
    """``low`` is drawn at ``start`` and ``high`` at ``end``, in pixels; either may be the larger."""

    kind: Kind
    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        if self.kind == "logarithmic":
            # Not of the quotient, which may leave the range of a float.
            low = math.log(self.low)
            share = (math.log(value) - low) / (math.log(self.high) - low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def draws(self, value: float | None) -> bool:
        """Whether ``value`` has a place: it is a number, within the ends, and above zero on a logarithmic axis."""
        if value is None or not is_drawable(value, self.kind):
            return False
        room = 0.0 if self.kind == "logarithmic" else 1e-9 * (self.high - self.low)
        return self.low * (1 - 1e-9) - room <= value <= self.high * (1 + 1e-9) + room or (
            self.low - room <= value <= self.high + room
        )

    def clamped(self, value: float) -> float:
        """Where ``value`` is drawn, or the nearest end."""
        return self.at(min(max(value, self.low), self.high))


def is_drawable(value: float, kind: Kind) -> bool:
    """Whether an axis of this kind can show it at all."""
    if not math.isfinite(value) or abs(value) > LARGEST:
        return False
    return value >= SMALLEST if kind == "logarithmic" else True


def linear_range(values: Iterable[float], *, from_zero: bool, steps: int = 0, unit: str = "") -> tuple[float, float]:
    """Ends of a linear axis around ``values``, which must not be empty.

    Values get a little room; with ``steps`` the ends are whole steps where those are near. Where values are not above
    zero by much, and always ``from_zero``, the axis starts there: the lengths of what is drawn can then be compared.
    """
    known = list(values)
    low, high = min(known), max(known)
    if from_zero or (low > 0 and low < 0.6 * high):
        low = min(low, 0.0)
    if from_zero or (high < 0 and high > 0.6 * low):
        high = max(high, 0.0)
    largest = max(abs(low), abs(high))
    if high - low <= max(1e-9 * largest, 1e-290):
        # Around nothing, or what is next to nothing, an axis of ones.
        room = 0.05 * largest if largest > 1e-280 else 1.0
        low, high = low - room, high + room
    room = 0.04 * (high - low)
    low_end, high_end = (low if low == 0 else low - room), (high if high == 0 else high + room)
    if steps:
        # Whole steps, unless that leaves much of the drawing empty.
        step = step_of(high - low, steps, unit)
        whole_low, whole_high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        low_end = whole_low if low - whole_low <= 4 * room else low_end
        high_end = whole_high if whole_high - high <= 4 * room else high_end
    return low_end, high_end


def logarithmic_range(values: Iterable[float]) -> tuple[float, float]:
    """Ends of a logarithmic axis around ``values``, which are above zero and not none."""
    known = list(values)
    low, high = min(known), max(known)
    room = max((high / low) ** 0.05 if high / low < LARGEST else 10.0, 1.12)
    return max(low / room, SMALLEST), min(high * room, LARGEST * 10)
