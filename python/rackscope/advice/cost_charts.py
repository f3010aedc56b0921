"""The Pareto plot of servers (medians of the draws with their intervals of 90 %), and the page that it is on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from rackscope import __version__
from rackscope.advice.cost import CostComparison, CostRow, by_energy
from rackscope.models.cost import CONFIDENCE, Amount
from rackscope.runs.study import Axis, Chart, Column, Finding, Series, StudyRecord, Table


def pareto_charts(comparison: CostComparison) -> list[Chart]:
    """Work per joule over work per unit of currency (what dominance is about); throughput over watts and over price."""
    unit, currency = comparison.rows[0].unit, comparison.currency
    return [
        _chart(
            comparison,
            "pareto",
            "Pareto set: work for each joule and for each unit of currency",
            "Up and to the right is better. Nothing dominates what is in the Pareto set.",
            (f"{unit} for each {currency} of a year's cost", lambda row: row.rate_per_money),
            (f"{unit} for each {_ENERGY[by_energy(comparison.rows[0])[0]]}", lambda row: by_energy(row)[1]),
        ),
        _chart(
            comparison,
            "throughput-watts",
            "Throughput over watts",
            "Up and to the left is better.",
            ("watts", lambda row: row.watts),
            (f"{unit} a second", lambda row: row.rate_per_second),
        ),
        _chart(
            comparison,
            "throughput-price",
            "Throughput over price",
            "Up and to the left is better.",
            (f"price, {currency}", lambda row: row.price),
            (f"{unit} a second", lambda row: row.rate_per_second),
        ),
    ]


def record_of(comparison: CostComparison, file: str, command_line: Sequence[str]) -> StudyRecord:
    """Findings, charts and the table of who dominates whom, as a page shows them."""
    record = StudyRecord(
        rackscope_version=__version__,
        kind="cost (modelled)",
        title=f"{comparison.workload}: work per watt and per {comparison.currency}",
        status="complete",
        command_line=list(command_line),
        started_at=datetime.now().astimezone().isoformat(timespec="seconds"),
        parameters={"catalogue": file, "workload": comparison.workload},
    )
    record.findings = [
        Finding(sentence=one.sentence, evidence=f"{one.changes_if} Evidence: {one.stands_on}.")
        for one in comparison.advice
    ]
    record.findings += [Finding(sentence=f"left out: {one}", severity="note") for one in comparison.left_out]
    record.charts = pareto_charts(comparison)
    record.tables = [_dominance(comparison)]
    record.method = [
        "Prices, site, throughput and watts were drawn 20,000 times as the catalogue says that they are uncertain; "
        f"intervals hold {100 * CONFIDENCE:.0f} % of the draws. Servers are drawn independently of each other.",
    ]
    return record


_ENERGY = {"J": "joule", "kWh": "kWh"}
#: Values this many times apart are seen on a logarithmic axis only.
_WIDE = 20
_Amount = Callable[["CostRow"], Amount]


def _chart(
    comparison: CostComparison,
    identifier: str,
    title: str,
    caption: str,
    across: tuple[str, _Amount],
    up: tuple[str, _Amount],
) -> Chart:
    series = []
    for row in comparison.rows:
        x, y = across[1](row), up[1](row)
        series.append(
            Series(
                label=f"{row.name} ({_percent(row.on_front)} in the Pareto set)",
                kind="points",
                x=[x.value],
                y=[y.value],
                low=[y.low],
                high=[y.high],
                x_low=[x.low],
                x_high=[x.high],
                level=CONFIDENCE,
            )
        )
    values = [across[1](row).value for row in comparison.rows]
    wide = max(values) > _WIDE * min(values) > 0
    return Chart(
        identifier=identifier,
        title=title,
        caption=caption,
        x=Axis(label=across[0], unit="count", scale="logarithmic" if wide else "linear"),
        y=Axis(label=up[0], unit="count"),
        series=series,
    )


def _dominance(comparison: CostComparison) -> Table:
    names = comparison.chances.names
    return Table(
        identifier="dominance",
        title="How probable it is that a server dominates another",
        caption="It does where it is as good for each joule and for each unit of currency, and better for one.",
        columns=[Column(name="dominates"), *(Column(name=name, unit="ratio") for name in names)],
        rows=[
            [name, *(None if i == j else one.estimate for j, one in enumerate(comparison.chances.dominates[i]))]
            for i, name in enumerate(names)
        ],
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share in (0.0, 1.0) or 0.01 <= share <= 0.99 else f"{100 * share:.1f} %"
