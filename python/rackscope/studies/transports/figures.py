"""The tables and charts of ``study transports``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rackscope.analysis.intervals import Interval
from rackscope.analysis.multiple import Comparison
from rackscope.analysis.wording import percent
from rackscope.runs.study import Chart, Table
from rackscope.studies.bench.cells import Cell, half_percent
from rackscope.studies.kit import (
    axis,
    chart,
    drawable,
    estimates_by,
    ratio_words,
    reference,
    table_of,
    value,
)
from rackscope.studies.transports.measure import Outcome
from rackscope.studies.transports.plan import BASE, CONDITIONS, Condition, Contender, Pair, Plan
from rackscope.studies.transports.summary import Summary


def make_tables(plan: Plan, outcome: Outcome, summary: Summary) -> list[Table]:
    """Those of which there is something."""
    return [
        *_pairs(plan, summary),
        *_throughputs(plan, summary),
        *_effects(plan, summary),
        *_loads(plan, outcome, summary),
    ]


def _pairs(plan: Plan, summary: Summary) -> list[Table]:
    def words(one: Comparison | None) -> str | None:
        return None if one is None else ratio_words(one.ratio)

    columns: list[tuple[str | Sequence[str], Callable[[Pair], Any]]] = [
        (("pair", "", "Throughput of the first divided by that of the second"), lambda pair: pair.label),
        *((one.label, lambda pair, one=one: words(summary.ratios.get((pair, one)))) for one in CONDITIONS),
        (
            ("server's CPU time", "", f"For a request, likewise divided, with {BASE.label}"),
            lambda pair: words(summary.costs.get((pair, BASE))),
        ),
    ]
    shown = [pair for pair in plan.pairs if any((pair, one) in summary.ratios for one in CONDITIONS)]
    return table_of(
        "pairs",
        "What each step is worth",
        shown,
        columns,
        "Ratios of mean throughputs over rounds; intervals hold for all comparisons of this table together (95 %).",
    )


def _throughputs(plan: Plan, summary: Summary) -> list[Table]:
    cells = [
        (one, condition, summary.cells[one.name, condition])
        for condition in CONDITIONS
        for one in plan.contenders
        if (one.name, condition) in summary.cells
    ]
    return table_of(
        "throughput",
        "Throughput and CPU time",
        cells,
        [
            ("load", lambda one: one[1].label),
            (("transport", "", "See the method for what each is"), lambda one: one[0].name),
            (("outstanding", "count", "Requests on their way at any time"), lambda one: one[0].outstanding),
            (("throughput", "operations/s"), lambda one: one[2].rate.estimate),
            (("±", "percent", "Half of the 95 % interval"), lambda one: half_percent(one[2].rate)),
            (("server", "seconds", "CPU time of the server for a request"), lambda one: _each(one[2].server_cpu)),
            (("client", "seconds", "CPU time of the client for a request"), lambda one: _each(one[2].client_cpu)),
        ],
        "Means over rounds.",
    )


def _each(million: Interval | None) -> float | None:
    """Of one request."""
    return None if million is None else million.estimate / 1e6


def _effects(plan: Plan, summary: Summary) -> list[Table]:
    def of(one: Contender, condition: Condition) -> str | None:
        known = summary.effects.get((one.name, condition))
        return None if known is None else ratio_words(known)

    columns: list[tuple[str | Sequence[str], Callable[[Contender], Any]]] = [
        ("transport", lambda one: one.name),
        *((one.label, lambda contender, one=one: of(contender, one)) for one in CONDITIONS if one != BASE),
    ]
    shown = [one for one in plan.contenders if any(name == one.name for name, _ in summary.effects)]
    return table_of(
        "effects",
        f"Throughput, divided by that with {BASE.label}",
        shown,
        columns,
        "Ratios of means, each with a 95 % interval of its own.",
    )


def _loads(plan: Plan, outcome: Outcome, summary: Summary) -> list[Table]:
    cells = [
        (one, load, summary.loaded[one.name, load])
        for one in plan.transports
        for load in plan.loads
        if (one.name, load) in summary.loaded
    ]
    return table_of(
        "loads",
        "Latency over load",
        cells,
        [
            ("transport", lambda one: one[0].name),
            (("load", "", "Of its own highest throughput"), lambda one: percent(one[1])),
            (("offered", "operations/s"), lambda one: one[1] * (outcome.best(one[0].name) or 0.0)),
            (("completed", "operations/s"), lambda one: one[2].rate.estimate),
            (("p50", "seconds"), lambda one: value(one[2].p50)),
            (("p99", "seconds"), lambda one: value(one[2].p99)),
            ("keeps up", lambda one: one[2].keeps_up),
        ],
        f"{BASE.label[0].upper()}{BASE.label[1:]}. Response times from the intended start (Poisson arrivals), medians "
        "over rounds. What is due together goes in one datagram, so batches are smaller at lower loads.",
    )


def make_charts(plan: Plan, outcome: Outcome, summary: Summary) -> list[Chart]:
    """Those with something to draw."""
    charts = [
        _ratios(plan, summary),
        _over_load(plan, outcome, summary, "p99", "99th percentile", lambda cell: cell.p99),
        _over_load(plan, outcome, summary, "p50", "Median", lambda cell: cell.p50),
        _cpu(plan, summary, "server", lambda cell: cell.server_cpu),
        _cpu(plan, summary, "client", lambda cell: cell.client_cpu),
    ]
    return [one for one in charts if any(series.x for series in one.series)]


def _ratios(plan: Plan, summary: Summary) -> Chart:
    pairs = [pair for pair in plan.pairs if any((pair, one) in summary.ratios for one in CONDITIONS)]

    def ratio(condition: Condition, pair: Pair) -> Interval | None:
        one = summary.ratios.get((pair, condition))
        return None if one is None else drawable(one.ratio)

    return chart(
        "ratios",
        "What each step is worth",
        axis("throughput of the first / throughput of the second", logarithmic=True),
        axis("", categories=[pair.label for pair in pairs]),
        estimates_by({one: one.label for one in CONDITIONS}, pairs, ratio, lying=True),
        caption="Ratio of means, with an interval that holds for all comparisons together.",
        references=[reference("the same", 1.0, "x")],
    )


def _over_load(
    plan: Plan, outcome: Outcome, summary: Summary, name: str, title: str, of: Callable[[Cell], Interval | None]
) -> Chart:
    series = []
    for one in plan.transports:
        best = outcome.best(one.name) or 0.0

        def latency(contender: str, load: float) -> Interval | None:
            cell = summary.loaded.get((contender, load))
            return of(cell) if cell is not None and cell.keeps_up else None

        series += estimates_by([one.name], {load: load * best for load in plan.loads}, latency, "line")
    return chart(
        f"load-{name}",
        f"{title} of the response time over load",
        axis("requests a second", "operations/s", logarithmic=True),
        axis(f"response time, {name}", "seconds", logarithmic=True),
        [one for one in series if one.x],
        caption="At fractions of each transport's own highest throughput; medians over rounds with their 95 % "
        "intervals. Loads that it did not keep up with are left out.",
    )


def _cpu(plan: Plan, summary: Summary, end: str, of: Callable[[Cell], Interval | None]) -> Chart:
    contenders = summary.measured(plan.contenders)

    def cost(condition: Condition, contender: Contender) -> Interval | None:
        cell = summary.cells.get((contender.name, condition))
        known = None if cell is None else drawable(of(cell))
        return None if known is None else known.mapped(lambda million: million / 1e6)

    return chart(
        f"cpu-{end}",
        f"CPU time of the {end} for a request",
        axis("CPU time for a request", "seconds", logarithmic=True),
        axis("", categories=[one.name for one in contenders]),
        estimates_by({one: one.label for one in CONDITIONS}, contenders, cost, lying=True),
        caption="Means over rounds with their 95 % intervals.",
    )
