"""Valkey: the continuation of Redis, with its options."""

from __future__ import annotations

from rackscope.systems.base import Acquired, ProgressText
from rackscope.systems.redis import Redis
from rackscope.systems.server import ServerSystem
from rackscope.systems.tools import Tool

_PROGRAM = Tool(
    name="valkey",
    program="valkey-server",
    version_pattern=r"v=(\S+)",
    description="in-memory data structures",
)


class Valkey(Redis):
    """Valkey with the knobs of Redis, which it shares."""

    name = "valkey"
    description = "in-memory data structures, the continuation of Redis, found on PATH"
    programs = (_PROGRAM,)

    def acquire(self, *, fetch: bool, progress: ProgressText | None = None) -> Acquired:
        return ServerSystem.acquire(self, fetch=fetch, progress=progress)


SYSTEM = Valkey()
