"""Charts as data: what is drawn, in which unit and colour role; how it is drawn is the browser's matter."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rackscope.report.clock import Array
from rackscope.report.quantities import Unit, format_quantity

#: Colour roles; report.css gives each a light and a dark colour that people with any colour vision tell apart.
Colour = Literal["blue", "teal", "yellow", "red", "magenta", "orange", "grey", "ink"]
Style = Literal["area", "line", "dashed", "dotted"]


@dataclass(frozen=True)
class PhaseSummary:
    """Mean and extremes of a series over one phase, for the table beside the chart."""

    mean: float | None
    minimum: float | None
    maximum: float | None


@dataclass(frozen=True)
class Series:
    """One line or stacked area."""

    label: str
    values: Array
    colour: Colour
    style: Style = "line"
    #: Lowest and highest value within each bucket, drawn as a band.
    band: tuple[Array, Array] | None = None
    #: One a phase of ``Panel.phases``, in that order.
    summaries: tuple[PhaseSummary, ...] = ()
    #: Over all measured phases, or over the whole run where none was measured.
    overall: PhaseSummary = PhaseSummary(None, None, None)
    help: str = ""


@dataclass(frozen=True)
class Missing:
    """Why a chart cannot be drawn here, and what would make it possible."""

    reason: str
    advice: str = ""


@dataclass(frozen=True)
class Reference:
    """A level worth comparing with, such as a ceiling."""

    label: str
    value: float


@dataclass(frozen=True)
class Panel:
    """A chart over time that shares its axis and its cursor with all others."""

    identifier: str
    title: str
    caption: str
    unit: Unit
    clock: Literal["host", "load"]
    series: tuple[Series, ...] = ()
    missing: Missing | None = None
    scale: Literal["linear", "logarithmic"] = "linear"
    #: Top of the axis; None leaves it to the data.
    maximum: float | None = None
    references: tuple[Reference, ...] = ()
    phases: tuple[str, ...] = ()
    #: What ``Series.overall`` is over.
    overall_name: str = "whole run"
    #: Why what is drawn should not be believed; empty when it may be.
    distrust: str = ""

    @property
    def text_alternative(self) -> str:
        """What the chart shows, for those who do not see it."""
        if self.missing is not None:
            return f"{self.title}: not available. {self.missing.reason}"
        parts = [
            f"{series.label} {format_quantity(series.overall.mean, self.unit)}"
            for series in self.series
            if series.overall.mean is not None
        ]
        means = ", ".join(parts) or "nothing was sampled"
        return f"{self.title} over time, {self.caption}. Mean, {self.overall_name}: {means}."


@dataclass(frozen=True)
class Curve:
    """A latency distribution: seconds at each of ``Distribution.percentiles``; NaN where too few were measured."""

    label: str
    values: Sequence[float]
    colour: Colour
    style: Style
    at_p99: float = math.nan


@dataclass(frozen=True)
class Distribution:
    """Latency against percentile, the tail stretched: one nine more each step."""

    percentiles: Sequence[float]
    curves: tuple[Curve, ...]


def panel_data(panel: Panel) -> dict[str, Any]:
    return {
        "id": panel.identifier,
        "unit": panel.unit,
        "clock": panel.clock,
        "scale": panel.scale,
        "maximum": panel.maximum,
        "references": [{"label": item.label, "value": item.value} for item in panel.references],
        "series": [
            {
                "label": series.label,
                "colour": series.colour,
                "style": series.style,
                "values": plain_numbers(series.values),
                "band": None if series.band is None else [plain_numbers(edge) for edge in series.band],
            }
            for series in panel.series
        ],
    }


def distribution_data(distribution: Distribution) -> dict[str, Any]:
    """The distribution as the browser reads it; the horizontal axis counts nines: 1 / (1 - percentile)."""
    return {
        "id": "latency-distribution",
        "unit": "seconds",
        "nines": [significant(1.0 / (1.0 - percentile), 6) for percentile in distribution.percentiles],
        "series": [
            {
                "label": curve.label,
                "colour": curve.colour,
                "style": curve.style,
                "values": plain_numbers(curve.values),
            }
            for curve in distribution.curves
        ],
    }


def plain_numbers(values: Sequence[float] | Array) -> list[float | int | None]:
    """Four significant digits are more than a chart shows; what is not finite becomes null."""
    return [significant(float(value), 4) for value in values]


def significant(value: float, digits: int) -> float | int | None:
    """Rounded to so many significant digits; an integer where that is shorter; None when not finite."""
    if not math.isfinite(value):
        return None
    if value == 0:
        return 0
    rounded = round(value, digits - 1 - math.floor(math.log10(abs(value))))
    return int(rounded) if rounded == int(rounded) else rounded


def embed_json(data: Any) -> str:
    """JSON that is safe inside a script element: nothing in it can end the element or start a comment."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    for character, escape in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        text = text.replace(character, escape)
    return text
