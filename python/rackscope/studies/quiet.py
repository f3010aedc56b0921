"""Keeping rackscope's own housekeeping out of the load generator's way while latency is measured."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def behind_the_generator() -> Iterator[None]:
    """Let this thread (progress, samples to disk) run only when nothing else wants its core, for as long as it lasts.

    On a host of few cores it shares one with the load generator, whose requests would be late by milliseconds each
    time it runs. New threads and processes are started with the usual policy (sched(7), SCHED_RESET_ON_FORK). Where
    the policy cannot be had, or not be given back (without privilege, RLIMIT_NICE decides), nothing changes but that.
    """
    try:
        before = os.sched_getscheduler(0)
        os.sched_setscheduler(0, os.SCHED_IDLE | os.SCHED_RESET_ON_FORK, os.sched_param(0))
    except (AttributeError, OSError):
        yield
        return
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, before & ~os.SCHED_RESET_ON_FORK, os.sched_param(0))
