"""What only the CPU's own counters tell: cycles per instruction and DRAM bandwidth."""

from __future__ import annotations

from rackscope.report.charts import Colour, Panel, Reference, Series, Style
from rackscope.report.panels.source import PanelSource

_SCOPES: tuple[tuple[str, Colour], ...] = (("host", "blue"), ("system", "orange"))


def cycles_per_instruction(source: PanelSource) -> Panel:
    return source.panel(
        "cpi",
        "CPI",
        "cycles per instruction; lower is better",
        "cycles",
        _by_scope(source, "cycles_per_instruction", "line"),
        metrics=("perf_cycles_total", "perf_instructions_total"),
    )


def dram_bandwidth(source: PanelSource) -> Panel:
    """Cache lines filled from DRAM, as bytes, against what calibration measured."""
    ceiling = source.run.facts.ceilings.get("dram_read_bytes_per_second")
    return source.panel(
        "dram-bandwidth",
        "DRAM bandwidth",
        "bytes per second that the cores read from DRAM",
        "bytes/s",
        _by_scope(source, "dram_read_bytes_per_second", "area"),
        metrics=("perf_dram_fills_total",),
        references=[Reference("measured ceiling", ceiling)] if ceiling else [],
    )


def _by_scope(source: PanelSource, quantity: str, first: Style) -> list[Series]:
    series: list[Series] = []
    for scope, colour in _SCOPES:
        derived = source.samples.find(quantity, scope=scope)
        if derived is not None:
            label = "whole host" if scope == "host" else source.system
            series.append(source.host.sum(label, [derived], colour, "line" if series else first))
    return series
