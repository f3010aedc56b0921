"""Bounds of latency as people write them: ``p99<1ms``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackscope.errors import UsageError
from rackscope.units import format_duration, parse_duration_seconds

#: Column of a result row, and fraction of requests beyond it, by the quantile's name.
QUANTILES = {
    "p50": ("response_p50_seconds", 0.5),
    "p90": ("response_p90_seconds", 0.1),
    "p99": ("response_p99_seconds", 0.01),
    "p999": ("response_p999_seconds", 0.001),
}
_BOUND = re.compile(r"\s*(p[0-9.]+)\s*(?:<=?|≤)\s*(\S.*?)\s*")
_EXAMPLE = "Write it like 'p99<1ms' (in quotes, as < means something to the shell)."
#: Requests beyond the quantile for a window to know it to about a tenth (1 / sqrt(100)).
_WANTED_BEYOND = 100
#: With fewer the quantile is that of a handful of requests.
FEWEST_BEYOND = 20


@dataclass(frozen=True)
class Bound:
    """``quantile`` (a key of QUANTILES) of the response time, from the intended start, below ``seconds``."""

    quantile: str
    seconds: float

    @property
    def beyond(self) -> float:
        """Fraction of the requests beyond the quantile."""
        return QUANTILES[self.quantile][1]

    @property
    def wanted_operations(self) -> float:
        """Requests that a window needs for the quantile to be known."""
        return _WANTED_BEYOND / self.beyond

    def describe(self) -> str:
        """``p99 below 1 ms``."""
        return f"{self.shown_quantile} below {_plain(self.seconds)}"

    @property
    def shown_quantile(self) -> str:
        """``p99.9`` of ``p999``."""
        return "p99.9" if self.quantile == "p999" else self.quantile


def parse_bound(text: str) -> Bound:
    """The bound of ``p99<1ms``. Raises UsageError with an example."""
    match = _BOUND.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not a bound of latency", _EXAMPLE)
    quantile = match[1].replace(".", "")
    if quantile not in QUANTILES:
        known = ", ".join(QUANTILES)
        raise UsageError(
            f"'{match[1]}' in '{text}' is not one of the quantiles that are measured", f"Known: {known}. {_EXAMPLE}"
        )
    try:
        seconds = parse_duration_seconds(match[2])
    except UsageError as error:
        raise UsageError(f"the bound '{text}': {error.what}", _EXAMPLE) from None
    if match[2].replace(".", "").isdigit():
        raise UsageError(f"the bound '{text}' has no unit of time", _EXAMPLE)
    return Bound(quantile, seconds)


def _plain(seconds: float) -> str:
    """A duration as a user writes it: 1 ms, not 1.00 ms."""
    number, _, unit = format_duration(seconds).partition(" ")
    return f"{float(number):g} {unit}"
