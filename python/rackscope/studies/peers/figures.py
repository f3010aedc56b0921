"""The tables and charts of ``study peers``."""

from __future__ import annotations

from collections.abc import Callable

from rackscope.analysis.intervals import Interval
from rackscope.analysis.wording import percent
from rackscope.runs.study import Chart, Table
from rackscope.studies.bench.cells import Cell, half_percent
from rackscope.studies.kit import (
    axis,
    chart,
    drawable,
    estimates_by,
    line,
    ratio_words,
    reference,
    table_of,
    value,
)
from rackscope.studies.peers.measure import Outcome
from rackscope.studies.peers.plan import MEMORY_ITEMS, Plan, Setting
from rackscope.studies.peers.summary import Summary

_MANY = f"{MEMORY_ITEMS // 1_000_000} M items"


def make_tables(plan: Plan, outcome: Outcome, summary: Summary) -> list[Table]:
    """Throughput and CPU time in every setting, latency at every load, memory: those of which there is something."""
    return [*_settings(plan, summary), *_loads(plan, outcome, summary), *_memory_table(plan, outcome, summary)]


def _settings(plan: Plan, summary: Summary) -> list[Table]:
    cells = [
        (setting, name, summary.cells[setting.name, name], summary.ratios.get((setting.name, name)))
        for setting in summary.settings
        for name in plan.systems
        if (setting.name, name) in summary.cells
    ]
    return table_of(
        "settings",
        "Throughput and CPU time",
        cells,
        [
            ("setting", lambda one: one[0].label),
            ("system", lambda one: one[1]),
            (("throughput", "operations/s"), lambda one: one[2].rate.estimate),
            (("±", "percent", "Half of the 95 % interval"), lambda one: half_percent(one[2].rate)),
            (f"{plan.subject} / this", lambda one: one[3] and ratio_words(one[3].ratio)),
            (
                ("server", "seconds", "CPU time of the server for a million operations"),
                lambda one: value(one[2].server_cpu),
            ),
            (
                ("client", "seconds", "CPU time of the client for a million operations"),
                lambda one: value(one[2].client_cpu),
            ),
            (("both", "seconds"), lambda one: one[2].both_cpu),
        ],
        "Means over rounds. CPU times are for a million operations; a read of 100 keys is 100 operations. "
        "Ratios have intervals that hold for all comparisons together (95 %).",
    )


def _loads(plan: Plan, outcome: Outcome, summary: Summary) -> list[Table]:
    cells = [
        (load, name, summary.loaded[load, name], summary.tails.get((load, name)))
        for load in plan.loads
        for name in plan.systems
        if (load, name) in summary.loaded
    ]
    return table_of(
        "loads",
        f"Latency at fractions of {plan.baseline}'s highest throughput",
        cells,
        [
            ("load", lambda one: percent(one[0])),
            ("system", lambda one: one[1]),
            (("offered", "operations/s"), lambda one: one[0] * (outcome.best_rate or 0.0)),
            (("completed", "operations/s"), lambda one: one[2].rate.estimate),
            (("p50", "seconds"), lambda one: value(one[2].p50)),
            (("p99", "seconds"), lambda one: value(one[2].p99)),
            (f"p99: {plan.subject} / this", lambda one: one[3] and ratio_words(one[3].ratio)),
            ("keeps up", lambda one: one[2].keeps_up),
        ],
        "Response times from the intended start (Poisson arrivals), medians over rounds.",
    )


def _memory_table(plan: Plan, outcome: Outcome, summary: Summary) -> list[Table]:
    own, items = summary.memory.get(plan.subject), f"{plan.memory_items:,}"
    scaled = summary.memory_is_scaled
    return table_of(
        "memory",
        "Memory for items of 32 + 64 bytes",
        [(name, outcome.memory[name], summary.memory[name][0]) for name in plan.systems if name in outcome.memory],
        [
            ("system", lambda one: one[0]),
            (("empty", "bytes"), lambda one: float(one[1].empty_bytes)),
            ((f"with {items}", "bytes"), lambda one: float(one[1].full_bytes)),
            (("an item", "bytes"), lambda one: (one[1].full_bytes - one[1].empty_bytes) / one[1].items),
            ((f"{_MANY}{', scaled' if scaled else ''}", "bytes"), lambda one: one[2]),
            (
                f"{plan.subject} / this",
                lambda one: None if own is None or one[0] == plan.subject else f"x{own[0] / one[2]:.2f}",
            ),
        ],
        f"Resident bytes, once. {_MANY} are scaled from what {items} take." if scaled else "",
    )


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
    def ratio(peer: str, setting: Setting) -> Interval | None:
        one = summary.ratios.get((setting.name, peer))
        return None if one is None else drawable(one.ratio)

    positions = [float(position) for position in range(len(summary.settings))]
    # Drawn too, so that a system has the same colour in every picture.
    own = line(plan.subject, [1.0] * len(positions), positions, "points")
    peers = {peer: f"over {peer}" for peer in plan.peers}
    return chart(
        "ratios",
        f"Throughput of {plan.subject} divided by each peer's",
        axis(f"throughput of {plan.subject} / throughput of the peer", logarithmic=True),
        axis("", categories=[setting.label for setting in summary.settings]),
        [own, *estimates_by(peers, summary.settings, ratio, lying=True)],
        caption="Ratio of means, with an interval that holds for all comparisons together.",
        references=[reference("the same", 1.0, "x")],
    )


def _over_load(
    plan: Plan, outcome: Outcome, summary: Summary, name: str, title: str, of: Callable[[Cell], Interval | None]
) -> Chart:
    def latency(system: str, load: float) -> Interval | None:
        cell = summary.loaded.get((load, system))
        return of(cell) if cell is not None and cell.keeps_up else None

    return chart(
        f"load-{name}",
        f"{title} of the response time over load",
        axis("requests a second", "operations/s"),
        axis(f"response time, {name}", "seconds", logarithmic=True),
        estimates_by(plan.systems, {load: load * (outcome.best_rate or 0.0) for load in plan.loads}, latency, "line"),
        caption=f"At fractions of {plan.baseline}'s highest throughput; medians over rounds with their 95 % intervals. "
        "Loads that a system did not keep up with are left out.",
    )


def _cpu(plan: Plan, summary: Summary, end: str, of: Callable[[Cell], Interval | None]) -> Chart:
    def cost(system: str, setting: Setting) -> Interval | None:
        cell = summary.cells.get((setting.name, system))
        return None if cell is None else drawable(of(cell))

    return chart(
        f"cpu-{end}",
        f"CPU time of the {end} for a million operations",
        axis("CPU time for a million operations", "seconds", logarithmic=True),
        axis("", categories=[setting.label for setting in summary.settings]),
        estimates_by(plan.systems, summary.settings, cost, lying=True),
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
