"""What a run is asked to be, after the command line was understood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rackscope.errors import UsageError


@dataclass(frozen=True)
class RunOptions:
    """One system, one workload, one configuration. Lengths in seconds.

    ``settings`` are ``--set`` pairs; each names a knob of the system or a parameter of the workload.
    ``repetitions`` fixes how often the measured stages run; ``None`` repeats until the interval is tight or
    ``budget_seconds`` of measuring is spent.
    """

    system: str
    workload: str
    settings: Mapping[str, str] = field(default_factory=dict)
    tuned: bool = False
    connections: int = 50
    rate_per_second: float | None = None
    arrivals: Literal["poisson", "constant"] = "poisson"
    duration_seconds: float = 5.0
    warm_up_seconds: float = 2.0
    repetitions: int | None = None
    budget_seconds: float = 40.0
    target_relative_half_width: float = 0.02
    cores: tuple[int, ...] | None = None
    client_cores: tuple[int, ...] | None = None
    endpoint_kind: Literal["tcp", "unix"] = "tcp"
    port: int | None = None
    sample_interval_seconds: float = 0.1
    seed: int = 42
    verify: bool = True
    fetch: bool = True
    out: Path | None = None
    command_line: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises UsageError for values that no run can have."""
        if not 1 <= self.connections <= 20_000:
            raise UsageError(f"{self.connections} connections are out of bounds", "Choose between 1 and 20000.")
        if self.repetitions is not None and not 1 <= self.repetitions <= 1000:
            raise UsageError(f"{self.repetitions} repetitions are out of bounds", "Choose between 1 and 1000.")
        if not 0.01 <= self.sample_interval_seconds <= 10:
            raise UsageError("samples are taken between 0.1 and 100 times a second", "Choose --sample-rate 10.")
        if self.duration_seconds < 0.1:
            raise UsageError("a measured repetition must last at least 0.1 s", "Choose --duration 5s.")
        if self.duration_seconds > 24 * 3600:
            raise UsageError("a measured repetition may last at most a day", "Choose --duration 30s.")


@dataclass(frozen=True)
class Progress:
    """What a run is doing now; the command line draws it."""

    activity: str
    fraction: float | None = None
    throughput_operations_per_second: float | None = None
    response_p99_seconds: float | None = None


ProgressCallback = Callable[[Progress], None]
