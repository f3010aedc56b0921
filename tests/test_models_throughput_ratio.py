"""A ratio from elasticities holds where throughput is made as the model says, and is refused where nothing tells it."""

from __future__ import annotations

import gzip
import io
import math

import numpy as np
import pytest

from public_data import public_table
from rackscope.errors import RackscopeError
from rackscope.models.gates import ProjectionRefused
from rackscope.models.rated_power import RatedPowerModel
from rackscope.models.throughput_ratio import (
    Likeness,
    Squeezed,
    SqueezedTo,
    ThroughputRatioModel,
    fit_throughput_ratio,
)
from rackscope.models.uncertain import Uncertain

certain = Uncertain.certain


def squeezed(
    resource: str, elasticity: float, half: float = 0.05, *, levels: tuple[float, ...] = (0.8, 0.4)
) -> Squeezed:
    """Throughput kept as a power, each elasticity known to within ``half`` (95 %)."""
    return Squeezed(
        resource,
        resource,
        tuple(
            SqueezedTo(left, left**elasticity, left ** (elasticity + half), left ** (elasticity - half))
            for left in levels
        ),
    )


def bound_by_cpu(*, memory_share: tuple[float, float] = (0.0, 0.0)) -> ThroughputRatioModel:
    return fit_throughput_ratio([squeezed("cpu", 1.0, 0.02)], memory_share=memory_share)


def test_the_host_itself_is_projected_to_what_was_measured() -> None:
    ratios = {name: certain(1.0) for name in ("cores", "core_speed", "dram_latency", "dram_bandwidth")}
    found = bound_by_cpu(memory_share=(0, 1)).predict(ratios, likeness="itself")
    assert (found.low, found.value, found.high) == (1.0, 1.0, 1.0)
    assert not found.extrapolated


@pytest.mark.parametrize("speed", [0.5, 0.8, 1.3, 1.9])
def test_what_is_bound_by_cores_goes_as_they_do(speed: float) -> None:
    found = bound_by_cpu().predict({"core_speed": certain(speed)}, likeness="itself")
    assert found.value == pytest.approx(speed, rel=0.02)
    assert found.contains(speed) or abs(found.value / speed - 1) < 0.02


def test_what_waits_for_memory_does_not_follow_a_faster_core() -> None:
    waiting = bound_by_cpu(memory_share=(1.0, 1.0))
    assert waiting.predict({"core_speed": certain(1.5)}, likeness="itself").value == pytest.approx(1.0, rel=0.02)
    assert waiting.predict({"cores": certain(1.5)}, likeness="itself").value == pytest.approx(1.5, rel=0.02)
    faster_memory = waiting.predict({"dram_latency": certain(1.5)}, likeness="itself")
    assert faster_memory.value == pytest.approx(1.5, rel=0.02)
    unknown = bound_by_cpu(memory_share=(0.0, 1.0)).predict({"core_speed": certain(1.5)}, likeness="itself")
    assert unknown.low < 1.05 and unknown.high > 1.42


def test_a_share_that_was_squeezed_bounds_what_growth_is_worth() -> None:
    """A loss that costs half of itself: twice the speed is worth what Amdahl's law says, and at most the power."""
    half = fit_throughput_ratio([squeezed("cpu", 0.5, 0.001)], memory_share=(0.0, 0.0))
    found = half.predict({"core_speed": certain(2.0)}, likeness="itself")
    amdahl = 1 / (1 - (1 / math.sqrt(0.8) - 1) / (1 / 0.8 - 1) / 2)
    assert found.high <= math.sqrt(2) * 1.01
    assert found.value == pytest.approx(amdahl, rel=0.03)
    assert 1.15 < found.low < amdahl < found.high


def test_less_of_a_resource_is_read_between_the_levels_of_its_squeeze() -> None:
    knee = Squeezed("network", "network", (SqueezedTo(0.8, 1.0, 0.999, 1.001), SqueezedTo(0.4, 0.6, 0.599, 0.601)))
    model = fit_throughput_ratio([squeezed("cpu", 0.0), knee])
    assert model.predict({"network": certain(0.8)}, likeness="itself").value == pytest.approx(1.0, abs=0.01)
    assert model.predict({"network": certain(0.4)}, likeness="itself").value == pytest.approx(0.6, abs=0.01)


