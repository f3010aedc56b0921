"""Systems and workloads: what there is, fetching one, starting one. What ``run --list``, ``get`` and ``serve`` do."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from rackscope.api.settings import ProgressCallback, silent
from rackscope.runs.options import Progress
from rackscope.systems import find_system, list_systems, resolve_knobs
from rackscope.systems.base import Acquired, EndpointKind, Launch, ProgressText, RunningSystem
from rackscope.workloads import list_workloads


class Output(BaseModel):
    """One object on standard output."""

    model_config = ConfigDict(extra="forbid", from_attributes=True)


class Setting(Output):
    """A knob of a system (with its ``source``) or a parameter of a workload."""

    name: str
    default: str
    help: str
    source: str = ""


class ListedSystem(Output):
    """What ``run`` can start."""

    name: str
    description: str
    protocols: list[str]
    operations: Annotated[list[str], BeforeValidator(sorted)]
    knobs: list[Setting]


class ListedWorkload(Output):
    """What can be asked of it."""

    name: str
    description: str
    source: str
    parameters: list[Setting]


class ListOutput(Output):
    """``run --list``."""

    systems: list[ListedSystem]
    workloads: list[ListedWorkload]


def listing() -> ListOutput:
    """Everything that ``rackscope.run`` takes."""
    return ListOutput(
        systems=[ListedSystem.model_validate(system) for system in list_systems()],
        workloads=[ListedWorkload.model_validate(workload) for workload in list_workloads()],
    )


def get(name: str, *, fetch: bool = True, progress: ProgressCallback = silent) -> Acquired:
    """A system or a tool: found on PATH, else its package downloaded and unpacked. Raises RackscopeError."""
    from rackscope.systems.acquire import acquire_by_name

    progress(Progress(f"looking for {name}"))
    return acquire_by_name(name, fetch=fetch, progress=_saying(progress))


@contextmanager
def serving(
    name: str = "cache",
    *,
    settings: Mapping[str, str] | None = None,
    tuned: bool = False,
    cores: tuple[int, ...] | None = None,
    endpoint_kind: EndpointKind = "tcp",
    port: int | None = None,
    fetch: bool = True,
    progress: ProgressCallback = silent,
) -> Iterator[tuple[Acquired, RunningSystem]]:
    """A system that serves on loopback for as long as the block lasts. Raises RackscopeError."""
    from rackscope.runs.placement import place

    system = find_system(name)
    allowed = sorted(os.sched_getaffinity(0))
    cores = place(allowed, cores or allowed).system
    knobs = resolve_knobs(system, settings or {}, tuned=tuned, cores=cores)
    acquired = system.acquire(fetch=fetch, progress=_saying(progress))
    with tempfile.TemporaryDirectory(prefix="rackscope-serve-") as folder:
        Path(folder).chmod(0o755)
        chosen = port or (system.usual_port if endpoint_kind == "tcp" else None)
        running = system.start(acquired, Launch(Path(folder), cores, knobs.values, endpoint_kind, chosen))
        try:
            running.wait_ready()
            yield acquired, running
        finally:
            running.stop()


def _saying(progress: ProgressCallback) -> ProgressText:
    return lambda text: progress(Progress(text))
