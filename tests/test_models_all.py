"""Predictions of every model, from made-up measurements and from the fits that come with the package.

The assertions are what must hold of any prediction.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from rackscope.analysis.intervals import (
    decide_stopping,
    difference_of_means,
    mean_interval,
    median_interval,
    note_outliers,
    ratio_of_means,
)
from rackscope.analysis.knobs_value import KnobPairs, value_knobs
from rackscope.analysis.latency_curve import CurvePoint, check_little, find_knee
from rackscope.analysis.multiple import compare_all_pairs, compare_with_baseline
from rackscope.analysis.proportionality import proportionality
from rackscope.analysis.wall import SizePoint, find_wall
from rackscope.errors import RackscopeError
from rackscope.models.closed_network import ClosedNetwork, Station, mean_value_analysis
from rackscope.models.closed_network_simulation import simulate
from rackscope.models.cluster_size import fit_cluster_size
from rackscope.models.core_scaling import fit_core_scaling
from rackscope.models.data_size import fit_data_size
from rackscope.models.estimates import Prediction
from rackscope.models.execution_time import fit_execution_time
from rackscope.models.mean_latency import fit_mean_latency
from rackscope.models.modelled_power import class_watts
from rackscope.models.monotone import fit_latency_percentile, fit_power_over_load
from rackscope.models.multi_server_queue import erlang_c, late_probability, rate_within
from rackscope.models.power_over_frequency import fit_power_over_frequency
from rackscope.models.provision import Demand, Kind, weigh
from rackscope.models.rated_power import RatedPowerModel
from rackscope.models.server_guess import guess_by_cores
from rackscope.models.trained import list_models
from rackscope.models.trained.ask import TrainedModel
from rackscope.models.trained.shipped import read_fit, restore
from rackscope.models.uncertain import Uncertain
from test_models_projections import (
    CLOCKS,
    CORES,
    LOADS,
    RATES,
    SIZES,
    job_seconds,
    jobs,
    response,
    seconds_at,
    size_seconds,
    throughput,
    wall_at,
    watts_at,
    watts_under,
)
from trained_model_tables import CLOUD, SERVER

NAMES = [one.name for one in list_models()]


def noisy(values: Iterable[float], by: float = 0.02) -> list[float]:
    """Each a little off, always in the same way."""
    return [value * math.exp(by * math.sin(3.7 * place + 1)) for place, value in enumerate(values)]


def ask(predict: Callable[..., Prediction], *places: Any) -> None:
    for place in places:
        with contextlib.suppress(RackscopeError):
            said = predict(*place) if isinstance(place, tuple) else predict(place)
            assert said.low <= said.value <= said.high
            assert said.basis and said.unit


def predict_time(hertz: float) -> Prediction:
    return fit_execution_time(CLOCKS, noisy(seconds_at(one) for one in CLOCKS)).predict(hertz)


def predict_watts(hertz: float) -> Prediction:
    return fit_power_over_frequency(CLOCKS, noisy(watts_at(one) for one in CLOCKS)).predict(hertz)


def predict_latency(rate: float) -> Prediction:
    return fit_mean_latency(RATES, noisy(response(one) for one in RATES), servers=4).predict(rate)


def predict_percentile(rate: float) -> Prediction:
    return fit_latency_percentile(RATES, noisy(response(one) for one in RATES)).predict(rate)


def predict_under_load(load: float) -> Prediction:
    return fit_power_over_load(LOADS, noisy(watts_under(one) for one in LOADS)).predict(load)


def predict_size(size: float) -> Prediction:
    return fit_data_size(SIZES, noisy(size_seconds(one) for one in SIZES)).predict(size)


def predict_size_before_a_wall(size: float) -> Prediction:
    return fit_data_size(SIZES, noisy(wall_at(one) for one in SIZES)).predict(size)


def predict_job(machines: int, data: float) -> Prediction:
    counts, sizes, seconds = jobs(job_seconds)
    return fit_cluster_size(counts, sizes, noisy(seconds)).predict(machines, data)


def predict_cores(cores: int) -> Prediction:
    fitted = fit_core_scaling(CORES, noisy(map(throughput, CORES)), physical_cores=8)
    return fitted.predict(cores)


PLACES: dict[Callable[..., Prediction], tuple[Any, ...]] = {
    predict_time: (0.0, 0.79e9, 0.8e9, 1.2e9, 2.2e9, 2.8e9, 4.2e9, 4.3e9),
    predict_watts: (0.8e9, 1.2e9, 2.2e9, 4.2e9, 4.3e9),
    predict_latency: (5e3, 10e3, 55e3, 90e3, 95e3, 99e3, 120e3),
    predict_percentile: (5e3, 10e3, 55e3, 90e3, 95e3),
    predict_under_load: (-0.1, 0.0, 0.05, 0.5, 1.0, 1.1),
    predict_size: (2.0**29, 2.0**30, 5e9, 2.0**37, 2.0**38),
    predict_size_before_a_wall: (2.0**30, 10e9, 17e9, 30e9),
    predict_job: ((1, 0.1), (3, 0.5), (16, 1.0), (32, 2.0), (33, 2.0), (2, 4.0)),
    predict_cores: (0, 1, 5, 8, 9, 12, 16, 17),
}


@pytest.mark.parametrize("predict", PLACES, ids=[one.__name__ for one in PLACES])
def test_a_fitted_model_predicts(predict: Callable[..., Prediction]) -> None:
    ask(predict, *PLACES[predict])


@functools.cache
def carried(name: str) -> TrainedModel:
    return restore(read_fit(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_carried_fit_predicts(name: str) -> None:
    """Servers as they are described, larger and smaller ones, newer ones, and what is too far or cannot be."""
    model = carried(name)
    asked = {one.name: {**CLOUD, **SERVER}[one.name] for one in model.model.inputs if one.name in {**CLOUD, **SERVER}}
    changes: list[dict[str, Any]] = [
        {},
        *({"processor": named} for named in ("AMD EPYC 9654", "Intel Xeon Platinum 8480+", "Neoverse-N1", "?")),
        *({"hardware_threads": count} for count in (1, 16, 64, 4096)),
        {"threads_per_core": 1},
        {"workers": 1},
        {"workers": 3},
        {"read_bandwidth_dram_mb_s": 12_000.0},
        {"read_bandwidth_l2_mb_s": 1e9},
        *({"year": year} for year in (2006, 2024, 2040)),
        {"memory_gb": 512},
        {"mhz": 2.4},
        {"chips": 1, "cores": 8},
        {"thermal_design_watts": 0},
    ]
    for change in changes:
        if set(change) <= set(asked):
            with contextlib.suppress(RackscopeError):
                for said in model.predict({**asked, **change}).values():
                    assert said.low <= said.value <= said.high
    without = {key: value for key, value in asked.items() if key not in ("thermal_design_watts", "threads_per_core")}
    for odd in (without, {**asked, "colour": 3.0}, {key: asked[key] for key in list(asked)[1:]}):
        with contextlib.suppress(RackscopeError):
            assert model.predict(odd)


def test_networks_of_queues() -> None:
    disk, core = Station("disk", 2e-3, 2), Station("core", 5e-4)
    for network in (
        ClosedNetwork(1, (core,)),
        ClosedNetwork(3, (core, disk), (Station("switch", 1e-5),), delay_seconds=1e-3, think_seconds=0.01),
    ):
        assert mean_value_analysis(network, 6)[-1].throughput_per_second > 0
        assert simulate(network, 4, 2000, 1).requests == 2000
    for wrong in (
        lambda: Station("core", -1.0),
        lambda: Station("core", 1.0, 0),
        lambda: ClosedNetwork(0, (core,)),
        lambda: ClosedNetwork(1, (core, core)),
        lambda: ClosedNetwork(1, (Station("core", 0.0),)),
        lambda: ClosedNetwork(1, (core,), think_seconds=math.inf),
        lambda: mean_value_analysis(ClosedNetwork(1, (core,)), 0),
        lambda: simulate(ClosedNetwork(1, (core,)), 1, 1999, 1),
    ):
        with pytest.raises(RackscopeError):
            wrong()


def test_queues_of_several_servers() -> None:
    for units in (1, 2, 8, 64):
        for use in (0.0, 0.5, 0.9, 0.99):
            assert 0 <= erlang_c(units, use) <= 1
            assert 0 <= late_probability(1000 * use, 1000, units, 0.01) <= 1
        for bound in (1e-4, 0.01, 1.0):
            assert 0 <= rate_within(1000, units, bound, 0.99) < 1000


def test_watts_of_classes_of_servers() -> None:
    for sockets, cores in (
        (1, 4),
        (1, 8),
        (1, 9),
        (1, 64),
        (2, 16),
        (2, 18),
        (2, 64),
        (2, 66),
        (4, 16),
        (4, 36),
        (4, 512),
    ):
        watts = class_watts(sockets, cores)
        assert watts.idle.middle < watts.full.middle
        assert watts.of_share(0.25).sentence
    for sockets, cores in ((0, 0), (3, 24), (8, 64), (1, 2000)):
        with pytest.raises(RackscopeError):
            class_watts(sockets, cores)


def test_watts_and_rates_that_are_guessed() -> None:
    model = RatedPowerModel(Uncertain.lognormal(60, 1.2), Uncertain.certain(200))
    ask(lambda load: model.predict(load, draws=4000), 0.0, 0.3, 1.0, 1.1)
    for load in (0.0, 0.5, 1.0):
        assert model.predict(load, draws=4000).value > 0
    assert guess_by_cores([1e5, 2.5e5], [4, 8], 16).middle > 0
    assert guess_by_cores([1e5, 1e5, 1e5], [4, 4, 4], 4).middle > 0
    with pytest.raises(RackscopeError):
        guess_by_cores([1e5], [4], 16)


def test_amounts_that_are_uncertain() -> None:
    for amount in (
        Uncertain.certain(3.0),
        Uncertain.uniform(1.0, 2.0),
        Uncertain.triangular(1.0, 1.5, 4.0),
        Uncertain.lognormal(10.0, 1.5),
    ):
        drawn = amount.draw("made-up", 2000, 1)
        assert amount.shape == "lognormal" or (amount.low <= drawn.min() and drawn.max() <= amount.high)


def test_fleets_are_weighed() -> None:
    kinds = [Kind("small", 1e4, 90, 800, 1000), Kind("large", 5e4, 300, 3000, 9000, most=3)]
    for counts, spares in (((3, 0), 0), ((3, 0), 1), ((2, 2), 1), ((2, 2), 3), ((0, 1), 2), ((0, 0), 0)):
        assert weigh(kinds, counts, spares).rate_after_loss_per_second >= 0
    for wrong in (
        lambda: Kind("small", -1, 90, 800),
        lambda: Kind("small", 1, 90, 0),
        lambda: Kind("small", 1, 90, 1, most=-1),
        lambda: Demand(0),
        lambda: Demand(1, spares=-1),
        lambda: Demand(1, watts=-1),
        lambda: Demand(1, budget_per_year=math.nan),
    ):
        with pytest.raises(RackscopeError):
            wrong()


def test_walls_of_every_shape() -> None:
    sizes = 2.0 ** np.arange(28, 36, 0.5)
    for slope in (-0.2, 0.0, 0.2):
        for steep in (0.0, 0.3, 1.5):
            for leap in (1.0, 1.3, 4.0):
                times = noisy(
                    1e-9 * (size / 2**28) ** slope * max(1.0, size / 2**32) ** steep * (leap if size > 2**32 else 1.0)
                    for size in sizes
                )
                points = [
                    SizePoint(size, time, {"refaults": max(0.0, size - 2**32) / 2**30, "cpu": 1.0, "swap": None})
                    for size, time in zip(sizes, times, strict=True)
                ]
                assert find_wall(points, resamples=20).reason


MEASURED = {
    "alike": (noisy([100.0] * 5), noisy([100.0] * 5, 0.021)),
    "more": (noisy([100.0] * 5), noisy([120.0] * 5)),
    "less, and few": (noisy([100.0] * 2), noisy([50.0] * 2)),
    "one each": ([100.0], [120.0]),
    "one far off": (noisy([100.0] * 9), [*noisy([100.0] * 8), 300.0]),
    "no scatter": ([100.0] * 4, [101.0] * 4),
    "around zero": ([-1.0, 0.5, 1.0, -0.2], [0.1, -0.3, 0.2, 0.4]),
    "wide": (noisy([100.0] * 4, 0.5), noisy([110.0] * 4, 0.5)),
}


@pytest.mark.parametrize("name", MEASURED)
def test_repetitions_become_intervals(name: str) -> None:
    one, other = MEASURED[name]
    for values in (one, other):
        assert mean_interval(values).count == len(values)
        assert mean_interval(values, confidence=0.9).confidence == 0.9
        assert median_interval(values, resamples=500).estimate
        note_outliers(values)
        decide_stopping(values)
    with contextlib.suppress(RackscopeError):
        difference_of_means(one, other)
        difference_of_means(one, other, sequential=True)
        ratio_of_means(one, other)
    with contextlib.suppress(RackscopeError):
        compare_all_pairs({"a": one, "b": other, "c": noisy(one)})
        compare_with_baseline({"a": one, "b": other, "c": noisy(one)}, "a")


def test_loads_and_what_they_take() -> None:
    for curve in (LOADS, [load**2 for load in LOADS], [0.5 + load / 2 for load in LOADS], [1.0] * len(LOADS)):
        with contextlib.suppress(RackscopeError):
            assert proportionality(LOADS, [40 + 100 * one for one in curve])


def test_latency_over_load() -> None:
    for shape in (1.0, 2.0, 8.0):
        points = [CurvePoint(rate, 1e-4 / (1 - rate / 100e3) ** (shape / 2)) for rate in RATES]
        assert (knee := find_knee(points)) is None or points[knee.index].achieved == knee.throughput
        assert find_knee(points[:4]) is None
    for point in (
        CurvePoint(1e4, 1e-3),
        CurvePoint(1e4, 1e-3, 1e4, 1e-3, 10.0),
        CurvePoint(1e4, 1e-3, 1e4, 1e-3, 10.4),
        CurvePoint(1e4, 1e-3, 1e4, 1e-3, 20.0),
        CurvePoint(1e4, 1e-3, 1e4, 1e-3, 5.0),
        CurvePoint(1e4, 1e-3, 2e4, 1e-3, 20.0),
        CurvePoint(1e4, 1e-3, 1e4, 1e-3, 20.0, 10, 100),
        CurvePoint(0.0, 1e-3, 1e4, 1e-3, 20.0),
    ):
        assert check_little(point).reason


def test_what_changes_of_knobs_are_worth() -> None:
    changes = [
        KnobPairs(name, "1", "2", list(zip(noisy([100.0 * ratio] * count), noisy([100.0] * count, 0.004), strict=True)))
        for name, ratio, count in (
            ("more", 1.3, 6),
            ("less", 0.8, 6),
            ("none", 1.0, 12),
            ("perhaps", 1.02, 3),
            ("alone", 1.5, 1),
            ("never", 1.0, 0),
        )
    ]
    assert len(value_knobs(changes)) == len(changes)
