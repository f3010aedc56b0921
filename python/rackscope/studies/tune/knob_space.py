"""Which knobs a search may turn, and the values that it tries for each. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackscope.errors import UsageError, unknown_name
from rackscope.systems.base import Knob

#: Knobs that are searched only when they are named: another value changes what is measured, not how fast it is done.
CHANGES_WHAT_IS_MEASURED = {
    "connections": "how many clients it serves",
    "open_files": "how many clients it serves",
    "transport": "how clients reach it",
    "backlog": "how many clients may wait to connect",
    "item_size_max": "which items it takes",
    "evict": "what happens when memory is full",
    "eviction": "what happens when memory is full",
    "append_only": "what survives a crash",
    "append_sync": "what survives a crash",
}
#: The same for whole kinds.
_KINDS_LEFT_ALONE = {
    "memory": "how much data it holds",
    "text": "a text has no range to search",
}
#: Steps of a ladder, as powers of two around the default.
_FACTORS = (1 / 16, 1 / 4, 1, 4, 16)
#: A declared range this narrow (maximum over minimum) is of a number that is an exponent already: it is walked evenly.
_NARROW = 8
#: More threads per core than this only wait for each other.
_THREADS_PER_CORE = 4


@dataclass(frozen=True)
class Dimension:
    """One knob and the values that are tried, resolved as ``--set`` takes them. ``ordered`` ones have neighbours."""

    name: str
    values: tuple[str, ...]
    default: str
    ordered: bool


@dataclass(frozen=True)
class KnobSpace:
    """What is searched, and what is left alone with the reason."""

    dimensions: tuple[Dimension, ...]
    left_alone: Mapping[str, str]

    @property
    def size(self) -> int:
        return math.prod(len(dimension.values) for dimension in self.dimensions)

    @property
    def default(self) -> dict[str, str]:
        """Every knob that is searched at its default."""
        return {dimension.name: dimension.default for dimension in self.dimensions}

    def changes(self, configuration: Mapping[str, str]) -> dict[str, str]:
        """Only what differs from the default: what a user would have to set."""
        return {name: value for name, value in configuration.items() if self.default[name] != value}


def knob_space(
    knobs: Sequence[Knob],
    start: Mapping[str, str],
    tuned: Mapping[str, str],
    *,
    cores: int,
    pinned: Sequence[str] = (),
    named: Sequence[str] = (),
) -> KnobSpace:
    """The space around ``start`` (every knob's value as it is now), with the papers' ``tuned`` values in it.

    ``pinned`` knobs were set by the user and stay; ``named`` ones are searched and no others. Raises UsageError for a
    name that is no knob, and when nothing is left to search.
    """
    known = {knob.name: knob for knob in knobs}
    for name in named:
        if name not in known:
            raise unknown_name("--knobs: this system has no knob", name, "Knobs", known)
        if name in pinned:
            raise UsageError(
                f"knob {name} is both set and to be searched", f"Leave out --set {name} or --knobs {name}."
            )
    dimensions: list[Dimension] = []
    left_alone: dict[str, str] = {}
    for name, knob in known.items():
        reason = _reason_to_leave(knob, pinned, named)
        if not reason:
            values = _values(knob, start[name], tuned.get(name), cores)
            if len(values) > 1:
                ordered = knob.kind in ("integer", "size", "memory")
                dimensions.append(Dimension(name, values, start[name], ordered))
                continue
            reason = "it has only one possible value"
        left_alone[name] = reason
    if not dimensions:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_alone.items()) or "it declares none"
        raise UsageError(f"there is no knob to search ({reasons})", "Name some with --knobs, such as --knobs threads.")
    return KnobSpace(tuple(dimensions), left_alone)


def _reason_to_leave(knob: Knob, pinned: Sequence[str], named: Sequence[str]) -> str:
    if knob.name in pinned:
        return "set on the command line"
    if named:
        return "" if knob.name in named else "not named by --knobs"
    if knob.kind in _KINDS_LEFT_ALONE:
        return _KINDS_LEFT_ALONE[knob.kind]
    return CHANGES_WHAT_IS_MEASURED.get(knob.name, "")


def _values(knob: Knob, start: str, tuned: str | None, cores: int) -> tuple[str, ...]:
    match knob.kind:
        case "flag":
            return ("no", "yes")
        case "choice":
            return knob.choices
        case "text":
            return tuple(dict.fromkeys(value for value in (start, tuned) if value is not None))
        case _:
            return _ladder(knob, int(start), None if tuned is None else int(tuned), cores)


def _ladder(knob: Knob, start: int, tuned: int | None, cores: int) -> tuple[str, ...]:
    low = knob.minimum if knob.minimum is not None else 0
    high = knob.maximum
    if "threads" in knob.name:
        top = _THREADS_PER_CORE * cores
        steps = {1, 2, cores, 2 * cores} | {2**power for power in range(top.bit_length()) if 2**power <= top}
        high = min(high, max(top, start)) if high is not None else max(top, start)
    elif high is not None and low > 1 and high / low < _NARROW:
        reach = (high - low) // 4
        steps = {start - reach, start - reach // 2, start + reach // 2, start + reach}
    elif knob.kind == "memory":
        # Never more than was asked for: what it may fill was checked against what this host has.
        steps = {start // 4, start // 2}
    else:
        steps = {round(start * factor) for factor in _FACTORS} if start > 0 else {low}
    inside = {min(max(step, low), high if high is not None else step) for step in steps}
    inside |= {start} | ({tuned} if tuned is not None else set())
    return tuple(str(value) for value in sorted(inside))
