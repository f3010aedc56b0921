"""A chart as a file of its own, for documents; light and dark as its reader's screen is."""

from __future__ import annotations

import re
from pathlib import Path

from rackscope.report.build import asset
from rackscope.report.svg.chart import WIDE, draw_document
from rackscope.runs.files import write_atomically
from rackscope.runs.study import Chart


def write_chart_svg(chart: Chart, path: Path) -> None:
    """Write ``chart`` as an SVG file that needs nothing else. Raises RunDirectoryError."""
    drawn = draw_document(chart, WIDE, _style())
    write_atomically(path, f'<?xml version="1.0" encoding="UTF-8"?>\n{drawn}\n'.encode(), sync=False)


def _style() -> str:
    """The roles of report.css that charts use, and chart.css."""

    report = asset("report.css")
    light, dark = (_roles(block) for block in re.findall(r":root[^{]*\{([^}]*)\}", report)[:2])
    marks = "".join(re.findall(r"^\.colour-.*$", report, flags=re.MULTILINE))
    style = f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}{marks}{asset('chart.css')}"
    # In XML these would begin something; CSS here needs neither.
    if re.search(r"[<&]", style):
        raise ValueError("the style sheet of charts holds what XML would take for its own")
    return style


def _roles(block: str) -> str:
    """The custom properties of a rule, without the rest of it."""
    return "".join(f"{name}:{value};" for name, value in re.findall(r"(--[\w-]+):\s*([^;]+);", block))
