"""The panels over time, in the order in which they are shown: what was asked, what the host did, what it cost."""

from __future__ import annotations

from rackscope.report.charts import Panel
from rackscope.report.panels import counters, devices, host, load
from rackscope.report.panels.source import PanelSource

_PANELS = (
    load.throughput,
    load.response_time,
    host.cpu,
    host.memory,
    devices.disk,
    devices.network,
    host.pressure,
    host.processes,
    counters.cycles_per_instruction,
    counters.dram_bandwidth,
)


def build_panels(source: PanelSource) -> tuple[Panel, ...]:
    """All panels; one whose samples are missing says why."""
    return tuple(panel(source) for panel in _PANELS)


__all__ = ["PanelSource", "build_panels"]
