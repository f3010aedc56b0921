"""Walls are found where time per byte breaks away, with what broke there, and not in noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rackscope.analysis.wall import SizePoint, find_wall

GIB = 2.0**30


def grown(seed: int, *, wall: float | None = 4 * GIB, steepness: float = 1.5, noise: float = 0.03) -> list[SizePoint]:
    """Two runs at each of twelve sizes from 256 MiB on; past the wall refaults and the disk rise, CPU use falls."""
    generator = np.random.default_rng(seed)
    points = []
    for size in np.repeat(2.0**28 * 2 ** (np.arange(12) * 0.6), 2):
        past = max(0.0, math.log(size / wall)) if wall else 0.0
        time = 1e-9 * math.exp(0.02 * math.log(size) + steepness * past + noise * generator.standard_normal())
        points.append(
            SizePoint(
                size,
                time,
                {
                    "refaults": 2000 * past * (1 + 0.1 * generator.standard_normal()) + generator.random(),
                    "disk_read": 1e7 * past + 1e6 * generator.random(),
                    "cpu": 0.9 - 0.3 * past + 0.02 * generator.standard_normal(),
                    "network": 5 + generator.standard_normal(),
                    "swap": None,
                },
            )
        )
    return points


def test_the_wall_and_what_broke_there() -> None:
    wall = find_wall(grown(3))
    assert wall.at_bytes is not None
    assert wall.at_bytes.estimate == pytest.approx(4 * GIB, rel=0.2)
    assert wall.at_bytes.contains(4 * GIB)
    assert {one.resource for one in wall.broke} == {"refaults", "disk_read"}
    assert "refaults" in wall.reason
    assert "GiB" in wall.reason
    assert wall.slowdown is not None
    assert wall.slowdown > 3
    assert all(one.after > one.before for one in wall.broke)


def test_the_interval_of_the_wall_covers_it() -> None:
    held = sum(
        (found := find_wall(grown(seed, noise=0.08), resamples=150).at_bytes) is not None and found.contains(4 * GIB)
        for seed in range(20)
    )
    assert held >= 18


def test_noise_has_no_wall() -> None:
    assert (
        sum(find_wall(grown(seed, wall=None, noise=0.1), resamples=1).at_bytes is not None for seed in range(60)) <= 1
    )


def test_a_cliff_is_a_wall() -> None:
    points = [SizePoint(2.0 ** (28 + step / 2), 1e-9 * (20 if step > 7 else 1)) for step in range(13)]
    wall = find_wall(points)
    assert wall.at_bytes is not None
    assert wall.at_bytes.low is not None
    assert wall.at_bytes.high is not None
    assert 2.0**30 < wall.at_bytes.estimate < 2.0**32.5


def sloped(slope: float, step: float, *, wall: float | None = None) -> list[SizePoint]:
    """Sixteen sizes from a GiB on, each ``step`` times the one before; time per byte goes with a power of the size."""
    generator = np.random.default_rng(1)
    return [
        SizePoint(size, 1e-9 * (size / GIB) ** slope * max(1.0, size / (wall or size)) ** 6 * math.exp(noise))
        for size, noise in zip(GIB * step ** np.arange(16), 0.003 * generator.standard_normal(16), strict=True)
    ]


@pytest.mark.parametrize("slope", [0.1, 0.3, 0.6])
def test_steady_growth_is_no_wall_and_hides_none(slope: float) -> None:
    assert find_wall(sloped(slope, 1.5)).at_bytes is None
    found = find_wall(sloped(slope, 1.5, wall=20 * GIB)).at_bytes
    assert found is not None
    assert found.estimate == pytest.approx(20 * GIB, rel=0.3)


def test_sizes_that_are_close_together_show_a_wall_too() -> None:
    found = find_wall(sloped(0.0, 1.03, wall=GIB * 1.03**8)).at_bytes
    assert found is not None
    assert found.estimate == pytest.approx(GIB * 1.03**8, rel=0.03)


def test_points_that_took_no_time_are_left_out() -> None:
    assert find_wall([*grown(3), SizePoint(GIB, 0.0)]) == find_wall(grown(3))


def test_a_slight_bend_is_no_wall() -> None:
    wall = find_wall(grown(2, steepness=0.05, noise=0.001))
    assert wall.at_bytes is None
    assert "only" in wall.reason


def test_growth_that_becomes_cheaper_is_no_wall() -> None:
    assert find_wall(grown(2, steepness=-0.4)).at_bytes is None


def test_too_little_to_say() -> None:
    assert "0 of at least 5 sizes" in find_wall([]).reason
    assert find_wall(grown(1)[:8]).at_bytes is None
    assert find_wall([SizePoint(size, 1e-9) for size in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)]).at_bytes is None
    assert find_wall([SizePoint(-1.0, 1e-9), SizePoint(1.0, math.nan)]).at_bytes is None


@pytest.mark.parametrize("start_up", [0.001, 0.01, 0.1, 1.0])
def test_a_start_up_is_no_wall_and_hides_none(start_up: float) -> None:
    """Seconds before the first byte, at a nanosecond a byte: 1 MB to 1 GB of data."""
    sizes, wall = np.geomspace(1e6, 1e9, 19), 1.5e8
    noise = np.exp(0.01 * np.random.default_rng(1).standard_normal(len(sizes)))
    seconds = (start_up + 1e-9 * sizes) * noise
    found = find_wall([SizePoint(size, time / size) for size, time in zip(sizes, seconds, strict=True)])
    assert found.at_bytes is None, found.reason
    if start_up == 1.0:
        return  # As long as all of the data takes: what is past the wall never takes longer a byte than the smallest.
    seconds = (start_up + 1e-9 * sizes * (np.maximum(sizes / wall, 1)) ** 1.5) * noise
    found = find_wall([SizePoint(size, time / size) for size, time in zip(sizes, seconds, strict=True)], resamples=100)
    assert found.at_bytes is not None, found.reason
    assert found.at_bytes.estimate == pytest.approx(wall, rel=0.3)
