"""Many comparisons at once: corrected p values."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected so that the chance of one false finding or more stays at the level (Holm 1979)."""
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return corrected


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """p values corrected so that the expected share of false among findings stays at the level (1995)."""
    order = sorted(range(len(p_values)), key=lambda index: -p_values[index])
    corrected = [1.0] * len(p_values)
    lowest = 1.0
    for place, index in enumerate(order):
        lowest = min(lowest, p_values[index] * len(p_values) / (len(p_values) - place))
        corrected[index] = lowest
    return corrected
