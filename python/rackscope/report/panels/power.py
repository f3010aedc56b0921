"""Watts over time: of each domain that was metered, or of the host as it is modelled."""

from __future__ import annotations

from itertools import cycle

import numpy as np

from rackscope.analysis.power_trace import power_traces
from rackscope.report.charts import Colour, Panel
from rackscope.report.charts import Series as Drawn
from rackscope.report.panels.source import PanelSource

_COLOURS: tuple[Colour, ...] = ("blue", "orange", "magenta", "teal", "yellow", "red", "grey")
_METERED = "watts of each domain as metered; domains can lie within others, so they are not stacked"
_MODELLED = "watts, modelled from the CPU's use, not metered"
_BOTH = "watts of each domain as metered, and of the host as modelled from the CPU's use"


def power(source: PanelSource) -> Panel | None:
    """``None`` where no watts are known: most hosts have no meter, and an empty panel would say so in every report."""
    metered, modelled = _metered(source), _modelled(source)
    if not any(np.isfinite(one.values).any() for one in (*metered, *modelled)):
        return None
    caption = _BOTH if metered and modelled else _MODELLED if modelled else _METERED
    series = (*metered, *modelled)
    return source.panel("power", "Power", caption, "watts", series, metrics=("power_watts", "energy_joules_total"))


def _metered(source: PanelSource) -> list[Drawn]:
    energy, drawing = source.power.metered, source.host
    if energy is None or not energy.phases:
        return []
    traces = {trace.column: trace for trace in power_traces(source.samples)}
    series = []
    for domain, colour in zip(energy.phases[0].domains, cycle(_COLOURS), strict=False):
        values = traces[domain.column].watts_at(drawing.clock.seconds)
        means = [_mean(source, domain.domain, group.name, group.kind) for group in source.groups]
        series.append(drawing.series(f"{domain.domain} ({domain.meter})", values, colour, means=means))
    return series


def _modelled(source: PanelSource) -> list[Drawn]:
    modelled, busy = source.power.modelled, source.samples.find("cpu_busy_ratio")
    if modelled is None or busy is None:
        return []
    drawing = source.host
    values = modelled.model.middle(drawing.values(busy))
    found = [modelled.phase(group.name, group.kind) for group in source.groups]
    means = [one.modelled_mean_watts.value if one is not None else None for one in found]
    measured = [mean for mean, group in zip(means, source.groups, strict=True) if group.kind == "measure"]
    overall = measured[0] if len(measured) == 1 else None
    return [drawing.series("host (modelled)", values, "ink", "dashed", means=means, overall_mean=overall)]


def _mean(source: PanelSource, domain: str, phase: str, kind: str) -> float | None:
    """As the table has it: from the meter's own counter, over repetitions."""
    assert source.power.metered is not None
    found = source.power.metered.phase(phase, kind)
    one = next((one for one in found.domains if one.domain == domain), None) if found else None
    return one.mean_watts.estimate if one is not None and np.isfinite(one.mean_watts.estimate) else None
