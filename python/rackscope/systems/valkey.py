"""Valkey: the continuation of Redis, with its options."""

from __future__ import annotations

from rackscope.systems.acquire import acquire_from_path
from rackscope.systems.base import Acquired, ProgressText
from rackscope.systems.redis import Redis
from rackscope.systems.tools import Tool

_PROGRAM = Tool(
    name="valkey",
    program="valkey-server",
    packages=(),
    version_arguments=("--version",),
    version_pattern=r"v=(\S+)",
    description="in-memory data structures",
)


class Valkey(Redis):
    """Valkey with the knobs of Redis, which it shares."""

    name = "valkey"
    description = "in-memory data structures, the continuation of Redis, found on PATH"

    def acquire(self, *, fetch: bool, progress: ProgressText | None = None) -> Acquired:
        del fetch
        return acquire_from_path(_PROGRAM, progress=progress)


SYSTEM = Valkey()
