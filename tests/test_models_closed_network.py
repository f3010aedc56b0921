"""The analysis of closed networks against every state counted out, against itself, and against the simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.errors import RackscopeError
from rackscope.models.closed_network import ClosedNetwork, Solution, Station, _solution, mean_value_analysis
from rackscope.models.closed_network_simulation import simulate

times = st.floats(min_value=1e-6, max_value=1e-3)


@st.composite
def networks(draw: st.DrawFn, servers: int = 4, units: int = 4) -> ClosedNetwork:
    shared = [Station(f"shared {k}", draw(times), draw(st.integers(1, units))) for k in range(draw(st.integers(0, 1)))]
    own = [Station(f"own {k}", draw(times), draw(st.integers(1, units))) for k in range(draw(st.integers(1, 2)))]
    waits = st.one_of(st.just(0.0), times)
    return ClosedNetwork(draw(st.integers(1, servers)), tuple(own), tuple(shared), draw(waits), draw(waits))


def counted_out(network: ClosedNetwork, clients: int) -> Solution:
    """Every state of the network with its weight: the product form itself, for networks small enough."""
    places = [
        (one, one.service_seconds / network.copies(one)) for one in network.stations for _ in range(network.copies(one))
    ]
    waits = network.delay_seconds + network.think_seconds

    def weights(population: int) -> list[tuple[tuple[int, ...], float]]:
        states = []
        for state in itertools.product(range(population + 1), repeat=len(places)):
            elsewhere = population - sum(state)
            if elsewhere < 0:
                continue
            weight = waits**elsewhere / math.factorial(elsewhere)
            for (station, demand), here in zip(places, state, strict=True):
                weight *= demand**here / math.prod(min(j, station.units) for j in range(1, here + 1))
            states.append((state, weight))
        return states

    states = weights(clients)
    total = math.fsum(weight for _, weight in states)
    throughput = math.fsum(weight for _, weight in weights(clients - 1)) / total
    residence = {one.name: 0.0 for one in network.stations}
    for state, weight in states:
        for (station, _), here in zip(places, state, strict=True):
            residence[station.name] += here * weight / total / throughput
    return Solution(
        clients, throughput, network.delay_seconds + sum(residence.values()), residence,
        {one.name: throughput * one.service_seconds / network.copies(one) / one.units for one in network.stations},
    )  # fmt: skip


def convolution(network: ClosedNetwork, clients: int) -> tuple[Solution, ...]:
    """The same means by Buzen's algorithm (1973), in logarithms: nothing is subtracted, nothing overflows."""
    counts = np.arange(clients + 1)
    log_factorials = np.concatenate(([0.0], np.cumsum(np.log(counts[1:]))))
    waits = network.delay_seconds + network.think_seconds
    whole = _powers(waits, counts) - log_factorials
    weights = []
    for station in network.stations:
        copies = network.copies(station)
        rates = np.concatenate(([0.0], np.cumsum(np.log(np.minimum(counts[1:], station.units)))))
        weights.append(_powers(station.service_seconds / copies, counts) - rates)
    others = []
    for station in network.stations:
        without = whole
        for other, its_weight in zip(network.stations, weights, strict=True):
            without = _convolve(without, its_weight, network.copies(other) - (other is station))
        others.append(without)
    for station, weight in zip(network.stations, weights, strict=True):
        whole = _convolve(whole, weight, network.copies(station))
    throughputs = np.exp(whole[:-1] - whole[1:])
    with np.errstate(divide="ignore"):
        log_counts = np.log(counts.astype(float))
    queues = [
        network.copies(station) * np.exp(_convolve(without, weight + log_counts, 1) - whole)
        for station, weight, without in zip(network.stations, weights, others, strict=True)
    ]
    return tuple(
        _solution(network, n, float(throughputs[n - 1]), [float(queue[n] / throughputs[n - 1]) for queue in queues])
        for n in range(1, clients + 1)
    )


def _powers(base: float, counts: np.ndarray) -> np.ndarray:
    """Logarithms of base^0, base^1, ...; 0^0 is one."""
    logarithm = math.log(base) if base > 0 else -math.inf
    return np.array([0.0, *(logarithm * count for count in counts[1:].tolist())])


def _convolve(left: np.ndarray, right: np.ndarray, times: int) -> np.ndarray:
    """``left`` convolved ``times`` times with ``right``, all in logarithms."""
    size = len(left)
    place = np.arange(size)[:, None] - np.arange(size)[None, :]
    while times:
        if times % 2:
            left = _add(np.where(place >= 0, left[place.clip(0)], -np.inf) + right)
        times //= 2
        if times:
            right = _add(np.where(place >= 0, right[place.clip(0)], -np.inf) + right)
    return left


def _add(terms: np.ndarray) -> np.ndarray:
    """Logarithms of the sums of rows."""
    most = terms.max(axis=1)
    shift = np.where(np.isfinite(most), most, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(terms - shift[:, None]).sum(axis=1)) + shift, dtype=np.float64)


def assert_same(left: Solution, right: Solution, tolerance: float) -> None:
    assert left.throughput_per_second == pytest.approx(right.throughput_per_second, rel=tolerance)
    assert left.response_seconds == pytest.approx(right.response_seconds, rel=tolerance)
    for name, seconds in left.residence_seconds.items():
        assert seconds == pytest.approx(right.residence_seconds[name], rel=tolerance, abs=1e-15)
        assert left.utilisation[name] == pytest.approx(right.utilisation[name], rel=tolerance)


