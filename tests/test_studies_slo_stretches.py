"""What a stretch says of the host, and how housekeeping keeps out of its way."""

from __future__ import annotations

import os
import threading

import pytest

from rackscope.studies.quiet import behind_the_generator
from rackscope.studies.stretches import Stretch, _taken


def ticks(busy: int = 0, idle: int = 0, steal: int = 0) -> list[int]:
    return [busy, 0, 0, idle, 0, 0, 0, steal, 0, 0]


def stretch(**more: float) -> Stretch:
    return Stretch(1000.0, 1000.0, 1.0, 1000, {}, None, None, None, 0.5, 0.5, **more)  # type: ignore[arg-type]


def test_what_others_took_is_what_is_left_after_the_system_and_rackscope() -> None:
    hertz, cores = os.sysconf("SC_CLK_TCK"), os.cpu_count() or 1
    # One second of the host: half of it busy, a tenth stolen.
    busy, steal, total = hertz * cores // 2, hertz * cores // 10, hertz * cores
    after = ticks(busy, total - busy - steal, steal)
    steal_ratio, others = _taken(ticks(), after, own_seconds=0.0, system_seconds=0.0)
    assert steal_ratio == pytest.approx(0.1, abs=0.01)
    assert others == pytest.approx(cores / 2, rel=0.05)
    _, others = _taken(ticks(), after, own_seconds=cores / 4, system_seconds=cores / 4)
    assert others == pytest.approx(0, abs=0.02)


def test_what_cannot_be_read_is_not_nothing() -> None:
    assert _taken(None, ticks(1), 0.0, 0.0) == (None, None)
    assert _taken(ticks(), ticks(), 0.0, 0.0) == (None, None)
    steal, others = _taken(ticks(), ticks(10, 90), 0.0, None)
    assert steal == 0 and others is None
    assert stretch().disturbance == ""


def test_a_disturbance_is_named() -> None:
    assert "hypervisor" in stretch(steal_ratio=0.1).disturbance
    assert "other programs" in stretch(others_cores=1.0).disturbance
    assert stretch(steal_ratio=0.0, others_cores=0.05).disturbance == ""


def test_housekeeping_steps_behind_and_comes_back() -> None:
    if os.getuid() != 0:
        pytest.skip("the usual policy is given back to root alone")
    before = os.sched_getscheduler(0)
    started: list[int] = []
    with behind_the_generator():
        assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_IDLE
        thread = threading.Thread(target=lambda: started.append(os.sched_getscheduler(0)))
        thread.start()
        thread.join()
    assert os.sched_getscheduler(0) == before
    # What is started meanwhile, the load generator above all, runs as anything does.
    assert started == [os.SCHED_OTHER]
