"""Numbers with their units, as the report prints them; report.js prints axes in the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

from rackscope.units import format_bytes, format_count, format_duration, format_joules, format_watts

#: Units of charts; the findings' other units are printed too.
Unit = Literal["percent", "bytes", "bytes/s", "operations/s", "seconds", "cores", "cycles", "watts"]
UNKNOWN = "–"


def format_quantity(value: float | None, unit: str) -> str:
    """``71.2 %``, ``1.11 GiB``, ``160 MiB/s``, ``101,240/s``, ``1.08 ms``; a dash where there is no number."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if unit in _FORMATS:
        return _FORMATS[unit](value)
    return f"{value:,.4g}" if unit in ("", "1") else f"{value:,.4g} {unit}"


def format_range(low: float, high: float, unit: str) -> str:
    """``1.10 to 1.30 ms``: the unit once where both have the same."""
    first, last = format_quantity(low, unit), format_quantity(high, unit)
    return f"{first.partition(' ')[0] if first.partition(' ')[2] == last.partition(' ')[2] else first} to {last}"


def format_cell(value: str | float | bool | None, unit: str) -> str:
    """A cell of a table, which may also hold a word, yes or no, or nothing known."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else format_quantity(value, unit)


def format_rate(value: float) -> str:
    """Whole numbers with thousands separated up to ten million, then three digits and a prefix."""
    if abs(value) >= 1e7:
        return format_count(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def format_half_width(estimate: float, low: float | None, high: float | None) -> str:
    """``± 0.9 %`` of the estimate, or the reason why it is not known."""
    if low is None or high is None or not estimate:
        return "interval not known"
    return f"± {_digits(50 * (high - low) / abs(estimate))} %"


def format_clock(seconds: float) -> str:
    """``35 s``, ``2:05`` or ``1:02:05``: where on the run's own clock."""
    if abs(seconds) < 119.95:
        return f"{seconds:.1f} s"
    sign = "-" if seconds < 0 else ""
    whole = round(abs(seconds))
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours:
        return f"{sign}{hours}:{minutes:02d}:{whole % 60:02d}"
    return f"{sign}{minutes}:{whole % 60:02d}"


def format_tick_time(seconds: float, step: float, span_end: float) -> str:
    """A tick of a time axis, as fine as its steps: ``35 s`` in a short run, else ``2:05``; report.js has the same."""
    if span_end < 120:
        return f"{seconds:.{0 if step >= 1 else 1 if step >= 0.1 else 2}f} s"
    whole = math.floor(abs(seconds) + 1e-6)
    rest = f"{abs(seconds) - whole:.1f}"[1:] if step < 1 else ""
    hours, minutes = whole // 3600, whole % 3600 // 60
    head = f"{hours}:{minutes:02d}" if hours else str(minutes)
    return f"{'-' if seconds < 0 else ''}{head}:{whole % 60:02d}{rest}"


def as_sentence(text: str) -> str:
    """With a capital at its start and one full stop at its end; empty when there is nothing to say."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}." if text else ""


def _percent(value: float) -> str:
    """Nearly all is not all: 99.984 stays that."""
    return f"{min(round(value, 3), 99.999):g}" if 99.9 < value < 100 else _digits(value)


def _digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude == 0:
        return "0"
    if magnitude >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if magnitude >= 1 else f"{value:.2g}"


_FORMATS: Mapping[str, Callable[[float], str]] = {
    "percent": lambda value: f"{_percent(value)} %",
    "ratio": lambda value: f"{_percent(100 * value)} %",
    "bytes": format_bytes,
    "bytes/s": lambda value: f"{format_bytes(value)}/s",
    "operations/s": lambda value: f"{format_rate(value)}/s",
    "1/s": lambda value: f"{format_count(value)}/s",
    "hertz": lambda value: f"{format_count(value)}Hz",
    "seconds": format_duration,
    "cores": lambda value: f"{value:.2f} cores",
    "cycles": lambda value: f"{value:.3g}" if value < 10 else f"{value:.1f}",
    "watts": format_watts,
    "joules": format_joules,
    "count": format_count,
}
