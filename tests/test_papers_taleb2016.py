"""Taleb 2016 as a model: it meets the figures it is fitted to, foretells others, and names the contradiction."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rackscope.errors import RackscopeError
from rackscope.papers.document import Document
from rackscope.papers.taleb2016.contradiction import growth_by_latency, latency_for, think_time_for
from rackscope.papers.taleb2016.model import Cluster, Fit, Parameters, fit
from rackscope.papers.taleb2016.page import CLIENTS, PAPER, SERVERS
from rackscope.papers.taleb2016.quoted import QUOTED

PAGE = Path(__file__).parent.parent / "docs" / "papers" / "taleb2016.md"
NUMBER = re.compile(r"\d[\d,]*\.?\d*")


@pytest.fixture(scope="module")
def fitted() -> Fit:
    return fit()


@pytest.fixture(scope="module")
def steps() -> list[str]:
    return []


@pytest.fixture(scope="module")
def made(steps: list[str]) -> Document:
    return PAPER.page(say=steps.append)


def test_what_takes_seconds_says_what_it_does(made: Document, steps: list[str]) -> None:
    assert made.sections and len(steps) == len(dict.fromkeys(steps)) > 4


def test_what_is_fitted_is_met(fitted: Fit) -> None:
    look = Cluster(fitted.parameters).look
    for one in QUOTED:
        if one.fitted:
            assert one.predict(look) == pytest.approx(one.value, abs=2 * one.deviation), one.name


def test_what_was_kept_is_foretold(fitted: Fit) -> None:
    """The latency at 90 clients over TCP, and Infiniband's power: the fit has seen neither."""
    look = Cluster(fitted.parameters).look
    assert look("TCP", 10, 90).response_seconds == pytest.approx(512e-6, rel=0.05)
    assert look("Infiniband", 10, 10).watts_per_server == pytest.approx(94, abs=2)
    assert look("Infiniband", 10, 60).watts_per_server == pytest.approx(94, abs=4)
    for clients in CLIENTS:
        assert look("TCP", 10, clients).watts_per_server > look("Infiniband", 10, clients).watts_per_server


def test_a_fit_finds_the_parameters_that_made_the_figures() -> None:
    from dataclasses import fields, replace

    truth = Parameters(200e-6, 60e-6, 3e-6, 30e-6, 4e-6, 1e-6, 90.0, 15.0)
    look = Cluster(truth).look
    found = fit([replace(one, value=one.predict(look)) for one in QUOTED])
    for one in fields(Parameters):
        assert getattr(found.parameters, one.name) == pytest.approx(getattr(truth, one.name), rel=1e-3)
    assert found.misfit == pytest.approx(0, abs=1e-6)


def test_without_a_shared_path_the_larger_clusters_are_not_met(fitted: Fit) -> None:
    plain = fit(start=fitted.parameters, shared_path=False)
    assert plain.parameters.tcp_shared_seconds == 0
    assert plain.misfit > 3 > fitted.misfit


def test_too_few_figures_are_refused() -> None:
    with pytest.raises(RackscopeError, match="too little"):
        fit(QUOTED[:3])


def test_the_contradiction_is_the_papers_own() -> None:
    """By hand: 60 clients / 315 µs is more than 90 / 512 µs."""
    grown = growth_by_latency(315, 315, 512)
    assert grown.from_60_to_90 == pytest.approx((90 / 512) / (60 / 315))
    assert grown.from_60_to_90 < 1 < 1.10
    think = think_time_for(1.10, 1.5, 315, 512)
    assert (90 / (512 + think)) / (60 / (315 + think)) == pytest.approx(1.10)
    assert think_time_for(5.4, 9, 315, 512) < 0
    assert latency_for(5.4, 9, 315) == pytest.approx(525)


def test_the_whole_range_is_there_with_intervals(made: Document) -> None:
    places = {(row["transport"], row["servers"], row["clients"]) for row in made.values["range"]}
    assert places == {(t, s, c) for t in ("TCP", "Infiniband") for s in SERVERS for c in CLIENTS}
    for row in made.values["range"]:
        for name in ("throughput_per_second", "response_seconds", "watts_per_server", "operations_per_joule"):
            assert 0 < row[name]["low"] < row[name]["value"] < row[name]["high"]
        cycle = row["throughput_per_second"]["value"] * row["response_seconds"]["value"]
        assert cycle == pytest.approx(row["clients"])


def test_the_simulation_agrees_with_every_row_it_was_asked_of(made: Document) -> None:
    exact = {(row["transport"], row["servers"], row["clients"]): row for row in made.values["range"]}
    assert len(made.values["simulation"]) >= 4
    for row in made.values["simulation"]:
        interval = row["exponential_service"]["throughput_per_second"]
        analysis = exact[row["transport"], row["servers"], row["clients"]]["throughput_per_second"]["value"]
        half = (interval["high"] - interval["low"]) / 2
        assert abs(interval["estimate"] - analysis) < 2 * half


def test_the_page_in_docs_is_what_is_printed(made: Document) -> None:
    """Word by word; numbers to the last digit or two, which another libm may round otherwise."""
    written, now = PAGE.read_text(encoding="utf-8"), made.markdown()
    assert NUMBER.sub("#", written) == NUMBER.sub("#", now)
    for left, right in zip(NUMBER.findall(written), NUMBER.findall(now), strict=True):
        assert float(left.replace(",", "")) == pytest.approx(float(right.replace(",", "")), rel=0.01, abs=0.02)


def test_every_quoted_figure_is_there_for_programs(made: Document) -> None:
    assert made.values["modelled"] is True
    quoted = {one["quoted"] for one in made.values["figures_quoted"]}
    assert quoted == {7.38, 11.40, 1.39, 1.10, 5.4, 6.9, 7.3, 94, 97, 109, 40, 315, 512}
