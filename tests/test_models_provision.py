"""Fleets against every fleet tried out; the queue against its integral and its special cases."""

from __future__ import annotations

import itertools
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from rackscope.errors import RackscopeError
from rackscope.models.multi_server_queue import erlang_c, late_probability, rate_within
from rackscope.models.provision import Demand, Fleet, Kind, NoFleetError, cheapest_fleet, largest_fleet, weigh

#: More of a kind than this is not tried; ``most`` keeps the program to the same.
MOST = 4


@st.composite
def kinds(draw: st.DrawFn) -> list[Kind]:
    whole = st.integers(0, 40)
    return [
        Kind(
            f"kind {k}",
            rate_per_second=draw(whole) * 25.0,
            watts=draw(whole) * 10.0,
            cost_per_year=draw(st.integers(1, 60)) * 10.0,
            price=draw(whole) * 100.0,
            most=draw(st.integers(0, MOST)),
        )
        for k in range(draw(st.integers(1, 3)))
    ]


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    def limit(most: int) -> float | None:
        return draw(st.one_of(st.none(), st.integers(0, most).map(float)))

    return Demand(draw(st.integers(1, 4000)) * 1.0, draw(st.integers(0, 3)), limit(2000), limit(3000), limit(20_000))


def tried_out(chosen: list[Kind], demand: Demand) -> list[Fleet]:
    """Every fleet within the limits; the loss is found by trying every set of servers that can be lost."""
    fleets = []
    for counts in itertools.product(*(range((kind.most or 0) + 1) for kind in chosen)):
        fleet = weigh(chosen, counts, demand.spares)
        each = [kind.rate_per_second for kind, count in zip(chosen, counts, strict=True) for _ in range(count)]
        lost = max(math.fsum(gone) for gone in itertools.combinations(each, min(demand.spares, len(each))))
        assert fleet.rate_after_loss_per_second == pytest.approx(math.fsum(each) - lost)
        limits = (
            (fleet.watts, demand.watts),
            (fleet.cost_per_year, demand.budget_per_year),
            (fleet.price, demand.purchase_budget),
        )
        if all(limit is None or amount <= limit for amount, limit in limits):
            fleets.append(fleet)
    return fleets


@settings(deadline=None, max_examples=60)
@given(kinds(), demands())
def test_no_fleet_is_cheaper_and_none_is_missed(chosen: list[Kind], demand: Demand) -> None:
    fitting = [one for one in tried_out(chosen, demand) if one.rate_after_loss_per_second >= demand.rate_per_second]
    if not fitting:
        with pytest.raises(NoFleetError, match="no fleet meets"):
            cheapest_fleet(chosen, demand)
        return
    found = cheapest_fleet(chosen, demand)
    assert found in fitting
    assert found.cost_per_year == pytest.approx(min(one.cost_per_year for one in fitting))


@settings(deadline=None, max_examples=30)
@given(kinds(), demands(), st.one_of(st.none(), st.integers(10, 2000).map(float)))
def test_no_fleet_serves_more(chosen: list[Kind], demand: Demand, cheaper_than: float | None) -> None:
    fitting = [one for one in tried_out(chosen, demand) if cheaper_than is None or one.cost_per_year < cheaper_than]
    found = largest_fleet(chosen, demand, cheaper_than=cheaper_than)
    assert found is not None
    assert cheaper_than is None or found.cost_per_year < cheaper_than
    assert found.rate_after_loss_per_second == pytest.approx(max(one.rate_after_loss_per_second for one in fitting))


def test_a_large_fleet_of_real_numbers() -> None:
    """A million a second at N+2: 12 of the fast ones, and no fewer by hand: (12 - 2) x 100,000."""
    fast = Kind("fast", 100_000, 300, 2500)
    slow = Kind("slow", 9_000, 40, 400)
    found = cheapest_fleet([slow, fast], Demand(1_000_000, 2))
    assert found.counts == {"fast": 12}
    assert found.rate_after_loss_per_second == 1_000_000


def test_mixed_when_that_is_cheaper() -> None:
    fast, slow = Kind("fast", 100_000, 300, 2500), Kind("slow", 9_000, 40, 300)
    assert cheapest_fleet([fast, slow], Demand(305_000)).counts == {"fast": 3, "slow": 1}


def test_what_cannot_be_met_says_what_could() -> None:
    fast = Kind("fast", 100_000, 300, 2500)
    says = "no fleet meets 1.00 M a second at N+1 within the power. The most is 500 k a second, by 6 x fast."
    with pytest.raises(NoFleetError, match=re.escape(says)):
        cheapest_fleet([fast], Demand(1e6, 1, watts=2000))
    with pytest.raises(NoFleetError, match="No kind of server has any capacity"):
        cheapest_fleet([Kind("idle", 0, 1, 1)], Demand(1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Kind("one", -1, 1, 1),
        lambda: Kind("one", 1, math.nan, 1),
        lambda: Kind("one", 1, 1, 0),
        lambda: Demand(0),
        lambda: Demand(math.inf),
        lambda: Demand(1, -1),
        lambda: Demand(1, watts=-5),
        lambda: cheapest_fleet([], Demand(1)),
        lambda: cheapest_fleet([Kind("one", 1, 1, 1), Kind("one", 2, 1, 1)], Demand(1)),
        lambda: rate_within(0, 1, 1, 0.99),
        lambda: rate_within(1, 1, 1, 1),
    ],
)
def test_what_cannot_be_is_refused(make: object) -> None:
    with pytest.raises(RackscopeError):
        make()  # type: ignore[operator]


@settings(deadline=None, max_examples=60)
@given(st.floats(0.01, 0.99), st.integers(1, 64), st.floats(0.05, 20))
def test_late_responses_are_those_of_the_integral(load: float, units: int, bound: float) -> None:
    """Waiting (an atom at zero, then exponential) and service (exponential, 1 s) added up by quadrature."""
    waits, drain = erlang_c(units, load), units * (1 - load)
    assert 0 < waits <= 1
    density, _ = quad(
        lambda w: drain * math.exp(-drain * w) * math.exp(-(bound - w)), 0, bound, epsabs=1e-12, limit=200
    )
    expected = (1 - waits) * math.exp(-bound) + waits * (density + math.exp(-drain * bound))
    assert late_probability(load * units, units, units, bound) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@given(st.floats(1, 1e6), st.floats(1e-5, 10), st.floats(0.5, 0.999))
def test_one_unit_has_a_closed_form(capacity: float, bound: float, quantile: float) -> None:
    """M/M/1: response times are exponential with capacity less rate."""
    expected = max(0.0, capacity + math.log(1 - quantile) / bound)
    assert rate_within(capacity, 1, bound, quantile) == pytest.approx(expected, rel=1e-6, abs=1e-6 * capacity)


@given(st.integers(1, 32), st.floats(0.1, 50), st.floats(0.5, 0.999))
def test_more_time_allows_more(units: int, bound: float, quantile: float) -> None:
    rate = rate_within(100, units, bound / 100, quantile)
    assert 0 <= rate < 100
    assert rate <= rate_within(100, units, bound / 50, quantile) + 1e-6
