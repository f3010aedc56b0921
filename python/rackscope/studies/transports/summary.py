"""What the windows of ``study transports`` come to: figures with intervals, and pairs compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rackscope.analysis.intervals import Interval, ratio_of_means
from rackscope.analysis.multiple import Comparison, compare_pairs
from rackscope.studies.bench.cells import Cell, cell_of
from rackscope.studies.bench.figures import Figures
from rackscope.studies.transports.measure import Outcome
from rackscope.studies.transports.plan import BASE, CONDITIONS, Condition, Contender, Pair, Plan


@dataclass(frozen=True)
class Summary:
    """By contender and condition, or load; ``ratios`` of throughput and ``costs``, those of the servers' CPU time for a
    request, by pair and condition. Intervals of either hold for all of them together."""

    cells: Mapping[tuple[str, Condition], Cell]
    loaded: Mapping[tuple[str, float], Cell]
    ratios: Mapping[tuple[Pair, Condition], Comparison]
    costs: Mapping[tuple[Pair, Condition], Comparison]
    #: Throughput under another condition over that under the base, each with an interval of its own.
    effects: Mapping[tuple[str, Condition], Interval]
    #: Of requests, the largest part that was lost or refused in a window.
    lost: Mapping[str, float]

    def measured(self, contenders: tuple[Contender, ...]) -> list[Contender]:
        """Those of which there is something, in their order."""
        return [one for one in contenders if any(name == one.name for name, _ in self.cells)]


def summarise(plan: Plan, outcome: Outcome) -> Summary:
    closed = outcome.closed
    both = [
        (pair, condition)
        for pair in plan.pairs
        for condition in CONDITIONS
        if closed.get((pair.first, condition)) and closed.get((pair.second, condition))
    ]
    effects = {
        (one.name, condition): ratio_of_means(_rates(closed[one.name, condition]), _rates(closed[one.name, BASE]))
        for one in plan.contenders
        for condition in CONDITIONS
        if condition != BASE and closed.get((one.name, condition)) and closed.get((one.name, BASE))
    }
    lost: dict[str, float] = {}
    for (name, _), figures in [*closed.items(), *outcome.loaded.items()]:
        lost[name] = max([lost.get(name, 0.0), *(one.failed_ratio for one in figures)])
    return Summary(
        cells={key: cell_of(figures) for key, figures in closed.items()},
        loaded={key: cell_of(figures) for key, figures in outcome.loaded.items()},
        ratios=_compare(both, {key: _rates(figures) for key, figures in closed.items()}),
        costs=_compare(both, {key: _costs(figures) for key, figures in closed.items()}),
        effects=effects,
        lost=lost,
    )


def _rates(figures: list[Figures]) -> list[float]:
    return [one.rate for one in figures]


def _costs(figures: list[Figures]) -> list[float]:
    return [cost for one in figures if (cost := one.cpu_per_million(one.cores))]


def _compare(
    both: list[tuple[Pair, Condition]], values: Mapping[tuple[str, Condition], list[float]]
) -> dict[tuple[Pair, Condition], Comparison]:
    """Pairs wherever both were measured, corrected for all of them."""
    known = [(pair, one) for pair, one in both if values[pair.first, one] and values[pair.second, one]]
    compared = compare_pairs(
        {f"{name} {one.name}": found for (name, one), found in values.items()},
        [(f"{pair.first} {one.name}", f"{pair.second} {one.name}") for pair, one in known],
    )
    return {
        (pair, one): replace(found, first=pair.first, second=pair.second)
        for (pair, one), found in zip(known, compared, strict=True)
    }
