"""Reads and updates for the server of known limits, which stores nothing: values are neither loaded nor verified."""

from __future__ import annotations

from rackscope.workloads.base import Stage, Workload
from rackscope.workloads.parameters import with_defaults

_SOURCE = "rackscope's own, for checking rackscope"


def _synthetic(name: str, description: str, *stages: Stage) -> Workload:
    return Workload(
        name=f"synthetic-{name}",
        description=description,
        source=_SOURCE,
        stages=stages,
        parameters=with_defaults(keys="10000", distribution="uniform", value_size="1000"),
        preload=False,
        notes=("The system 'synthetic' stores nothing: run it with --no-verify.",),
    )


WORKLOADS: tuple[Workload, ...] = (
    _synthetic("read", "reads only", Stage("read", {"read": 1.0})),
    _synthetic("update", "updates only", Stage("update", {"update": 1.0})),
    _synthetic("mixed", "half reads, half updates", Stage("mixed", {"read": 0.5, "update": 0.5})),
    _synthetic(
        "phases",
        "two phases: reads, then updates",
        Stage("read", {"read": 1.0}),
        Stage("update", {"update": 1.0}),
    ),
)
