"""Measurement windows under conditions (free, squeezed, control), and the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FREE = "free"
CONTROL = "control:"


@dataclass(frozen=True)
class Window:
    """Some seconds of a run under one condition. The order of a sequence of windows is the order they ran in.

    ``condition`` is ``free``, ``NAME@0.8`` (squeeze and the fraction asked to be left) or ``control:NAME`` (also
    ``control:NAME@0.8`` where each level has its own). ``throughput`` is in operations a second, ``achieved_fraction``
    the part of the resource that was measured to be left, ``None`` where it could not be measured. ``core_speeds``
    are what cores could execute meanwhile (instructions a second, of the system's and the client's), empty where that
    is not known or is what was squeezed.
    """

    block: int
    condition: str
    throughput: float
    p99_seconds: float | None = None
    achieved_fraction: float | None = None
    core_speeds: tuple[float, ...] = ()


def schedule(conditions: Sequence[str], blocks: int, seed: int) -> list[list[str]]:
    """Blocks that hold each condition once, shuffled from ``seed``, each with a free window on both sides."""
    generator = np.random.default_rng(seed)
    wanted = list(dict.fromkeys(condition for condition in conditions if condition != FREE))
    plan = []
    for _ in range(blocks):
        block = [FREE]
        for index in generator.permutation(len(wanted)):
            block += [wanted[index], FREE]
        plan.append(block)
    return plan


def parse_condition(condition: str) -> tuple[str, float] | None:
    """Squeeze and fraction of ``NAME@0.8``; ``None`` for free and control windows and anything else."""
    name, mark, level = condition.rpartition("@")
    if not mark or not name or name.startswith(CONTROL):
        return None
    try:
        fraction = float(level)
    except ValueError:
        return None
    return (name, fraction) if 0 < fraction < 1 else None
