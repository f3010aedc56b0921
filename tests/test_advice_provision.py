"""A fleet out of a catalogue: it meets its limits, and every sentence says truly what would change it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rackscope.advice.catalogue import sample_catalogue
from rackscope.advice.provision import Objective, Provision, provision
from rackscope.cli import main
from rackscope.errors import RackscopeError
from rackscope.models.catalogue import Catalogue, CatalogueError, parse_catalogue
from rackscope.models.provision import Demand, NoFleetError

TEXT = """
format_version = 1
currency = "EUR"
[site]
electricity_price_per_kilowatt_hour = { low = 0.1, high = 0.3 }
power_usage_effectiveness = 1.5
discount_rate_per_year = 0
service_years = 4
network_price_per_server = 0
upkeep_share_per_year = 0
[[server]]
name = "small"
price = 1000
threads = 4
source = "offer 1"
[[server.measured]]
workload = "get"
operations_per_second = { low = 90000, high = 110000 }
watts = 100
source = "run 1"
[[server]]
name = "large"
price = 5000
threads = 32
source = "offer 2"
[[server.measured]]
workload = "get"
operations_per_second = 600000
watts = 400
source = "run 2"
"""


def catalogue(text: str = TEXT) -> Catalogue:
    return parse_catalogue(text, "mine.toml")


def planned(demand: Demand, text: str = TEXT, objective: Objective | None = None) -> Provision:
    return provision(catalogue(text), "get", demand, objective=objective, draws=4000)


def test_the_fleet_is_counted_on_cautiously() -> None:
    """A small one is good for 91,000 in 95 % of the draws, so ten of them do not make a million."""
    found = provision(catalogue(), "get", Demand(1_000_000), ["small"], draws=4000)
    assert found.fleet.counts == {"small": 11}
    assert found.suffices > 0.95
    # 11 x (250 + 0.1 kW x 8766 h x 1.5 x 0.2) EUR.
    assert found.cost_per_year.value == pytest.approx(11 * (250 + 262.98), rel=0.02)
    assert found.cost_per_year.low < found.cost_per_year.value < found.cost_per_year.high
    assert found.site_watts == pytest.approx(11 * 150)


def test_every_sentence_says_what_it_stands_on() -> None:
    found = planned(Demand(2_000_000, 1))
    assert found.fleet.counts
    for one in found.advice:
        assert one.changes_if
        for name, run in (("small", "run 1"), ("large", "run 2")):
            assert (run in one.stands_on) == (name in found.fleet.counts)
        assert "mine.toml [site]" in one.stands_on


def test_the_demand_at_which_it_changes_is_where_it_does() -> None:
    found = planned(Demand(2_000_000, 1))
    up_to = re.search(r"up to ([\d,]+) a second", found.advice[0].changes_if)
    down = re.search(r"from ([\d,]+) a second down", found.advice[0].changes_if)
    assert up_to is not None
    assert down is not None
    high, low = (int(one[1].replace(",", "")) for one in (up_to, down))
    assert low < 2_000_000 <= high
    for rate, same in ((high - 2, True), (high + 2, False), (low + 2, True), (low - 2, False)):
        assert (planned(Demand(rate, 1)).fleet == found.fleet) is same


def test_the_cost_at_which_it_changes_is_no_too_early() -> None:
    """At the cost that is named another fleet is as cheap: beyond it the fleet has changed."""
    before = provision(catalogue(), "get", Demand(600_000), draws=4000)
    assert before.fleet.counts == {"large": 1}
    named = re.search(r"costs \d+ % more \(EUR ([\d,]+)\)", before.advice[1].changes_if)
    assert named is not None
    # Of a year of the large one, all but the power is its price over four years.
    power = 0.4 * 8766 * 1.5 * 0.2
    price = (int(named[1].replace(",", "")) * 1.03 - power) * 4
    after = provision(
        catalogue(TEXT.replace("price = 5000", f"price = {price:.0f}")), "get", Demand(600_000), draws=4000
    )
    assert "large" not in after.fleet.counts


def test_limits_hold_and_what_cannot_be_is_said() -> None:
    free = planned(Demand(3_000_000, 1))
    assert planned(Demand(3_000_000, 1, watts=free.site_watts)).site_watts <= free.site_watts
    with pytest.raises(NoFleetError, match=r"no fleet meets 3.00 M a second at N\+1 within the power"):
        planned(Demand(3_000_000, 1, watts=1000))
    with pytest.raises(NoFleetError, match="within the budget"):
        planned(Demand(3_000_000, 1, budget_per_year=1000))


def test_an_objective_costs_servers_and_is_called_modelled() -> None:
    plain = planned(Demand(5_000_000))
    within = planned(Demand(5_000_000), objective=Objective(300e-6))
    assert within.cost_per_year.value > plain.cost_per_year.value
    assert "M/M/c queue (modelled)" in within.advice[0].stands_on
    assert 0.94 < within.suffices <= 1
    with pytest.raises(NoFleetError, match="no server responds within 100 µs to 99 % of requests, even idle"):
        planned(Demand(1), objective=Objective(100e-6))
    with pytest.raises(CatalogueError, match=r'server "large"\.threads is missing'):
        planned(Demand(1), TEXT.replace("threads = 32", ""), Objective(1e-3))
    with pytest.raises(RackscopeError, match="measured in jobs"):
        provision(sample_catalogue(), "hadoop terasort", Demand(1), objective=Objective(1e-3))
    with pytest.raises(RackscopeError, match="caution"):
        provision(catalogue(), "get", Demand(1), caution=0)


def test_spares_cost_and_a_kind_alone_cannot_be_replaced() -> None:
    assert planned(Demand(600_000, 2)).cost_per_year.value > planned(Demand(600_000)).cost_per_year.value
    found = provision(sample_catalogue(), "memcached get 64 B", Demand(5e6), ["Westmere-EP L5640"])
    assert found.fleet.counts == {"Westmere-EP L5640": 4}
    assert found.advice[1].sentence == "Without Westmere-EP L5640 no fleet serves it."


def test_the_command_plans_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(TEXT)
    ask = ["advise", "provision", "get", "--catalogue", str(file)]
    assert main([*ask, "--rate", "2M", "--spares", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fleet"]["counts"] == planned(Demand(2e6, 1)).fleet.counts
    assert main([*ask, "--rate", "2M", "--p99", "1ms"]) == 0
    assert "modelled" in capsys.readouterr().out
    assert main([*ask, "--rate", "2M", "--watts", "100"]) == 1
    assert "no fleet meets" in capsys.readouterr().err
    for amount in ("nan", "-1", "0", "5 EUR"):
        assert main([*ask, "--rate", "2M", "--watts", amount]) == 2
        assert "not a number above zero" in capsys.readouterr().err
    assert main(["advise", "provision"]) == 2
    assert "SERVER" not in capsys.readouterr().err  # all servers, unless some are named
