"""The speed of cores beside a window."""

from __future__ import annotations

import os

from conftest import wait_until
from rackscope.studies.bench.core_meters import CoreSpeeds


def test_speeds_of_both_groups_are_instructions_a_second() -> None:
    cores = sorted(os.sched_getaffinity(0))
    system, client = cores[:1], cores[-1:]
    with CoreSpeeds(system, client) as speeds:
        before = speeds.read()
        wait_until(lambda: bool(speeds.since(before)), "a burst on each core")
        taken = speeds.since(before)
    assert len(taken) == (2 if system != client else 1)
    # No core executes fewer than ten million instructions a second, or more than a hundred thousand million.
    assert all(1e7 < speed < 1e11 for speed in taken)


def test_nothing_is_said_where_no_burst_came_in_between() -> None:
    with CoreSpeeds([min(os.sched_getaffinity(0))], []) as speeds:
        speeds.stop()
        assert speeds.since(speeds.read()) == ()


def test_cores_that_are_not_there_have_no_speed() -> None:
    with CoreSpeeds([100_000], []) as speeds:
        assert speeds.read() == []
        assert speeds.since([]) == ()
