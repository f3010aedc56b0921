"""Numbers and names as sentences show them."""

from __future__ import annotations

from collections.abc import Sequence

from rackscope.units import format_bytes, format_count, format_duration, format_joules, format_watts


def percent(ratio: float) -> str:
    """``87 %``; one decimal below ten, ``under 0.1 %`` for what would read as nothing."""
    share = ratio * 100
    if share == 0:
        return "0 %"
    if abs(share) < 0.1:
        return "under 0.1 %"
    # 9.96 must read "10 %", not "10.0 %".
    return f"{share:.1f} %" if abs(round(share, 1)) < 10 else f"{share:.0f} %"


def quantity(value: float, unit: str) -> str:
    """A value with its unit, as ``quantities`` names units."""
    if unit == "ratio":
        return percent(value)
    if unit == "seconds":
        return format_duration(value)
    if unit == "bytes":
        return format_bytes(value)
    if unit == "bytes/s":
        return f"{format_bytes(value)}/s"
    if unit in ("operations/s", "1/s", "hertz"):
        return {"operations/s": f"{format_count(value)} operations/s", "1/s": f"{format_count(value)} a second"}.get(
            unit, f"{format_count(value)}Hz"
        )
    if unit == "cores":
        return f"{value:.2f} cores"
    if unit in ("watts", "joules"):
        return format_watts(value) if unit == "watts" else format_joules(value)
    return f"{value:.2f}"


def number(value: float, unit: str) -> str:
    """``quantity`` without the unit's word, for sentences that name it: cores, tasks, threads."""
    return f"{value:.2f}" if unit in ("cores", "tasks", "1") else quantity(value, unit)


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def listing(items: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def numbers(values: Sequence[int]) -> str:
    """``0-3,8``: core numbers as users write them."""
    parts: list[str] = []
    ordered = sorted(set(values))
    start = 0
    for place, value in enumerate(ordered):
        if place + 1 < len(ordered) and ordered[place + 1] == value + 1:
            continue
        parts.append(str(value) if place == start else f"{ordered[start]}-{value}")
        start = place + 1
    return ",".join(parts)
