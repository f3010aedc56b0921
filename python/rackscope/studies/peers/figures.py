"""The tables and charts of ``study peers``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rackscope.analysis.intervals import Interval, relative_half_width
from rackscope.analysis.wording import percent
from rackscope.runs.study import Chart, Table
from rackscope.studies.kit import (
    Row,
    axis,
    chart,
    drawable,
    estimates,
    line,
    ratio_words,
    reference,
    table,
    value,
)
from rackscope.studies.peers.measure import Outcome
from rackscope.studies.peers.plan import MEMORY_ITEMS, Plan
from rackscope.studies.peers.summary import Cell, Summary

_MANY = f"{MEMORY_ITEMS // 1_000_000} M items"


def make_tables(plan: Plan, outcome: Outcome, summary: Summary) -> list[Table]:
    """Throughput and CPU time in every setting, latency at every load, memory: those of which there is something."""
    return [*_settings(plan, summary), *_loads(plan, outcome, summary), *_memory_table(plan, outcome, summary)]


def _settings(plan: Plan, summary: Summary) -> list[Table]:
    rows: list[Row] = []
    for setting in summary.settings:
        for name in plan.systems:
            if (cell := summary.cells.get((setting.name, name))) is None:
                continue
            half, ratio = relative_half_width(cell.rate), summary.ratios.get((setting.name, name))
            rows.append(
                [
                    *(setting.label, name, cell.rate.estimate, None if half is None else 100 * half),
                    *(None if ratio is None else ratio_words(ratio.ratio), value(cell.server_cpu)),
                    *(value(cell.client_cpu), cell.both_cpu),
                ]
            )
    columns: list[Sequence[str]] = [
        "setting",
        "system",
        ("throughput", "operations/s"),
        ("±", "percent", "Half of the 95 % interval"),
        f"{plan.subject} / this",
        ("server", "seconds", "CPU time of the server for a million operations"),
        ("client", "seconds", "CPU time of the client for a million operations"),
        ("both", "seconds"),
    ]
    caption = (
        "Means over rounds. CPU times are for a million operations; a read of 100 keys is 100 operations. "
        "Ratios have intervals that hold for all comparisons together (95 %)."
    )
    return table("settings", "Throughput and CPU time", columns, rows, caption)


def _loads(plan: Plan, outcome: Outcome, summary: Summary) -> list[Table]:
    rows: list[Row] = []
    for load in plan.loads:
        for name in plan.systems:
            if (cell := summary.loaded.get((load, name))) is None:
                continue
            tail = summary.tails.get((load, name))
            rows.append(
                [
                    *(percent(load), name, load * (outcome.best_rate or 0.0), cell.rate.estimate, value(cell.p50)),
                    *(value(cell.p99), None if tail is None else ratio_words(tail.ratio), cell.keeps_up),
                ]
            )
    columns: list[Sequence[str]] = ["load", "system", ("offered", "operations/s"), ("completed", "operations/s")]
    columns += [("p50", "seconds"), ("p99", "seconds"), f"p99: {plan.subject} / this", "keeps up"]
    return table(
        "loads",
        f"Latency at fractions of {plan.baseline}'s highest throughput",
        columns,
        rows,
        "Response times from the intended start (Poisson arrivals), medians over rounds.",
    )


def _memory_table(plan: Plan, outcome: Outcome, summary: Summary) -> list[Table]:
    own = summary.memory.get(plan.subject)
    rows: list[Row] = [
        [
            name,
            float(use.empty_bytes),
            float(use.full_bytes),
            (use.full_bytes - use.empty_bytes) / use.items,
            summary.memory[name][0],
            None if own is None or name == plan.subject else f"x{own[0] / summary.memory[name][0]:.2f}",
        ]
        for name in plan.systems
        if (use := outcome.memory.get(name)) is not None
    ]
    scaled = summary.memory_is_scaled
    columns: list[Sequence[str]] = [
        "system",
        ("empty", "bytes"),
        (f"with {plan.memory_items:,}", "bytes"),
        ("an item", "bytes"),
    ]
    columns += [(f"{_MANY}{', scaled' if scaled else ''}", "bytes"), f"{plan.subject} / this"]
    caption = f"Resident bytes, once. {_MANY} are scaled from what {plan.memory_items:,} take." if scaled else ""
    return table("memory", "Memory for items of 32 + 64 bytes", columns, rows, caption)


def make_charts(plan: Plan, outcome: Outcome, summary: Summary) -> list[Chart]:
    """Ratios in every setting, latency over load, CPU time of both ends, memory: those with something to draw."""
    charts = [
        _ratios(plan, summary),
        _over_load(plan, outcome, summary, "p99", "99th percentile", lambda cell: cell.p99),
        _over_load(plan, outcome, summary, "p50", "Median", lambda cell: cell.p50),
        _cpu(plan, summary, "server", lambda cell: cell.server_cpu),
        _cpu(plan, summary, "client", lambda cell: cell.client_cpu),
        _memory_chart(plan, summary),
    ]
    # The subject beside itself is no picture.
    return [one for one in charts if any(series.x for series in one.series[one.identifier == "ratios" :])]


def _ratios(plan: Plan, summary: Summary) -> Chart:
    positions = [float(position) for position in range(len(summary.settings))]
    # Drawn too, so that a system has the same colour in every picture.
    series = [line(plan.subject, [1.0] * len(positions), positions, "points")]
    for peer in plan.peers:
        known = [
            (float(position), drawable(summary.ratios[setting.name, peer].ratio))
            for position, setting in enumerate(summary.settings)
            if (setting.name, peer) in summary.ratios
        ]
        series.append(estimates(f"over {peer}", known, lying=True))
    return chart(
        "ratios",
        f"Throughput of {plan.subject} divided by each peer's",
        axis(f"throughput of {plan.subject} / throughput of the peer", logarithmic=True),
        axis("", categories=[setting.label for setting in summary.settings]),
        series,
        caption="Ratio of means, with an interval that holds for all comparisons together.",
        references=[reference("the same", 1.0, "x")],
    )


def _over_load(
    plan: Plan, outcome: Outcome, summary: Summary, name: str, title: str, of: Callable[[Cell], Interval | None]
) -> Chart:
    best = outcome.best_rate or 0.0
    series = []
    for system in plan.systems:
        cells = [(load, summary.loaded[load, system]) for load in plan.loads if (load, system) in summary.loaded]
        known = [(load * best, one) for load, cell in cells if cell.keeps_up and (one := of(cell)) is not None]
        series.append(estimates(system, known, "line"))
    return chart(
        f"load-{name}",
        f"{title} of the response time over load",
        axis("requests a second", "operations/s"),
        axis(f"response time, {name}", "seconds", logarithmic=True),
        series,
        caption=f"At fractions of {plan.baseline}'s highest throughput; medians over rounds with their 95 % intervals. "
        "Loads that a system did not keep up with are left out.",
    )


def _cpu(plan: Plan, summary: Summary, end: str, of: Callable[[Cell], Interval | None]) -> Chart:
    series = []
    for system in plan.systems:
        cells = [summary.cells.get((setting.name, system)) for setting in summary.settings]
        known = [
            (float(position), drawable(one))
            for position, cell in enumerate(cells)
            if cell is not None and (one := of(cell)) is not None
        ]
        series.append(estimates(system, known, lying=True))
    return chart(
        f"cpu-{end}",
        f"CPU time of the {end} for a million operations",
        axis("CPU time for a million operations", "seconds", logarithmic=True),
        axis("", categories=[setting.label for setting in summary.settings]),
        series,
        caption="Means over rounds with their 95 % intervals. A read of 100 keys is 100 operations.",
    )


def _memory_chart(plan: Plan, summary: Summary) -> Chart:
    systems = [name for name in plan.systems if name in summary.memory]
    sizes = [summary.memory[name][0] for name in systems]
    return chart(
        "memory",
        f"Memory that holds {_MANY} of 32 + 64 bytes",
        axis("resident", "bytes"),
        axis("", categories=systems),
        [line("resident", sizes, [float(position) for position in range(len(systems))], "bars")],
        caption=f"Resident bytes{f', scaled from {plan.memory_items:,} items' if summary.memory_is_scaled else ''}.",
    )
