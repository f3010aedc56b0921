"""Dragonfly: Redis's protocol over partitions owned by threads."""

from __future__ import annotations

from collections.abc import Mapping

from rackscope.systems.account import Account
from rackscope.systems.acquire import acquire_from_path
from rackscope.systems.base import Acquired, Endpoint, Knob, Launch, ProgressText, RunningSystem, System
from rackscope.systems.server import Server
from rackscope.systems.text_socket import RedisDialect
from rackscope.systems.tools import Tool

_MANUAL = "dragonfly --helpfull"
_MEBIBYTE = 1024 * 1024
#: Connections of rackscope's own (readiness, statistics), beyond those of the client.
_OWN_CONNECTIONS = 8
#: Descriptors beyond connections: rings, event descriptors, files.
_OWN_FILES = 1024

_PROGRAM = Tool(
    name="dragonfly",
    program="dragonfly",
    packages=(),
    version_arguments=("--version",),
    # The version is in colour, and may have its commit behind it.
    version_pattern=r"dragonfly\s+(?:\x1b\[[\d;]*m)?v?([\w.]+)",
    description="in-memory data structures, partitions owned by threads",
)


class Dragonfly(System):
    """Dragonfly on loopback, which writes no snapshot and asks nobody for newer versions."""

    name = "dragonfly"
    description = "in-memory data structures, partitions owned by threads, found on PATH"
    protocols = ("resp",)
    operations = frozenset(
        {"read", "update", "insert", "read_modify_write", "lpush", "lpop", "zadd", "zrange", "sadd"}
    )  # fmt: skip
    usual_port = 6379
    knobs = (
        Knob(
            "memory", "memory", "1GiB", None, "memory for data (--maxmemory), 256 MiB a thread at least", _MANUAL,
            minimum=8 * _MEBIBYTE,
        ),
        Knob(
            "threads", "integer", "cores", None, "threads (--proactor_threads); cores is as many as it was given",
            _MANUAL, minimum=1, maximum=1024,
        ),
        Knob(
            "connections", "integer", "10000", None, "client connections that it serves (--maxclients)", _MANUAL,
            minimum=1, maximum=1_000_000,
        ),
    )  # fmt: skip

    def acquire(self, *, fetch: bool, progress: ProgressText | None = None) -> Acquired:
        del fetch
        return acquire_from_path(_PROGRAM, progress=progress)

    def connection_limit(self, knobs: Mapping[str, str]) -> int | None:
        return int(knobs["connections"])

    def start(self, acquired: Acquired, launch: Launch) -> RunningSystem:
        def arguments(endpoint: Endpoint, account: Account | None) -> list[str]:
            del account
            return dragonfly_arguments(launch.knobs, endpoint)

        open_files = int(launch.knobs["connections"]) + _OWN_CONNECTIONS + _OWN_FILES
        server = Server(self.name, arguments, RedisDialect(), open_files, data_folder="dragonfly-data")
        return server.start(acquired, launch)


def dragonfly_arguments(knobs: Mapping[str, str], endpoint: Endpoint) -> list[str]:
    """The command line, without the program."""
    tcp = [f"--bind={endpoint.host}", f"--port={endpoint.port}"]
    return [
        *(tcp if endpoint.kind == "tcp" else ["--port=0", f"--unixsocket={endpoint.path}"]),
        f"--proactor_threads={knobs['threads']}",
        f"--maxmemory={knobs['memory']}",
        f"--maxclients={int(knobs['connections']) + _OWN_CONNECTIONS}",
        "--dbfilename=",
        "--dir=.",
        "--version_check=false",
        "--logtostderr",
    ]


SYSTEM = Dragonfly()
