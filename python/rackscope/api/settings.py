"""What a run can be asked for beside its system and workload, by the names of ``runs.options.RunOptions``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypedDict

from rackscope.runs.options import Progress, ProgressCallback

__all__ = ["Progress", "ProgressCallback", "RunSettings"]


class RunSettings(TypedDict, total=False):
    """Every field may be left out; ``RunOptions`` has the defaults and says what each is."""

    settings: Mapping[str, str]
    tuned: bool
    connections: int
    rate_per_second: float | None
    arrivals: Literal["poisson", "constant"]
    duration_seconds: float
    warm_up_seconds: float
    repetitions: int | None
    budget_seconds: float
    target_relative_half_width: float
    cores: tuple[int, ...] | None
    client_cores: tuple[int, ...] | None
    endpoint_kind: Literal["tcp", "unix"]
    port: int | None
    sample_interval_seconds: float
    seed: int
    verify: bool
    meters: tuple[str, ...]
    fetch: bool
    out: Path | None
    command_line: tuple[str, ...]


def silent(_progress: Progress) -> None:
    """The default: progress is not shown."""
