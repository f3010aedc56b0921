"""The frame of a chart: axes with ticks and labels, the legend, references; and where a value is drawn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.report.svg.elements import element, line, text, tooltip
from rackscope.report.svg.marks import reference_swatch, written_values
from rackscope.report.svg.scales import Scale, is_drawable, linear_range, logarithmic_range
from rackscope.report.svg.text import describe_value, shorten, width_of, wrap
from rackscope.report.svg.ticks import label_ticks, linear_ticks, logarithmic_ticks
from rackscope.runs.study import Axis, Chart

_LINE = 16.0
_TICK_PIXELS, _GAP = 44.0, 8.0
_MOST_CATEGORY_LINES = 3
_LONGEST_TURNED = 120.0
#: What was chosen has few digits; what was measured has many.
_MOST_DIGITS = 4


@dataclass(frozen=True)
class Ticks:
    """Places on an axis and what is written at them."""

    values: tuple[float, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Frame:
    """The scales of what is drawn, and everything around it as SVG."""

    x: Scale
    y: Scale
    furniture: str
    #: On top of what is drawn: references and their labels.
    overlay: str
    height: float


def frame_of(chart: Chart, legend: Sequence[tuple[str, str]], width: float, height: float) -> Frame | None:
    """The chart on ``width`` by ``height``, ``legend`` around the origin; None where no point can be drawn."""
    xs, ys = _values(chart, "x"), _values(chart, "y")
    if not xs or not ys:
        return None
    if chart.y.scale == "category":
        height = max(height, 26.0 * len(chart.y.categories) + 90)
    if _has_bars(chart):
        # Bars leave no room for words on their own lines.
        legend = [*legend, *((one.label, reference_swatch()) for one in chart.references if one.axis == "y")]
    legend_svg, legend_height = _legend(legend, width)
    top = legend_height + (_LINE + 6 if chart.y.label else 8)
    y_range = _range(chart, "y", ys, steps=max(3, int((height - top - 44) / _TICK_PIXELS)))
    y_ticks = _ticks(chart.y, y_range, max(3, int((height - top - 44) / _TICK_PIXELS)) + 2)
    names = [shorten(label, 0.4 * width) for label in y_ticks.labels]
    left = max(map(width_of, names), default=0) + _GAP + 2
    beside = [width_of(value) for value in written_values(chart)] if chart.y.scale == "category" else []
    right = width - max([14.0, *(needed + 8 for needed in beside)])
    x_range = _range(chart, "x", xs, steps=0)
    x_ticks = _x_ticks(chart, x_range, xs, right - left)
    below, below_height = _x_labels(chart.x, x_ticks, Scale(chart.x.scale, *x_range, left, right), right - left)
    bottom = height - below_height - (_LINE + 4 if chart.x.label else 4)
    x = Scale(chart.x.scale, *x_range, left, right)
    ends = (top, bottom) if chart.y.scale == "category" else (bottom, top)
    y = Scale(chart.y.scale, *y_range, *ends)
    parts = [legend_svg, _grid(chart, x, y, x_ticks, y_ticks, (left, top, right, bottom))]
    for value, name in zip(y_ticks.values, names, strict=True):
        parts.append(text(name, left - _GAP, y.at(value) + 4, class_="tick", anchor="end"))
    parts.append(element("g", below, transform=f"translate(0 {bottom:.1f})"))
    if chart.y.label:
        parts.append(text(shorten(chart.y.label, width - 4), 0, legend_height + 11, class_="axis-label"))
    if chart.x.label:
        parts.append(text(shorten(chart.x.label, width - 4), right, height - 4, class_="axis-label", anchor="end"))
    overlay = _references(chart, x, y, (left, top, right, bottom))
    return Frame(x, y, "".join(parts), overlay, height)


def _has_bars(chart: Chart) -> bool:
    return any(series.kind == "bars" for series in chart.series)


def _values(chart: Chart, name: str) -> list[float]:
    """Everything that has to find room on an axis."""
    axis = chart.x if name == "x" else chart.y
    values: list[float] = []
    for series in chart.series:
        own = series.x if name == "x" else series.y
        others = series.y if name == "x" else series.x
        measured = (chart.y.scale == "category") == (name == "x")
        # The place of a bar that is not known has its mark, too.
        kept = series.kind == "bars" and not measured
        pairs = zip(own, others, strict=False)
        values += [value for value, other in pairs if value is not None and (kept or other is not None)]
        if measured:
            values += [end for ends in (series.low, series.high) for end in ends if end is not None]
        elif name == "x":
            values += [*series.x_low, *series.x_high]
    if not any(is_drawable(value, axis.scale) for value in values):
        return []
    values += [reference.value for reference in chart.references if reference.axis == name]
    return [value for value in values if is_drawable(value, axis.scale)]


def _range(chart: Chart, name: str, values: list[float], steps: int) -> tuple[float, float]:
    axis = chart.x if name == "x" else chart.y
    if axis.scale == "category":
        return -0.5, max(len(axis.categories), 1) - 0.5
    if axis.scale == "logarithmic":
        return logarithmic_range(values)
    measured = (chart.y.scale == "category") == (name == "x")
    bars = measured and _has_bars(chart)
    if bars and name == "y" and min(values) < 0:
        # Room for what is written below a bar that hangs.
        values = [*values, min(values) - 0.08 * (max(*values, 0.0) - min(values))]
    return linear_range(values, from_zero=bars, steps=steps, unit=axis.unit)


def _ticks(axis: Axis, ends: tuple[float, float], most: int) -> Ticks:
    if axis.scale == "category":
        stride = max(1, -(-len(axis.categories) // 60))
        places = range(0, len(axis.categories), stride)
        return Ticks(tuple(map(float, places)), tuple(axis.categories[place] for place in places))
    find = logarithmic_ticks if axis.scale == "logarithmic" else linear_ticks
    values = find(*ends, most, axis.unit)
    return Ticks(tuple(values), tuple(label_ticks(values, axis.unit, shared=axis.scale == "linear")))


def _x_ticks(chart: Chart, ends: tuple[float, float], values: list[float], width: float) -> Ticks:
    """Where few values were chosen (threads of 1, 2 and 4), those; else as on any axis."""
    if chart.x.scale == "category":
        return _ticks(chart.x, ends, 0)
    chosen = sorted({value for series in chart.series for value in series.x if value in values})
    if 1 < len(chosen) <= 8 and chart.y.scale != "category":
        labels = label_ticks(chosen, chart.x.unit, shared=False)
        are_round = all(sum(map(str.isdigit, label)) <= _MOST_DIGITS for label in labels)
        scale = Scale(chart.x.scale, *ends, 0, width)
        if are_round and _is_free(scale, chosen, labels):
            return Ticks(tuple(chosen), tuple(labels))
    for most in range(max(3, int(width / 56)), 2, -1):
        ticks = _ticks(chart.x, ends, most)
        if _is_free(Scale(chart.x.scale, *ends, 0, width), ticks.values, ticks.labels):
            break
    return ticks


def _is_free(scale: Scale, values: Sequence[float], labels: Sequence[str]) -> bool:
    """Whether no two labels touch."""
    places = [(scale.at(value), width_of(label) / 2) for value, label in zip(values, labels, strict=True)]
    return all(b[0] - b[1] - a[0] - a[1] >= 6 for a, b in itertools.pairwise(places))


def _x_labels(axis: Axis, ticks: Ticks, scale: Scale, width: float) -> tuple[str, float]:
    """Labels below the axis, around y = 0 at its line, and how tall they are."""
    if axis.scale != "category":
        parts = []
        for value, label in zip(ticks.values, ticks.labels, strict=True):
            half = width_of(label) / 2
            place = min(max(scale.at(value), half), scale.end + 14 - half)
            parts.append(text(label, place, _LINE, class_="tick", anchor="middle"))
        return "".join(parts), _LINE + 4
    room = width / max(len(ticks.values), 1) - 6
    wrapped = [wrap(label, room, _MOST_CATEGORY_LINES) for label in ticks.labels]
    lines = [found for found in wrapped if found is not None]
    if len(lines) == len(wrapped):
        parts = [
            text(row, scale.at(value), _LINE + 14 * number, class_="tick", anchor="middle")
            for value, found in zip(ticks.values, lines, strict=True)
            for number, row in enumerate(found)
        ]
        return "".join(parts), _LINE + 4 + 14 * (max(map(len, lines), default=1) - 1)
    parts = []
    tallest = 0.0
    for value, label in zip(ticks.values, ticks.labels, strict=True):
        # The first ones must not leave the drawing at its left.
        name = shorten(label, min(_LONGEST_TURNED, (scale.at(value) - 4) / 0.79 + 6))
        tallest = max(tallest, 0.62 * width_of(name))
        turned = text(name, scale.at(value) + 4, _LINE - 2, class_="tick", anchor="end", rotate=-38)
        parts.append(element("g", tooltip(label), turned))
    return "".join(parts), tallest + _LINE


def _legend(entries: Sequence[tuple[str, str]], width: float) -> tuple[str, float]:
    if len(entries) < 2:
        return "", 0.0
    parts = []
    x, row = 0.0, 0
    for label, swatch in entries:
        name = shorten(label, width - 30)
        needed = 22 + width_of(name) + 14
        if x and x + needed - 14 > width:
            x, row = 0.0, row + 1
        name_svg = text(name, 22, 0, class_="legend-label")
        parts.append(element("g", swatch, name_svg, transform=f"translate({x:.1f} {13 + 18 * row})"))
        x += needed
    return element("g", *parts), 18.0 * (row + 1) + 8


def _grid(
    chart: Chart, x: Scale, y: Scale, x_ticks: Ticks, y_ticks: Ticks, area: tuple[float, float, float, float]
) -> str:
    left, top, right, bottom = area
    parts = []
    if chart.y.scale != "category":
        parts += [line(left, y.at(value), right, y.at(value), "grid") for value in y_ticks.values]
    if chart.x.scale != "category":
        kind = "grid" if chart.y.scale == "category" else "grid grid-upright"
        parts += [line(x.at(value), top, x.at(value), bottom, kind) for value in x_ticks.values]
    if chart.y.scale == "category":
        zero = x.clamped(0.0) if x.kind == "linear" else left
        parts.append(line(zero, top, zero, bottom, "axis"))
    else:
        zero = y.at(0.0) if y.kind == "linear" and y.low < 0 < y.high else bottom
        parts.append(line(left, zero, right, zero, "axis"))
    return "".join(parts)


def _references(chart: Chart, x: Scale, y: Scale, area: tuple[float, float, float, float]) -> str:
    left, top, right, bottom = area
    parts = []
    taken: list[float] = []
    upright = 0
    for reference in chart.references:
        axis, scale = (chart.x, x) if reference.axis == "x" else (chart.y, y)
        if not scale.draws(reference.value):
            continue
        place = scale.at(reference.value)
        value = describe_value(reference.value, axis)
        label = shorten(reference.label, right - left - 8)
        hint = tooltip(f"{reference.label}: {value}")
        words = ""
        if reference.axis == "y":
            # Labels of lines that lie close together stand on both sides.
            above = place - 15 > top - 8 and not any(abs(place - other) < 15 for other in taken)
            taken.append(place)
            if not _has_bars(chart):
                words = text(
                    label, right - 2, place - 5 if above else place + 14, class_="reference-label", anchor="end"
                )
            drawn = line(left, place, right, place, "reference")
        else:
            to_left = place + width_of(label) + 8 > right and place - width_of(label) - 8 > left
            words = text(
                label,
                place + (-5 if to_left else 5),
                top + 11 + 15 * upright,
                class_="reference-label",
                anchor="end" if to_left else "start",
            )
            upright += 1
            drawn = line(place, top, place, bottom, "reference")
        parts.append(element("g", hint, drawn, words))
    return "".join(parts)
