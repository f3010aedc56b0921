"""Servers beside each other by what they do for each watt and for each unit of currency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackscope.errors import RackscopeError
from rackscope.models.catalogue import Catalogue
from rackscope.models.cost import SECONDS_PER_YEAR, Amount, CostDraws, candidates_for, draw_costs, summarise
from rackscope.models.pareto import ParetoChances, pareto_chances

#: A best in so many of the draws is called so without a doubt in its sentence.
_SURE = 0.95
_JOULES_PER_KILOWATT_HOUR = 3.6e6


@dataclass(frozen=True)
class CostRow:
    """One server; money in the catalogue's currency, a year. Each amount with the interval of 90 % of the draws."""

    name: str
    unit: str
    total_per_year: Amount
    capital_per_year: Amount
    network_per_year: Amount
    upkeep_per_year: Amount
    power_per_year: Amount
    price: Amount
    watts: Amount
    rate_per_second: Amount
    rate_per_joule: Amount
    rate_per_money: Amount
    on_front: float
    most_per_joule: float
    most_per_money: float
    stands_on: str


def by_energy(row: CostRow) -> tuple[str, Amount]:
    """Work for energy in a unit that people read: operations a joule, jobs a kWh."""
    if row.unit != "jobs":
        return "J", row.rate_per_joule
    one = row.rate_per_joule
    return "kWh", Amount(*(_JOULES_PER_KILOWATT_HOUR * value for value in (one.value, one.low, one.high)))


@dataclass(frozen=True)
class Advice:
    """A sentence, what it stands on, and what would change it."""

    sentence: str
    stands_on: str
    changes_if: str


@dataclass(frozen=True)
class CostComparison:
    """``left_out`` says of each server that has no row why."""

    workload: str
    currency: str
    rows: tuple[CostRow, ...]
    chances: ParetoChances
    advice: tuple[Advice, ...]
    left_out: tuple[str, ...]


def compare_costs(
    catalogue: Catalogue, workload: str, names: Sequence[str] = (), *, draws: int = 20_000, seed: int = 1
) -> CostComparison:
    """The catalogue's servers under one workload. Raises CatalogueError, and RackscopeError where all are left out."""
    candidates, left_out = candidates_for(catalogue, workload, names)
    if not candidates:
        raise RackscopeError(f"no server can be compared: {'; '.join(left_out)}", "Add what is missing.")
    drawn = draw_costs(candidates, catalogue.site, draws=draws, seed=seed)
    joules = np.stack([one.rate_per_watt for one in drawn], axis=1)
    money = np.stack([one.rate_per_money for one in drawn], axis=1)
    chances = pareto_chances([one.name for one in candidates], np.stack([joules, money], axis=2))
    most_joules = np.bincount(joules.argmax(axis=1), minlength=len(drawn)) / draws
    most_money = np.bincount(money.argmax(axis=1), minlength=len(drawn)) / draws
    rows = tuple(
        CostRow(
            name=one.candidate.name,
            unit=one.candidate.unit,
            total_per_year=summarise(one.total),
            capital_per_year=summarise(one.capital),
            network_per_year=summarise(one.network),
            upkeep_per_year=summarise(one.upkeep),
            power_per_year=summarise(one.power),
            price=summarise(one.price),
            watts=summarise(one.watts),
            rate_per_second=summarise(one.rate_per_second),
            rate_per_joule=summarise(one.rate_per_watt),
            rate_per_money=summarise(one.rate_per_money),
            on_front=chances.on_front[k].estimate,
            most_per_joule=float(most_joules[k]),
            most_per_money=float(most_money[k]),
            stands_on=one.candidate.stands_on,
        )
        for k, one in enumerate(drawn)
    )
    return CostComparison(workload, catalogue.currency, rows, chances, _advice(catalogue, rows, drawn), tuple(left_out))


def _advice(catalogue: Catalogue, rows: Sequence[CostRow], drawn: Sequence[CostDraws]) -> tuple[Advice, ...]:
    if len(rows) < 2:
        return ()
    found = []
    site = f"{catalogue.file} [site]"
    by_money = sorted(range(len(rows)), key=lambda k: -rows[k].rate_per_money.value)
    best, next_best = (rows[k] for k in by_money[:2])
    found.append(
        Advice(
            f"{best.name} gives the most throughput per {catalogue.currency}, {_how_sure(best.most_per_money)}: "
            f"{best.rate_per_money.value / next_best.rate_per_money.value:.2f} times that of {next_best.name}.",
            "; ".join(dict.fromkeys((best.stands_on, next_best.stands_on, site))),
            _price_to_tie(catalogue.currency, drawn[by_money[0]], best, next_best),
        )
    )
    by_joule = sorted(range(len(rows)), key=lambda k: -rows[k].rate_per_joule.value)
    first, second = (rows[k] for k in by_joule[:2])
    ratio = first.rate_per_joule.value / second.rate_per_joule.value
    found.append(
        Advice(
            f"{first.name} gives the most throughput per watt, {_how_sure(first.most_per_joule)}: "
            f"{ratio:.2f} times that of {second.name}.",
            "; ".join(dict.fromkeys((first.stands_on, second.stands_on))),
            f"It changes if {first.name} takes {ratio:.2f} times the watts, or {second.name} is that much faster.",
        )
    )
    return tuple(found)


def _how_sure(share: float) -> str:
    return f"{'in' if share >= _SURE else 'but only in'} {100 * share:.1f} % of the draws"


def _price_to_tie(currency: str, drawn: CostDraws, best: CostRow, next_best: CostRow) -> str:
    """At the medians of all else."""
    allowed = best.rate_per_second.value * SECONDS_PER_YEAR / next_best.rate_per_money.value
    price = float(np.median(drawn.price))
    by_price = best.capital_per_year.value + best.upkeep_per_year.value
    if by_price <= 0:
        return f"It changes if a year of {best.name} costs more than {allowed:,.0f} {currency}."
    tie = price * (allowed - best.network_per_year.value - best.power_per_year.value) / by_price
    return (
        f"It changes if {best.name} costs more than {tie:,.0f} {currency} (now {price:,.0f}), all else at its median."
    )
