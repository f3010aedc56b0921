"""What is asked of a system: stages of operations over keys and values. Pure. A family is a module here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rackscope.errors import UsageError, did_you_mean
from rackscope.units import parse_count, parse_size_bytes

PhaseKind = Literal["load", "warm-up", "measure", "squeezed"]
ParameterKind = Literal["count", "size", "choice", "number"]


@dataclass(frozen=True)
class Parameter:
    """A setting of a workload: ``--set value_size=25k``. A size may also name a distribution in ``choices``."""

    name: str
    kind: ParameterKind
    default: str
    help: str
    choices: tuple[str, ...] = ()
    minimum: float = 0
    maximum: float = float("inf")

    def check(self, text: str) -> str:
        """The value in canonical form. Raises UsageError that names the parameter."""
        try:
            return self._canonical(text)
        except UsageError as error:
            near = did_you_mean(text, self.choices)
            raise UsageError(f"workload parameter {self.name}: {error.what}", f"{near}{error.advice}") from None

    def _canonical(self, text: str) -> str:
        if text in self.choices:
            return text
        if self.kind == "choice":
            raise UsageError(f"'{text}' is not one of its values", f"Choose from {', '.join(self.choices)}.")
        if self.kind == "number":
            try:
                value = float(text)
            except ValueError:
                raise UsageError(f"'{text}' is not a number", f"For example {self.default}.") from None
        else:
            value = parse_count(text) if self.kind == "count" else parse_size_bytes(text)
        if not self.minimum <= value <= self.maximum:
            bounds = f"between {self.minimum:,.12g} and {self.maximum:,.12g}"
            raise UsageError(f"{text} is out of bounds", f"It must be {bounds}.")
        return f"{value:g}" if self.kind == "number" else str(value)


@dataclass(frozen=True)
class Stage:
    """A measured window with one behaviour: shares of operations (they sum to 1) and which keys they fall on."""

    name: str
    operations: Mapping[str, float]

    def __post_init__(self) -> None:
        total = sum(self.operations.values())
        if not math.isclose(total, 1, abs_tol=1e-6):
            raise UsageError(
                f"the shares of stage {self.name} sum to {total:g}, not to 1",
                f"They are {', '.join(f'{name} {share:g}' for name, share in self.operations.items()) or 'none'}.",
            )


@dataclass(frozen=True)
class PhasePlan:
    """One phase as ``LoadClient.start_phase`` takes it, without its loop and its length."""

    name: str
    kind: PhaseKind
    operations: Mapping[str, float]
    distribution: Mapping[str, Any]
    operation_count: int | None = None


@dataclass(frozen=True)
class WorkloadPlan:
    """A workload with its parameters settled: the client's data set and the phases."""

    workload: str
    parameters: Mapping[str, str]
    protocol: str
    keys: Mapping[str, Any]
    values: Mapping[str, Any]
    pipeline: int
    multiget: int
    preload: PhasePlan | None
    stages: tuple[PhasePlan, ...]
    notes: tuple[str, ...] = ()
    #: Requests of a datagram, where there are datagrams.
    batch: int = 1
    #: Of every item that is set.
    flags: int = 0
    #: After how many seconds every item that is set expires; 0: never.
    expire_seconds: int = 0

    @property
    def data_bytes(self) -> int | None:
        """Bytes of keys and values together, where their sizes are fixed."""
        sizes = (self.keys["size"], self.values)
        if any(size["kind"] != "fixed" for size in sizes):
            return None
        return int(self.keys["count"]) * sum(int(size["bytes"]) for size in sizes)


@dataclass(frozen=True)
class Workload:
    """A named workload, before its parameters are settled."""

    name: str
    description: str
    source: str
    stages: tuple[Stage, ...]
    parameters: tuple[Parameter, ...]
    preload: bool = True
    notes: tuple[str, ...] = ()

    def needed_operations(self) -> frozenset[str]:
        """Every operation that some stage asks for."""
        return frozenset(operation for stage in self.stages for operation in stage.operations)
