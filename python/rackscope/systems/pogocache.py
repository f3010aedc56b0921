"""Pogocache: a cache that speaks memcached's protocol, Redis's and others on one port."""

from __future__ import annotations

from collections.abc import Mapping

from rackscope.systems.account import Account
from rackscope.systems.acquire import acquire_from_path
from rackscope.systems.base import Acquired, Endpoint, Knob, Launch, ProgressText, RunningSystem, System
from rackscope.systems.server import Server
from rackscope.systems.text_socket import MemcachedDialect
from rackscope.systems.tools import Tool

_MANUAL = "pogocache --help, 1.3"
_MEBIBYTE = 1024 * 1024
#: Connections of rackscope's own (readiness, statistics), beyond those of the client.
_OWN_CONNECTIONS = 8
#: Descriptors beyond connections: listening sockets, event queues.
_OWN_FILES = 256

_PROGRAM = Tool(
    name="pogocache",
    program="pogocache",
    packages=(),
    version_arguments=("--version",),
    version_pattern=r"pogocache v?(\S+)",
    description="in-memory cache of many protocols",
)


class Pogocache(System):
    """Pogocache as it comes, on loopback."""

    name = "pogocache"
    description = "in-memory cache of many protocols, found on PATH"
    protocols = ("memcached_text", "resp")
    operations = frozenset({"read", "update", "insert", "read_modify_write"})
    usual_port = 9401
    knobs = (
        Knob(
            "memory", "memory", "80%", None, "memory for data (--maxmemory); a size or a percentage", _MANUAL,
            minimum=8 * _MEBIBYTE,
        ),
        Knob(
            "threads", "integer", "cores", None, "worker threads (--threads); cores is as many as it was given",
            _MANUAL, minimum=1, maximum=1024,
        ),
        Knob(
            "connections", "integer", "1024", None, "client connections that it serves (--maxconns)", _MANUAL,
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
            return pogocache_arguments(launch.knobs, endpoint)

        open_files = int(launch.knobs["connections"]) + _OWN_CONNECTIONS + _OWN_FILES
        return Server(self.name, arguments, MemcachedDialect(), open_files).start(acquired, launch)


def pogocache_arguments(knobs: Mapping[str, str], endpoint: Endpoint) -> list[str]:
    """The command line, without the program."""
    # Port 0 is no port: without it there is a TCP socket beside the unix one.
    tcp = ["-h", endpoint.host, "-p", str(endpoint.port)]
    return [
        *(tcp if endpoint.kind == "tcp" else ["-p", "0", "-s", endpoint.path]),
        "--threads", knobs["threads"],
        "--maxmemory", f"{int(knobs['memory']) // _MEBIBYTE}M",
        "--maxconns", str(int(knobs["connections"]) + _OWN_CONNECTIONS),
    ]  # fmt: skip


SYSTEM = Pogocache()