def test_intervals_hold_for_servers_whose_time_is_a_sum_of_parts() -> None:
    """Made-up systems: time for core, memory latency and bandwidth add up; elasticities are measured with noise."""
    generator = np.random.default_rng(5)
    held, cases = 0, 300
    for _ in range(cases):
        parts = generator.dirichlet([2.0, 1.0, 0.7, 0.7])  # core, latency, bandwidth, network
        ratio = dict(
            zip(
                ("core_speed", "dram_latency", "dram_bandwidth", "network"),
                np.exp(generator.uniform(-0.3, 0.5, 4)),
                strict=True,
            )
        )
        time = sum(part / ratio[name] for part, name in zip(parts, ratio, strict=True))

        def measured(resource: str, *which: int, parts: np.ndarray = parts) -> Squeezed:
            share, noise = float(sum(parts[k] for k in which)), 0.03
            levels = []
            for left in (0.8, 0.4):
                kept = (
                    1 / (1 - share + share / left) * math.exp(noise * abs(math.log(left)) * generator.standard_normal())
                )
                reach = math.exp(1.96 * noise * abs(math.log(left)))
                levels.append(SqueezedTo(left, kept, kept / reach, kept * reach))
            return Squeezed(resource, resource, tuple(levels))

        try:
            model = fit_throughput_ratio(
                [measured("cpu", 0, 1, 2), measured("dram_bandwidth", 2), measured("network", 3)]
            )
        except ProjectionRefused:
            cases -= 1
            continue
        found = model.predict({name: certain(value) for name, value in ratio.items()}, likeness="itself", draws=1_000)
        held += found.contains(1 / time)
    assert cases > 280
    # What waits for memory is not known to the model, and its interval allows for all of it.
    assert held / cases > 0.85


def test_elasticities_never_add_up_to_more_than_one() -> None:
    """All rates twice as fast make it twice as fast, whatever noise says."""
    model = fit_throughput_ratio([squeezed("cpu", 0.9, 0.1), squeezed("network", 0.6, 0.2), squeezed("disk", 0.5, 0.2)])
    ratios = {name: certain(1.9) for name in ("core_speed", "dram_latency", "network", "disk")}
    assert model.predict(ratios, likeness="itself").high <= 1.9 + 1e-9


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ({"cores": 4.0}, "what limits next is not known"),
        ({"core_speed": 0.2}, "squeezed to 0.40 only"),
        ({"dram_bandwidth": 0.3}, "never squeezed"),
    ],
)
def test_what_is_too_far_from_what_was_squeezed_is_refused(ratios: dict[str, float], words: str) -> None:
    with pytest.raises(ProjectionRefused, match=words):
        bound_by_cpu().predict({name: certain(one) for name, one in ratios.items()}, likeness="itself")


def test_more_of_what_was_shown_not_to_matter_changes_nothing() -> None:
    model = fit_throughput_ratio([squeezed("cpu", 1.0, 0.02), squeezed("network", 0.0, 0.02)])
    found = model.predict({"network": certain(10.0)}, likeness="itself")
    assert found.low > 0.97 and found.high < 1.06


def test_a_speed_that_was_never_squeezed_is_refused() -> None:
    with pytest.raises(ProjectionRefused, match="never squeezed"):
        fit_throughput_ratio([]).predict({"core_speed": certain(1.3)}, likeness="itself")
    untold = Squeezed("cpu", "cpu_share", (SqueezedTo(0.8, 1.0, 0.6, 1.7),))
    with pytest.raises(ProjectionRefused, match="was not told"):
        fit_throughput_ratio([untold]).predict({"core_speed": certain(1.3)}, likeness="itself")


@pytest.mark.parametrize("elasticity", [1.6, -0.6])
def test_an_elasticity_outside_of_nought_to_one_is_refused(elasticity: float) -> None:
    with pytest.raises(ProjectionRefused, match="which that resource alone cannot cause"):
        fit_throughput_ratio([squeezed("cpu", elasticity)])


