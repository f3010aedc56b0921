"""Dragonfly: Redis's protocol over partitions owned by threads."""

from __future__ import annotations

from rackscope.systems.account import Account
from rackscope.systems.base import Endpoint, Knob, Launch
from rackscope.systems.server import ServerSystem
from rackscope.systems.text_socket import RedisDialect
from rackscope.systems.tools import Tool

_MANUAL = "dragonfly --helpfull"
_MEBIBYTE = 1024 * 1024

_PROGRAM = Tool(
    name="dragonfly",
    program="dragonfly",
    # The version is in colour, and may have its commit behind it.
    version_pattern=r"dragonfly\s+(?:\x1b\[[\d;]*m)?v?([\w.]+)",
    description="in-memory data structures, partitions owned by threads",
)


class Dragonfly(ServerSystem):
    """Dragonfly on loopback, which writes no snapshot and asks nobody for newer versions."""

    name = "dragonfly"
    description = "in-memory data structures, partitions owned by threads, found on PATH"
    protocols = ("resp",)
    operations = frozenset(
        {"read", "update", "insert", "read_modify_write", "lpush", "lpop", "zadd", "zrange", "sadd"}
    )  # fmt: skip
    usual_port = 6379
    programs = (_PROGRAM,)
    dialect = RedisDialect()
    data_folder = "dragonfly-data"
    #: Rings, event descriptors, files.
    own_files = 1024
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

    def arguments(self, launch: Launch, endpoint: Endpoint, account: Account | None = None) -> list[str]:
        del account
        tcp = [f"--bind={endpoint.host}", f"--port={endpoint.port}"]
        return [
            *(tcp if endpoint.kind == "tcp" else ["--port=0", f"--unixsocket={endpoint.path}"]),
            f"--proactor_threads={launch.knobs['threads']}",
            f"--maxmemory={launch.knobs['memory']}",
            f"--maxclients={self.served_connections(launch.knobs)}",
            "--dbfilename=",
            "--dir=.",
            "--version_check=false",
            "--logtostderr",
        ]


SYSTEM = Dragonfly()
