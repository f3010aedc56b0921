"""What a stretch says of the host, and how housekeeping keeps out of its way."""

from __future__ import annotations

import os
import threading

import pytest

from rackscope.studies.quiet import behind_the_generator
from rackscope.studies.stretches import Stretch


def stretch(**more: float) -> Stretch:
    return Stretch(1000.0, 1000.0, 1.0, 1000, {}, None, None, None, 0.5, 0.5, **more)  # type: ignore[arg-type]


def test_a_disturbance_is_named() -> None:
    assert stretch().disturbance == ""
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
