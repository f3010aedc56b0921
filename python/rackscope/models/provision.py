"""The cheapest fleet that serves a demand, also without any k of its servers, within power and budget.

A mixed-integer linear program, solved by HiGHS (``scipy.optimize.milp``). Kinds sorted by rate, largest first, have
rates c1 >= c2 >= ...; with Nj servers of the first j kinds, the k servers whose loss hurts most take with them
sum over j of (cj - cj+1) min(k, Nj). One binary for each kind says which side the minimum is on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from rackscope.errors import RackscopeError
from rackscope.models.uncertain import Array
from rackscope.units import format_count

#: Fleets larger than this are planned in other ways than server by server.
MOST_SERVERS = 100_000
#: Slack for sums of floats, as a share.
_SLACK = 1e-9
_ATTEMPTS = 5
#: Of scipy.optimize.milp.
_SOLVED, _INFEASIBLE = 0, 2


class NoFleetError(RackscopeError):
    """No fleet meets what is asked for."""


@dataclass(frozen=True)
class Kind:
    """A kind of server: what one serves within the objective, takes at that load, and costs. ``most``: how many there
    may be of it; ``None`` for any number.
    """

    name: str
    rate_per_second: float
    watts: float
    cost_per_year: float
    price: float = 0.0
    most: int | None = None

    def __post_init__(self) -> None:
        for name in ("rate_per_second", "watts", "cost_per_year", "price"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise RackscopeError(f"{self.name}: {name} is {value:g}", "Give it zero or more.")
        if self.cost_per_year <= 0:
            raise RackscopeError(f"{self.name} costs nothing a year", "Give it a cost: else any number is as good.")
        if self.most is not None and self.most < 0:
            raise RackscopeError(f"{self.name}: there are {self.most} of it", "Give zero or more.")


@dataclass(frozen=True)
class Demand:
    """What a fleet must do, and may take. ``spares``: the k of N+k. ``None``: no limit.

    ``watts`` at the servers; ``budget_per_year`` of all costs, ``purchase_budget`` of prices. Raises RackscopeError
    for what is negative or not finite, and no rate.
    """

    rate_per_second: float
    spares: int = 0
    watts: float | None = None
    budget_per_year: float | None = None
    purchase_budget: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate_per_second) and self.rate_per_second > 0):
            raise RackscopeError(
                f"a demand of {self.rate_per_second:g} a second is invalid", "Write a rate above zero."
            )
        if self.spares < 0:
            raise RackscopeError(f"--spares must be 0 or more, not {self.spares}", "Write how many servers may fail.")
        for name in ("watts", "budget_per_year", "purchase_budget"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise RackscopeError(f"a limit of {name} of {value:g} cannot be", "Give zero or more.")


@dataclass(frozen=True)
class Fleet:
    """How many of each kind (those with none left out), and what they come to. ``rate_after_loss_per_second``: without
    the ``spares`` servers that serve the most.
    """

    counts: Mapping[str, int]
    rate_after_loss_per_second: float
    watts: float
    cost_per_year: float
    price: float

    @property
    def servers(self) -> int:
        return sum(self.counts.values())


def weigh(kinds: Sequence[Kind], counts: Sequence[int], spares: int) -> Fleet:
    """What ``counts`` of ``kinds`` come to."""
    rates = sorted(
        (kind.rate_per_second for kind, count in zip(kinds, counts, strict=True) for _ in range(min(count, spares))),
        reverse=True,
    )
    pairs = list(zip(kinds, counts, strict=True))
    return Fleet(
        {kind.name: count for kind, count in pairs if count},
        math.fsum(kind.rate_per_second * count for kind, count in pairs) - math.fsum(rates[:spares]),
        math.fsum(kind.watts * count for kind, count in pairs),
        math.fsum(kind.cost_per_year * count for kind, count in pairs),
        math.fsum(kind.price * count for kind, count in pairs),
    )


def cheapest_fleet(kinds: Sequence[Kind], demand: Demand) -> Fleet:
    """The fleet with the least cost a year. Raises NoFleetError when there is none; it says how much can be served."""
    asked = demand.rate_per_second
    for _ in range(_ATTEMPTS):
        fleet = _solve(_named_once(kinds), demand, lowest_rate=asked)
        if fleet is None:
            raise NoFleetError(*_why_none(kinds, demand))
        missing = demand.rate_per_second * (1 - _SLACK) - fleet.rate_after_loss_per_second
        if missing <= 0:
            return fleet
        # The solver takes 0.999999 for a whole one, which in large fleets may be short of a server.
        asked += missing
    raise RackscopeError("the fleet's rates differ too much for the solver", "Leave out the smallest kinds of server.")


def largest_fleet(kinds: Sequence[Kind], demand: Demand, *, cheaper_than: float | None = None) -> Fleet | None:
    """The fleet that serves the most after losing its spares, whatever the demand's rate, within its limits and
    costing less than ``cheaper_than`` a year. ``None``: even no server breaks a limit. Something must limit it, else
    the answer is as large as ``MOST_SERVERS`` allows.
    """
    return _solve(_named_once(kinds), demand, lowest_rate=None, cheaper_than=cheaper_than)


def _named_once(kinds: Sequence[Kind]) -> Sequence[Kind]:
    names = [kind.name for kind in kinds]
    if not names or len(set(names)) < len(names):
        raise RackscopeError("there must be a kind of server, and each once", f"Given: {', '.join(names) or 'none'}.")
    return kinds


def _why_none(kinds: Sequence[Kind], demand: Demand) -> tuple[str, str]:
    limits = {
        "the power": demand.watts,
        "the budget": demand.budget_per_year,
        "the purchase budget": demand.purchase_budget,
        "the servers there are": None if any(kind.most is None for kind in kinds) else 1.0,
    }
    named = [name for name, limit in limits.items() if limit is not None]
    best = largest_fleet(kinds, demand) if named else None
    within = f" within {' and '.join(named)}" if named else ""
    what = f"no fleet meets {format_count(demand.rate_per_second)} a second at N+{demand.spares}{within}"
    if best is None or best.rate_after_loss_per_second <= 0:
        if not named:
            return what, "No kind of server has any capacity."
        return what, f"It is too little for any fleet: give more{', or ask for fewer spares' if demand.spares else ''}."
    fleet = " and ".join(f"{count} x {name}" for name, count in best.counts.items())
    return what, f"The most is {format_count(best.rate_after_loss_per_second)} a second, by {fleet}."


def _solve(
    kinds: Sequence[Kind], demand: Demand, *, lowest_rate: float | None, cheaper_than: float | None = None
) -> Fleet | None:
    """Least cost for at least ``lowest_rate``, or, without it, the most rate. Variables: counts, losses, sides."""
    order = sorted(range(len(kinds)), key=lambda k: -kinds[k].rate_per_second)
    size, spares = len(kinds), demand.spares
    ceiling = [_ceiling(kind, demand, lowest_rate, cheaper_than) for kind in kinds]
    # Rates by the largest and money by the dearest, so that the solver's tolerances mean the same for all.
    rate_unit = max(kind.rate_per_second for kind in kinds) or 1.0
    served = np.array([kind.rate_per_second / rate_unit for kind in kinds])
    rows, lows, highs = [], [], []

    def add(coefficients: Array, low: float, high: float) -> None:
        rows.append(coefficients)
        lows.append(low)
        highs.append(high)

    rate = np.zeros(3 * size)
    rate[:size] = served
    for j, place in enumerate(order):
        following = served[order[j + 1]] if j + 1 < size else 0.0
        rate[size + j] = -(served[place] - following)
        before = order[: j + 1]
        most = float(sum(ceiling[k] for k in before))
        # The loss is at least k (side 0), or at least the servers there are (side 1).
        few = np.zeros(3 * size)
        few[size + j], few[2 * size + j] = 1, spares
        add(few, spares, np.inf)
        all_of_them = np.zeros(3 * size)
        all_of_them[size + j], all_of_them[2 * size + j] = 1, -most
        all_of_them[before] = -1
        add(all_of_them, -most, np.inf)
    for name, limit in (
        ("watts", demand.watts),
        ("cost_per_year", demand.budget_per_year),
        ("price", demand.purchase_budget),
    ):
        if limit is not None:
            add(_amounts(kinds, name), -np.inf, limit * (1 + _SLACK))
    costs = _amounts(kinds, "cost_per_year")
    if cheaper_than is not None:
        add(costs, -np.inf, cheaper_than - 1e-6 * min(kind.cost_per_year for kind in kinds))
    if lowest_rate is not None:
        add(rate, lowest_rate / rate_unit * (1 - _SLACK), np.inf)
    answer = scipy.optimize.milp(
        -rate if lowest_rate is None else costs / costs.max(),
        constraints=scipy.optimize.LinearConstraint(np.array(rows), np.array(lows), np.array(highs)),
        bounds=scipy.optimize.Bounds(0.0, np.array([*ceiling, *([float(spares)] * size), *([1.0] * size)])),
        integrality=np.array([1] * size + [0] * size + [1] * size),
        options={"mip_rel_gap": 0.0},
    )
    if answer.status not in (_SOLVED, _INFEASIBLE):
        raise RackscopeError(
            f"no fleet was found: {answer.message}", "Leave out kinds of server that are nearly alike."
        )
    if answer.x is None:
        return None
    return weigh(kinds, [round(float(count)) for count in answer.x[:size]], spares)


def _amounts(kinds: Sequence[Kind], name: str) -> Array:
    return np.array([*(getattr(kind, name) for kind in kinds), *([0.0] * (2 * len(kinds)))])


def _ceiling(kind: Kind, demand: Demand, lowest_rate: float | None, cheaper_than: float | None) -> float:
    """More of a kind than this is never needed, or not allowed."""
    limits = [float(MOST_SERVERS if kind.most is None else kind.most)]
    if kind.rate_per_second <= 0:
        limits.append(0.0)
    elif lowest_rate is not None:
        limits.append(math.ceil(lowest_rate / kind.rate_per_second * (1 + _SLACK)) + demand.spares)
    for amount, limit in (
        (kind.watts, demand.watts),
        (kind.cost_per_year, demand.budget_per_year),
        (kind.cost_per_year, cheaper_than),
        (kind.price, demand.purchase_budget),
    ):
        if limit is not None and amount > 0:
            limits.append(math.floor(limit / amount * (1 + _SLACK)))
    return max(0.0, min(limits))
