"""Our own cache engine, after MICA: what the hardware can do when the software is not in the way."""

from __future__ import annotations

from collections.abc import Mapping

from rackscope.systems.account import Account
from rackscope.systems.base import Acquired, Endpoint, Knob, Launch, ProgressText, RunningSystem, System
from rackscope.systems.built_in import acquire_built_in
from rackscope.systems.server import Server
from rackscope.systems.text_socket import CacheDialect
from rackscope.systems.tools import Tool

_TABLE_2 = "as for memcached (Awasthi 2015, Table 2)"
_MEBIBYTE = 1024 * 1024
#: Connections of rackscope's own (readiness, statistics), beyond those of the client.
_OWN_CONNECTIONS = 8
#: Descriptors beyond connections: listening sockets, epoll, pipes to the threads.
_OWN_FILES = 256

_PROGRAM = Tool(
    name="cache",
    program="rackscope-cached",
    packages=(),
    version_arguments=("--version",),
    version_pattern=r"rackscope-cached (\S+)",
    description="the embedded cache engine",
)


class Cache(System):
    """The embedded cache engine; its knobs are named as memcached's, so that the two compare."""

    name = "cache"
    description = "the embedded cache engine, partitions owned by cores"
    protocols = ("memcached_text", "memcached_meta")
    #: No scans: it keeps no order among keys, so YCSB-E cannot be asked of it.
    operations = frozenset({"read", "update", "insert", "read_modify_write"})
    usual_port = 11211
    knobs = (
        Knob(
            "memory", "memory", "4GiB", "47%", "memory for items (-m); a size or a share of what is available",
            _TABLE_2, minimum=8 * _MEBIBYTE,
        ),
        Knob(
            "threads", "integer", "cores", None, "worker threads (-t); cores is as many as it was given",
            "a partition is owned by a core", minimum=1, maximum=256,
        ),
        Knob(
            "access", "choice", "crcw", None,
            "who may touch an item: its worker alone (erew), all may read (crew), all may read and write (crcw)",
            "Lim 2014, section 3.1.1", choices=("erew", "crew", "crcw"),
        ),
        Knob(
            "connections", "integer", "4096", None, "client connections that it serves (-c)", _TABLE_2,
            minimum=1, maximum=1_000_000,
        ),
        Knob("item_size_max", "size", "1MiB", None, "largest item (-I); at most half of a thread's share",
             "as for memcached", minimum=1024),
    )  # fmt: skip

    def acquire(self, *, fetch: bool, progress: ProgressText | None = None) -> Acquired:
        del fetch, progress
        return acquire_built_in(_PROGRAM)

    def connection_limit(self, knobs: Mapping[str, str]) -> int | None:
        return int(knobs["connections"])

    def start(self, acquired: Acquired, launch: Launch) -> RunningSystem:
        def arguments(endpoint: Endpoint, account: Account | None) -> list[str]:
            del account
            return cache_arguments(launch, endpoint)

        open_files = int(launch.knobs["connections"]) + _OWN_CONNECTIONS + _OWN_FILES
        # Where each worker has keys of its own, it has a port of its own.
        threads = int(launch.knobs["threads"])
        own_ports = threads if threads > 1 and launch.knobs["access"] != "crcw" else 0
        server = Server(self.name, arguments, CacheDialect(), open_files, following_ports=own_ports)
        return server.start(acquired, launch)


def cache_arguments(launch: Launch, endpoint: Endpoint) -> list[str]:
    """The command line, without the program."""
    knobs = launch.knobs
    arguments = ["-l", endpoint.host, "-p", str(endpoint.port)] if endpoint.kind == "tcp" else ["-s", endpoint.path]
    arguments += [
        "-m", str(int(knobs["memory"]) // _MEBIBYTE),
        "-t", knobs["threads"],
        "--access", knobs["access"],
        "-c", str(int(knobs["connections"]) + _OWN_CONNECTIONS),
        "-I", knobs["item_size_max"],
    ]  # fmt: skip
    return [*arguments, "--cores", ",".join(map(str, launch.cores))] if launch.cores else arguments


SYSTEM = Cache()
