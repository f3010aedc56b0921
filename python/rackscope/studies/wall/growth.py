"""Growing the data: which sizes, in which order, until memory runs out or the largest has been measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rackscope.units import format_bytes

#: Sizes go from an eighth of the limit to four times it, two a doubling.
SMALLEST, LARGEST, STEP = 1 / 8, 4.0, 2**0.5


@dataclass(frozen=True)
class Setting:
    """What was studied: who limited memory to how much, and why so."""

    system: str
    workload: str
    limit_bytes: int
    item_bytes: int
    by_group: bool
    why_not_group: str
    swap_bytes: int | None
    rounds: int
    duration_seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Point:
    """One run at one size that ended well.

    ``seconds_per_byte`` is of bytes that were found: time that went into misses counts, what they asked for does not.
    ``resources`` are rates and shares while it was measured, by the name that a reader knows them under.
    """

    keys: int
    data_bytes: float
    seconds_per_byte: float
    throughput_operations_per_second: float
    hit_ratio: float | None
    resources: Mapping[str, float | None] = field(default_factory=dict)
    resident_bytes: float | None = None


@dataclass(frozen=True)
class RanOut:
    """The system could not hold the size: ``held_bytes`` of keys and values were in when there was no more memory."""

    keys: int
    data_bytes: float
    held_bytes: float
    how: str


@dataclass
class Growth:
    """Everything that was measured; ``skipped`` says which sizes were not, and why."""

    points: list[Point] = field(default_factory=list)
    ran_out: list[RanOut] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def sizes_in_keys(limit_bytes: int, item_bytes: int, most_bytes: float) -> list[int]:
    """Numbers of keys, from an eighth of the limit up to four times it or ``most_bytes``."""
    keys: list[int] = []
    size = limit_bytes * SMALLEST
    while size <= min(limit_bytes * LARGEST * 1.001, most_bytes):
        count = max(1, round(size / item_bytes))
        if count not in keys:
            keys.append(count)
        size *= STEP
    return keys


def grow(
    measure: Callable[[int, str], Point | RanOut],
    sizes: Sequence[int],
    item_bytes: int,
    rounds: int,
    budget_seconds: float,
    growth: Growth,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Measure every size (keys) that can be held, once a round: upwards, then downwards, so that drift cancels.

    The first round always comes to its end; later ones leave out what the budget has no time for. Past the first size
    that cannot be held nothing larger is tried. What was found is in ``growth``, whatever ends this.
    """
    started = clock()
    took: dict[int, float] = {}
    possible = list(sizes)
    for number in range(1, rounds + 1):
        order = possible if number % 2 else possible[::-1]
        for keys in list(order):
            left = budget_seconds - (clock() - started)
            if number > 1 and took.get(keys, 0.0) > left:
                growth.skipped.append(f"round {number} of {format_bytes(keys * item_bytes)}: the budget was spent")
                continue
            begun = clock()
            label = f"{format_bytes(keys * item_bytes)} of data, round {number}"
            found = measure(keys, label)
            took[keys] = clock() - begun
            if isinstance(found, Point):
                growth.points.append(found)
                continue
            growth.ran_out.append(found)
            if number == 1:
                possible = [one for one in possible if one <= keys]
                break
