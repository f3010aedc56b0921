"""Each model finds what it was made of, states intervals that hold, refuses what it cannot know, and says why."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.errors import RackscopeError
from rackscope.models.cluster_size import fit_cluster_size
from rackscope.models.core_scaling import fit_core_scaling
from rackscope.models.data_size import fit_data_size
from rackscope.models.estimates import Prediction
from rackscope.models.execution_time import fit_execution_time
from rackscope.models.gates import ProjectionRefused
from rackscope.models.mean_latency import fit_mean_latency
from rackscope.models.monotone import fit_latency_percentile, fit_power_over_load
from rackscope.models.multi_server_queue import erlang_c
from rackscope.models.power_over_frequency import fit_power_over_frequency

CLOCKS = [1.2e9, 1.6e9, 2.0e9, 2.4e9, 2.8e9]
CORES = [1, 2, 3, 4, 6, 8]
JOBS = [(1, 0.1), (1, 0.2), (2, 0.2), (2, 0.4), (4, 0.4), (4, 0.8), (8, 0.8), (8, 1.2)]
LOADS = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
RATES = [10e3, 30e3, 50e3, 60e3, 70e3, 80e3, 90e3]
SIZES = [2.0**30 * 2**step for step in range(8)]


def seconds_at(hertz: float) -> float:
    return 2e10 / hertz + 3


def job_seconds(machines: int, data: float) -> float:
    return 5 + 200 * data / machines + 3 * math.log(machines) + 0.5 * machines


def throughput(cores: float, contention: float = 0.03, coherence: float = 0.004) -> float:
    return 1e5 * cores / (1 + contention * (cores - 1) + coherence * cores * (cores - 1))


def watts_at(hertz: float, exponent: float = 2.0) -> float:
    return 60 + 80 * (hertz / 2.8e9) ** exponent


def watts_under(load: float) -> float:
    return 60 + 80 * load**0.7


def response(rate: float) -> float:
    """Of M/M/4, with what does not queue."""
    utilisation = rate * 4e-5 / 4
    return 5e-5 + 4e-5 * (1 + erlang_c(4, utilisation) / (4 * (1 - utilisation)))


def size_seconds(size: float) -> float:
    return 20 + size * 2e-8


def jobs(truth: Callable[[int, float], float]) -> tuple[list[int], list[float], list[float]]:
    return [one for one, _ in JOBS], [one for _, one in JOBS], [truth(*one) for one in JOBS]


def test_parts_of_execution_time_are_found() -> None:
    model = fit_execution_time(CLOCKS, [seconds_at(one) for one in CLOCKS])
    assert model.core_cycles == pytest.approx(2e10)
    assert model.memory_seconds == pytest.approx(3)
    assert model.memory_share(2e9) == pytest.approx(3 / 13)
    predicted = model.predict(3.2e9)
    assert predicted.value == pytest.approx(seconds_at(3.2e9))
    assert predicted.extrapolated
    assert not model.predict(2.1e9).extrapolated


def test_cluster_terms_are_found() -> None:
    model = fit_cluster_size(*jobs(job_seconds))
    assert model.fit.coefficients == pytest.approx((5, 200, 3, 0.5))
    assert model.predict(16, 2.0).value == pytest.approx(job_seconds(16, 2.0))


def test_coefficients_of_scalability_and_the_knee_are_found() -> None:
    model = fit_core_scaling(CORES, [throughput(one) for one in CORES])
    assert model.contention == pytest.approx(0.03)
    assert model.coherence == pytest.approx(0.004)
    assert model.knee_cores == pytest.approx(math.sqrt(0.97 / 0.004))
    assert model.predict(12).value == pytest.approx(throughput(12))


@pytest.mark.parametrize("exponent", [1.0, 1.7, 2.4, 3.0])
def test_fixed_power_and_its_exponent_are_found(exponent: float) -> None:
    model = fit_power_over_frequency(CLOCKS, [watts_at(one, exponent) for one in CLOCKS])
    assert model.exponent == pytest.approx(exponent, abs=0.02)
    assert model.fixed_watts == pytest.approx(60, rel=0.02)
    predicted = model.predict(3.4e9)
    assert predicted.value == pytest.approx(watts_at(3.4e9, exponent), rel=0.01)
    assert "modelled" in predicted.unit


def test_the_queue_and_its_capacity_are_found() -> None:
    model = fit_mean_latency(RATES, [response(one) for one in RATES], servers=4)
    assert model.capacity == pytest.approx(100e3, rel=0.01)
    assert model.fixed_seconds == pytest.approx(9e-5, rel=0.01)
    assert model.predict(95e3).value == pytest.approx(response(95e3), rel=0.05)


@settings(deadline=None)
@given(servers=st.integers(1, 64), utilisation=st.floats(0.01, 0.99))
def test_erlang_c_is_the_share_that_waits(servers: int, utilisation: float) -> None:
    offered = servers * utilisation
    terms = [math.exp(k * math.log(offered) - math.lgamma(k + 1)) for k in range(servers)]
    last = math.exp(servers * math.log(offered) - math.lgamma(servers + 1)) / (1 - utilisation)
    assert erlang_c(servers, utilisation) == pytest.approx(last / (sum(terms) + last), rel=1e-9)
    if servers == 1:
        assert erlang_c(1, utilisation) == pytest.approx(utilisation)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1, 1e6), min_size=6, max_size=12), st.floats(0, 1), st.floats(0, 1))
def test_a_monotone_model_never_falls_whatever_it_is_fitted_to(watts: list[float], first: float, second: float) -> None:
    loads = [place / (len(watts) - 1) for place in range(len(watts))]
    model = fit_power_over_load(loads, watts)
    low, high = sorted((first, second))
    assert model.predict(low).value <= model.predict(high).value * (1 + 1e-9)


Case = tuple[str, Sequence[Any], Callable[[Any], float], Callable[[Sequence[Any], list[float]], Any], Sequence[Any]]


def _cluster(points: Sequence[tuple[int, float]], seconds: list[float]) -> Callable[[tuple[int, float]], Prediction]:
    model = fit_cluster_size([one for one, _ in points], [one for _, one in points], seconds)
    return lambda point: model.predict(*point)


CASES: list[Case] = [
    ("time over frequency", CLOCKS, seconds_at, lambda x, y: fit_execution_time(x, y).predict, (1.4e9, 3.2e9)),
    ("all core", CLOCKS, lambda f: 2e10 / f, lambda x, y: fit_execution_time(x, y).predict, (1.4e9, 3.2e9)),
    ("cluster", JOBS, lambda p: job_seconds(*p), _cluster, ((6, 0.6), (16, 2.0))),
    ("cores", CORES, throughput, lambda x, y: fit_core_scaling(x, y).predict, (5, 7)),
    ("power and clock", CLOCKS, watts_at, lambda x, y: fit_power_over_frequency(x, y).predict, (1.4e9, 3.2e9)),
    ("power and load", LOADS, watts_under, lambda x, y: fit_power_over_load(x, y).predict, (0.05, 0.45, 0.95)),
    ("size", SIZES, size_seconds, lambda x, y: fit_data_size(x, y).predict, (3e9, 100e9)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_nine_of_ten_intervals_hold(case: Case) -> None:
    """Of 120 noisy sets, at two places or three: 0.90, and three standard errors of as many draws either way."""
    _, places, truth, fit, asked = case
    held = total = 0
    for seed in range(120):
        noise = np.random.default_rng(seed)

        def noisy(value: float, noise: np.random.Generator = noise) -> float:
            return value * math.exp(0.02 * noise.standard_normal())

        try:
            predict = fit(places, [noisy(truth(one)) for one in places])
        except ProjectionRefused:
            continue
        for place in asked:
            total += 1
            held += predict(place).contains(noisy(truth(place)))
    assert total > 200
    assert abs(held / total - 0.90) <= 3 * math.sqrt(0.09 / total)


@pytest.mark.parametrize(
    ("places", "truth", "fit", "refused"),
    [
        (CLOCKS, seconds_at, lambda x, y: fit_execution_time(x, y).predict, 0),
        (JOBS, lambda job: job_seconds(*job), _cluster, 0),
        (CORES, throughput, lambda x, y: fit_core_scaling(x, y).predict, 0),
        (CLOCKS, watts_at, lambda x, y: fit_power_over_frequency(x, y).predict, 0),
        (LOADS, watts_under, lambda x, y: fit_power_over_load(x, y).predict, 2),
        (RATES, response, lambda x, y: fit_mean_latency(x, y, servers=4).predict, 0),
        (RATES, response, lambda x, y: fit_latency_percentile(x, y).predict, 2),
        (SIZES, size_seconds, lambda x, y: fit_data_size(x, y).predict, 1),
    ],
)
def test_each_place_is_predicted_from_the_others(places: Any, truth: Any, fit: Any, refused: int) -> None:
    """Curves without a form refuse both ends, sizes the largest: nothing shows what is beyond the others."""
    errors = []
    for place in places:
        others = [one for one in places if one != place]
        try:
            errors.append(fit(others, [truth(one) for one in others])(place).value / truth(place) - 1)
        except ProjectionRefused:
            refused -= 1
    assert refused == 0
    assert sum(abs(one) for one in errors) / len(errors) < 0.1


def wall_at(size: float) -> float:
    return size_seconds(size) * max(1.0, size / 20e9) ** 1.5


def test_nothing_is_said_past_the_wall() -> None:
    model = fit_data_size(SIZES, [wall_at(one) for one in SIZES])
    assert model.wall is not None
    assert model.wall.low_bytes <= 20e9 <= model.wall.high_bytes
    assert model.predict(10e9).value == pytest.approx(size_seconds(10e9), rel=0.01)
    with pytest.raises(ProjectionRefused, match="past the wall, which is between 16"):
        model.predict(100e9)
    with pytest.raises(RackscopeError, match="was assumed to be none"):
        fit_data_size(SIZES, [wall_at(one) for one in SIZES], no_wall_below_bytes=1e12)


def test_a_start_up_is_no_wall_and_the_largest_size_is_the_end_of_what_is_known() -> None:
    model = fit_data_size(SIZES, [size_seconds(one) for one in SIZES])
    assert model.wall is None
    with pytest.raises(ProjectionRefused, match="no wall was met up to 128 GiB"):
        model.predict(200e9)
    known = fit_data_size(SIZES, [size_seconds(one) for one in SIZES], no_wall_below_bytes=1e12)
    assert known.predict(200e9).value == pytest.approx(size_seconds(200e9))
    assert known.predict(200e9).extrapolated


def test_noise_has_no_wall() -> None:
    walls = 0
    for seed in range(60):
        noise = np.random.default_rng(seed).standard_normal(len(SIZES))
        model = fit_data_size(
            SIZES, [size_seconds(one) * math.exp(0.05 * far) for one, far in zip(SIZES, noise, strict=True)]
        )
        walls += model.wall is not None
    assert walls <= 3


def test_no_projection_past_the_knee() -> None:
    model = fit_core_scaling(CORES, [throughput(one) for one in CORES])
    with pytest.raises(ProjectionRefused, match=r"peaks at 15\.6 cores: no projection to 16, past the knee"):
        model.predict(16)
    past = fit_core_scaling([*CORES, 16, 24], [throughput(one) for one in (*CORES, 16, 24)])
    assert past.predict(20).value == pytest.approx(throughput(20))
    with pytest.raises(ProjectionRefused, match="25 cores are past the knee"):
        past.predict(25)


def test_without_a_knee_twice_the_cores_are_the_furthest() -> None:
    model = fit_core_scaling(CORES, [throughput(one, 0.03, 0.0) for one in CORES], physical_cores=10)
    assert model.knee_cores > 1e6
    assert model.predict(10).value == pytest.approx(throughput(10, 0.03, 0.0))
    with pytest.raises(ProjectionRefused, match="more than the 10 physical cores"):
        model.predict(12)
    with pytest.raises(ProjectionRefused, match="more than 2 times the 8"):
        model.predict(17)


def test_beyond_the_measured_cores_intervals_widen_even_where_all_points_lie_on_the_law() -> None:
    model = fit_core_scaling(CORES, [throughput(one, 0.03, 0.0) for one in CORES])
    inside, outside = model.predict(7), model.predict(16)
    assert outside.high / outside.low > 1.05 > inside.high / inside.low


def test_a_queue_near_capacity_has_no_mean() -> None:
    model = fit_mean_latency(RATES, [response(one) for one in RATES], servers=4)
    with pytest.raises(ProjectionRefused, match="a queue that grows has no mean"):
        model.predict(101e3)


def test_littles_law_is_asked_before_latencies_are_believed() -> None:
    means = [response(one) for one in RATES]
    agreeing = [rate * mean for rate, mean in zip(RATES, means, strict=True)]
    assert fit_mean_latency(RATES, means, servers=4, outstanding=agreeing).gates[0].passed is True
    with pytest.raises(ProjectionRefused, match="Little's law fails at 7 of 7 points"):
        fit_mean_latency(RATES, means, servers=4, outstanding=[2 * one for one in agreeing])


REFUSALS: list[tuple[Callable[[], Any], str]] = [
    (lambda: fit_execution_time([1e9, 2e9], [2.0, 1.0]), "2 different frequencies, and at least 3 are needed"),
    (lambda: fit_execution_time([2e9, 2.0001e9, 1e9], [1.0, 1.0, 2.0]), "2 different frequencies"),
    (lambda: fit_execution_time([1e9, 2e9], [1.0]), "differ in length: 2 of frequency, 1 of time"),
    (lambda: fit_execution_time([1e9, 2e9, -3e9], [1.0, 1.0, 1.0]), "frequency of point 3 is -3e"),
    (lambda: fit_execution_time([1e9, 2e9, 3e9], [1.0, math.nan, 1.0]), "time of point 2 is nan"),
    (lambda: fit_execution_time(CLOCKS, [(1e9 / one) ** 2 for one in CLOCKS]), "more than frequency alone can do"),
    (lambda: fit_execution_time(CLOCKS, [one / 1e9 for one in CLOCKS]), "something else got worse"),
    (lambda: fit_execution_time(CLOCKS, [seconds_at(one) for one in CLOCKS]).predict(9e9), "9.00 GHz is too far"),
    (lambda: fit_execution_time(CLOCKS, [seconds_at(one) for one in CLOCKS]).predict(2.0), "0.00 GHz is too far"),
    (
        lambda: fit_execution_time(
            CLOCKS, [seconds_at(one) for one in CLOCKS], instructions=[1e9, 1.1e9, 1.2e9, 1.3e9, 1.4e9]
        ),
        "instructions per operation change by",
    ),
    (lambda: fit_cluster_size([1, 2, 4], [1, 1, 1], [3, 2, 1]), "3 measurements for 4 unknowns"),
    (lambda: fit_cluster_size([4] * 6, [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]), "1 different numbers of machines"),
    (lambda: fit_cluster_size([1, 2, 4] * 2, [1, 2, 4] * 2, [9, 9, 9] * 2), "vary together or not at all"),
    (lambda: fit_cluster_size(*jobs(job_seconds)).predict(64, 1.0), "64 machines are more than 4 times the 8"),
    (lambda: fit_cluster_size(*jobs(job_seconds)).predict(2, 4.0), "10.0 times the data"),
    (lambda: fit_core_scaling([1, 2, 4], [1.0, 2.0, 3.0]), "3 different numbers of cores, and at least 4 are needed"),
    (lambda: fit_core_scaling(CORES, [one**1.5 for one in CORES]), "more than cores alone can do"),
    (lambda: fit_core_scaling([2, 3, 4, 5, 6], [9.0, 3.0, 1.6, 1.0, 0.7]), "nothing for what one core does"),
    (lambda: fit_core_scaling([0, 1, 2, 3], [1.0] * 4), "number of cores of point 1 is 0"),
    (lambda: fit_power_over_frequency([1e9, 2e9, 3e9], [50, 60, 80]), "3 measurements for 3 unknowns"),
    (lambda: fit_power_over_frequency(CLOCKS, [150, 140, 130, 120, 110]), "falls as frequency rises"),
    (lambda: fit_power_over_frequency(CLOCKS, [watts_at(one) for one in CLOCKS]).predict(6e9), "too far"),
    (lambda: fit_power_over_load([0, 25, 50, 100], [50, 60, 70, 80]), "a load of 25 is not a fraction of full load"),
    (lambda: fit_power_over_load([0, 0.5, 1], [50, 60, 80]), "3 different loads, and at least 4 are needed"),
    (lambda: fit_power_over_load([0, 0.1, 0.2, 0.5], [50, 60, 70, 80]).predict(0.9), "not at 90 %"),
    (lambda: fit_mean_latency([1, 2, 3, 4], [1, 1, 1, 1], servers=1), "4 different rates, and at least 5 are needed"),
    (lambda: fit_mean_latency(RATES, [response(one) for one in RATES], servers=0), "0 servers cannot serve requests"),
    (lambda: fit_mean_latency(RATES, [1 / one for one in RATES], servers=4), "fall as load rises"),
    (lambda: fit_latency_percentile(RATES, [response(one) for one in RATES]).predict(2e5), "not at 200,000"),
    (lambda: fit_data_size(SIZES[:4], [1, 2, 4, 8]), "4 different sizes, and at least 5 are needed"),
    (lambda: fit_data_size(SIZES, [*[1.0] * 7, 0.0]), "time of point 8 is 0"),
    (lambda: erlang_c(2, 1.0), "has no steady state"),
]


@pytest.mark.parametrize(("ask", "words"), REFUSALS, ids=[words for _, words in REFUSALS])
def test_what_cannot_be_known_is_a_line_and_no_number(ask: Callable[[], Any], words: str) -> None:
    with pytest.raises(RackscopeError) as refused:
        ask()
    assert words in str(refused.value)
    assert refused.value.advice
    assert "\n" not in str(refused.value)
