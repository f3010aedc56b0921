"""The panels over time, in the order in which they are shown: what was asked, what the host did, what it cost."""

from __future__ import annotations

from collections.abc import Callable

from rackscope.report.charts import Panel
from rackscope.report.panels import counters, devices, host, load, power
from rackscope.report.panels.source import PanelSource

_PANELS: tuple[Callable[[PanelSource], Panel | None], ...] = (
    load.throughput,
    load.response_time,
    host.cpu,
    host.memory,
    devices.disk,
    devices.network,
    host.pressure,
    host.processes,
    power.power,
    counters.cycles_per_instruction,
    counters.dram_bandwidth,
)


def build_panels(source: PanelSource) -> tuple[Panel, ...]:
    """All panels; one whose samples are missing says why, and that of power is left out."""
    return tuple(shown for panel in _PANELS if (shown := panel(source)) is not None)


__all__ = ["PanelSource", "build_panels"]
