"""Keeping rackscope's own housekeeping out of the load generator's way while latency is measured."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator

from rackscope.runs.options import Progress
from rackscope.runs.session import Session


@contextlib.contextmanager
def behind_the_generator(session: Session) -> Iterator[None]:
    """Let this thread (progress, samples) run only when nothing else wants its core, in a phase of ``session``.

    On a host of few cores it shares one with the load generator, whose requests would be late by milliseconds each
    time it runs. It steps back at the phase's first tick: threads inherit the policy, and the generator's are started
    before that. Where the policy could not be given back (sched(7): without privilege RLIMIT_NICE decides) nothing is
    changed.
    """
    if not _can_come_back():
        yield
        return
    before = os.sched_getscheduler(0)
    progress: Callable[[Progress], None] = session.progress

    def step_back(now: Progress) -> None:
        if os.sched_getscheduler(0) != os.SCHED_IDLE:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        progress(now)

    session.progress = step_back
    try:
        yield
    finally:
        session.progress = progress
        os.sched_setscheduler(0, before, os.sched_param(0))


@functools.cache
def _can_come_back() -> bool:
    """Whether a thread may leave the idle policy again, tried by one that ends."""
    back: list[bool] = []

    def attempt() -> None:
        with contextlib.suppress(AttributeError, OSError):
            before = os.sched_getscheduler(0)
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            os.sched_setscheduler(0, before, os.sched_param(0))
            back.append(True)

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return bool(back)
