"""A chart of a study as one SVG element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackscope.report.svg.elements import element, number, text
from rackscope.report.svg.frame import frame_of
from rackscope.report.svg.marks import draw_series, swatch
from rackscope.report.svg.text import describe_value

if TYPE_CHECKING:
    from rackscope.runs.study import Chart, Series


@dataclass(frozen=True)
class Size:
    """Of a drawing, in pixels; text is 12 pixels high at this size."""

    width: float
    height: float


#: As wide as a page, half of one, and a telephone's screen.
WIDE, HALF, NARROW = Size(860, 340), Size(510, 320), Size(352, 290)


def draw_chart(chart: Chart, size: Size = HALF, *, style: str = "") -> str:
    """The chart as an ``svg`` element. Colours are roles: without ``style`` the page's style sheet gives them."""
    frame = frame_of(chart, [(series.label, swatch(series, at)) for at, series in enumerate(chart.series)], *_of(size))
    if frame is None:
        height = 60.0
        content = text("Nothing was measured that could be drawn.", 0, 34, class_="axis-label")
    else:
        height = frame.height
        content = frame.furniture + draw_series(chart, frame) + frame.overlay
    return element(
        "svg",
        element("style", style) if style else "",
        element("rect", width=size.width, height=height, class_="paper") if style else "",
        content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(size.width)} {number(height)}",
        width=size.width if style else None,
        height=height if style else None,
        class_="plot",
        role="img",
        aria_label=describe_chart(chart),
    )


def describe_chart(chart: Chart) -> str:
    """What the chart shows, for those who do not see it."""
    against = " against ".join(label for label in (chart.y.label, chart.x.label) if label)
    parts = [f"{chart.title}.", f"{against}." if against else ""]
    parts += [_describe_series(chart, series) for series in chart.series]
    for reference in chart.references:
        value = describe_value(reference.value, chart.x if reference.axis == "x" else chart.y)
        parts.append(f"{reference.label} at {value}.")
    return " ".join(part for part in parts if part)


def _describe_series(chart: Chart, series: Series) -> str:
    known = [(x, y) for x, y in zip(series.x, series.y, strict=False) if y is not None]
    if not known:
        return f"{series.label}: not known."
    if len(known) <= 8:
        points = ", ".join(f"{describe_value(x, chart.x)} {describe_value(y, chart.y)}" for x, y in known)
        return f"{series.label}: {points}."
    lowest, highest = min(known, key=lambda point: point[1]), max(known, key=lambda point: point[1])
    ends = [f"{describe_value(y, chart.y)} at {describe_value(x, chart.x)}" for x, y in (lowest, highest)]
    return f"{series.label}: {len(known)} points, from {ends[0]} to {ends[1]}."


def _of(size: Size) -> tuple[float, float]:
    return size.width, size.height
