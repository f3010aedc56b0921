"""Lines and stacked areas over time or percentiles, as wide as the page makes them; report.js zooms into them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rackscope.report.charts import Distribution, Panel, Series, Style
from rackscope.report.clock import Array
from rackscope.report.quantities import format_tick_time
from rackscope.report.svg.elements import element, escape, line
from rackscope.report.svg.text import shorten, width_of
from rackscope.report.svg.ticks import label_ticks, linear_ticks, logarithmic_ticks
from rackscope.report.window import Window

#: The drawing's own units: fine enough that a stretched and zoomed line shows no steps.
WIDTH, HEIGHT = 10_000, 1_000
#: About how wide a panel is on a screen, in pixels: what decides which words fit.
_PIXELS = 740.0
_TIME_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
#: A ceiling further above the data than this would flatten what is drawn.
_FAR_ABOVE = 4.0


@dataclass(frozen=True)
class _Axis:
    """The vertical one."""

    low: float
    high: float
    logarithmic: bool

    def at(self, values: Array) -> Array:
        """In units of the drawing, from its top; NaN where there is no value."""
        low, high = self.low, self.high
        if self.logarithmic:
            values = np.log10(np.where(values > 0, values, np.nan))
            low, high = math.log10(low), math.log10(high)
        return HEIGHT * (1 - (values - low) / (high - low))


def draw_panel(panel: Panel, seconds: Array, span: tuple[float, float], windows: Sequence[Window]) -> str:
    """A panel over time as HTML around an ``svg``; ``seconds`` are those of its values, ``span`` those of the page."""
    xs = _along(seconds, span)
    highest = [_highest(panel.series)] + [one.value for one in panel.references]
    axis = _axis_of(panel.series, highest, logarithmic=panel.scale == "logarithmic", maximum=panel.maximum)
    shades = "".join(_shade(window, number_, span) for number_, window in enumerate(windows))
    marks = [_areas(panel.series, xs, axis)]
    marks += [_band(one, xs, axis) for one in panel.series if one.band is not None]
    marks += [_line(one.values, one.colour, one.style, xs, axis) for one in panel.series if one.style != "area"]
    for reference in panel.references:
        y = float(axis.at(np.array([reference.value]))[0])
        marks += [line(0, y, WIDTH, y, "reference")] if 0 <= y <= HEIGHT else []
    step = next((one for one in _TIME_STEPS if one >= (span[1] - span[0]) / (_PIXELS / 70)), _TIME_STEPS[-1])
    first = math.ceil(span[0] / step - 1e-9)
    ticks = [at * step for at in range(first, math.floor(span[1] / step + 1e-9) + 1)]
    labels = [(tick, format_tick_time(tick, step, span[1])) for tick in ticks]
    names = "".join(_phase_name(*one, span) for one in _phase_names(windows, span))
    return _framed(shades, "".join(marks), axis, panel.unit, _x_ticks(labels, span), names, most=4)


def draw_distribution(distribution: Distribution) -> str:
    """Latency over percentiles: each step to the right is one nine more."""
    nines = np.log10([1 / (1 - percentile) for percentile in distribution.percentiles])
    span = (0.0, max(float(nines[-1]), 1e-9))
    xs = _along(nines, span)
    series = [Series(one.label, np.array(one.values), one.colour, one.style) for one in distribution.curves]
    axis = _axis_of(series, [_highest(series)], logarithmic=True, maximum=None)
    marks = "".join(_line(one.values, one.colour, one.style, xs, axis) for one in series)
    ticks = [(math.log10(2), "p50")]
    ticks += [(float(at), f"p{100 * (1 - 10.0**-at):g}") for at in range(1, math.floor(span[1] + 1e-9) + 1)]
    upright = "".join(line(_place(at, span), 0, _place(at, span), HEIGHT, "grid") for at, _ in ticks)
    return _framed(upright, marks, axis, "seconds", _x_ticks(ticks, span), "", most=8)


def _framed(behind: str, marks: str, axis: _Axis, unit: str, x_ticks: str, names: str, most: int) -> str:
    ticks = (logarithmic_ticks if axis.logarithmic else linear_ticks)(axis.low, axis.high, most, unit)
    if axis.logarithmic:
        ticks = [tick for tick in ticks if abs(math.log10(tick) - round(math.log10(tick))) < 1e-9]
    places = axis.at(np.array(ticks, dtype=np.float64))
    grid = "".join(line(0, y, WIDTH, y, "grid") for y in places)
    box = f"0 0 {WIDTH} {HEIGHT}"
    drawing = element("svg", behind, grid, marks, viewBox=box, preserveAspectRatio="none", aria_hidden="true")
    labels = "".join(
        f'<span class="tick-y" style="top:{y / HEIGHT:.2%}">{escape(label)}</span>'
        for y, label in zip(places, label_ticks(ticks, unit, shared=not axis.logarithmic), strict=True)
    )
    return f'<div class="lines plot">{drawing}{labels}<div class="ticks-x">{x_ticks}</div>{names}</div>'


def _x_ticks(ticks: Iterable[tuple[float, str]], span: tuple[float, float]) -> str:
    return "".join(
        f'<span class="tick-x" style="left:{_place(at, span) / WIDTH:.2%}">{escape(label)}</span>'
        for at, label in ticks
    )


def _place(value: float, span: tuple[float, float]) -> float:
    return WIDTH * (value - span[0]) / max(span[1] - span[0], 1e-9)


def _along(values: Array, span: tuple[float, float]) -> Array:
    return WIDTH * (values - span[0]) / max(span[1] - span[0], 1e-9)


def _highest(series: Sequence[Series]) -> float:
    """Of what is drawn: of stacked areas their sum, of bands the upper edge."""
    areas = [np.nan_to_num(one.values) for one in series if one.style == "area"]
    drawn = [np.sum(areas, axis=0)] if areas else []
    drawn += [one.values for one in series if one.style != "area"]
    drawn += [one.band[1] for one in series if one.band is not None]
    return max((float(np.nanmax(one)) for one in drawn if np.isfinite(one).any()), default=0.0)


def _axis_of(series: Sequence[Series], highest: Sequence[float], *, logarithmic: bool, maximum: float | None) -> _Axis:
    """``highest``: of the data, and of references, which count where they are not far above the data."""
    if logarithmic:
        positive = [one.values[one.values > 0] for one in series]
        low = min((float(values.min()) for values in positive if len(values)), default=1e-6)
        bottom = 10.0 ** math.floor(math.log10(low) + 1e-9)
        return _Axis(bottom, max(highest[0] * 1.15, bottom * 10), True)
    if maximum is not None:
        return _Axis(0.0, maximum, False)
    top = highest[0] if highest[0] > 0 else 1.0
    for value in highest[1:]:
        top = max(top, value) if value < _FAR_ABOVE * top else top
    return _Axis(0.0, 1.08 * top, False)


def _areas(series: Sequence[Series], xs: Array, axis: _Axis) -> str:
    """The top of the stack first, each lower one over it; one alone is a line above a shade."""
    areas = [one for one in series if one.style == "area"]
    below = np.zeros(len(xs))
    drawn = []
    for one in areas:
        top = below + one.values
        edge, kind = axis.at(top), "area" if len(areas) > 1 else "area area-alone"
        shapes = [_path([*run, (run[-1][0], HEIGHT), (run[0][0], HEIGHT)]) + "z" for run in _runs(xs, edge)]
        drawn.append(element("path", d="".join(shapes), class_=f"{kind} colour-{one.colour}"))
        drawn[-1] += _line(top, one.colour, "line", xs, axis)
        below = np.where(np.isfinite(top), top, below)
    return "".join(reversed(drawn))


def _band(series: Series, xs: Array, axis: _Axis) -> str:
    assert series.band is not None
    low, high = (axis.at(edge) for edge in series.band)
    both = np.where(np.isfinite(low), high, np.nan)
    shapes = []
    lower = {x: y for run in _runs(xs, low) for x, y in run}
    for run in _runs(xs, both):
        shapes.append(_path([*run, *((x, lower[x]) for x, _ in reversed(run) if x in lower)]) + "z")
    return element("path", d="".join(shapes), class_=f"band colour-{series.colour}")


def _line(values: Array | Sequence[float], colour: str, style: Style, xs: Array, axis: _Axis) -> str:
    d = "".join(_path(run) for run in _runs(xs, axis.at(np.asarray(values, dtype=np.float64))))
    return element("path", d=d, class_=f"line-mark {'' if style == 'line' else style} colour-{colour}")


def _runs(xs: Array, ys: Array) -> list[list[tuple[int, int]]]:
    """Points without a gap between them, in whole units."""
    known = np.isfinite(ys)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], known.astype(np.int8), [0]))))
    whole_x, whole_y = np.rint(xs).astype(int), np.rint(np.clip(np.nan_to_num(ys), -HEIGHT, 2 * HEIGHT)).astype(int)
    runs = zip(edges[::2], edges[1::2], strict=True)
    return [list(zip(whole_x[a:b].tolist(), whole_y[a:b].tolist(), strict=True)) for a, b in runs]


def _path(points: Sequence[tuple[int, int]]) -> str:
    """Relative coordinates, which are short."""
    steps = [f"{b[0] - a[0]} {b[1] - a[1]}" for a, b in itertools.pairwise(points)]
    return f"M{points[0][0]} {points[0][1]}" + (f"l{' '.join(steps)}".replace(" -", "-") if steps else "h0")


def _shade(window: Window, position: int, span: tuple[float, float]) -> str:
    kind = "other" if window.kind != "measure" else "measured" if position % 2 else "measured-next"
    start, end = _place(window.start_seconds, span), _place(window.end_seconds, span)
    return element("rect", x=start, y=0, width=end - start, height=HEIGHT, class_=f"phase phase-{kind}")


def _phase_name(text: str, start: float, end: float, span: tuple[float, float]) -> str:
    left, width = _place(start, span) / WIDTH, (end - start) / max(span[1] - span[0], 1e-9)
    return f'<span class="phase-name" style="left:{left:.2%};width:{width:.2%}">{escape(text)}</span>'


def _phase_names(windows: Sequence[Window], span: tuple[float, float]) -> list[tuple[str, float, float]]:
    """What is written above the phases: each name, else the number of the repetition, else one for all measured."""

    def fits(text: str, start: float, end: float) -> bool:
        return width_of(text) < _PIXELS * (end - start) / max(span[1] - span[0], 1e-9)

    names = [(one.label, one.start_seconds, one.end_seconds) for one in windows if one.kind != "measure"]
    measured = [one for one in windows if one.kind == "measure"]
    for text_of in (lambda one: one.label, lambda one: str(one.repetition or one.name)):
        each = [(text_of(one), one.start_seconds, one.end_seconds) for one in measured]
        if all(fits(*one) for one in each):
            return [one for one in [*names, *each] if fits(*one)]
    first, last = measured[0], measured[-1]
    same = all(one.name == first.name for one in measured)
    text = f"{first.name} {first.repetition} to {last.repetition}" if same else "measured"
    around = (shorten(text, _PIXELS), first.start_seconds, last.end_seconds)
    return [one for one in [*names, around] if fits(*one)]
