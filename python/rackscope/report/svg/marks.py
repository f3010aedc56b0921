"""Lines, points and bars with their intervals, in a frame."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rackscope.report.svg.elements import element, line, number, path, text, tooltip
from rackscope.report.svg.scales import Scale
from rackscope.report.svg.text import describe_value, describe_values, width_of
from rackscope.runs.study import Chart, Series

#: Colour roles of report.css in the order in which they are given out; shapes tell apart what comes after.
COLOURS = ("blue", "orange", "teal", "magenta", "red", "yellow", "grey")
_SHAPES = ("circle", "square", "diamond", "triangle")
_MOST_DOTS, _MOST_VALUES = 80, 14
_WIDEST_BAR = 46.0


@dataclass(frozen=True)
class Mark:
    """A point in pixels, along the axis that was varied and along the one that was measured."""

    along: float
    value: float | None
    low: float | None
    high: float | None
    #: Ends of the interval along the axis that was varied, where that is uncertain, too.
    across: tuple[float, float] | None
    #: The value in digits, and the whole of what there is to say.
    digits: str
    words: str


def swatch(series: Series, place: int) -> str:
    """What the legend shows of a series, 14 pixels wide around the origin."""
    if series.kind == "bars":
        return element("rect", x=1, y=-10, width=13, height=10, rx=2, class_=f"bar-mark {_colour(place)}")
    stroke = element("path", d="M0 -4L15 -4", class_=_line_class(place)) if series.kind == "line" else ""
    return stroke + _dot(7.5, -4, place)


def reference_swatch() -> str:
    return line(0, -4, 16, -4, "reference")


def written_values(chart: Chart) -> list[str]:
    """The values that are written beside bars; none where there are too many."""
    series = [one for one in chart.series if one.kind == "bars"]
    if sum(len(one.x) for one in series) > _MOST_VALUES:
        return []
    axis = chart.x if _is_flat(chart) else chart.y
    return [written for one in series for written in describe_values(_sides(chart, one)[1], axis)]


def draw_series(chart: Chart, x: Scale, y: Scale) -> str:
    """All series, those with areas first so that lines lie above them."""
    flat = _is_flat(chart)
    along, measured = (y, x) if flat else (x, y)
    order = sorted(range(len(chart.series)), key=lambda place: chart.series[place].kind != "bars")
    bars = [place for place in order if chart.series[place].kind == "bars"]
    pencil = _Pencil(flat, along, measured)
    drawn = []
    for place in order:
        series = chart.series[place]
        shift, width = _slot(chart, along, bars, place)
        marks = _marks(chart, series, along, measured, shift)
        if series.kind == "bars":
            few = bool(written_values(chart))
            drawn.append(pencil.bars(marks, width, place, written=few, alone=len(bars) == 1))
        else:
            drawn.append(pencil.points(marks, place, joined=series.kind == "line", category=along.kind == "category"))
    return "".join(element("g", part, class_="series") for part in drawn)


def describe_point(chart: Chart, series: Series, at: int) -> str:
    """``4 threads, 1.00 KiB: 101,240/s (95 % interval 99,800/s to 102,700/s)``."""
    varied, measured = _sides(chart, series)
    axis, varied_axis = (chart.x, chart.y) if _is_flat(chart) else (chart.y, chart.x)
    name = f"{series.label}, " if len(chart.series) > 1 else ""
    value = "not known" if measured[at] is None else describe_value(measured[at], axis)
    words = f"{name}{describe_value(varied[at], varied_axis)}: {value}"
    low, high = _end(series.low, at), _end(series.high, at)
    if low is None and high is None:
        return words
    return f"{words} ({100 * series.level:.0f} % interval {describe_value(low, axis)} to {describe_value(high, axis)})"


def _is_flat(chart: Chart) -> bool:
    """Whether categories stand on the vertical axis, so that what was measured lies along the other."""
    return chart.y.scale == "category"


def _sides(chart: Chart, series: Series) -> tuple[Sequence[float | None], Sequence[float | None]]:
    """Values along the axis that was varied, and along the one that was measured."""
    return (series.y, series.x) if _is_flat(chart) else (series.x, series.y)


def _end(ends: Sequence[float | None], at: int) -> float | None:
    return ends[at] if at < len(ends) else None


def _marks(chart: Chart, series: Series, along: Scale, measured: Scale, shift: float) -> list[Mark]:
    marks = []
    digits = describe_values(_sides(chart, series)[1], chart.x if _is_flat(chart) else chart.y)
    for at, (where, value) in enumerate(zip(*_sides(chart, series), strict=True)):
        if where is None or not along.draws(where):
            continue
        low, high = _end(series.low, at), _end(series.high, at)
        marks.append(
            Mark(
                along=along.at(where) + shift,
                value=measured.at(value) if value is not None and measured.draws(value) else None,
                low=None if low is None else measured.clamped(low),
                high=None if high is None else measured.clamped(high),
                across=None if _is_flat(chart) else _across(series, along, at),
                digits=digits[at],
                words=describe_point(chart, series, at),
            )
        )
    return marks


def _across(series: Series, along: Scale, at: int) -> tuple[float, float] | None:
    if at >= min(len(series.x_low), len(series.x_high)):
        return None
    return along.clamped(series.x_low[at]), along.clamped(series.x_high[at])


def _slot(chart: Chart, along: Scale, bars: list[int], place: int) -> tuple[float, float]:
    """How far beside its place a series is drawn, and how wide a bar of it is."""
    if along.kind == "category":
        band = abs(along.at(1) - along.at(0))
    else:
        values = {at for series in chart.series for at in _sides(chart, series)[0] if along.draws(at)}
        places = sorted(along.at(at) for at in values if at is not None)
        gaps = [b - a for a, b in itertools.pairwise(places)]
        band = min(gaps, default=80.0)
    if place in bars:
        width = min(0.74 * band / len(bars), _WIDEST_BAR)
        return (bars.index(place) - (len(bars) - 1) / 2) * width, max(width - 1.5, 1.0)
    others = [at for at in range(len(chart.series)) if at not in bars]
    if along.kind != "category" or len(others) < 2:
        return 0.0, 0.0
    step = min(0.6 * band / len(others), 12.0)
    return (others.index(place) - (len(others) - 1) / 2) * step, 0.0


@dataclass(frozen=True)
class _Pencil:
    """Draws upright or, where categories stand on the vertical axis, lying."""

    flat: bool
    along: Scale
    measured: Scale

    def at(self, along: float, value: float) -> tuple[float, float]:
        return (value, along) if self.flat else (along, value)

    def bars(self, marks: list[Mark], width: float, place: int, *, written: bool, alone: bool) -> str:
        base = self.measured.clamped(0.0) if self.measured.kind == "linear" else self.measured.start
        drawn = []
        for mark in marks:
            if mark.value is None:
                x, y = self.at(mark.along, base)
                words = text(
                    "?", x + (6 if self.flat else 0), y + (4 if self.flat else -5), class_="unknown", anchor="middle"
                )
                drawn.append(element("g", tooltip(mark.words), words))
                continue
            a, b = self.at(mark.along - width / 2, base), self.at(mark.along + width / 2, mark.value)
            rect = element(
                "rect",
                x=min(a[0], b[0]),
                y=min(a[1], b[1]),
                width=abs(a[0] - b[0]),
                height=abs(a[1] - b[1]),
                class_=f"bar-mark {_colour(place)}",
            )
            whisker = self.whisker(mark, min(width / 4, 5), "whisker")
            words = self._value(mark, base, width, alone=alone) if written else ""
            drawn.append(element("g", tooltip(mark.words), rect, whisker, words))
        return "".join(drawn)

    def _value(self, mark: Mark, base: float, width: float, *, alone: bool) -> str:
        """The value in digits at the end of its bar, where it has room."""
        words = mark.digits
        ends = [end for end in (mark.value, mark.low, mark.high) if end is not None]
        if self.flat:
            return text(words, max(ends) + 6, mark.along + 4, class_="value")
        if width_of(words) > width + (30 if alone else 2):
            return ""
        below = (mark.value or base) > base
        return text(words, mark.along, max(ends) + 14 if below else min(ends) - 5, class_="value", anchor="middle")

    def points(self, marks: list[Mark], place: int, *, joined: bool, category: bool) -> str:
        known = [(mark, mark.value) for mark in marks if mark.value is not None]
        drawn = []
        rising = all(a.along < b.along for a, b in itertools.pairwise(marks))
        banded = joined and rising and not category and sum(mark.low is not None for mark in marks) > 1
        if banded:
            drawn += [self._band(window, place) for window in _windows(marks, lambda mark: mark.low is not None)]
        if joined:
            for window in _windows(marks, lambda mark: mark.value is not None):
                corners = [self.at(mark.along, mark.value) for mark in window if mark.value is not None]
                if len(corners) > 1:
                    drawn.append(element("path", d=path(corners), class_=_line_class(place)))
        if len(known) <= _MOST_DOTS:
            for mark, value in known:
                x, y = self.at(mark.along, value)
                # A larger target than what is seen, for fingers and trembling hands.
                target = element("circle", cx=x, cy=y, r=9, class_="target")
                whisker = "" if banded else self.whisker(mark, 4, f"whisker {_colour(place)}")
                drawn.append(element("g", tooltip(mark.words), target, whisker, _dot(x, y, place)))
        return "".join(drawn)

    def whisker(self, mark: Mark, cap: float, class_: str) -> str:
        corners = []
        if mark.low is not None and mark.high is not None:
            corners = [
                [self.at(mark.along, mark.low), self.at(mark.along, mark.high)],
                *([self.at(mark.along - cap, end), self.at(mark.along + cap, end)] for end in (mark.low, mark.high)),
            ]
        if mark.across is not None and mark.value is not None:
            corners += [
                [self.at(end, mark.value) for end in mark.across],
                *([self.at(end, mark.value - cap), self.at(end, mark.value + cap)] for end in mark.across),
            ]
        if not corners:
            return ""
        return element("path", d="".join(path(part) for part in corners), class_=class_)

    def _band(self, marks: list[Mark], place: int) -> str:
        lower = [self.at(mark.along, mark.low) for mark in marks if mark.low is not None]
        upper = [self.at(mark.along, mark.high) for mark in marks if mark.high is not None]
        return element("path", d=path([*lower, *reversed(upper)], closed=True), class_=f"band {_colour(place)}")


def _windows(marks: list[Mark], holds: Callable[[Mark], bool]) -> list[list[Mark]]:
    """Runs of neighbours of which something holds: a line is not drawn across what is not known."""
    found: list[list[Mark]] = [[]]
    for mark in marks:
        if holds(mark):
            found[-1].append(mark)
        elif found[-1]:
            found.append([])
    return [window for window in found if window]


def _colour(place: int) -> str:
    return f"colour-{COLOURS[place % len(COLOURS)]}"


def _line_class(place: int) -> str:
    dashes = ("", " dashed", " dotted")[place // len(COLOURS) % 3]
    return f"line-mark {_colour(place)}{dashes}"


def _dot(x: float, y: float, place: int) -> str:
    class_ = f"dot {_colour(place)}"
    shape = _SHAPES[place % len(_SHAPES)]
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=3.6, class_=class_)
    if shape == "square":
        return element("rect", x=x - 3.2, y=y - 3.2, width=6.4, height=6.4, class_=class_)
    corners = [(0, -4.6), (4.6, 0), (0, 4.6), (-4.6, 0)] if shape == "diamond" else [(0, -4.6), (4.3, 3.4), (-4.3, 3.4)]
    points = " ".join(f"{number(x + dx)},{number(y + dy)}" for dx, dy in corners)
    return element("polygon", points=points, class_=class_)
