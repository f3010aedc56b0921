"""How many of which servers for a demand, out of a catalogue, with what would change the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rackscope.advice.cost import Advice
from rackscope.errors import RackscopeError
from rackscope.models.catalogue import Catalogue, CatalogueError
from rackscope.models.cost import CONFIDENCE, Amount, CostDraws, candidates_for, draw_costs, summarise
from rackscope.models.multi_server_queue import rate_within
from rackscope.models.provision import Demand, Fleet, Kind, NoFleetError, cheapest_fleet, largest_fleet
from rackscope.models.uncertain import Array
from rackscope.units import format_duration


@dataclass(frozen=True)
class Objective:
    """``quantile`` (such as 0.99) of responses take at most ``bound_seconds``."""

    bound_seconds: float
    quantile: float = 0.99


@dataclass(frozen=True)
class Provision:
    """The cheapest fleet. ``suffices``: the share of draws in which it serves the demand after losing its spares.

    ``cost_per_year`` over the draws; ``site_watts`` with the PUE, cautiously, as the limit was held to.
    """

    workload: str
    currency: str
    demand: Demand
    fleet: Fleet
    cost_per_year: Amount
    site_watts: float
    suffices: float
    advice: tuple[Advice, ...]
    left_out: tuple[str, ...]


def provision(
    catalogue: Catalogue,
    workload: str,
    demand: Demand,
    names: Sequence[str] = (),
    *,
    objective: Objective | None = None,
    caution: float = 0.05,
    draws: int = 20_000,
    seed: int = 1,
) -> Provision:
    """Plan a fleet for ``demand``, whose watts are of the whole site, PUE included.

    Each server is counted on for the rate that only ``caution`` of the draws fall below, and for the watts that only so
    many exceed; costs are medians. With an ``objective`` rates are what an M/M/c queue allows within it, modelled.
    Raises CatalogueError for what is not in the catalogue, NoFleetError when no fleet does, and RackscopeError for a
    ``caution`` that is no share or for jobs under an objective.
    """
    if not 0 < caution < 1:
        raise RackscopeError(
            f"a caution of {caution:g} is invalid: expected a fraction such as 0.05", "Give one such as 0.05."
        )
    candidates, left_out = candidates_for(catalogue, workload, names)
    if not candidates:
        raise RackscopeError(f"no server can be planned with: {'; '.join(left_out)}", "Add what is missing.")
    drawn = draw_costs(candidates, catalogue.site, draws=draws, seed=seed)
    effectiveness = catalogue.site.power_usage_effectiveness.draw("site power_usage_effectiveness", draws, seed)
    kinds = [
        Kind(
            one.candidate.name,
            _within(catalogue, one, float(np.quantile(one.rate_per_second, caution)), objective),
            float(np.quantile(one.watts * effectiveness, 1 - caution)),
            float(np.median(one.total)),
            float(np.median(one.price)),
        )
        for one in drawn
    ]
    if objective is not None and not any(kind.rate_per_second for kind in kinds):
        raise NoFleetError(
            f"no server responds within {format_duration(objective.bound_seconds)} to "
            f"{100 * objective.quantile:g} % of requests, even idle",
            "By an M/M/c queue (modelled), from its threads and its rate. Allow more time.",
        )
    fleet = cheapest_fleet(kinds, demand)
    counts = [fleet.counts.get(kind.name, 0) for kind in kinds]
    after_loss = _rates_after_loss(catalogue, drawn, counts, demand, objective)
    cost = summarise(np.sum([count * one.total for count, one in zip(counts, drawn, strict=True)], axis=0))
    suffices = float((after_loss >= demand.rate_per_second).mean())
    stands_on = "; ".join(
        [one.candidate.stands_on for one, count in zip(drawn, counts, strict=True) if count]
        + [f"{catalogue.file} [site]"]
        + ([] if objective is None else ["an M/M/c queue (modelled)"])
    )
    advice = (
        _sufficient(catalogue, kinds, fleet, demand, cost, suffices, stands_on),
        *(_without(catalogue, kinds, fleet, demand, name, stands_on) for name in fleet.counts),
    )
    return Provision(workload, catalogue.currency, demand, fleet, cost, fleet.watts, suffices, advice, tuple(left_out))


def _within(catalogue: Catalogue, drawn: CostDraws, rate: float, objective: Objective | None) -> float:
    if objective is None:
        return rate
    name = drawn.candidate.name
    threads = catalogue.server(name).threads
    if drawn.candidate.unit != "operations":
        raise RackscopeError(
            f"{name} is measured in {drawn.candidate.unit}", "A bound of response time needs operations per second."
        )
    if threads is None:
        raise CatalogueError(
            f'{catalogue.file}: server "{name}".threads is missing', "A bound of response time needs them."
        )
    return rate_within(rate, threads, objective.bound_seconds, objective.quantile)


def _rates_after_loss(
    catalogue: Catalogue, drawn: Sequence[CostDraws], counts: Sequence[int], demand: Demand, objective: Objective | None
) -> Array:
    """Draw by draw: all servers of a kind are alike in one draw."""
    rates = []
    for one, count in zip(drawn, counts, strict=True):
        if not count:
            rates.append(np.zeros_like(one.rate_per_second))
            continue
        # What a queue allows rises with its capacity: a curve through some of the draws is as good as all of them.
        grid = np.quantile(one.rate_per_second, np.linspace(0, 1, 33))
        allowed = [_within(catalogue, one, float(rate), objective) for rate in grid]
        rates.append(np.interp(one.rate_per_second, grid, allowed))
    served = np.sum([count * rate for count, rate in zip(counts, rates, strict=True)], axis=0)
    # The fastest go first: of each kind as many as it has, or as are still to be lost.
    order = np.argsort(-np.array(rates), axis=0)
    left = np.full(len(served), float(demand.spares))
    for place in order:
        gone = np.minimum(left, np.array(counts, dtype=float)[place])
        served = served - gone * np.array(rates)[place, np.arange(len(served))]
        left = left - gone
    return np.asarray(served)


def _sufficient(
    catalogue: Catalogue,
    kinds: Sequence[Kind],
    fleet: Fleet,
    demand: Demand,
    cost: Amount,
    suffices: float,
    stands_on: str,
) -> Advice:
    cheaper = largest_fleet(kinds, demand, cheaper_than=fleet.cost_per_year)
    below = 0.0 if cheaper is None else cheaper.rate_after_loss_per_second
    shrinks = f"; from {below:,.0f} a second down {_named(cheaper)} does, for less" if cheaper and below > 0 else ""
    return Advice(
        f"{_named(fleet)} is the cheapest fleet for {demand.rate_per_second:,.0f} a second at N+{demand.spares}: "
        f"{cost.value:,.0f} {catalogue.currency} a year ({100 * CONFIDENCE:.0f} % of the draws: {cost.low:,.0f} to "
        f"{cost.high:,.0f}); the demand is met in {100 * suffices:.1f} % of them.",
        stands_on,
        f"It meets up to {fleet.rate_after_loss_per_second:,.0f} a second{shrinks}.",
    )


def _without(
    catalogue: Catalogue, kinds: Sequence[Kind], fleet: Fleet, demand: Demand, name: str, stands_on: str
) -> Advice:
    others = [replace(kind, most=0) if kind.name == name else kind for kind in kinds]
    try:
        second = cheapest_fleet(others, demand)
    except NoFleetError:
        return Advice(
            f"Without {name} no fleet serves it.", stands_on, "It changes with another kind of server in the catalogue."
        )
    spent = next(kind.cost_per_year for kind in kinds if kind.name == name) * fleet.counts[name]
    more = second.cost_per_year - fleet.cost_per_year
    return Advice(
        f"Without {name} it takes {_named(second)}, for {100 * more / fleet.cost_per_year:.0f} % more a year.",
        stands_on,
        f"The fleet changes at the latest when a year of {name} costs {100 * more / spent:.0f} % more "
        f"({catalogue.currency} {(spent + more) / fleet.counts[name]:,.0f}).",
    )


def _named(fleet: Fleet) -> str:
    return " and ".join(f"{count} x {name}" for name, count in fleet.counts.items())
