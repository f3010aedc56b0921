"""The search ends near the truth on servers whose truth is known, whatever their scale, and says when it cannot."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.analysis.slo_search import Observation, SloSearch, confirmed
from suites import Trials

Server = Callable[[float], Observation]


def queue(capacity: float, generator: np.random.Generator, requests: int = 10_000) -> Server:
    """An M/M/1 queue, request by request (Lindley's recursion)."""

    def observe(rate: float) -> Observation:
        gaps, services = generator.exponential(1 / rate, requests), generator.exponential(1 / capacity, requests)
        walk = np.cumsum(np.append(0, services[:-1] - gaps[1:]))
        response = walk - np.minimum.accumulate(walk) + services
        return Observation(rate, float(np.quantile(response, 0.99)), min(rate, capacity))

    return observe


def formula(capacity: float, generator: np.random.Generator, noise: float) -> Server:
    """The 99th percentile of an M/M/1 queue's response time, with noise from run to run."""

    def observe(rate: float) -> Observation:
        if rate >= 0.999 * capacity:
            return Observation(rate, 1e6 / capacity, capacity)
        p99 = math.log(100) / (capacity - rate) * math.exp(noise * generator.standard_normal())
        return Observation(rate, p99, rate)

    return observe


def cliff(capacity: float, generator: np.random.Generator, noise: float) -> Server:
    """Latency that says nothing of the load until the server is full."""

    def observe(rate: float) -> Observation:
        full = capacity * (1 + noise * generator.standard_normal())
        p99 = 1e-4 * math.exp(noise * generator.standard_normal()) if rate < full else 0.5
        return Observation(rate, p99, min(rate, full))

    return observe


def searched(search: SloSearch, server: Server, most: int = 40) -> float | None:
    while len(search.observations) < most and (rate := search.next_rate()) is not None:
        search.observe(server(rate))
    return search.crossing()


@pytest.mark.parametrize("kind", ["queue", "quiet", "noisy", "cliff"])
def test_the_answer_is_within_three_percent_of_the_truth(kind: str, trials: Trials) -> None:
    seeds, near = trials.count(40, 400), 0
    for seed in trials.seeds(seeds):
        generator = np.random.default_rng(seed)
        capacity, utilisation = 10 ** generator.uniform(3, 6), generator.uniform(0.6, 0.8)
        bound, truth = math.log(100) / (capacity * (1 - utilisation)), capacity * utilisation
        if kind == "cliff":
            bound, truth = 1e-3, capacity
        server = {
            "queue": queue(capacity, generator),
            "quiet": formula(capacity, generator, 0.03),
            "noisy": formula(capacity, generator, 0.1),
            "cliff": cliff(capacity, generator, 0.01),
        }[kind]
        crossing = searched(SloSearch(bound, 1000, 1, 1e9), server)
        assert crossing is not None
        near += abs(crossing / truth - 1) <= 0.03
    assert near / seeds >= 0.95


def test_a_search_without_noise_ends_at_the_crossing() -> None:
    crossing = searched(SloSearch(1e-3, 100, 1, 1e7), formula(50_000, np.random.default_rng(1), 0.0))
    assert crossing == pytest.approx(50_000 - math.log(100) / 1e-3, rel=0.01)


def test_bounds_that_are_never_and_always_met() -> None:
    never = SloSearch(1e-9, 1000, 10, 1e6)
    assert searched(never, formula(50_000, np.random.default_rng(1), 0.0)) is None
    assert never.next_rate() is None
    assert [one.rate for one in never.observations][-1] == 10
    assert not any(never.met(one) for one in never.observations)
    always = SloSearch(10.0, 1000, 10, 20_000)
    assert searched(always, formula(50_000, np.random.default_rng(1), 0.0)) is None
    assert always.next_rate() is None
    assert [one.rate for one in always.observations][-3:] == [20_000] * 3
    assert all(always.met(one) for one in always.observations)


def test_answers_that_never_come_count_as_missed() -> None:
    search = SloSearch(1e-3, 1000, 10, 1e6)
    assert not search.met(Observation(1000, None))
    assert not search.met(Observation(1000, math.nan))
    assert not search.met(Observation(1000, 1e-4, achieved=900))
    assert search.met(Observation(1000, 1e-4, achieved=999))


def test_a_search_resumes_where_it_was() -> None:
    server = formula(50_000, np.random.default_rng(1), 0.05)
    search = SloSearch(1e-3, 1000, 10, 1e6)
    proposals = []
    while len(proposals) < 20 and (rate := search.next_rate()) is not None:
        proposals.append(rate)
        search.observe(server(rate))
    for done in (0, 3, len(proposals) // 2, len(proposals) - 1):
        again = SloSearch(1e-3, 1000, 10, 1e6)
        for observation in search.observations[:done]:
            assert again.next_rate() == observation.rate
            again.observe(observation)
        assert again.next_rate() == proposals[done]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.one_of(st.none(), st.floats(min_value=0, max_value=1e3), st.just(math.inf), st.just(math.nan)),
        min_size=60,
        max_size=60,
    )
)
def test_whatever_is_observed_the_search_stays_between_its_rates(values: list[float | None]) -> None:
    search = SloSearch(1e-3, 1000, 10, 1e6)
    for value in values:
        rate = search.next_rate()
        if rate is None:
            break
        assert 10 <= rate <= 1e6
        search.observe(Observation(rate, value))
        crossing = search.crossing()
        assert crossing is None or 10 / 1.2 <= crossing <= 1.2e6


def test_what_confirms_a_rate() -> None:
    assert next(n for n in range(1, 12) if confirmed(n, n)) == 5
    assert confirmed(7, 8)
    assert confirmed(9, 11)
    assert not confirmed(6, 8)
    assert not confirmed(0, 0)


@pytest.mark.parametrize("rates", [(0, 1, 2), (2, 1, 3), (1, 5, 4), (1, 2, math.inf)])
def test_rates_that_make_no_search_are_refused(rates: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="rates must be"):
        SloSearch(1e-3, rates[1], rates[0], rates[2])
    with pytest.raises(ValueError, match="bound"):
        SloSearch(0.0, 10, 1, 100)
