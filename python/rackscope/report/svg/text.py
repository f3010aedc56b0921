"""Words in a drawing: how wide they are, where they break, and how values are written. Pure."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

from rackscope.report.quantities import UNKNOWN, format_quantity
from rackscope.runs.study import Axis

#: Pixels of the average character where text is 12 pixels high, as in chart.css.
_CHARACTER_PIXELS, _NARROW_PIXELS, _BROAD_PIXELS = 6.7, 3.6, 12.0


def width_of(text: str) -> float:
    """About how wide ``text`` is; the fonts of readers differ."""
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> float:
    if character in " .,:;il|'!/()[]-":
        return _NARROW_PIXELS
    if unicodedata.east_asian_width(character) in "WF" or character in "mwMW%@":
        return _BROAD_PIXELS if character not in "mw" else 10.0
    return _CHARACTER_PIXELS


def shorten(text: str, pixels: float) -> str:
    """``text``, or as much of it as fits."""
    if width_of(text) <= pixels:
        return text
    kept = ""
    for character in text:
        if width_of(kept + character + "…") > pixels:
            break
        kept += character
    return f"{kept.rstrip()}…"


def wrap(text: str, pixels: float, most_lines: int) -> list[str] | None:
    """``text`` in lines that fit, broken at spaces, hyphens and underscores; None where that cannot be done."""
    lines = [""]
    for word in re.findall(r"[^\s_-]*[\s_-]*", text):
        if lines[-1] and width_of((lines[-1] + word).rstrip()) > pixels:
            lines.append("")
        lines[-1] += word
    stripped = [line.rstrip() for line in lines]
    fits = len(stripped) <= most_lines and all(width_of(line) <= pixels for line in stripped)
    return stripped if fits else None


def describe_value(value: float | None, axis: Axis) -> str:
    """A value of ``axis`` as a reader reads it: a category's name, or a quantity."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if axis.scale == "category":
        place = round(value)
        return axis.categories[place] if 0 <= place < len(axis.categories) else UNKNOWN
    return format_quantity(value, "" if axis.unit == "text" else axis.unit)


def describe_values(values: Sequence[float | None], axis: Axis) -> list[str]:
    """Values that are read beside each other; plain numbers with as many decimals as the largest of them needs."""
    known = [abs(value) for value in values if value is not None and math.isfinite(value)]
    largest = max(known, default=0.0)
    if axis.unit not in ("", "text") or axis.scale == "category" or not 1e-4 <= largest < 1e4:
        return [describe_value(value, axis) for value in values]
    decimals = max(0, (2 if largest >= 1 else 1) - math.floor(math.log10(largest)))
    return [UNKNOWN if value is None else f"{round(value, decimals) + 0.0:.{decimals}f}" for value in values]
