"""Statistics of repetitions, in one place: intervals of means, medians, ratios and differences; when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval at ``confidence``; ``low`` and ``high`` are ``None`` when it cannot be given."""

    estimate: float
    low: float | None
    high: float | None
    confidence: float
    count: int


@dataclass(frozen=True)
class StoppingDecision:
    """Whether enough repetitions were made; ``half_width`` is relative to the mean, ``None`` before it exists."""

    stop: bool
    reason: str
    half_width: float | None


def decide_stopping(
    throughputs: Sequence[float],
    *,
    wanted_half_width: float = 0.02,
    minimum: int = 3,
    maximum: int | None = None,
) -> StoppingDecision:
    """Whether the interval of the mean throughput is as narrow as wanted."""
    raise NotImplementedError


def mean_interval(values: Sequence[float], *, confidence: float = 0.95, sequential: bool = False) -> Interval:
    """Mean with its Student t interval; ``sequential`` when the count was decided by ``decide_stopping``."""
    raise NotImplementedError
