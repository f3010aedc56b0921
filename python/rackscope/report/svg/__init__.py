"""Charts of studies as SVG, drawn without a browser: inside pages, and as files for documents."""

from rackscope.report.svg.chart import HALF, NARROW, WIDE, Size, describe_chart, draw_chart
from rackscope.report.svg.file import write_chart_svg
from rackscope.report.svg.text import describe_value

__all__ = [
    "HALF",
    "NARROW",
    "WIDE",
    "Size",
    "describe_chart",
    "describe_value",
    "draw_chart",
    "write_chart_svg",
]
