"""Catalogues say what is wrong with them; costs are those of the textbook; chances of dominance are counted right."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.advice.catalogue import read_catalogue, sample_catalogue
from rackscope.cli import main
from rackscope.errors import RackscopeError
from rackscope.models.catalogue import Catalogue, CatalogueError, Site, parse_catalogue
from rackscope.models.cost import (
    Candidate,
    candidates_for,
    capital_recovery_factor,
    draw_costs,
    summarise,
)
from rackscope.models.pareto import dominance, pareto_chances
from rackscope.models.uncertain import Uncertain

GOOD = """
format_version = 1
currency = "EUR"
[site]
electricity_price_per_kilowatt_hour = 0.20
power_usage_effectiveness = 1.5
discount_rate_per_year = 0.08
service_years = 4
network_price_per_server = 200
upkeep_share_per_year = 0.05
[[server]]
name = "small"
price = 1000
idle_watts = 30
full_watts = 100
memory_bytes = "24GiB"
source = "offer"
[[server.measured]]
workload = "get"
operations_per_second = 100000
watts = 90
source = "run 1"
[[server]]
name = "large"
price = "4,000 EUR"
source = "offer"
[[server.measured]]
workload = "get"
operations_per_second = { low = 500000, mode = 600000, high = 650000 }
watts = { median = 300, factor = 1.1 }
source = "run 2"
"""


def catalogue() -> Catalogue:
    return parse_catalogue(GOOD, "mine.toml")


def certain(name: str, price: float, watts: float, rate: float) -> Candidate:
    one = Uncertain.certain
    return Candidate(name, one(price), one(watts), one(rate), "operations", "a test")


def test_a_kilowatt_hour_costs_what_it_does_in_any_currency() -> None:
    yen = GOOD.replace('"EUR"', '"JPY"').replace(" EUR", " JPY").replace("hour = 0.20", "hour = 31")
    assert parse_catalogue(yen, "mine.toml").site.electricity_price_per_kilowatt_hour == Uncertain.certain(31)
    with pytest.raises(CatalogueError, match="no cents"):
        parse_catalogue(GOOD.replace("hour = 0.20", "hour = 31"), "mine.toml")


def test_a_catalogue_is_read() -> None:
    read = catalogue()
    assert read.currency == "EUR"
    assert [server.name for server in read.servers] == ["small", "large"]
    assert read.servers[0].memory_bytes == 24 * 1024**3
    assert read.servers[1].price == Uncertain.certain(4000)
    assert read.servers[1].measured[0].watts.high == pytest.approx(330)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("price = 1000", "price = -1000", 'server "small".price is negative (-1000)'),
        ("price = 1000", "price = { low = -5, high = 10 }", 'server "small".price is negative (-5)'),
        ("price = 1000", 'price = "1000 USD"', 'server "small".price is in USD, and the catalogue in EUR'),
        ("price = 1000", 'price = "cheap"', "server \"small\".price is 'cheap'"),
        ("price = 1000", "price = true", 'server "small".price is True, expected a number'),
        ("price = 1000", "price = nan", 'server "small".price is nan, expected a number'),
        ("price = 1000", f"price = 1{'0' * 400}", 'server "small".price is 1000'),
        ("price = 1000", f"price = {'[' * 5000}", "is not TOML"),
        ("price = 1000", "price = { low = 5 }", 'server "small".price is { low = 5 }'),
        ("price = 1000", "price = { low = 5, high = 4 }", "not in the order low, mode, high"),
        (
            "price = 1000",
            "price = { median = 5, factor = 0.5 }",
            'server "small".price is { median = 5, factor = 0.5 }',
        ),
        ("price = 1000", "prize = 1000", 'server "small".prize is not a known key. Did you mean price?'),
        ("idle_watts = 30", "idle_watts = 130", 'server "small".idle_watts is above full_watts'),
        ("idle_watts = 30", "idle_watts = 0.03", 'server "small".idle_watts is 0.03. Write watts'),
        ('memory_bytes = "24GiB"', 'memory_bytes = "24 apples"', "server \"small\".memory_bytes is '24 apples'"),
        ('memory_bytes = "24GiB"', "memory_bytes = 1.5", 'server "small".memory_bytes is 1.5'),
        ("effectiveness = 1.5", "effectiveness = 150", "site.power_usage_effectiveness is 150"),
        ("effectiveness = 1.5", "effectiveness = 0.5", "site.power_usage_effectiveness is 0.5"),
        ("effectiveness = 1.5", "effectiveness = { median = 1.2, factor = 2 }", "site.power_usage_effectiveness is"),
        ("rate_per_year = 0.08", "rate_per_year = 8", "site.discount_rate_per_year is 8. Write 0.08 for 8 %"),
        ("service_years = 4", "service_years = 48", "site.service_years is 48. Write years, not months"),
        ("service_years = 4", "", "site.service_years is missing"),
        ("operations_per_second = 100000", "operations_per_second = 1e-300", "operations_per_second is 1e-300"),
        ("price = 1000", "price = 1e29", "price is 1e+29"),
        ("kilowatt_hour = 0.20", "kilowatt_hour = 200", "site.electricity_price_per_kilowatt_hour is 200"),
        ("[site]", "[sight]", "sight is not a known key. Did you mean site?"),
        ('name = "large"', 'name = "small"', 'server "small" is there twice'),
        ('name = "large"', "", "server 2.name is missing"),
        ("operations_per_second = 100000", "", 'server "small".measured 1 has neither'),
        ("operations_per_second = 100000", "operations_per_second = 0", "operations_per_second is 0"),
        ("watts = 90", "", 'server "small".measured 1.watts is missing'),
        ("watts = 90", "seconds_per_job = 3\nwatts = 90", 'server "small".measured 1 has both'),
        ("format_version = 1", "format_version = 2", "format_version is 2"),
        ('currency = "EUR"', "", "currency is missing"),
        ("[[server]]", "[[server", "is not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_key(old: str, new: str, says: str) -> None:
    assert old in GOOD
    with pytest.raises(CatalogueError, match=re.escape(says)) as caught:
        parse_catalogue(GOOD.replace(old, new, 1), "mine.toml")
    assert str(caught.value).startswith("mine.toml")
    assert "\n" not in str(caught.value)


def test_files_that_are_no_catalogue(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="cannot read"):
        read_catalogue(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(CatalogueError, match="UTF-8"):
        read_catalogue(tmp_path / "bytes.toml")
    (tmp_path / "good.toml").write_text(GOOD)
    assert read_catalogue(tmp_path / "good.toml").servers == catalogue().servers


@settings(max_examples=200)
@given(st.text(max_size=40), st.sampled_from([line for line in GOOD.splitlines() if line]))
def test_whatever_stands_there_gives_a_line(text: str, line: str) -> None:
    """Either a catalogue or the one kind of error."""
    try:
        parse_catalogue(GOOD.replace(line, text), "mine.toml")
    except CatalogueError as error:
        assert str(error)


def test_the_sample_has_the_papers_servers_and_compares_them() -> None:
    sample = sample_catalogue()
    candidates, left_out = candidates_for(sample, "memcached get 64 B")
    assert [one.name for one in candidates] == ["Atom D525", "Westmere-EP L5640"]
    assert len(left_out) == len(sample.servers) - 2
    atom, westmere = draw_costs(candidates, sample.site)
    # Issa 2012, table 6: 1,410,475 over 207.6 W and 95,336 over 35.4 W.
    assert summarise(westmere.rate_per_watt / atom.rate_per_watt).value == pytest.approx(6794 / 2693, rel=1e-3)


def test_a_missing_price_gives_a_line_and_no_number() -> None:
    priceless = parse_catalogue(GOOD.replace("price = 1000", ""), "mine.toml")
    with pytest.raises(CatalogueError, match=re.escape('mine.toml: server "small".price is missing')):
        candidates_for(priceless, "get", ["small", "large"])
    candidates, left_out = candidates_for(priceless, "get")
    assert [one.name for one in candidates] == ["large"]
    assert left_out == ['mine.toml: server "small".price is missing']
    with pytest.raises(CatalogueError, match="no server measured under 'put'"):
        candidates_for(catalogue(), "put")
    with pytest.raises(CatalogueError, match="no server 'huge'"):
        candidates_for(catalogue(), "get", ["huge"])


@given(st.floats(0, 1), st.integers(1, 40))
def test_what_is_paid_back_each_year_is_worth_the_price(rate: float, years: int) -> None:
    factor = float(capital_recovery_factor(rate, years))
    assert sum(factor / (1 + rate) ** year for year in range(1, years + 1)) == pytest.approx(1, rel=1e-9)


def test_a_year_worked_by_hand() -> None:
    [costs] = draw_costs([certain("one", 1000, 100, 5000)], catalogue().site, draws=3)
    factor = 0.08 * 1.08**4 / (1.08**4 - 1)
    assert costs.capital[0] == pytest.approx(1000 * factor)
    assert costs.network[0] == pytest.approx(200 * factor)
    assert costs.upkeep[0] == pytest.approx(50)
    assert costs.power[0] == pytest.approx(0.1 * 8766 * 1.5 * 0.20)
    assert costs.total[0] == pytest.approx(1200 * factor + 50 + 262.98)
    assert costs.rate_per_watt[0] == 50
    assert costs.rate_per_money[0] == pytest.approx(5000 * 8766 * 3600 / costs.total[0])


def test_costs_that_cannot_be_compared() -> None:
    site = catalogue().site
    one = certain("one", 1000, 100, 5000)
    jobs = Candidate("jobs", one.price, one.watts, one.rate_per_second, "jobs", "a test")
    with pytest.raises(RackscopeError, match="units are mixed"):
        draw_costs([one, jobs], site)
    with pytest.raises(RackscopeError, match="compared with itself"):
        draw_costs([one, one], site)
    with pytest.raises(RackscopeError, match="nothing to compare"):
        draw_costs([], site)
    free = Site(*(Uncertain.certain(value) for value in (0, 1, 0.1, 3, 0, 0)))
    with pytest.raises(RackscopeError, match="costs nothing"):
        draw_costs([certain("one", 0, 100, 5000)], free)


def test_all_servers_share_the_site_and_a_new_one_changes_no_other() -> None:
    """One uncertain kWh: two servers alike cost the same in every draw, and that is what dominance rests on."""
    site = sample_catalogue().site
    one, same = draw_costs([certain("one", 900, 80, 1), certain("same", 900, 80, 1)], site)
    assert (one.total == same.total).all()
    assert one.total.std() > 0
    [alone] = draw_costs([certain("same", 900, 80, 1)], site)
    assert (alone.total == same.total).all()


uncertain = st.one_of(
    st.tuples(st.floats(0.1, 100), st.floats(0, 100)).map(lambda t: Uncertain.uniform(t[0], t[0] + t[1])),
    st.tuples(st.floats(0.1, 100), st.floats(0, 50), st.floats(0, 50)).map(
        lambda t: Uncertain.triangular(t[0], t[0] + t[1], t[0] + t[1] + t[2])
    ),
)


@given(uncertain, st.integers(0, 2**31))
def test_draws_stay_within_their_ends(quantity: Uncertain, seed: int) -> None:
    draws = quantity.draw("price", 200, seed)
    assert quantity.low * (1 - 1e-12) <= draws.min() <= draws.max() <= quantity.high * (1 + 1e-12)
    assert (draws == quantity.draw("price", 200, seed)).all()


def test_draws_are_distributed_as_they_say() -> None:
    lognormal = Uncertain.lognormal(150, 2).draw("network", 20_000, 1)
    assert np.median(lognormal) == pytest.approx(150, rel=0.02)
    assert ((lognormal > 75) & (lognormal < 300)).mean() == pytest.approx(0.9, abs=0.01)
    assert Uncertain.triangular(0, 1, 5).draw("x", 20_000, 1).mean() == pytest.approx(2, rel=0.02)
    assert Uncertain.uniform(2, 4).draw("x", 20_000, 1).mean() == pytest.approx(3, rel=0.01)


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 5), st.integers(0, 2**31))
def test_chances_are_counts(options: int, objectives: int, draws: int, seed: int) -> None:
    """Few levels, so that there are ties: equals do not dominate each other, and both stay on the front."""
    values = np.random.default_rng(seed).integers(0, 3, (draws, options, objectives)).astype(float)
    chances = pareto_chances([f"{k}" for k in range(options)], values)
    for i, j in itertools.product(range(options), repeat=2):
        count = sum(all(world[i] >= world[j]) and any(world[i] > world[j]) for world in values)
        assert chances.dominates[i][j].estimate == count / draws
    for j in range(options):
        free = sum(
            not any(all(world[i] >= world[j]) and any(world[i] > world[j]) for i in range(options)) for world in values
        )
        assert chances.on_front[j].estimate == free / draws
    assert sum(one.estimate for one in chances.on_front) >= 1
    assert not (dominance(values) & dominance(values).transpose(0, 2, 1)).any()


def test_a_server_that_is_better_in_all_dominates_surely() -> None:
    draws = draw_costs([certain("bad", 2000, 200, 900), certain("good", 1000, 100, 1000)], sample_catalogue().site)
    values = np.stack([np.stack([one.rate_per_watt, one.rate_per_money], axis=1) for one in draws], axis=1)
    chances = pareto_chances(["bad", "good"], values)
    assert chances.dominates[1][0].estimate == 1
    assert [one.estimate for one in chances.on_front] == [0, 1]
    with pytest.raises(RackscopeError, match="not finite"):
        pareto_chances(["bad", "good"], values * np.nan)
    with pytest.raises(RackscopeError, match="shape"):
        pareto_chances(["bad"], values)


def test_advice_says_what_it_stands_on_and_what_would_change_it() -> None:
    """The price at which the sentence says that it changes is where it does."""
    from rackscope.advice.cost import compare_costs

    before = compare_costs(catalogue(), "get")
    best, saving = before.advice
    assert best.sentence.startswith("large gives the most throughput per EUR")
    assert "run 2; price: offer" in best.stands_on
    assert "mine.toml [site]" in best.stands_on
    assert saving.sentence.startswith("large gives the most throughput per watt")
    found = re.search(r"more than ([\d,]+) EUR \(now 4,000\)", best.changes_if)
    assert found is not None
    tie = int(found[1].replace(",", ""))
    for price, winner in ((tie * 1.03, "small"), (tie * 0.97, "large")):
        moved = parse_catalogue(GOOD.replace("4,000 EUR", f"{price:.0f} EUR"), "mine.toml")
        assert compare_costs(moved, "get").advice[0].sentence.startswith(f"{winner} gives the most")


def test_the_command_shows_costs_and_refuses_bad_catalogues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD)
    assert main(["cost", "get", "--catalogue", str(file), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in values["rows"]] == ["small", "large"]
    assert values["rows"][0]["total_per_year"]["low"] <= values["rows"][0]["total_per_year"]["value"]
    assert main(["cost", "memcached get 64 B"]) == 0
    shown = capsys.readouterr()
    assert "Westmere-EP L5640" in shown.out
    assert "left out" in shown.err
    file.write_text(GOOD.replace("price = 1000", "price = -1"))
    assert main(["cost", "get", "--catalogue", str(file)]) == 2
    assert capsys.readouterr().err.startswith(f'rackscope: {file}: server "small".price is negative')
