"""A chart of a study as one SVG element."""

from __future__ import annotations

from dataclasses import dataclass

from rackscope.report.svg.elements import element, number, text
from rackscope.report.svg.frame import frame_of
from rackscope.report.svg.marks import draw_series, swatch
from rackscope.report.svg.text import describe_value
from rackscope.runs.study import Chart, Series


@dataclass(frozen=True)
class Size:
    """Of a drawing, in pixels; text is 12 pixels high at this size."""

    width: float
    height: float


#: As wide as a page, half of one, and a telephone's screen.
WIDE, HALF, NARROW = Size(860, 340), Size(510, 320), Size(352, 290)
_MARGIN = 16.0


def draw_chart(chart: Chart, size: Size = HALF) -> str:
    """The chart as an ``svg`` element of a page, whose style sheet gives colour roles their colours."""
    content, height = _content(chart, size)
    return _svg(chart, content, (0, 0, size.width, height))


def draw_document(chart: Chart, size: Size, style: str) -> str:
    """The chart as a document of its own: with its title, on paper, in the colours of ``style``."""
    content, height = _content(chart, size)
    title = text(chart.title, 0, -14, class_="title") if chart.title else ""
    left, top = -_MARGIN, -_MARGIN - (24 if title else 0)
    width, height = size.width + 2 * _MARGIN, height + _MARGIN - top
    paper = element("rect", x=left, y=top, width=width, height=height, class_="paper")
    return _svg(chart, element("style", style) + paper + title + content, (left, top, width, height), fixed=True)


def _content(chart: Chart, size: Size) -> tuple[str, float]:
    """What is drawn, and how tall it is."""
    legend = [(series.label, swatch(series, at)) for at, series in enumerate(chart.series)]
    frame = frame_of(chart, legend, size.width, size.height)
    if frame is None:
        return text("Nothing was measured that could be drawn.", 0, 34, class_="axis-label"), 60.0
    return frame.furniture + draw_series(chart, frame.x, frame.y) + frame.overlay, frame.height


def _svg(chart: Chart, content: str, box: tuple[float, float, float, float], *, fixed: bool = False) -> str:
    return element(
        "svg",
        content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=" ".join(map(number, box)),
        width=box[2] if fixed else None,
        height=box[3] if fixed else None,
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
