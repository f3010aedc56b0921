"""The search ends near the truth on servers whose truth is known, whatever their scale, and says when it cannot."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.analysis.slo_search import Observation, SloResult, SloSearch, confirmed
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


def searched(search: SloSearch, server: Server) -> SloResult:
    while (rate := search.next_rate()) is not None:
        search.observe(server(rate))
    return search.result()


@pytest.mark.parametrize("kind", ["queue", "quiet", "noisy", "cliff"])
def test_the_answer_is_within_three_percent_of_the_truth(kind: str, trials: Trials) -> None:
    seeds, near, covered, sustained = trials.count(40, 400), 0, 0, 0
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
        result = searched(SloSearch(bound, 1000, 1, 1e9), server)
        assert result.crossing is not None
        assert len(result.observations) <= 50
        near += abs(result.crossing.estimate / truth - 1) <= 0.03
        covered += result.crossing.contains(truth)
        if result.sustained_rate is not None:
            sustained += 1
            assert result.sustained_rate < 1.03 * truth
    assert near / seeds >= 0.95
    assert covered / seeds >= 0.85
    assert sustained / seeds >= 0.8


def test_a_search_without_noise_ends_at_the_crossing() -> None:
    result = searched(SloSearch(1e-3, 100, 1, 1e7), formula(50_000, np.random.default_rng(1), 0.0))
    assert result.crossing is not None
    assert result.crossing.estimate == pytest.approx(50_000 - math.log(100) / 1e-3, rel=0.01)
    assert (result.confirmations, result.attempts) == (5, 5)
    assert "confirmed" in result.reason


def test_bounds_that_are_never_and_always_met() -> None:
    never = searched(SloSearch(1e-9, 1000, 10, 1e6), formula(50_000, np.random.default_rng(1), 0.0))
    assert (never.crossing, never.sustained_rate) == (None, None)
    assert "lowest rate" in never.reason
    always = searched(SloSearch(10.0, 1000, 10, 20_000), formula(50_000, np.random.default_rng(1), 0.0))
    assert always.sustained_rate == 20_000
    assert always.crossing is None


def test_a_generator_that_is_the_limit_is_named() -> None:
    def server(rate: float) -> Observation:
        late = 1e-5 if rate < 20_000 else 0.05
        return Observation(rate, 2e-4 + late, rate, late)

    result = searched(SloSearch(1e-3, 1000, 10, 1e6), server)
    assert result.generator_limited
    assert "generator" in result.reason
    assert result.sustained_rate is not None
    assert result.sustained_rate == pytest.approx(20_000, rel=0.1)


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
    while (rate := search.next_rate()) is not None:
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
def test_whatever_is_observed_the_search_ends_and_stays_between_its_rates(values: list[float | None]) -> None:
    search = SloSearch(1e-3, 1000, 10, 1e6, most_observations=40)
    for value in values:
        rate = search.next_rate()
        if rate is None:
            break
        assert 10 <= rate <= 1e6
        search.observe(Observation(rate, value))
    assert search.next_rate() is None
    assert search.result().reason


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
