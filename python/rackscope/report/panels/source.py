"""What panels are built from, and how derived series become drawn ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rackscope.analysis.context import Run
from rackscope.analysis.rates import Samples
from rackscope.analysis.rates import Series as Derived
from rackscope.report.charts import Colour, Missing, Panel, PhaseSummary, Reference, Series, Style
from rackscope.report.clock import Array, Buckets, Clock
from rackscope.report.energy import RunPower
from rackscope.report.quantities import Unit, as_sentence
from rackscope.report.window import PhaseGroup


class Drawing:
    """One clock's worth of drawing: full-resolution values in, points and summaries out."""

    def __init__(self, clock: Clock, groups: Sequence[PhaseGroup]) -> None:
        self.clock = clock
        self.buckets = Buckets.of(clock.seconds)
        self._spans = [group.spans for group in groups]
        measured = tuple(span for group in groups if group.kind == "measure" for span in group.spans)
        self._overall = measured
        self._masks = [clock.inside(spans) for spans in self._spans]
        self._overall_mask = clock.inside(measured) if measured else np.ones(len(clock.rows), dtype=bool)

    def values(self, derived: Derived) -> Array:
        """A derived series at every row of the clock."""
        return self.clock.place(*derived.by_row())

    def sum(
        self,
        label: str,
        parts: Sequence[Derived],
        colour: Colour,
        style: Style = "line",
        *,
        factor: float = 1.0,
        explanation: str = "",
    ) -> Series:
        """Derived series added up, their means over phases worked out from the counters as the findings' are."""
        values = factor * np.sum([self.values(part) for part in parts], axis=0)
        means = [_mean(parts, spans, factor) for spans in self._spans]
        overall = _mean(parts, self._overall, factor) if self._overall else None
        return self.series(label, values, colour, style, explanation=explanation, means=means, overall_mean=overall)

    def series(
        self,
        label: str,
        values: Array,
        colour: Colour,
        style: Style = "line",
        *,
        worst: bool = False,
        band: bool = False,
        explanation: str = "",
        means: Sequence[float | None] | None = None,
        overall_mean: float | None = None,
    ) -> Series:
        """Values at every row as a series; ``worst`` keeps the highest of each bucket, ``band`` shows its extremes."""
        known = [None] * len(self._masks) if means is None else means
        summaries = tuple(_summary(values[mask], mean) for mask, mean in zip(self._masks, known, strict=True))
        drawn = self.buckets.gather(values, "maximum" if worst else "mean")
        edges = None
        if band and self.buckets.width_seconds is not None:
            edges = (self.buckets.gather(values, "minimum"), self.buckets.gather(values, "maximum"))
        overall = _summary(values[self._overall_mask], overall_mean)
        return Series(label, drawn, colour, style, edges, summaries, overall, explanation)


def _mean(parts: Sequence[Derived], spans: Sequence[tuple[float, float]], factor: float) -> float | None:
    readings = [part.over(tuple(spans)).value for part in parts]
    known = [value for value in readings if value is not None]
    return factor * sum(known) if len(known) == len(readings) else None


def _summary(values: Array, mean: float | None) -> PhaseSummary:
    read: NDArray[np.float64] = values[np.isfinite(values)]
    if len(read) == 0:
        return PhaseSummary(mean, mean, mean)
    return PhaseSummary(float(read.mean()) if mean is None else mean, float(read.min()), float(read.max()))


@dataclass(frozen=True)
class PanelSource:
    samples: Samples
    groups: tuple[PhaseGroup, ...]
    #: The run as the analysis sees it: it knows why something is missing and what not to trust.
    run: Run
    power: RunPower = field(default_factory=RunPower)

    @property
    def system(self) -> str:
        return self.run.facts.system

    @cached_property
    def host(self) -> Drawing:
        return Drawing(Clock.of_source(self.samples, is_load=False), self.groups)

    @cached_property
    def load(self) -> Drawing:
        return Drawing(Clock.of_source(self.samples, is_load=True), self.groups)

    def panel(
        self,
        identifier: str,
        title: str,
        caption: str,
        unit: Unit,
        series: Sequence[Series],
        *,
        metrics: Sequence[str],
        is_load: bool = False,
        is_logarithmic: bool = False,
        maximum: float | None = None,
        references: Sequence[Reference] = (),
    ) -> Panel:
        """A panel of these series, made of ``metrics``, or of the reason why there are none."""
        drawing = self.load if is_load else self.host
        drawn = tuple(one for one in series if np.isfinite(one.values).any())
        absent = not drawn or drawing.clock.is_empty
        measured = any(group.kind == "measure" for group in self.groups)
        return Panel(
            identifier,
            title,
            caption,
            unit,
            "load" if is_load else "host",
            () if absent else drawn,
            self._missing(metrics, is_load=is_load) if absent else None,
            "logarithmic" if is_logarithmic else "linear",
            maximum,
            tuple(references),
            tuple(group.name for group in self.groups),
            "measured" if measured else "whole run",
            "" if absent else self.run.distrust(*metrics),
        )

    def _missing(self, metrics: Sequence[str], *, is_load: bool) -> Missing:
        if is_load:
            return Missing("The run holds no samples of the load generator.")
        reason, advice = self.run.missing(*metrics)
        return Missing(as_sentence(reason), advice)
