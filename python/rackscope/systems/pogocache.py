"""Pogocache: a cache that speaks memcached's protocol, Redis's and others on one port."""

from __future__ import annotations

from rackscope.systems.account import Account
from rackscope.systems.base import KEY_VALUE, Endpoint, Launch, bounded
from rackscope.systems.server import ServerSystem
from rackscope.systems.text_socket import MemcachedDialect

_MANUAL = "pogocache --help, 1.3"
_MEBIBYTE = 1024 * 1024


class Pogocache(ServerSystem):
    """Pogocache as it comes, on loopback."""

    name = "pogocache"
    description = "in-memory cache of many protocols, found on PATH"
    protocols = ("memcached_text", "resp")
    operations = KEY_VALUE
    usual_port = 9401
    programs = ("pogocache",)
    version_pattern = r"pogocache v?(\S+)"
    dialect = MemcachedDialect()
    knobs = (
        bounded("memory", "memory", "80%", "memory for data (--maxmemory); a size or a percentage", _MANUAL,
                8 * _MEBIBYTE),
        bounded("threads", "integer", "cores", "worker threads (--threads); cores is as many as it was given", _MANUAL,
                1, 1024),
        bounded("connections", "integer", "1024", "client connections that it serves (--maxconns)", _MANUAL, 1,
                1_000_000),
    )  # fmt: skip

    def arguments(self, launch: Launch, endpoint: Endpoint, account: Account | None = None) -> list[str]:
        del account
        knobs = launch.knobs
        # Port 0 is no port: without it there is a TCP socket beside the unix one.
        tcp = ["-h", endpoint.host, "-p", str(endpoint.port)]
        return [
            *(tcp if endpoint.kind == "tcp" else ["-p", "0", "-s", endpoint.path]),
            "--threads", knobs["threads"],
            "--maxmemory", f"{int(knobs['memory']) // _MEBIBYTE}M",
            "--maxconns", self.served_connections(knobs),
        ]  # fmt: skip


SYSTEM = Pogocache()
