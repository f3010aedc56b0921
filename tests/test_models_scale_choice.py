"""Scale up or out: measured jobs are read or refused, walls stop what is past them, and ways change places where they
cost the same.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.errors import RackscopeError
from rackscope.models.core_scaling import fit_core_scaling
from rackscope.models.gates import ProjectionRefused
from rackscope.models.job_points import JobPoint, JobPointsError, parse_job_points
from rackscope.models.job_time import (
    clusters,
    core_scaling_points,
    memory_wall,
    more_of_the_same,
    one_server,
)
from rackscope.models.scale_choice import (
    MachineYear,
    chosen_curve,
    cost_of_job,
    cost_of_year,
    crossing,
    draw_jobs,
    draw_means,
)
from rackscope.models.uncertain import Uncertain

GIGA = 1e9
SIZES = [10 * GIGA, 20 * GIGA, 40 * GIGA, 60 * GIGA, 80 * GIGA]


def jobs(start: float = 5.0, rate: float = 400e6, server: str = "big", noise: float = 0.01) -> list[JobPoint]:
    return [
        JobPoint(server, 1, size, (start + size / rate) * (1 + noise * (-1) ** k), None, "file")
        for k, size in enumerate(size for size in SIZES for _ in range(2))
    ]


def cluster_jobs(noise: float = 0.01) -> list[JobPoint]:
    found = []
    for k, (count, each) in enumerate((count, each) for count in (2, 4, 8, 16) for each in (2 * GIGA, 6 * GIGA)):
        seconds = 40 + each / 60e6 + 4 * np.log(count) + 0.3 * count
        found.append(JobPoint("small", count, each * count, seconds * (1 + noise * (-1) ** k), None, "file"))
    return found


def test_csv_and_toml_say_the_same() -> None:
    csv = "server,machines,data_bytes,seconds\nbig,1,20e9,50\nsmall, 4, 21474836480, 60.5\n"
    toml = '[[job]]\nserver = "small"\nmachines = 4\ndata = "20GiB"\nseconds = 60.5\n'
    assert parse_job_points(csv, "jobs.csv")[1].data_bytes == parse_job_points(toml, "jobs.toml")[0].data_bytes
    assert parse_job_points(csv, "jobs.csv")[0] == JobPoint("big", 1, 20e9, 50.0, None, "jobs.csv")


def test_a_megabyte_is_the_least_that_is_taken_for_a_size() -> None:
    text = "server,data_bytes,seconds\nbig,{},50\n"
    assert len(parse_job_points(text.format("1e6"), "jobs.csv")) == 1
    with pytest.raises(JobPointsError, match="another unit"):
        parse_job_points(text.format("999999.5"), "jobs.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("server,data_bytes,seconds\n", "no measured job"),
        ("", "no measured job"),
        ("server,data_bytes,seconds\nbig,20,50\n", "another unit"),
        ("server,data_bytes,seconds\nbig,20e9,1e-4\n", "faster than servers are"),
        ("server,data_bytes,seconds\nbig,20e9,-1\n", "line 2: seconds is '-1'"),
        ("server,data_bytes,seconds\nbig,20e9,nan\n", "seconds is 'nan'"),
        ("server,data_bytes,seconds\nbig,20 GB,5\n", "data_bytes is '20 GB'"),
        ("server,data_bytes,seconds,machines\nbig,20e9,5,1.5\n", "machines is 1.5"),
        ("server,data_bytes,second\nbig,20e9,5\n", "second is not a known key"),
        ("server,data_bytes,seconds\nbig,20e9\n", "as many cells"),
        ("server,data_bytes,seconds\nbig,20e9,5,6\n", "as many cells"),
        ("server,seconds\nbig,5\n", "neither of data and data_bytes"),
        ("data_bytes,seconds\n20e9,5\n", "server is missing"),
        ('server,data_bytes,seconds\n"big,20e9,5\n', "is not CSV"),
    ],
)
def test_what_is_no_list_of_jobs_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(JobPointsError, match=said):
        parse_job_points(text, "jobs.csv")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = [", "is not TOML"),
        ("[job]\na = 1", "not a list of jobs"),
        ("job = 1", "not a list of jobs"),
        ('[[job]]\nserver = "a"\nseconds = 1\ndata = "x"', "data is invalid: 'x'"),
        ('[[job]]\nserver = 3\nseconds = 1\ndata = "20G"', "server is missing"),
        ('[[job]]\nserver = "a"\nseconds = true\ndata = "20G"', "seconds is"),
        ('[[job]]\nserver = "a"\nseconds = 1\ndata = "20G"\ndata_bytes = 3', "both"),
    ],
)
def test_toml_is_checked_too(text: str, said: str) -> None:
    with pytest.raises(JobPointsError, match=said):
        parse_job_points(text, "jobs.toml")


@given(st.text(max_size=200))
@settings(max_examples=60, deadline=None)
def test_no_text_breaks_the_reader(text: str) -> None:
    for name in ("jobs.csv", "jobs.toml"):
        try:
            parse_job_points(text, name)
        except RackscopeError:
            continue


def test_memory_places_the_wall_and_nothing_is_said_past_it() -> None:
    wall = memory_wall(256 * GIGA, Uncertain.lognormal(2.0, 1.05))
    assert wall.low_bytes < wall.bytes < wall.high_bytes
    assert wall.bytes == pytest.approx(0.95 * 128 * GIGA, rel=0.01)
    way = one_server("big", jobs(), wall)
    assert way.predict(100 * GIGA).value == pytest.approx(255, rel=0.02)
    with pytest.raises(ProjectionRefused, match="may be past the wall of big"):
        way.predict(wall.low_bytes * 1.01)
    assert way.largest_bytes == pytest.approx(wall.low_bytes)
    # Without it the largest that was measured is the end.
    with pytest.raises(ProjectionRefused, match="no wall was met"):
        one_server("big", jobs(), None).predict(100 * GIGA)


def test_a_wall_far_beyond_what_was_measured_is_not_gone_to() -> None:
    way = one_server("big", jobs(), memory_wall(100_000 * GIGA, Uncertain.certain(1.0)))
    assert way.largest_bytes == pytest.approx(16 * max(SIZES))
    with pytest.raises(ProjectionRefused, match="more than 16 times"):
        way.predict(17 * max(SIZES))


def test_a_wall_that_jobs_show_goes_before_that_of_memory() -> None:
    points = [
        JobPoint("big", 1, size, size / 4e8 * (1 if size < 50 * GIGA else 6), None, "file")
        for size in (10 * GIGA, 20 * GIGA, 30 * GIGA, 40 * GIGA, 60 * GIGA, 80 * GIGA)
    ]
    way = one_server("big", points, memory_wall(256 * GIGA, Uncertain.certain(1.0)))
    assert way.largest_bytes == 40 * GIGA
    with pytest.raises(ProjectionRefused):
        way.predict(50 * GIGA)


def test_more_of_the_same_is_faster_by_what_cores_gave_and_less_sure() -> None:
    cores = (4, 8, 16, 32)
    scaling = fit_core_scaling(cores, [one / (1 + 0.02 * (one - 1)) for one in cores])
    small = one_server("big", jobs(), None)
    wall = memory_wall(512 * GIGA, Uncertain.certain(2.0))
    more = more_of_the_same("bigger", 64, "big", jobs(), scaling, 32, wall)
    there, here = more.predict(60 * GIGA), small.predict(60 * GIGA)
    expected = (64 / (1 + 0.02 * 63)) / (32 / (1 + 0.02 * 31))
    assert here.value / there.value == pytest.approx(expected, rel=0.02)
    assert there.high / there.value > here.high / here.value
    assert there.extrapolated
    assert more.predict(200 * GIGA).value > there.value
    with pytest.raises(ProjectionRefused, match="more than 2 times"):
        more_of_the_same("bigger", 128, "big", jobs(), scaling, 32, wall)


def test_cores_of_jobs_are_taken_at_one_size() -> None:
    points = [JobPoint("big", 1, 40 * GIGA, 400 / cores, cores, "file") for cores in (4, 8, 16, 32)]
    cores, throughput = core_scaling_points([*jobs(), *points, JobPoint("big", 1, 10 * GIGA, 9.0, 4, "file")])
    assert cores == [4, 8, 16, 32]
    assert throughput[0] == pytest.approx(40 * GIGA / 100)
    assert core_scaling_points(jobs()) == ([], [])


def test_a_cluster_goes_no_further_than_its_model() -> None:
    ways = clusters("small", cluster_jobs(), None)
    assert [ways[0].machines, ways[-1].machines] == [1, 64]
    assert ways[7].predict(40 * GIGA).value == pytest.approx(40 + 5e9 / 60e6 + 4 * np.log(8) + 2.4, rel=0.03)
    with pytest.raises(ProjectionRefused, match="may be past its wall"):
        ways[0].predict(40 * GIGA)
    assert ways[7].largest_bytes == pytest.approx(48 * GIGA)
    # What was measured past the memory of a machine is no part of the fit: of the rest here there is too little.
    with pytest.raises(RackscopeError, match="leave no residual"):
        clusters("small", cluster_jobs(), memory_wall(8 * GIGA, Uncertain.certain(2.0)))


def test_draws_have_the_spread_of_the_models_interval() -> None:
    way = one_server("big", jobs(noise=0.05), None)
    drawn = draw_jobs(way, 60 * GIGA, 40_000, 1)
    seconds = way.predict(60 * GIGA)
    assert 0.88 < np.mean((drawn >= seconds.low) & (drawn <= seconds.high)) < 0.92
    mean = draw_means(way, [60 * GIGA], 40_000, 1)[:, 0]
    assert mean.std() < drawn.std()
    assert np.median(mean) == pytest.approx(seconds.value, rel=0.01)


def test_draws_of_a_cluster_have_the_spread_of_its_interval_too() -> None:
    """Its coefficients are of very different sizes, and their errors make up for each other."""
    for way in clusters("small", cluster_jobs(noise=0.03), None)[4::10]:
        size = way.largest_bytes * 0.9
        seconds, drawn = way.predict(size), draw_jobs(way, size, 40_000, 1)
        assert 0.87 < np.mean((drawn >= seconds.low) & (drawn <= seconds.high)) < 0.93


def test_what_is_known_exactly_is_drawn_so() -> None:
    way = one_server("big", jobs(noise=0.0), None)
    assert np.ptp(draw_means(way, [60 * GIGA], 100, 1)) < 1e-6 * 155


positive = st.floats(1e-3, 1e3)


@settings(max_examples=100, deadline=None)
@given(positive, positive, positive, positive)
def test_they_cross_where_they_cost_the_same(fixed: float, each: float, other_fixed: float, other_each: float) -> None:
    sizes = np.geomspace(0.01, 1e4, 400)
    first, second = fixed + each * sizes, other_fixed + other_each * sizes
    found = crossing(list(sizes), first[None, :], second[None, :], 1.0)
    exact = (other_fixed - fixed) / (each - other_each) if each != other_each else -1.0
    if found is None:
        assert not sizes[0] * 1.001 < exact < sizes[-1] * 0.999
    else:
        assert found.share == 1
        assert fixed + each * found.value == pytest.approx(other_fixed + other_each * found.value, rel=0.01)


def test_of_several_crossings_the_nearest_is_told_and_of_draws_those_that_have_one() -> None:
    sizes = [1.0, 2.0, 4.0, 8.0, 16.0]
    wavy = np.array([[1.0, 3.0, 3.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0]])
    found = crossing(sizes, wavy, np.full((2, 5), 2.0), 6.0)
    assert found is not None
    assert 4 < found.value < 8
    assert found.share == 0.5
    assert crossing(sizes, wavy[1:], np.full((1, 5), 2.0), 6.0) is None
    with pytest.raises(RackscopeError, match="two sizes"):
        crossing([1.0], wavy, wavy, 1.0)


def year(standing: float, busy: float = 100.0, idle: float = 50.0, count: int = 200) -> MachineYear:
    return MachineYear(np.full(count, standing), np.full(count, busy), np.full(count, idle))


@settings(max_examples=100, deadline=None)
@given(st.floats(1, 1e5), st.floats(1.0001, 10), st.floats(1, 1e5), st.integers(1, 64), st.floats(0.1, 500))
def test_the_cheaper_server_never_loses_when_all_else_is_equal(
    standing: float, dearer: float, seconds: float, machines: int, per_day: float
) -> None:
    drawn = np.linspace(0.9, 1.1, 200) * seconds
    assert np.all(cost_of_job(year(standing), machines, drawn) < cost_of_job(year(standing * dearer), machines, drawn))
    cheap, dear = (cost_of_year(year(one), machines, drawn, per_day) for one in (standing, standing * dearer))
    assert np.all(cheap < dear)


def test_a_year_of_jobs_takes_as_many_groups_as_are_busy() -> None:
    half_a_day = np.full(200, 43_200.0)
    for per_day, groups in ((1.0, 1), (2.0, 1), (3.0, 2), (4.0, 2), (4.1, 3)):
        busy = per_day / 2
        found = cost_of_year(year(1000.0), 3, half_a_day, per_day)
        assert found[0] == pytest.approx(3 * (groups * (1000 + 50) + busy * 50))


def test_the_curve_is_that_of_the_best_way_at_each_size_and_ends_with_them() -> None:
    ways = clusters("small", cluster_jobs(), None)
    sizes = [10 * GIGA, 90 * GIGA, 1000 * GIGA]
    curve = chosen_curve(
        ways, sizes, lambda way, size: way.fit.value(way.terms(size)) * way.machines, lambda _, one: one, 50, 1
    )
    assert np.isfinite(curve[:, :2]).all()
    assert np.isnan(curve[:, 2]).all()
    fewest = min(way.machines for way in ways if way.largest_bytes >= 90 * GIGA)
    chosen = next(way for way in ways if way.machines == fewest)
    assert np.array_equal(curve[:, 1], draw_means(chosen, [90 * GIGA], 50, 1)[:, 0])