def test_what_cannot_be_is_said() -> None:
    model = bound_by_cpu()
    with pytest.raises(RackscopeError, match="'speed' is not a known resource"):
        model.predict({"speed": certain(1.0)}, likeness="itself")
    with pytest.raises(RackscopeError, match="cannot be"):
        model.predict({"core_speed": certain(-1.0)}, likeness="itself")
    with pytest.raises(RackscopeError, match="memory share"):
        fit_throughput_ratio([], memory_share=(0.5, 2.0))
    with pytest.raises(RackscopeError, match="has a level"):
        fit_throughput_ratio([Squeezed("cpu", "cpu_share", (SqueezedTo(1.2, 1.0, 0.9, 1.1),))])


def test_doubts_say_what_alone_would_move_it() -> None:
    model = bound_by_cpu(memory_share=(0, 1))
    doubts = model.doubts({"core_speed": certain(1.5)}, likeness="itself")
    assert max(doubts, key=lambda name: doubts[name]) == "memory share"
    assert doubts["processor"] == 0
    assert (
        max(model.doubts({"core_speed": certain(1.5)}, likeness="other processor").items(), key=lambda one: one[1])[0]
        == "processor"
    )


def test_a_doubt_is_half_of_what_nine_of_ten_draws_span() -> None:
    model, ratios = bound_by_cpu(memory_share=(0, 1)), {"core_speed": certain(1.5)}
    for name, doubt in model.doubts(ratios, likeness="other processor").items():
        drawn = model.draw(ratios, likeness="other processor", draws=4_000, only=name)
        low, high = np.quantile(drawn, [0.05, 0.95])
        assert doubt == pytest.approx(math.log(high / low) / 2)


def test_rated_power_is_between_idle_and_full() -> None:
    model = RatedPowerModel(certain(100), certain(300))
    for load, low, high in ((0.0, 95, 105), (0.5, 180, 220), (1.0, 270, 330)):
        found = model.predict(load)
        assert low <= found.value <= high
        assert found.low < found.value < found.high
        assert "modelled" in found.unit
    with pytest.raises(RackscopeError, match="not a fraction"):
        model.predict(75.0)


@pytest.mark.parametrize(
    ("column", "pipelined", "likeness"),
    [
        ("redis_rps_best", True, "other processor"),
        ("redis_rps_pipeline1", False, "other processor"),
        ("redis_rps_best", True, "same processor"),
    ],
)
def test_intervals_hold_on_public_servers(column: str, pipelined: bool, likeness: Likeness) -> None:
    """Pairs of as many hardware threads: redis of one from the other's, by stress-ng on all threads and bandwidth."""
    import polars as pl

    def read(name: str) -> pl.DataFrame:
        return pl.read_csv(io.BytesIO(gzip.decompress(public_table(name).read_bytes())))

    rows = (
        read("sparecores-servers.csv.gz")
        .join(read("sparecores-core-scaling.csv.gz"), left_on=["server", "vcpus"], right_on=["server", "workers"])
        .filter((pl.col(column) > 0) & (pl.col("read_bandwidth_dram_mb_s") > 0))
        .sort("server")
        .to_dicts()
    )
    groups: dict[tuple[int, int], list[dict[str, float]]] = {}
    for row in rows:
        groups.setdefault((row["vcpus"], row["threads_per_core"]), []).append(row)
    model = fit_throughput_ratio([squeezed("cpu", 1.0, 0.02)], pipelined=pipelined)
    generator = np.random.default_rng(9)
    held = []
    for group in groups.values():
        for _ in range(min(len(group), 40)):
            here, there = (group[k] for k in generator.integers(0, len(group), 2))
            if here is there or (here["cpu_model"] == there["cpu_model"]) != (likeness == "same processor"):
                continue
            ratios = {
                "core_speed": certain(there["ops_per_second"] / here["ops_per_second"]),
                "dram_bandwidth": certain(there["read_bandwidth_dram_mb_s"] / here["read_bandwidth_dram_mb_s"]),
            }
            try:
                found = model.predict(ratios, likeness=likeness, draws=400)
            except ProjectionRefused:
                continue
            held.append(found.contains(there[column] / here[column]))
    assert len(held) > 50
    assert np.mean(held) > 0.83
