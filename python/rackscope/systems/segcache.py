"""Segcache of Pelikan: memcached's protocol over segments of items that expire together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rackscope.errors import SystemUnderTestError
from rackscope.systems.account import Account
from rackscope.systems.base import KEY_VALUE, Endpoint, Launch, bounded
from rackscope.systems.ports import choose_port, give_to, network_of
from rackscope.systems.server import ServerSystem
from rackscope.systems.text_socket import Dialect, converse

_MANUAL = "config/segcache.toml of Pelikan"
_MEBIBYTE = 1024 * 1024
_CONFIGURATION = "segcache.toml"


class SegcacheDialect(Dialect):
    """Its clients' port knows ``get``, and no ``stats``; ``version`` only in late versions."""

    process_id_counter = "pid"

    def is_ready(self, endpoint: Endpoint) -> bool:
        return converse(endpoint, b"get ready\r\n", re.compile(rb"\r\n")).startswith(b"END")

    def statistics(self, endpoint: Endpoint) -> Mapping[str, str]:
        del endpoint
        return {}


class Segcache(ServerSystem):
    """Segcache on loopback; it has no unix sockets. Its administrative port is a free one, on loopback, too."""

    name = "segcache"
    description = "in-memory cache, segments of items that expire together, found on PATH"
    protocols = ("memcached_text",)
    operations = KEY_VALUE
    endpoint_kinds = ("tcp",)
    usual_port = 12321
    #: As it is called now, and as it was.
    programs = ("pelikan-segcache", "pelikan_segcache_rs", "segcache")
    version_pattern = r"segcache\S* v?(\d\S*)"
    dialect = SegcacheDialect()
    data_folder = "segcache-data"
    knobs = (
        bounded("memory", "memory", "1GiB", "memory for items (heap_size)", _MANUAL, 8 * _MEBIBYTE),
        bounded("threads", "integer", "cores", "worker threads; cores is as many as it was given", _MANUAL, 1, 1024),
        bounded("hash_power", "integer", "22", "its hash table has 2^N slots for items", _MANUAL, 12, 36),
        bounded("segment_size", "size", "1MiB", "bytes of a segment, which the largest item must fit into", _MANUAL,
                4096, 1024 * _MEBIBYTE),
    )  # fmt: skip

    def open_files(self, knobs: Mapping[str, str]) -> int | None:
        del knobs
        return 20_000

    def arguments(self, launch: Launch, endpoint: Endpoint, account: Account | None = None) -> list[str]:
        administration = choose_port(network_of(launch))
        text = segcache_configuration(launch.knobs, endpoint, administration)
        # Where it is started, so that whoever it runs as can read it.
        _write(launch.folder / self.data_folder / _CONFIGURATION, text, account)
        return [_CONFIGURATION]


def segcache_configuration(knobs: Mapping[str, str], endpoint: Endpoint, administration_port: int) -> str:
    return f"""\
[admin]
host = "127.0.0.1"
port = "{administration_port}"

[server]
host = "{endpoint.host}"
port = "{endpoint.port}"

[worker]
threads = {knobs["threads"]}

[seg]
hash_power = {knobs["hash_power"]}
heap_size = {knobs["memory"]}
segment_size = {knobs["segment_size"]}
eviction = "Merge"

[time]
time_type = "Memcache"
"""


def _write(file: Path, text: str, account: Account | None) -> None:
    try:
        file.write_text(text, encoding="utf-8")
        give_to(file, account)
    except OSError as error:
        raise SystemUnderTestError(f"segcache cannot have {file}: {error.strerror}", "Is the disk full?") from error


SYSTEM = Segcache()
