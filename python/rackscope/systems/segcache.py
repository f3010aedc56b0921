"""Segcache of Pelikan: memcached's protocol over segments of items that expire together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from rackscope.errors import SystemUnderTestError
from rackscope.systems.account import Account
from rackscope.systems.base import Endpoint, Knob, Launch
from rackscope.systems.ports import choose_port, give_to, network_of
from rackscope.systems.server import ServerSystem
from rackscope.systems.text_socket import Dialect, converse
from rackscope.systems.tools import Tool

_MANUAL = "config/segcache.toml of Pelikan"
_MEBIBYTE = 1024 * 1024
_CONFIGURATION = "segcache.toml"


def _tool(program: str) -> Tool:
    return Tool(
        name="segcache",
        program=program,
        version_pattern=r"segcache\S* v?(\d\S*)",
        description="in-memory cache, segments of items that expire together",
    )


#: As it is called now, and as it was.
_PROGRAMS = (_tool("pelikan-segcache"), _tool("pelikan_segcache_rs"), _tool("segcache"))


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
    operations = frozenset({"read", "update", "insert", "read_modify_write"})
    endpoint_kinds = ("tcp",)
    usual_port = 12321
    programs = _PROGRAMS
    dialect = SegcacheDialect()
    data_folder = "segcache-data"
    knobs = (
        Knob(
            "memory", "memory", "1GiB", None, "memory for items (heap_size)", _MANUAL, minimum=8 * _MEBIBYTE,
        ),
        Knob(
            "threads", "integer", "cores", None, "worker threads; cores is as many as it was given", _MANUAL,
            minimum=1, maximum=1024,
        ),
        Knob(
            "hash_power", "integer", "22", None, "its hash table has 2^N slots for items", _MANUAL,
            minimum=12, maximum=36,
        ),
        Knob(
            "segment_size", "size", "1MiB", None, "bytes of a segment, which the largest item must fit into", _MANUAL,
            minimum=4096, maximum=1024 * _MEBIBYTE,
        ),
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
    """Its configuration file."""
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
