"""memcached: the cache that everyone compares with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rackscope.errors import UsageError
from rackscope.systems.account import Account
from rackscope.systems.base import KEY_VALUE, Acquired, Endpoint, Knob, Launch, RunningSystem, bounded
from rackscope.systems.server import ServerSystem, needs_root_flag
from rackscope.systems.text_socket import Dialect, MemcachedDialect

_TABLE_2 = "Awasthi 2015, Table 2"
_MANUAL = "memcached -h"
_MEBIBYTE = 1024 * 1024
#: What -c counts besides the client's connections: rackscope's own (readiness, statistics), and the descriptors that
#: memcached reserves (``reserved_fds``: five a thread, and a few).
_OWN_CONNECTIONS = 32
_OWN_CONNECTIONS_PER_THREAD = 8
#: Descriptors that -c does not count.
_OWN_FILES = 64


class Memcached(ServerSystem):
    """memcached with Table 2's knobs, and those that papers about caches vary most."""

    name = "memcached"
    description = "in-memory cache, many threads over one shared table"
    protocols = ("memcached_text", "memcached_meta")
    #: No scans: it keeps no order among keys, so YCSB-E cannot be asked of it.
    operations = KEY_VALUE
    usual_port = 11211
    programs = ("memcached",)
    version_pattern = r"memcached (\S+)"
    packages = ("memcached",)
    knobs = (
        bounded("memory", "memory", "4GiB", "memory for items (-m); a size or a percentage of what is available",
                f"{_TABLE_2}: 4 GB -> 60 GB of 128. Its text says over 90 %, which would leave a client here nothing",
                8 * _MEBIBYTE, tuned="47%"),
        bounded("threads", "integer", "4", "worker threads (-t); cores is as many as it was given",
                f"{_TABLE_2}: 4 -> 32, the hardware threads of that server", 1, 1024, tuned="cores"),
        bounded("connections", "integer", "200", "client connections that it serves (-c)", f"{_TABLE_2}: 200 -> 4096",
                1, 1_000_000, tuned="4096"),
        bounded("item_size_max", "size", "1MiB", "largest item (-I); at most half of the memory", _MANUAL, 1024,
                1024 * _MEBIBYTE),
        bounded("hash_power", "integer", "16", "the hash table starts with 2^N buckets (-o hashpower)", _MANUAL, 12,
                32),
        Knob("cas", "flag", "yes", None, "keep a compare-and-swap number with every item, 8 bytes (no: -C)", _MANUAL),
        Knob("evict", "flag", "yes", None, "evict old items when memory is full; no: refuse writes (-M)", _MANUAL),
        Knob("lru", "choice", "segmented", None, "segmented with a maintenance thread, or the flat one of 1.4", _MANUAL,
             choices=("segmented", "flat")),
        bounded("requests_per_event", "integer", "20",
                "requests taken from a connection before the next one's turn (-R); matters with pipelining", _MANUAL, 1,
                1_000_000),
        bounded("slab_chunk_min", "size", "48", "smallest slot for key, value and flags (-n)", _MANUAL, 1, 10240),
        bounded("backlog", "integer", "1024", "connections that may wait to be accepted (-b)", _MANUAL, 1, 65535),
        Knob("transport", "choice", "tcp", None, "how clients reach it: tcp (or the unix socket), or udp (-U)", _MANUAL,
             choices=("tcp", "udp")),
        Knob("large_pages", "flag", "no", None, "ask for large memory pages (-L)", _MANUAL),
    )  # fmt: skip

    def dialect_of(self, launch: Launch) -> Dialect:
        return _Dialect(launch.knobs["transport"])

    def start(self, acquired: Acquired, launch: Launch) -> RunningSystem:
        if launch.knobs["transport"] == "udp" and launch.endpoint_kind == "unix":
            raise UsageError("transport=udp does not go with a unix socket", "Leave --endpoint out.")
        return super().start(acquired, launch)

    def served_connections(self, knobs: Mapping[str, str]) -> str:
        own = _OWN_CONNECTIONS + _OWN_CONNECTIONS_PER_THREAD * int(knobs["threads"])
        return str(int(knobs["connections"]) + own)

    def open_files(self, knobs: Mapping[str, str]) -> int | None:
        return int(self.served_connections(knobs)) + _OWN_FILES

    def arguments(self, launch: Launch, endpoint: Endpoint, account: Account | None = None) -> list[str]:
        knobs = launch.knobs
        if endpoint.kind == "tcp":
            arguments = ["-l", endpoint.host, "-p", str(endpoint.port)]
            arguments += ["-U", str(endpoint.port) if knobs["transport"] == "udp" else "0"]
        else:
            arguments = ["-s", endpoint.path, "-a", "700"]
        arguments += [
            "-m", str(int(knobs["memory"]) // _MEBIBYTE),
            "-t", knobs["threads"],
            "-c", self.served_connections(knobs),
            "-I", knobs["item_size_max"],
            "-n", knobs["slab_chunk_min"],
            "-R", knobs["requests_per_event"],
            "-b", knobs["backlog"],
        ]  # fmt: skip
        extended = [f"hashpower={knobs['hash_power']}"]
        if knobs["lru"] == "flat":
            extended += ["no_lru_maintainer", "no_lru_crawler"]
        arguments += ["-o", ",".join(extended)]
        for knob, when, flag in (("cas", "no", "-C"), ("evict", "no", "-M"), ("large_pages", "yes", "-L")):
            if knobs[knob] == when:
                arguments.append(flag)
        # It refuses to run as root without being told as whom.
        return [*arguments, "-u", "root"] if needs_root_flag(account) else arguments


@dataclass(frozen=True)
class _Dialect(MemcachedDialect):
    """What rackscope asks itself goes over TCP, whatever clients use."""

    transport: str

    def target(self, endpoint: Endpoint) -> Mapping[str, Any]:
        if self.transport == "udp":
            return {"kind": "udp", "host": endpoint.host, "ports": [endpoint.port]}
        return endpoint.target()


SYSTEM = Memcached()
