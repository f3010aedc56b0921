"""The tables of ``study peers``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.analysis.wording import percent
from rackscope.studies.peers.plan import MEMORY_ITEMS
from rackscope.studies.peers.summary import ratio_words

if TYPE_CHECKING:
    from rackscope.analysis.intervals import Interval
    from rackscope.runs.study import Table
    from rackscope.studies.peers.carry_out import Outcome
    from rackscope.studies.peers.plan import Plan
    from rackscope.studies.peers.summary import Summary


def settings_table(plan: Plan, summary: Summary) -> list[Table]:
    """Throughput and CPU time of every system in every setting; none before there is one."""
    from rackscope.runs.study import Column, Table

    rows: list[list[str | float | int | bool | None]] = []
    for setting in summary.settings:
        for name in plan.systems:
            cell = summary.cells.get((setting.name, name))
            if cell is None:
                continue
            ratio = summary.ratios.get((setting.name, name))
            rows.append(
                [
                    setting.label,
                    name,
                    cell.rate.estimate,
                    _half_width(cell.rate),
                    None if ratio is None else ratio_words(ratio),
                    None if cell.server_cpu is None else cell.server_cpu.estimate,
                    None if cell.client_cpu is None else cell.client_cpu.estimate,
                    cell.both_cpu,
                ]
            )
    if not rows:
        return []
    return [
        Table(
            identifier="settings",
            title="Throughput and CPU time",
            caption="Means over rounds. CPU times are for a million operations; a read of 100 keys is 100 operations. "
            "Ratios have intervals that hold for all comparisons together (95 %).",
            columns=[
                Column(name="setting"),
                Column(name="system"),
                Column(name="throughput", unit="operations/s"),
                Column(name="±", unit="percent", help="Half of the 95 % interval"),
                Column(name=f"{plan.subject} over it"),
                Column(name="server", unit="seconds", help="CPU time of the server for a million operations"),
                Column(name="client", unit="seconds", help="CPU time of the client for a million operations"),
                Column(name="both", unit="seconds"),
            ],
            rows=rows,
        )
    ]


def loads_table(plan: Plan, outcome: Outcome, summary: Summary) -> list[Table]:
    """Latency of every system at every load; none before there is one."""
    from rackscope.runs.study import Column, Table

    rows: list[list[str | float | int | bool | None]] = []
    for load in plan.loads:
        for name in plan.systems:
            cell = summary.loaded.get((load, name))
            if cell is None:
                continue
            tail = summary.tails.get((load, name))
            rows.append(
                [
                    percent(load),
                    name,
                    load * (outcome.best_rate or 0.0),
                    cell.rate.estimate,
                    None if cell.p50 is None else cell.p50.estimate,
                    None if cell.p99 is None else cell.p99.estimate,
                    None if tail is None else ratio_words(tail),
                    cell.keeps_up,
                ]
            )
    if not rows:
        return []
    return [
        Table(
            identifier="loads",
            title=f"Latency at shares of {plan.baseline}'s best load",
            caption="Response times from the intended start (Poisson arrivals), medians over rounds.",
            columns=[
                Column(name="load"),
                Column(name="system"),
                Column(name="offered", unit="operations/s"),
                Column(name="done", unit="operations/s"),
                Column(name="p50", unit="seconds"),
                Column(name="p99", unit="seconds"),
                Column(name=f"p99 of {plan.subject} over its"),
                Column(name="keeps up"),
            ],
            rows=rows,
        )
    ]


def memory_table(plan: Plan, outcome: Outcome, summary: Summary) -> list[Table]:
    """Resident memory; none before there is some."""
    from rackscope.runs.study import Column, Table

    own = summary.memory.get(plan.subject)
    rows: list[list[str | float | int | bool | None]] = [
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
    if not rows:
        return []
    many = f"{MEMORY_ITEMS // 1_000_000} M items"
    is_scaled = any(not measured for _, measured in summary.memory.values())
    return [
        Table(
            identifier="memory",
            title="Memory for items of 32 + 64 bytes",
            caption=f"Resident bytes, once. {many} are scaled from what {plan.memory_items:,} take."
            if is_scaled
            else "",
            columns=[
                Column(name="system"),
                Column(name="empty", unit="bytes"),
                Column(name=f"with {plan.memory_items:,}", unit="bytes"),
                Column(name="an item", unit="bytes"),
                Column(name=f"{many}{', scaled' if is_scaled else ''}", unit="bytes"),
                Column(name=f"{plan.subject} over it"),
            ],
            rows=rows,
        )
    ]


def _half_width(interval: Interval) -> float | None:
    """In percent of the estimate."""
    from rackscope.analysis.intervals import relative_half_width

    width = relative_half_width(interval)
    return None if width is None else 100 * width
