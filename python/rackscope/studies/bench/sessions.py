"""Sessions of several systems that are up together, and windows of one of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from rackscope.runs.options import Loop, ProgressCallback
from rackscope.runs.prepare import Prepared
from rackscope.runs.session import Session
from rackscope.studies.bench.figures import Figures, figures_of
from rackscope.studies.bench.interference import Interference, Judge
from rackscope.studies.bench.loading import make_ready, refuse_errors
from rackscope.studies.bench.quiet import behind_the_generator
from rackscope.studies.bench.turns import SystemUse, side_by_side
from rackscope.workloads.base import PhasePlan


def run_together(
    waiting: Mapping[str, Prepared],
    open_session: Callable[[str, Prepared], AbstractContextManager[Session]],
    progress: ProgressCallback,
    work: Callable[[Mapping[str, Session]], None],
    failures: dict[str, str],
) -> None:
    """Start all that wait, do ``work`` with those that are ready, if any is, and stop them.

    ``open_session`` is asked for each by name; once it is ready, its steps go to ``progress``. Why one could not be
    started is in ``failures``.
    """
    sessions: dict[str, Session] = {}

    def start(name: str, prepared: Prepared, inside: Callable[[], None]) -> None:
        def ready(session: Session) -> None:
            make_ready(session)
            sessions[name] = session
            session.progress = progress
            inside()

        with open_session(name, prepared) as session:
            session.run(ready)

    side_by_side(waiting, start, lambda: work(sessions) if sessions else None, failures)


def measure_window(
    session: Session,
    stage: PhasePlan,
    rate: float | None,
    seconds: float,
    number: int,
    activity: str,
    interference: Interference,
    *,
    lost_ratio_max: float = 0.0,
) -> Figures:
    """A window in a closed loop, or at a rate, measured again where there was interference. Raises RackscopeError, also
    where more than ``lost_ratio_max`` of the requests failed."""

    def once(begin: Callable[[], Judge]) -> dict[str, Any]:
        use = SystemUse(session.system.pid, begin())
        row = session.phase(stage, Loop(rate), seconds, number, activity=activity, discard=use.discard)
        return {**row, "cpu_seconds": use.cpu_seconds}

    with behind_the_generator(session) if rate is not None else contextlib.nullcontext():
        row = interference.measure(once)
    refuse_errors(row, lost_ratio_max)
    return figures_of([row], row["cpu_seconds"], keys_each=session.prepared.plan.multiget)
