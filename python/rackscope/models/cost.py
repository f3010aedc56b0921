"""What servers cost to have and to run, and what they do for it, with prices that are not known exactly.

A year of a server: its price and its share of the network, each year's part of which is the capital recovery factor
(Park, Contemporary Engineering Economics, 3.4); upkeep as a share of the price; and power, times the site's power
usage effectiveness (Barroso, Hoelzle and Ranganathan, The Datacenter as a Computer, chapters 5 and 6). All draws use
the same site in the same draw: an expensive kWh is expensive for every server.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from rackscope.errors import RackscopeError
from rackscope.models.catalogue import Catalogue, CatalogueError, Measured, Server, Site
from rackscope.models.estimates import ends_of
from rackscope.models.uncertain import Array, Uncertain

HOURS_PER_YEAR = 8766.0
SECONDS_PER_YEAR = HOURS_PER_YEAR * 3600
CONFIDENCE = 0.90


@dataclass(frozen=True)
class Amount:
    """A median of draws and the interval in which 90 % of them lie."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Candidate:
    """Something to choose between: a server and what it does of a workload, measured or projected.

    ``rate_per_second`` counts ``unit`` (operations or jobs); ``watts`` while it does so. ``stands_on`` names where
    these come from: a paper's table, a run, a model.
    """

    name: str
    price: Uncertain
    watts: Uncertain
    rate_per_second: Uncertain
    unit: str
    stands_on: str


@dataclass(frozen=True)
class CostDraws:
    """Draws of one candidate: its price; per year in the currency, by part; per second; watts. All of one length."""

    candidate: Candidate
    price: Array
    capital: Array
    network: Array
    upkeep: Array
    power: Array
    rate_per_second: Array
    watts: Array

    @property
    def total(self) -> Array:
        """Currency a year."""
        return self.capital + self.network + self.upkeep + self.power

    @property
    def rate_per_watt(self) -> Array:
        """Operations (or jobs) for each joule."""
        return self.rate_per_second / self.watts

    @property
    def rate_per_money(self) -> Array:
        """Operations (or jobs) for each unit of currency, of all that a year of full use costs."""
        return self.rate_per_second * SECONDS_PER_YEAR / self.total


def capital_recovery_factor(rate_per_year: Array | float, years: Array | float) -> Array:
    """Part of a price to pay back each year: i / (1 - (1 + i)^-n), 1 / n without interest; arrays by element."""
    rate, count = np.broadcast_arrays(np.asarray(rate_per_year, dtype=float), np.asarray(years, dtype=float))
    # expm1 and log1p: without them, small rates lose their digits.
    recovered = -np.expm1(-count * np.log1p(rate))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(rate == 0, 1 / count, rate / recovered)


def draw_costs(candidates: Sequence[Candidate], site: Site, *, draws: int = 20_000, seed: int = 1) -> list[CostDraws]:
    """``draws`` possible worlds for each candidate, the same worlds for all. Raises RackscopeError without candidates,
    for two of one name, for units that differ, and where a year of one costs nothing.
    """
    _check(candidates, draws)
    shared: Mapping[str, Array] = {
        one.name: getattr(site, one.name).draw(f"site {one.name}", draws, seed) for one in fields(site)
    }
    recovery = capital_recovery_factor(shared["discount_rate_per_year"], shared["service_years"])
    kilowatt_hour = shared["electricity_price_per_kilowatt_hour"] * shared["power_usage_effectiveness"]
    found = []
    for one in candidates:
        price = one.price.draw(f"{one.name} price", draws, seed)
        watts = one.watts.draw(f"{one.name} watts", draws, seed)
        costs = CostDraws(
            candidate=one,
            price=price,
            capital=price * recovery,
            network=shared["network_price_per_server"] * recovery,
            upkeep=price * shared["upkeep_share_per_year"],
            power=watts / 1000 * HOURS_PER_YEAR * kilowatt_hour,
            rate_per_second=one.rate_per_second.draw(f"{one.name} rate", draws, seed),
            watts=watts,
        )
        if costs.total.min() <= 0:
            raise RackscopeError(f"a year of {one.name} costs nothing", "Give it a price, or electricity one.")
        found.append(costs)
    return found


def _check(candidates: Sequence[Candidate], draws: int) -> None:
    if not candidates or draws < 1:
        raise RackscopeError("there is nothing to compare", "Give one candidate or more, and one draw or more.")
    names = [one.name for one in candidates]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RackscopeError(f"'{twice}' is to be compared with itself", "Give each candidate a name of its own.")
    units = {one.unit: one.name for one in candidates}
    if len(units) > 1:
        mixed = ", ".join(f"{name} in {unit}" for unit, name in units.items())
        raise RackscopeError(f"units are mixed: {mixed}", "Compare what counts the same.")


def summarise(draws: Array) -> Amount:
    """Median and the ends between which 90 % of draws lie."""
    low, middle, high = ends_of(draws)
    return Amount(middle, low, high)


def candidates_for(catalogue: Catalogue, workload: str, names: Sequence[str] = ()) -> tuple[list[Candidate], list[str]]:
    """Candidates for ``workload`` out of a catalogue, and sentences about the servers that had to be left out.

    With ``names`` only those, and then none may be left out. Raises CatalogueError for a workload that no server has,
    and for a named server without a price or without the workload.
    """
    chosen = [catalogue.server(name) for name in names] or catalogue.servers
    known = sorted({one.workload for server in catalogue.servers for one in server.measured})
    if workload not in known:
        raise CatalogueError(
            f"{catalogue.file} has no server measured under '{workload}'", f"It has: {', '.join(known) or 'none'}."
        )
    candidates, left_out = [], []
    for server in chosen:
        measured = next((one for one in server.measured if one.workload == workload), None)
        problem = _missing(catalogue, server, measured, workload)
        if problem is not None:
            if names:
                raise problem
            left_out.append(problem.what)
        elif measured is not None and server.price is not None:
            stands_on = f"{measured.source}; price: {server.source}"
            candidates.append(
                Candidate(server.name, server.price, measured.watts, measured.rate_per_second, measured.unit, stands_on)
            )
    return candidates, left_out


def _missing(catalogue: Catalogue, server: Server, measured: Measured | None, workload: str) -> CatalogueError | None:
    place = f'{catalogue.file}: server "{server.name}"'
    if measured is None:
        return CatalogueError(f"{place} has nothing measured under '{workload}'", "Add a [[server.measured]] for it.")
    if server.price is None:
        return CatalogueError(f"{place}.price is missing", "Without one there is no cost.")
    return None
