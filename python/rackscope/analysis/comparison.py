"""Two runs side by side: the ratio and the difference of each metric, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import polars as pl

    from rackscope.analysis.intervals import Interval

Difference = Literal["higher", "lower", "no difference seen", "too few repetitions to say"]
Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True)
class ComparisonRow:
    """One metric of run B against run A: ``ratio`` is B / A, ``difference`` B - A; intervals are of 95 %."""

    phase: str
    metric: str
    label: str
    unit: str
    a: Interval
    b: Interval
    ratio: Interval | None
    difference: Interval | None
    #: B against A.
    verdict: Difference
    better: Better
    #: ``True`` when B is better, ``False`` when worse, ``None`` when nothing was seen or neither is better.
    b_is_better: bool | None
    sentence: str


@dataclass(frozen=True)
class Comparison:
    """All metrics of two runs, and why the comparison may mislead."""

    rows: tuple[ComparisonRow, ...]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, strings and numbers."""
        return asdict(self)


def compare(
    results_a: pl.DataFrame,
    results_b: pl.DataFrame,
    *,
    settings_a: Mapping[str, Any] | None = None,
    settings_b: Mapping[str, Any] | None = None,
) -> Comparison:
    """Compare the measured phases of two results frames.

    ``settings_*`` are flat plain mappings from the two manifests (host, system, version, workload, client settings,
    knobs): what differs between them becomes a warning where it makes the comparison mislead.
    """
    raise NotImplementedError