@settings(deadline=None, max_examples=60)
@given(networks(servers=2, units=3), st.integers(1, 4))
def test_the_means_are_those_of_all_states(network: ClosedNetwork, clients: int) -> None:
    assert_same(mean_value_analysis(network, clients)[-1], counted_out(network, clients), 1e-9)
    assert_same(convolution(network, clients)[-1], counted_out(network, clients), 1e-9)


@settings(deadline=None, max_examples=60)
@given(networks(servers=12, units=24), st.integers(1, 60))
def test_both_algorithms_agree(network: ClosedNetwork, clients: int) -> None:
    for left, right in zip(mean_value_analysis(network, clients), convolution(network, clients), strict=True):
        assert_same(left, right, 1e-7)


def test_many_busy_units_lose_no_digits() -> None:
    """Here the plain recursion gives negative probabilities."""
    network = ClosedNetwork(2, (Station("workers", 1e-3, 32), Station("network", 1e-6)), think_seconds=1e-5)
    for solution in mean_value_analysis(network, 300):
        assert 0 < solution.utilisation["workers"] <= 1
        assert solution.residence_seconds["workers"] >= 1e-3 * (1 - 1e-12)
    assert solution.throughput_per_second == pytest.approx(64_000, rel=1e-2)


@settings(deadline=None, max_examples=60)
@given(networks(), st.integers(2, 40))
def test_laws_that_hold_of_every_network(network: ClosedNetwork, clients: int) -> None:
    """Little's law, the bounds of asymptotic analysis, and that more clients never do less."""
    solutions = mean_value_analysis(network, clients)
    unloaded = network.delay_seconds + sum(one.service_seconds for one in network.stations)
    bottleneck = max(one.service_seconds / one.units / network.copies(one) for one in network.stations)
    for before, after in itertools.pairwise(solutions):
        assert after.throughput_per_second >= before.throughput_per_second * (1 - 1e-9)
    for one in solutions:
        cycle = one.response_seconds + network.think_seconds
        assert one.throughput_per_second * cycle == pytest.approx(one.clients)
        assert one.response_seconds >= unloaded * (1 - 1e-9)
        assert one.throughput_per_second <= min(1 / bottleneck, one.clients / (unloaded + network.think_seconds)) * (
            1 + 1e-9
        )


@settings(deadline=None, max_examples=15, derandomize=True)
@given(networks(servers=10), st.integers(1, 60), st.integers(0, 2**32))
def test_the_simulation_agrees_within_its_interval(network: ClosedNetwork, clients: int, seed: int) -> None:
    """At 99.99 %: of these examples one in some hundred suites would fail by chance, were they not fixed."""
    solution = mean_value_analysis(network, clients)[-1]
    simulated = simulate(network, clients, 20_000, seed, confidence=0.9999)
    assert simulated.throughput_per_second.contains(solution.throughput_per_second)
    assert simulated.response_seconds.contains(solution.response_seconds)
    assert simulated.throughput_per_second.estimate == pytest.approx(solution.throughput_per_second, rel=0.1)
    assert simulated.throughput_per_second.high is not None, "the upper end is known where responses vary this little"


def test_the_intervals_of_the_simulation_cover_what_they_say() -> None:
    network = ClosedNetwork(
        5, (Station("network", 40e-6), Station("workers", 90e-6, 3)), (Station("path", 4e-6),), 50e-6
    )
    truth = mean_value_analysis(network, 20)[-1].throughput_per_second
    covered = sum(simulate(network, 20, 10_000, seed).throughput_per_second.contains(truth) for seed in range(60))
    assert covered >= 52, "of 60 intervals of 95 %: fewer come by chance once in 200 times"


def test_one_seed_one_answer() -> None:
    network = ClosedNetwork(3, (Station("network", 1e-5),), delay_seconds=1e-5)
    assert simulate(network, 9, 4000, 7) == simulate(network, 9, 4000, 7)
    assert simulate(network, 9, 4000, 7) != simulate(network, 9, 4000, 8)


def test_constant_service_waits_less() -> None:
    network = ClosedNetwork(1, (Station("network", 1e-5),), think_seconds=8e-5)
    constant = simulate(network, 8, 20_000, 3, variability="constant").response_seconds
    exponential = simulate(network, 8, 20_000, 3).response_seconds
    assert constant.high is not None
    assert exponential.low is not None
    assert constant.high < exponential.low


@pytest.mark.parametrize(
    "make",
    [
        lambda: Station("network", -1e-6),
        lambda: Station("network", math.nan),
        lambda: Station("network", 1e-6, 0),
        lambda: ClosedNetwork(0, (Station("network", 1e-6),)),
        lambda: ClosedNetwork(1, (Station("network", 1e-6),), delay_seconds=-1.0),
        # Also where the whole takes time.
        lambda: ClosedNetwork(1, (Station("network", 9.0),), think_seconds=-1.0),
        lambda: ClosedNetwork(1, (Station("network", 9.0),), delay_seconds=math.inf),
        lambda: ClosedNetwork(1, (Station("network", 1e-6), Station("network", 2e-6))),
        lambda: ClosedNetwork(1, (Station("network", 0.0),)),
        lambda: mean_value_analysis(ClosedNetwork(1, (Station("network", 1e-6),)), 0),
        lambda: simulate(ClosedNetwork(1, (Station("network", 1e-6),)), 1, 100, 1),
    ],
)
def test_what_cannot_be_is_refused(make: object) -> None:
    with pytest.raises(RackscopeError):
        make()  # type: ignore[operator]
