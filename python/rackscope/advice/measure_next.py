"""Which server of a catalogue is worth measuring next, before a fleet is bought for a demand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackscope.advice.cost import Advice
from rackscope.advice.scale_words import draws_share, figure
from rackscope.errors import RackscopeError
from rackscope.models.catalogue import Catalogue, CatalogueError, Server
from rackscope.models.cost import Amount, Candidate, CostDraws, draw_costs, summarise
from rackscope.models.information_value import MeasuringValue, measuring_values
from rackscope.models.provision import MOST_SERVERS, NoFleetError
from rackscope.models.server_guess import guess_by_cores
from rackscope.models.uncertain import Array, Uncertain


@dataclass(frozen=True)
class MeasureRow:
    """A server. ``measured``: whether the catalogue has its rate, or it was guessed from the cores of others.

    ``rate_per_second`` of one; ``servers`` and ``cost_per_year`` of a fleet of it; ``value`` of measuring it, in the
    currency a year, with the error of drawing; ``changes`` the chance that another is then chosen.
    """

    name: str
    measured: bool
    rate_per_second: Amount
    servers: Amount
    cost_per_year: Amount
    expected_cost_per_year: float
    value_per_year: Amount
    changes: float
    stands_on: str


@dataclass(frozen=True)
class MeasureNext:
    """``rows``, the most valuable to measure first; ``chosen`` is what would be bought without measuring."""

    workload: str
    currency: str
    unit: str
    rate_per_second: float
    spares: int
    error: float
    chosen: str
    rows: tuple[MeasureRow, ...]
    advice: tuple[Advice, ...]
    left_out: tuple[str, ...]


def measure_next(
    catalogue: Catalogue,
    workload: str,
    rate_per_second: float,
    names: Sequence[str] = (),
    *,
    spares: int = 0,
    error: float = 0.05,
    draws: int = 20_000,
    seed: int = 1,
) -> MeasureNext:
    """Rank servers by what it is worth to know their rate and watts before buying the cheapest fleet.

    The decision is which kind of server the fleet is made of; how many it takes shows when they are there. ``error`` is
    that of a measurement (relative, 90 %). Raises CatalogueError for a workload or server that is not in it,
    NoFleetError for a demand beyond any fleet, RackscopeError when there is no choice.
    """
    if not (math.isfinite(rate_per_second) and rate_per_second > 0) or spares < 0:
        raise RackscopeError(
            f"a demand of {rate_per_second:g} a second at N+{spares} is invalid",
            "Write a rate above zero, and --spares 0 or more.",
        )
    candidates, guessed, left_out = _candidates(catalogue, workload, names)
    if len(candidates) < 2:
        said = f": {'; '.join(left_out)}" if left_out else ""
        raise RackscopeError(
            f"{len(candidates)} servers are too few to choose from{said}", "Add what is missing to the catalogue."
        )
    drawn = draw_costs(candidates, catalogue.site, draws=draws, seed=seed)
    counts = {one.candidate.name: np.ceil(rate_per_second / one.rate_per_second) + spares for one in drawn}
    if min(float(np.median(one)) for one in counts.values()) > MOST_SERVERS:
        raise NoFleetError(
            f"no fleet of {MOST_SERVERS:,} servers of any kind serves {rate_per_second:g} a second",
            "Check that the demand is in the unit of the catalogue's rates.",
        )
    costs = {one.candidate.name: _shown_cost(one, counts[one.candidate.name]) for one in drawn}
    values = measuring_values(costs, error=error, seed=seed)
    rows = sorted(
        (
            MeasureRow(
                one.candidate.name,
                one.candidate.name not in guessed,
                summarise(one.rate_per_second),
                summarise(counts[one.candidate.name]),
                summarise(one.total * counts[one.candidate.name]),
                value.expected_cost,
                Amount(value.value, value.low, value.high),
                value.changes,
                one.candidate.stands_on,
            )
            for one, value in zip(drawn, values, strict=True)
        ),
        key=lambda row: -row.value_per_year.value,
    )
    chosen = min(values, key=lambda one: one.expected_cost)
    return MeasureNext(
        workload,
        catalogue.currency,
        candidates[0].unit,
        rate_per_second,
        spares,
        error,
        chosen.name,
        tuple(rows),
        _advice(catalogue, rows, chosen),
        tuple(left_out),
    )


def _shown_cost(drawn: CostDraws, counts: Array) -> Array:
    """A year of the fleet given what measuring shows, the rate and the watts; prices stay as uncertain as they are."""
    standing = float((drawn.capital + drawn.network + drawn.upkeep).mean())
    watt_year = float((drawn.power / drawn.watts).mean())
    return counts * (standing + watt_year * drawn.watts)


def _candidates(
    catalogue: Catalogue, workload: str, names: Sequence[str]
) -> tuple[list[Candidate], set[str], list[str]]:
    chosen = [catalogue.server(name) for name in dict.fromkeys(names)] or list(catalogue.servers)
    reference = [(server, one) for server in catalogue.servers for one in server.measured if one.workload == workload]
    if not reference:
        known = sorted({one.workload for server in catalogue.servers for one in server.measured})
        raise CatalogueError(
            f"{catalogue.file} has no server measured under '{workload}'", f"It has: {', '.join(known) or 'none'}."
        )
    unit = reference[0][1].unit
    rates = [
        (one.rate_per_second.middle, one.watts.middle, server.cores, server.name)
        for server, one in reference
        if server.cores is not None and one.unit == unit
    ]
    found: list[Candidate] = []
    guessed: set[str] = set()
    left_out: list[str] = []
    for server in chosen:
        place = f'{catalogue.file}: server "{server.name}"'
        if server.price is None:
            left_out.append(f"{place}.price is missing")
            continue
        measured = next((one for one in server.measured if one.workload == workload), None)
        if measured is not None:
            on = f"{measured.source}; price: {server.source}"
            found.append(
                Candidate(server.name, server.price, measured.watts, measured.rate_per_second, measured.unit, on)
            )
            continue
        try:
            rate, watts = _guess(server, rates)
        except RackscopeError as refusal:
            left_out.append(f"{place} was not measured, and cannot be guessed: {refusal.what}")
            continue
        guessed.add(server.name)
        others = ", ".join(name for *_, name in rates)
        on = f"a guess from its {server.cores} cores by those of {others}; price: {server.source}"
        found.append(Candidate(server.name, server.price, watts, rate, unit, on))
    return found, guessed, left_out


def _guess(server: Server, measured: Sequence[tuple[float, float, int, str]]) -> tuple[Uncertain, Uncertain]:
    if server.cores is None:
        raise RackscopeError("its cores are missing", "Give them.")
    cores = [one[2] for one in measured]
    rate = guess_by_cores([one[0] for one in measured], cores, server.cores)
    watts = server.full_watts or guess_by_cores([one[1] for one in measured], cores, server.cores)
    return rate, watts


def _advice(catalogue: Catalogue, rows: Sequence[MeasureRow], chosen: MeasuringValue) -> tuple[Advice, ...]:
    currency, first = catalogue.currency, rows[0]
    best = next(row for row in rows if row.name == chosen.name)
    found = []
    site = f"{catalogue.file} [site]"
    if first.value_per_year.value <= 0:
        found.append(
            Advice(
                f"No measurement is worth its cost here: {best.name} keeps the lowest expected cost, whatever "
                "measuring any one of them shows.",
                "; ".join(dict.fromkeys([*(row.stands_on for row in rows), site])),
                "It changes with the demand, with prices, or with a wider interval of any rate.",
            )
        )
    else:
        value = first.value_per_year
        other = "another" if first is best else f"{first.name} instead of {best.name}"
        also = next((row for row in rows[1:] if row.value_per_year.value > 0), None)
        less = "no other is worth measuring" if also is None else (
            f"next is {also.name}, worth {figure(also.value_per_year.value)} {currency} a year"
        )  # fmt: skip
        found.append(
            Advice(
                f"Measure {first.name} next: knowing its throughput is worth {figure(value.value)} {currency} a "
                f"year ({figure(value.low)} to {figure(value.high)} by the error of drawing); "
                f"{draws_share(first.changes)} one would then buy {other}; {less}.",
                "; ".join(dict.fromkeys([first.stands_on, best.stands_on, site])),
                "It is not worth it where measuring costs more than that for each year of the fleet's life; the "
                f"value falls as {first.name}'s rate is known better.",
            )
        )
    second = min((row for row in rows if row is not best), key=lambda row: row.expected_cost_per_year)
    found.append(
        Advice(
            f"Without measuring, {best.name} is the one to buy: {figure(best.expected_cost_per_year)} {currency} a "
            f"year to be expected ({figure(best.cost_per_year.low)} to {figure(best.cost_per_year.high)} in 90 % of "
            f"the draws), with {figure(best.servers.value)} servers; {second.name} comes to "
            f"{figure(second.expected_cost_per_year)}.",
            "; ".join(dict.fromkeys([best.stands_on, second.stands_on, site])),
            f"{second.name} is as cheap when a fleet of it costs "
            f"{second.expected_cost_per_year / best.expected_cost_per_year:.2f} times less, by its price or by what "
            "one does. Fleets are of one kind of server: a mix may save a part of one.",
        )
    )
    return tuple(found)
