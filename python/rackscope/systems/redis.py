"""Redis: data structures in memory, one thread for commands."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rackscope.errors import UsageError
from rackscope.systems.account import Account
from rackscope.systems.base import DATA_STRUCTURES, Endpoint, Knob, Launch, bounded
from rackscope.systems.server import ServerSystem
from rackscope.systems.text_socket import RedisDialect

_PAPER = "Awasthi 2015, section 4.2"
_MANUAL = "redis.conf of Redis 7"
#: Files that Redis keeps for itself (CONFIG_MIN_RESERVED_FDS); it lowers maxclients when it has not that many more.
_RESERVED_FILES = 32


#: Redis counts these sizes downwards from -1.
_LIST_NODE_SIZES = {"4KiB": "-1", "8KiB": "-2", "16KiB": "-3", "32KiB": "-4", "64KiB": "-5"}
_SAVE_POINTS = re.compile(r"(?:\d+ \d+(?: \d+ \d+)*)?")
#: Options that take a knob's value as it is. The names with "ziplist" serve Redis 6 and, as aliases, later ones.
_PLAIN = {
    "maxmemory": "memory",
    "maxmemory-policy": "eviction",
    "io-threads": "io_threads",
    "io-threads-do-reads": "io_threads_read",
    "appendonly": "append_only",
    "appendfsync": "append_sync",
    "zset-max-ziplist-entries": "sorted_set_compact_entries",
    "hash-max-ziplist-entries": "hash_compact_entries",
    "set-max-intset-entries": "set_integer_entries",
    "activerehashing": "rehash_actively",
    "hz": "ticks_per_second",
    "tcp-backlog": "backlog",
}


class Redis(ServerSystem):
    """Redis with its own defaults, save that nothing is written to disk unless asked for.

    The paper needed four instances to saturate its server: one process runs commands on one thread. Several
    instances at once are not offered here; ``io_threads`` spreads the sockets' work alone.
    """

    name = "redis"
    description = "in-memory data structures, one thread for commands"
    protocols = ("resp",)
    #: No scans in YCSB's meaning: keys have no order, and SCAN walks them in none.
    operations = DATA_STRUCTURES
    usual_port = 6379
    programs = ("redis-server",)
    version_pattern = r"v=(\S+)"
    #: The program is a link to redis-check-rdb, which redis-tools holds.
    packages: tuple[str, ...] = ("redis-server", "redis-tools")
    dialect = RedisDialect()
    #: It looks for a snapshot where it starts, so that is a folder that holds none.
    data_folder = "redis-data"
    knobs = (
        bounded("open_files", "integer", "10040", "files and sockets that it may open (ulimit -n)",
                f"{_PAPER}: default configuration, open sockets raised to 15000", 64, 1_000_000, tuned="15000"),
        bounded("connections", "integer", "10000", "client connections that it serves (maxclients)", _MANUAL, 1,
                900_000),
        bounded("memory", "memory", "0", "memory for data (maxmemory), a size or a percentage; 0: no limit", _MANUAL,
                0),
        Knob("eviction", "choice", "noeviction", None, "what is evicted when memory is full (maxmemory-policy)",
             _MANUAL,
             choices=("noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru",
                      "volatile-lfu", "volatile-random", "volatile-ttl")),
        bounded("io_threads", "integer", "1", "threads that write to sockets (io-threads); commands stay on one",
                f"{_MANUAL}. {_PAPER} took four instances to saturate a server; several are not offered here", 1, 128),
        Knob("io_threads_read", "flag", "no", None, "io_threads read and parse too (io-threads-do-reads)", _MANUAL),
        Knob("append_only", "flag", "no", None, "log every write to a file (appendonly)", _MANUAL),
        Knob("append_sync", "choice", "everysec", None, "when that log reaches the disk (appendfsync)", _MANUAL,
             choices=("always", "everysec", "no")),
        Knob("save", "text", "", None,
             "when to write a snapshot, as pairs of seconds and changes: '3600 1 300 100'; empty is never",
             "redis.conf saves by default; a cache under measurement does not"),
        Knob("list_node_size", "choice", "8KiB", None, "largest node of a list (list-max-ziplist-size)", _MANUAL,
             choices=tuple(_LIST_NODE_SIZES)),
        bounded("sorted_set_compact_entries", "integer", "128",
                "sorted sets up to this many entries are kept compact (zset-max-ziplist-entries)", _MANUAL, 0,
                1_000_000),
        bounded("hash_compact_entries", "integer", "512",
                "hashes up to this many entries are kept compact (hash-max-ziplist-entries)", _MANUAL, 0, 1_000_000),
        bounded("set_integer_entries", "integer", "512",
                "sets of integers up to this many are kept compact (set-max-intset-entries)", _MANUAL, 0, 1_000_000),
        Knob("rehash_actively", "flag", "yes", None, "spend 1 ms in 100 on growing tables (activerehashing)", _MANUAL),
        bounded("ticks_per_second", "integer", "10", "how often background work runs (hz)", _MANUAL, 1, 500),
        bounded("backlog", "integer", "511", "connections that may wait to be accepted (tcp-backlog)", _MANUAL, 1,
                65535),
    )  # fmt: skip

    def connection_limit(self, knobs: Mapping[str, str]) -> int | None:
        return min(int(knobs["connections"]), int(knobs["open_files"]) - _RESERVED_FILES - self.own_connections)

    def check_knobs(self, knobs: Mapping[str, str]) -> None:
        if not _SAVE_POINTS.fullmatch(knobs["save"]):
            raise UsageError(f"redis cannot save at '{knobs['save']}'", "Write pairs of seconds and changes: '3600 1'.")

    def open_files(self, knobs: Mapping[str, str]) -> int | None:
        return int(knobs["open_files"])

    def arguments(self, launch: Launch, endpoint: Endpoint, account: Account | None = None) -> list[str]:
        del account
        knobs = launch.knobs
        if endpoint.kind == "tcp":
            # In protected mode it serves loopback alone. It is off only in a network namespace of the system's own.
            protected = "yes" if launch.network_namespace is None else "no"
            arguments = ["--bind", endpoint.host, "--port", str(endpoint.port), "--protected-mode", protected]
        else:
            arguments = ["--port", "0", "--unixsocket", endpoint.path, "--unixsocketperm", "700"]
        arguments += ["--daemonize", "no", "--save", knobs["save"]]
        arguments += ["--maxclients", self.served_connections(knobs)]
        arguments += ["--list-max-ziplist-size", _LIST_NODE_SIZES[knobs["list_node_size"]]]
        for option, knob in _PLAIN.items():
            arguments += [f"--{option}", knobs[knob]]
        return arguments


SYSTEM = Redis()
