"""What is worth measuring: the uncertain server that may be the better buy, and nothing where none may."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rackscope.advice.measure_next import MeasureNext, measure_next
from rackscope.cli import main
from rackscope.errors import RackscopeError
from rackscope.models.catalogue import CatalogueError, parse_catalogue
from rackscope.models.provision import NoFleetError

SITE = """
format_version = 1
currency = "EUR"
[site]
electricity_price_per_kilowatt_hour = { low = 0.1, high = 0.3 }
power_usage_effectiveness = 1.5
discount_rate_per_year = 0
service_years = 4
network_price_per_server = 0
upkeep_share_per_year = 0
"""


def server(name: str, price: str, cores: int | None, rate: str | None, watts: str = "100") -> str:
    lines = ["[[server]]", f'name = "{name}"', f"price = {price}", f'source = "offer {name}"']
    lines += [] if cores is None else [f"cores = {cores}"]
    if rate is not None:
        lines += ["[[server.measured]]", 'workload = "get"', f"operations_per_second = {rate}", f"watts = {watts}"]
        lines += [f'source = "run-{name}"']
    return "\n".join(line for line in lines if line != "price = None") + "\n"


KNOWN = server("known", "4000", 16, "400000")
OTHER = server("other", "2000", 8, "200000", "60")
NEW = server("new", "4000", 16, None)


def ranked(*servers: str, rate: float = 5e6, spares: int = 0, error: float = 0.05) -> MeasureNext:
    return measure_next(
        parse_catalogue(SITE + "".join(servers), "mine.toml"), "get", rate, spares=spares, error=error, draws=4000
    )


def test_the_unmeasured_server_is_worth_measuring_and_the_measured_are_not() -> None:
    found = ranked(KNOWN, OTHER, NEW)
    first = found.rows[0]
    assert (first.name, first.measured) == ("new", False)
    assert first.value_per_year.value > 0
    assert 0 < first.changes < 1
    assert all(row.value_per_year.value == 0 for row in found.rows[1:])
    assert "a guess from its 16 cores by those of known, other" in first.stands_on
    assert found.advice[0].sentence.startswith("Measure new next")
    for name in ("offer new", "run-known", "mine.toml [site]"):
        assert name in found.advice[0].stands_on
    # As many a core as the others, on average.
    assert first.rate_per_second.value == pytest.approx(400_000, rel=0.02)


def test_known_rates_leave_nothing_to_measure() -> None:
    found = ranked(KNOWN, OTHER)
    assert [row.value_per_year.value for row in found.rows] == [0, 0]
    assert "No measurement is worth its cost" in found.advice[0].sentence
    assert found.advice[0].changes_if


def test_a_wide_interval_of_the_catalogue_is_a_guess_too() -> None:
    wide = server("wide", "4200", 16, "{ low = 200000, high = 600000 }")
    narrow = server("wide", "4200", 16, "{ low = 395000, high = 405000 }")
    assert ranked(KNOWN, wide).rows[0].name == "wide"
    assert ranked(KNOWN, wide).rows[0].value_per_year.value > 10 * ranked(KNOWN, narrow).rows[0].value_per_year.value
    assert (
        ranked(KNOWN, wide, error=3.0).rows[0].value_per_year.value < ranked(KNOWN, wide).rows[0].value_per_year.value
    )


def test_a_server_far_too_dear_is_not_worth_it() -> None:
    dear = server("dear", "{ low = 1e6, high = 2e6 }", 16, None)
    assert ranked(KNOWN, OTHER, dear).rows[0].value_per_year.value == 0


def test_the_fleet_has_its_spares() -> None:
    """12.5 servers of 400,000 make 13, and two more."""
    found = {row.name: row.servers.value for row in ranked(KNOWN, OTHER, spares=2).rows}
    assert found == {"known": 15, "other": 27}


def test_what_cannot_be_ranked_is_said() -> None:
    with pytest.raises(CatalogueError, match="no server measured under 'get'"):
        ranked(NEW, server("b", "1", 2, None))
    with pytest.raises(RackscopeError, match=r"1 servers are too few to choose from: .*price is missing"):
        ranked(KNOWN, server("free", "None", 4, "1000"))
    # One measured server tells nothing of others.
    with pytest.raises(RackscopeError, match="cannot be guessed: 1 measured servers"):
        ranked(KNOWN, NEW)
    found = ranked(KNOWN, OTHER, server("unknown", "100", None, None))
    assert found.left_out == (
        'mine.toml: server "unknown" was not measured, and cannot be guessed: its cores are missing',
    )
    with pytest.raises(NoFleetError, match="no fleet of 100,000"):
        ranked(KNOWN, OTHER, rate=1e12)
    with pytest.raises(RackscopeError, match="a demand of 0"):
        ranked(KNOWN, OTHER, rate=0)
    with pytest.raises(RackscopeError, match="an error of -1"):
        ranked(KNOWN, OTHER, error=-1)
    jobs = KNOWN.replace("operations_per_second = 400000", "seconds_per_job = 3")
    with pytest.raises(RackscopeError, match="units are mixed"):
        ranked(jobs, OTHER)


def test_the_command_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(SITE + KNOWN + OTHER + NEW)
    ask = ["advise", "measure-next", "get", "--catalogue", str(file), "--rate"]
    assert main([*ask, "5M", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["rows"][0]["name"] == "new"
    assert content["chosen"] in ("known", "other")
    assert main([*ask, "5M"]) == 0
    printed = capsys.readouterr().out
    assert "new*" in printed
    assert "modelled" in printed
    assert main([*ask, "nan"]) == 2
    capsys.readouterr()
    assert main([*ask, "5M", "--error", "5"]) == 2  # 5 %, or five times as much?
    assert "Write it like 5% or 0.05" in capsys.readouterr().err
