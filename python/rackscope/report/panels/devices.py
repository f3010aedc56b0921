"""Disks and network interfaces: bytes in both directions of the few that moved most."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rackscope.report.charts import Colour, Panel, Series, Style
from rackscope.report.panels.source import PanelSource

#: A device that never moved this many bytes a second is not worth a line.
QUIET_BYTES_PER_SECOND = 2_000.0
MAXIMUM_DEVICES = 3
_STYLES: tuple[Style, ...] = ("line", "dashed", "dotted")


def disk(source: PanelSource) -> Panel:
    return _directions(
        source,
        "disk",
        "Disk",
        metrics=("disk_read_bytes_total", "disk_write_bytes_total"),
        label="device",
        directions=(
            ("read", "disk_read_bytes_per_second", "blue"),
            ("write", "disk_write_bytes_per_second", "orange"),
        ),
    )


def network(source: PanelSource) -> Panel:
    return _directions(
        source,
        "network",
        "Network",
        metrics=("network_receive_bytes_total", "network_transmit_bytes_total"),
        label="interface",
        directions=(
            ("in", "network_receive_bytes_per_second", "blue"),
            ("out", "network_transmit_bytes_per_second", "orange"),
        ),
    )


def _directions(
    source: PanelSource,
    identifier: str,
    title: str,
    *,
    metrics: tuple[str, ...],
    label: str,
    directions: tuple[tuple[str, str, Colour], ...],
) -> Panel:
    samples, drawing = source.samples, source.host
    found = {
        direction: {derived.labels[label]: derived for derived in samples.find_all(quantity)}
        for direction, quantity, _ in directions
    }
    names = list(dict.fromkeys(name for devices in found.values() for name in devices))
    moved = {name: [drawing.values(devices[name]) for devices in found.values() if name in devices] for name in names}
    shown = _busiest(moved)
    series: list[Series] = []
    for name, style in zip(shown, _STYLES, strict=False):
        for direction, _, colour in directions:
            if name in found[direction]:
                # The first is filled: two equal lines, as of a loopback, would hide each other.
                drawn: Style = "area" if not series else style
                series.append(drawing.sum(f"{name} {direction}", [found[direction][name]], colour, drawn))
    caption = "bytes per second"
    quiet = len(names) - len(shown)
    if quiet:
        caption += f"; {quiet} quieter {label}{'s' if quiet != 1 else ''} left out"
    return source.panel(
        identifier,
        title,
        caption,
        "bytes/s",
        series,
        metrics=metrics,
    )


def _busiest(moved: Mapping[str, list[np.ndarray[tuple[int], np.dtype[np.float64]]]]) -> list[str]:
    """The devices that moved most; at least one, so that quiet is seen to be quiet."""
    ranked = sorted(moved, key=lambda name: -sum(float(np.nansum(values)) for values in moved[name]))
    active = [
        name
        for name in ranked
        if any(np.nanmax(values, initial=0.0) >= QUIET_BYTES_PER_SECOND for values in moved[name])
    ]
    return active[:MAXIMUM_DEVICES] or ranked[:1]
