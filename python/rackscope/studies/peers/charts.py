"""The pictures of ``study peers``: ratios in every setting, latency over load, CPU time of both ends, memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.studies.peers.plan import MEMORY_ITEMS
from rackscope.studies.peers.summary import is_useful

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rackscope.analysis.intervals import Interval
    from rackscope.runs.study import Chart, Series
    from rackscope.studies.peers.carry_out import Outcome
    from rackscope.studies.peers.plan import Plan
    from rackscope.studies.peers.summary import Cell, Summary


def make_charts(plan: Plan, outcome: Outcome, summary: Summary) -> list[Chart]:
    """Those for which there is something to draw."""
    return [
        chart
        for chart in (
            _ratios(plan, summary),
            *_over_load(plan, outcome, summary),
            _cpu(plan, summary, "server", "CPU time of the server", lambda cell: cell.server_cpu),
            _cpu(plan, summary, "client", "CPU time of the client", lambda cell: cell.client_cpu),
            _memory(plan, summary),
        )
        # The subject beside itself is no picture.
        if any(series.x for series in chart.series[chart.identifier == "ratios" :])
    ]


def _ratios(plan: Plan, summary: Summary) -> Chart:
    from rackscope.runs.study import Axis, Chart, Reference, Series

    places: list[float | None] = [float(place) for place in range(len(summary.settings))]
    # Drawn too, so that a system has the same colour in every picture.
    series = [Series(label=plan.subject, kind="points", x=[1.0] * len(places), y=places)]
    for peer in plan.peers:
        known = [
            (float(place), summary.ratios[setting.name, peer].ratio)
            for place, setting in enumerate(summary.settings)
            if (setting.name, peer) in summary.ratios
        ]
        series.append(_lying(f"over {peer}", known))
    return Chart(
        identifier="ratios",
        title=f"Throughput of {plan.subject} over its peers'",
        caption="Ratio of means, with an interval that holds for all comparisons together.",
        x=Axis(label=f"throughput of {plan.subject} over that of the peer", scale="logarithmic"),
        y=Axis(label="", scale="category", categories=[setting.label for setting in summary.settings]),
        series=series,
        references=[Reference(label="the same", value=1.0, axis="x")],
    )


def _over_load(plan: Plan, outcome: Outcome, summary: Summary) -> list[Chart]:
    from rackscope.runs.study import Axis, Chart, Series

    charts = []
    best = outcome.best_rate or 0.0
    quantiles: list[tuple[str, str, Callable[[Cell], Interval | None]]] = [
        ("p99", "99th percentile", lambda cell: cell.p99),
        ("p50", "Median", lambda cell: cell.p50),
    ]
    for name, title, of in quantiles:
        series = []
        for system in plan.systems:
            cells = [(load, summary.loaded[load, system]) for load in plan.loads if (load, system) in summary.loaded]
            known = [
                (load * best, interval) for load, cell in cells if cell.keeps_up and (interval := of(cell)) is not None
            ]
            series.append(
                Series(
                    label=system,
                    x=[x for x, _ in known],
                    y=[interval.estimate for _, interval in known],
                    low=[interval.low for _, interval in known],
                    high=[interval.high for _, interval in known],
                )
            )
        charts.append(
            Chart(
                identifier=f"load-{name}",
                title=f"{title} of the response time over load",
                caption=f"At shares of {plan.baseline}'s best load; medians over rounds with their 95 % intervals. "
                "Loads that a system did not keep up with are left out.",
                x=Axis(label="requests a second", unit="operations/s"),
                y=Axis(label=f"response time, {name}", unit="seconds", scale="logarithmic"),
                series=series,
            )
        )
    return charts


def _cpu(plan: Plan, summary: Summary, identifier: str, title: str, of: Callable[[Cell], Interval | None]) -> Chart:
    from rackscope.runs.study import Axis, Chart

    series = []
    for system in plan.systems:
        known = [
            (float(place), interval)
            for place, setting in enumerate(summary.settings)
            if (cell := summary.cells.get((setting.name, system))) is not None and (interval := of(cell)) is not None
        ]
        series.append(_lying(system, known))
    return Chart(
        identifier=f"cpu-{identifier}",
        title=f"{title}, for a million operations",
        caption="Means over rounds with their 95 % intervals. A read of 100 keys is 100 operations.",
        x=Axis(label="CPU time for a million operations", unit="seconds", scale="logarithmic"),
        y=Axis(label="", scale="category", categories=[setting.label for setting in summary.settings]),
        series=series,
    )


def _memory(plan: Plan, summary: Summary) -> Chart:
    from rackscope.runs.study import Axis, Chart, Series

    systems = [name for name in plan.systems if name in summary.memory]
    is_scaled = any(not measured for _, measured in summary.memory.values())
    return Chart(
        identifier="memory",
        title=f"Memory that holds {MEMORY_ITEMS // 1_000_000} M items of 32 + 64 bytes",
        caption="Resident bytes" + (f", scaled from {plan.memory_items:,} items." if is_scaled else "."),
        x=Axis(label="resident", unit="bytes"),
        y=Axis(label="", scale="category", categories=systems),
        series=[
            Series(
                label="resident",
                kind="bars",
                x=[summary.memory[name][0] for name in systems],
                y=[float(place) for place in range(len(systems))],
            )
        ],
    )


def _lying(label: str, known: Sequence[tuple[float, Interval]]) -> Series:
    """Points that lie along the horizontal axis, one in each category."""
    from rackscope.runs.study import Series

    return Series(
        label=label,
        kind="points",
        x=[interval.estimate for _, interval in known],
        y=[place for place, _ in known],
        low=[interval.low if is_useful(interval) else None for _, interval in known],
        high=[interval.high if is_useful(interval) else None for _, interval in known],
    )
