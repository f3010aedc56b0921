"""What a window says of the host, and how housekeeping keeps out of its way."""

from __future__ import annotations

import os

from rackscope.studies.bench.quiet import _can_come_back, behind_the_generator
from rackscope.studies.bench.windows import Window


def window(**more: float) -> Window:
    return Window(1000.0, 1000.0, 1.0, 1000, {}, None, None, None, 0.5, 0.5, **more)  # type: ignore[arg-type]


def test_a_interference_is_named() -> None:
    assert window().interference() == ""
    assert "hypervisor" in window(steal_ratio=0.1).interference()
    assert "other processes" in window(others_cores=1.0).interference()
    assert window(steal_ratio=0.0, others_cores=0.05).interference() == ""


def test_how_little_standing_still_disturbs_depends_on_the_quantile() -> None:
    still = window(steal_ratio=0.0, stall_ratio=0.004)
    assert still.interference(0.1) == ""
    assert "preempted" in still.interference(0.01)
    assert window(steal_ratio=0.0).interference(0.001) == ""


def test_housekeeping_steps_behind_at_the_first_tick_and_comes_back() -> None:
    class FakeSession:
        def __init__(self) -> None:
            self.seen: list[str] = []
            self.progress = self.note

        def note(self, what: str) -> None:
            self.seen.append(what)

    session = FakeSession()
    before = os.sched_getscheduler(0)
    with behind_the_generator(session):  # type: ignore[arg-type]
        # The load generator's threads are started now: they inherit what this thread has.
        assert os.sched_getscheduler(0) == before
        session.progress("a tick")
        if _can_come_back():
            assert os.sched_getscheduler(0) == os.SCHED_IDLE
    assert os.sched_getscheduler(0) == before
    assert session.seen == ["a tick"]
    session.progress("after")
    assert os.sched_getscheduler(0) == before
