"""Watts over time: of each domain that was metered, or of the host as it is modelled."""

from __future__ import annotations

import numpy as np

from rackscope.report.charts import Colour, Panel
from rackscope.report.charts import Series as Drawn
from rackscope.report.panels.source import PanelSource

_COLOURS: tuple[Colour, ...] = ("blue", "orange", "magenta", "teal", "yellow", "red", "grey")


def power(source: PanelSource) -> Panel | None:
    """``None`` where no watts are known: most hosts have no meter, and an empty panel would say so in every report."""
    metered, modelled = source.power.metered, source.power.modelled
    drawing = source.host
    series: list[Drawn] = []
    columns: list[str] = []
    if metered is not None and metered.phases:
        for domain, colour in zip(metered.phases[0].domains, _cycle(), strict=False):
            quantity = "power_watts" if domain.column.startswith("power_watts") else "power_from_energy_watts"
            derived = source.samples.find(quantity, domain=domain.domain, meter=domain.meter)
            if derived is None:
                continue
            values = drawing.values(derived)
            means = [_mean(source, domain.domain, group.name, group.kind) for group in source.groups]
            label = f"{domain.domain} ({domain.meter})"
            series.append(drawing.series(label, values, colour, means=means))
            columns.append(domain.column)
    caption = "watts of each domain as metered; domains can lie within others, so they are not stacked"
    busy = source.samples.find("cpu_busy_ratio")
    if modelled is not None and busy is not None:
        values = modelled.model.middle(drawing.values(busy))
        found = [modelled.phase(group.name, group.kind) for group in source.groups]
        means = [one.modelled_mean_watts.value if one is not None else None for one in found]
        measured = [mean for mean, group in zip(means, source.groups, strict=True) if group.kind == "measure"]
        overall = measured[0] if len(measured) == 1 else None
        series.append(drawing.series("host (modelled)", values, "ink", "dashed", means=means, overall_mean=overall))
        caption = "watts, modelled from the CPU's use, not metered"
    if not any(np.isfinite(one.values).any() for one in series):
        return None
    return source.panel("power", "Power", caption, "watts", series, metrics=("power_watts", "energy_joules_total"))


def _cycle() -> list[Colour]:
    return [_COLOURS[place % len(_COLOURS)] for place in range(64)]


def _mean(source: PanelSource, domain: str, phase: str, kind: str) -> float | None:
    """As the table has it: from the meter's own counter, over repetitions."""
    assert source.power.metered is not None
    found = source.power.metered.phase(phase, kind)
    one = next((one for one in found.domains if one.domain == domain), None) if found else None
    return one.mean_watts.estimate if one is not None and np.isfinite(one.mean_watts.estimate) else None
