"""Parse and print quantities the way people write them: 25k, 64MiB, 30s, 1.5ms, 0-3,8."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import datetime

from rackscope.errors import UsageError

_DURATION_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0,
    "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0,
}  # fmt: skip
_SIZE_BYTES = {
    "": 1, "b": 1,
    "k": 1024, "kb": 1024, "kib": 1024,
    "m": 1024**2, "mb": 1024**2, "mib": 1024**2,
    "g": 1024**3, "gb": 1024**3, "gib": 1024**3,
    "t": 1024**4, "tb": 1024**4, "tib": 1024**4,
}  # fmt: skip
_COUNT = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_QUANTITY = re.compile(r"^\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zµ]*)\s*$", re.IGNORECASE)


def _parse(text: str, factors: dict[str, float] | dict[str, int], what: str, example: str) -> float:
    match = _QUANTITY.match(text)
    unit = match.group(2).lower() if match else ""
    if match is None or unit not in factors:
        known = ", ".join(name for name in factors if name)
        raise UsageError(f"'{text}' is not {what}", f"Write it like {example}; units: {known}.")
    value = float(match.group(1)) * factors[unit]
    if math.isinf(value):
        raise UsageError(f"'{text[:20]}…' is too large for {what}", f"Write it like {example}.")
    return value


def parse_duration_seconds(text: str) -> float:
    """Seconds of ``30s``, ``1.5ms``, ``2m`` or a bare number of seconds. Raises UsageError."""
    seconds = _parse(text, {"": 1.0, **_DURATION_SECONDS}, "a duration", "30s or 500ms")
    if seconds <= 0:
        raise UsageError(f"a duration must be longer than zero, not '{text}'", "Write it like 30s.")
    return seconds


def parse_size_bytes(text: str) -> int:
    """Bytes of ``25k``, ``64MiB``, ``4g`` (powers of 1024) or a bare number. Raises UsageError."""
    return round(_parse(text, _SIZE_BYTES, "a size", "64, 25k or 4GiB"))


def parse_count(text: str) -> int:
    """A count such as ``1000``, ``100k`` or ``2M`` (powers of 1000). Raises UsageError."""
    count = _parse(text, _COUNT, "a count", "1000, 100k or 2M")
    if count != round(count):
        raise UsageError(f"'{text}' is not a whole number", "Write it like 1000, 100k or 2M.")
    return round(count)


def parse_positive_count(text: str) -> int:
    """As ``parse_count``, of one or more. Raises UsageError."""
    count = parse_count(text)
    if count < 1:
        raise UsageError(f"'{text}' is too few", "Give one or more.")
    return count


def parse_positive_number(text: str) -> float:
    """A number above zero, with or without thousands' commas: money, watts. Raises UsageError."""
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise UsageError(f"'{text}' is not a number above zero", "Write it without a unit, like 25000.")
    return number


def parse_rate_per_second(text: str) -> float:
    """Operations a second: ``20000``, ``20k`` or ``20k/s``. Raises UsageError."""
    rate = _parse(text.strip().removesuffix("/s"), _COUNT, "a rate", "20000 or 20k")
    if rate <= 0:
        raise UsageError(f"a rate must be above zero, not '{text}'", "Write it like 20k.")
    return rate


def parse_share(text: str) -> float:
    """A fraction between 0 and 1: ``5%`` or ``0.05``. Raises UsageError."""
    number = text.strip().removesuffix("%")
    try:
        share = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        raise UsageError(f"'{text}' is not a percentage", "Write it like 5% or 0.05.")
    return share


def parse_cores(text: str) -> tuple[int, ...]:
    """Core numbers of ``0``, ``0,2`` or ``0-3,8``, sorted and without repeats. Raises UsageError."""
    cores: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?", part)
        if match is None:
            raise UsageError(f"'{text}' is not a list of cores", "Write it like 0, 0,2 or 0-3.")
        first = int(match.group(1))
        last = int(match.group(2) or first)
        if last < first:
            raise UsageError(f"'{text}' counts cores downwards", "Write it like 0-3.")
        cores.update(range(first, last + 1))
    return tuple(sorted(cores))


def now_text() -> str:
    """This moment with its offset from UTC."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def format_duration(seconds: float) -> str:
    """``1.23 ms``; three significant digits, unit chosen to suit."""
    return "0 s" if seconds == 0 else _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")))


def format_bytes(count: float) -> str:
    """``1.50 GiB``; three significant digits, powers of 1024."""
    if abs(count) < 1024:
        return f"{count:.0f} B"
    return _scaled(count, ((1024.0**4, "TiB"), (1024.0**3, "GiB"), (1024.0**2, "MiB"), (1024.0, "KiB")))


def format_count(count: float) -> str:
    """``1.23 M``; three significant digits, powers of 1000."""
    if abs(count) < 1000:
        return _three_digits(count) if count != round(count) else f"{count:.0f}"
    return _scaled(count, ((1e9, "G"), (1e6, "M"), (1e3, "k")))


def format_amount(value: float, unit: str) -> str:
    """A value with a unit that has a name: ``716 MiB/s``, ``67.8 k operations/s``, ``1.5 cores``."""
    if unit in ("bytes", "bytes/s"):
        return f"{format_bytes(value)}{unit.removeprefix('bytes')}"
    if unit == "cores":
        return f"{value:.3g} core{'' if value == 1 else 's'}"
    return f"{format_count(value)} {unit}"


def format_watts(value: float) -> str:
    """``142 W``, ``3.50 kW``, ``12.5 mW``; three significant digits."""
    return _prefixed(value, "W")


def format_joules(value: float) -> str:
    """``1.32 mJ``, ``85.0 µJ``, ``3.60 MJ``; three significant digits."""
    return _prefixed(value, "J")


def _prefixed(value: float, unit: str) -> str:
    prefixes = ((1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))
    if abs(value) < 1e-12:
        return f"0 {unit}"
    return _scaled(value, [(factor, f"{prefix}{unit}") for factor, prefix in prefixes])


def _scaled(value: float, steps: Sequence[tuple[float, str]]) -> str:
    """In the largest of the units that it reaches, else in the last."""
    if not math.isfinite(value):
        return "unknown"
    factor, unit = next((step for step in steps if abs(value) >= step[0]), steps[-1])
    return f"{_three_digits(value / factor)} {unit}"


def _three_digits(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if magnitude >= 10 else f"{value:.2f}"
