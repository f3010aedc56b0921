"""A system started as a run does it, and stopped however the test ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from rackscope.systems import find_system, resolve_knobs
from rackscope.systems.account import Account
from rackscope.systems.base import Endpoint, EndpointKind, Launch, RunningSystem
from rackscope.systems.server import ServerSystem


@contextlib.contextmanager
def started(
    name: str,
    folder: Path,
    endpoint_kind: EndpointKind = "tcp",
    port: int | None = None,
    cores: tuple[int, ...] | None = None,
    **settings: str,
) -> Iterator[RunningSystem]:
    system = find_system(name)
    cores = cores or tuple(sorted(os.sched_getaffinity(0)))[:1]
    settings = {"memory": "64MiB", **settings}
    knobs = resolve_knobs(system, settings, tuned=False, cores=cores)
    running = system.start(
        system.acquire(fetch=True), Launch(folder, cores, knobs.values, endpoint_kind=endpoint_kind, port=port)
    )
    try:
        running.wait_ready()
        yield running
    finally:
        running.stop()


def arguments_of(
    name: str, knobs: Mapping[str, str], endpoint: Endpoint, account: Account | None = None, **launch: object
) -> list[str]:
    """What the server is told, without its program."""
    system = find_system(name)
    assert isinstance(system, ServerSystem)
    return list(system.arguments(Launch(Path(), (), knobs, **launch), endpoint, account))  # type: ignore[arg-type]
