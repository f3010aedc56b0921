"""Where an axis has its ticks and how they are labelled. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Numbers beyond these are not drawn: their sums and powers leave the range of a float.
LARGEST, SMALLEST = 1e300, 1e-300
_BINARY = ("bytes", "bytes/s")
_BYTES = ((1024.0**4, "TiB"), (1024.0**3, "GiB"), (1024.0**2, "MiB"), (1024.0, "KiB"))
_THOUSANDS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def step_of(span: float, most: int, unit: str = "") -> float:
    """The smallest step that people count in of which at most ``most`` fit into ``span``.

    1, 2 and 5 times a power of ten; powers of two for bytes; whole numbers for counts that differ by one or more.
    """
    least = max(span / most, SMALLEST)
    if unit in _BINARY and least >= 1:
        return 2.0 ** math.ceil(math.log2(least) - 1e-9)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
    return max(step, 1.0) if unit in ("count", *_BINARY) and span >= 1 else step


def linear_ticks(low: float, high: float, most: int, unit: str = "") -> list[float]:
    """Multiples of ``step_of`` within the ends (low < high), rising."""
    span = high - low
    step = step_of(span, max(most - 1, 1), unit)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{place * step:.12g}") + 0.0 for place in range(first, last + 1)]


def logarithmic_ticks(low: float, high: float, most: int, unit: str = "") -> list[float]:
    """Powers within the ends (0 < low < high), parts of a decade where there is room; else as on a linear axis."""
    for candidates in _logarithmic_candidates(low, high, unit):
        ticks = [tick for tick in candidates if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(ticks) <= most:
            return ticks if len(ticks) > 1 else linear_ticks(low, high, most, unit)
    return linear_ticks(low, high, most, unit)


def _logarithmic_candidates(low: float, high: float, unit: str) -> list[list[float]]:
    """The densest first."""
    if unit in _BINARY:
        first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
        return [_powers(2.0, first, last, stride) for stride in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = _powers(10.0, first, last, 1)
    dense = [[factor * decade for decade in decades for factor in factors] for factors in ((1, 2, 5), (1, 3))]
    return [*dense, *(_powers(10.0, first, last, stride) for stride in (1, 2, 3, 6, 10, 20, 50, 100, 200))]


def _powers(base: float, first: int, last: int, stride: int) -> list[float]:
    start = math.ceil(first / stride) * stride
    return [base**power for power in range(start, last + 1, stride) if SMALLEST <= base**power <= LARGEST]


def label_ticks(values: Sequence[float], unit: str, *, shared: bool = True) -> list[str]:
    """Labels as short as can be, all different where the values are; ``shared``: all with the largest's prefix."""
    largest = max((abs(value) for value in values), default=0.0)
    written: list[str] = []
    for digits in (6, 9, 12, 17):
        written = [_label(value, largest if shared else abs(value), unit, digits) for value in values]
        if len(set(written)) == len(set(values)):
            break
    return written


def _label(value: float, magnitude: float, unit: str, digits: int) -> str:
    if unit in ("percent", "ratio"):
        return f"{_plain(value * (100 if unit == 'ratio' else 1), digits)} %"
    if unit == "":
        return _plain(value, digits)
    prefixes = _SECONDS if unit == "seconds" else _BYTES if unit in _BINARY else _THOUSANDS
    whole = {"seconds": (1e-9, "ns"), "bytes": (1.0, "B"), "bytes/s": (1.0, "B")}.get(unit, (1.0, ""))
    factor, name = next((pair for pair in prefixes if magnitude >= pair[0] * (1 - 1e-9)), whole)
    if value == 0:
        return "0"
    suffix = {"bytes/s": "/s", "operations/s": "/s", "hertz": "Hz", "watts": "W"}.get(unit, "")
    figure = _plain(value / factor, digits)
    # As quantities.py writes them: 500/s, 1.5 k/s, 800 Hz.
    return f"{figure}{suffix}" if not name and unit == "operations/s" else f"{figure} {name}{suffix}".rstrip()


def _plain(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    if "e" in text:
        return text
    return f"{float(text):,.{max(0, len(text.partition('.')[2]))}f}"
