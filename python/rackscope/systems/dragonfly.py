"""Dragonfly: Redis's protocol over partitions owned by threads."""

from __future__ import annotations

from rackscope.systems.account import Account
from rackscope.systems.base import DATA_STRUCTURES, Endpoint, Launch, bounded
from rackscope.systems.server import ServerSystem
from rackscope.systems.text_socket import RedisDialect

_MANUAL = "dragonfly --helpfull"
_MEBIBYTE = 1024 * 1024


class Dragonfly(ServerSystem):
    """Dragonfly on loopback, which writes no snapshot and asks nobody for newer versions."""

    name = "dragonfly"
    description = "in-memory data structures, partitions owned by threads, found on PATH"
    protocols = ("resp",)
    operations = DATA_STRUCTURES
    usual_port = 6379
    programs = ("dragonfly",)
    #: It is in colour, and may have its commit behind it.
    version_pattern = r"dragonfly\s+(?:\x1b\[[\d;]*m)?v?([\w.]+)"
    dialect = RedisDialect()
    data_folder = "dragonfly-data"
    #: Rings, event descriptors, files.
    own_files = 1024
    knobs = (
        bounded("memory", "memory", "1GiB", "memory for data (--maxmemory), 256 MiB a thread at least", _MANUAL,
                8 * _MEBIBYTE),
        bounded("threads", "integer", "cores", "threads (--proactor_threads); cores is as many as it was given",
                _MANUAL, 1, 1024),
        bounded("connections", "integer", "10000", "client connections that it serves (--maxclients)", _MANUAL, 1,
                1_000_000),
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
