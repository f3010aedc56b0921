"""What is asked of a system: phases of operations over keys and values. Pure: builds plans, does nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

PhaseKind = Literal["load", "warm-up", "measure"]


@dataclass(frozen=True)
class Parameter:
    """A setting of a workload: ``--set value_size=25k``."""

    name: str
    kind: Literal["count", "size", "choice", "number", "text"]
    default: str
    help: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class PhasePlan:
    """One stretch with one behaviour: which operations in which shares, over which keys.

    ``operations`` maps an operation to its share (they sum to 1); ``distribution`` is the JSON object that
    ``LoadClient.start_phase`` takes; ``operation_count`` bounds a phase that ends by count (load, stages).
    """

    name: str
    kind: PhaseKind
    operations: Mapping[str, float]
    distribution: Mapping[str, Any]
    operation_count: int | None = None


@dataclass(frozen=True)
class WorkloadPlan:
    """A workload with its parameters settled: the client's data set and the phases in order."""

    workload: str
    parameters: Mapping[str, str]
    keys: Mapping[str, Any]
    values: Mapping[str, Any]
    pipeline: int
    multiget: int
    phases: tuple[PhasePlan, ...]
    notes: tuple[str, ...] = field(default=())

    def needed_operations(self) -> frozenset[str]:
        """Every operation that some phase asks for."""
        return frozenset(operation for phase in self.phases for operation in phase.operations)


@dataclass(frozen=True)
class Workload:
    """A named workload; ``WORKLOADS`` of each family's module lists them."""

    name: str
    description: str
    source: str
    parameters: tuple[Parameter, ...]
    #: Shares of operations of each measured stage, in order; most workloads have one.
    stages: tuple[tuple[str, Mapping[str, float]], ...]
    distribution: str
    preload: bool = True
