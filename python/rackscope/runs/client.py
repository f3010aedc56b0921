"""The load generator as runs use it: its configuration, one phase at a time, its results as rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from rackscope.errors import LoadError
from rackscope.runs.options import Loop, RunOptions
from rackscope.runs.placement import Placement
from rackscope.runs.tables import LOAD_DRIVER
from rackscope.workloads import PhasePlan, WorkloadPlan

#: How often the driver looks at a phase that is going on.
_TICK_SECONDS = 0.1
#: Length of the intervals that the generator reports; percentiles over time have this resolution.
_INTERVAL_SECONDS = 0.25


def client_configuration(
    options: RunOptions,
    plan: WorkloadPlan,
    target: Mapping[str, Any],
    placement: Placement,
) -> dict[str, Any]:
    """The JSON object that ``LoadClient`` takes; ``target`` is the running system's."""
    return {
        "target": dict(target),
        "protocol": plan.protocol,
        "connections": options.connections,
        "cores": list(placement.client[: options.connections]),
        # Rackscope's own threads may have to share its cores; the system must not be kept off its own.
        "goes_first": not placement.shared,
        "pipeline": plan.pipeline,
        "multiget": plan.multiget,
        "batch": plan.batch,
        "flags": plan.flags,
        "expire_seconds": plan.expire_seconds,
        "seed": options.seed,
        "verify": options.verify,
        "keys": dict(plan.keys),
        "values": dict(plan.values),
    }


class Client:
    """``LoadClient`` with its errors turned into ours."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        from rackscope import _native

        try:
            self._client = _native.LoadClient(json.dumps(configuration))
        except (OSError, RuntimeError, ValueError) as error:
            raise LoadError(f"the load generator could not start: {error}") from error

    def run_phase(
        self,
        plan: PhasePlan,
        loop: Loop,
        duration_seconds: float | None,
        on_tick: Callable[[list[dict[str, float]]], None],
    ) -> dict[str, Any]:
        """Drive one phase to its end and return its result; ``on_tick`` gets new intervals several times a second.

        On any exception, Ctrl-C included, the phase is stopped before it goes on its way; the result up to then is
        what ``partial_result`` returns. Raises LoadError when the phase cannot start.
        """
        phase = {
            "name": plan.name,
            "operations": dict(plan.operations),
            "distribution": dict(plan.distribution),
            "loop": loop.to_dict(),
            "duration_seconds": duration_seconds,
            "operation_count": plan.operation_count,
            "interval_seconds": _INTERVAL_SECONDS,
            "record_latency": True,
        }
        try:
            self._client.start_phase(json.dumps(phase))
        except (OSError, RuntimeError, ValueError) as error:
            raise LoadError(f"phase {plan.name} could not start: {error}") from error
        try:
            while not self._client.wait(_TICK_SECONDS):
                on_tick(self._client.poll())
            on_tick(self._client.poll())
        except BaseException:
            self._client.stop_phase()
            raise
        return self._client.phase_result()

    def partial_result(self) -> dict[str, Any] | None:
        """What the phase that was stopped had done; None when there is nothing to say."""
        try:
            return self._client.phase_result()
        except (OSError, RuntimeError, ValueError):
            return None

    def close(self) -> None:
        self._client.close()


def interval_frame(intervals: list[dict[str, float]]) -> pl.DataFrame:
    """Intervals, of which there is at least one, as rows of ``samples.parquet``."""
    names = [name for name in intervals[0] if name != "timestamp_ns"]
    values = np.array([[row.get(name, np.nan) for row in intervals] for name in names])
    columns = [pl.Series(name, row, nan_to_null=True) for name, row in zip(names, values, strict=True)]
    times = pl.Series("timestamp_ns", [int(row["timestamp_ns"]) for row in intervals], dtype=pl.Int64)
    return pl.DataFrame([times, pl.Series("driver", [LOAD_DRIVER] * len(intervals)), *columns])
