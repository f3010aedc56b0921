"""``--limit``: a smaller server than this one, in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from rackscope import units
from rackscope.errors import UsageError
from rackscope.squeezes.provision import Limits

_BITS_PER_BYTE = 8


def _cores(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"invalid number of cores '{text}'", "Write it like cpu=1.5.") from None


def _bits(text: str) -> float:
    return units.parse_rate_per_second(text) / _BITS_PER_BYTE


#: Name on the command line: the field of ``Limits``, and how its value is read.
_LIMITS: Mapping[str, tuple[str, Callable[[str], float]]] = {
    "cpu": ("cpu_cores", _cores),
    "memory": ("memory_bytes", units.parse_size_bytes),
    "disk": ("disk_bytes_per_second", units.parse_size_bytes),
    "disk-operations": ("disk_operations_per_second", units.parse_rate_per_second),
    "link": ("network_bytes_per_second", _bits),
}


def parse_limits(pairs: Sequence[str]) -> Limits:
    """``["cpu=1.5", "link=1g"]`` as limits. Raises UsageError that names what is wrong."""
    fields: dict[str, float] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if name not in _LIMITS or not sign:
            raise UsageError(
                f"invalid --limit: expected NAME=VALUE, got '{pair}'",
                f"Names are {', '.join(_LIMITS)}: for example --limit memory=512m.",
            )
        field, parse = _LIMITS[name]
        if field in fields:
            raise UsageError(f"--limit {name} is given twice", "Give it once.")
        try:
            fields[field] = parse(value)
        except UsageError as error:
            raise UsageError(f"--limit {name}: {error.what}", error.advice) from None
        if not 0 < fields[field] < math.inf:
            raise UsageError(f"invalid --limit {pair}", "Choose a value above zero.")
    memory = fields.pop("memory_bytes", None)
    return Limits(memory_bytes=None if memory is None else int(memory), **fields)


def describe_limits(limits: Limits) -> dict[str, float]:
    """The limits that there are, by field name."""
    return {field: float(value) for field, _ in _LIMITS.values() if (value := getattr(limits, field)) is not None}
