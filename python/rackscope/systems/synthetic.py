"""A server whose limit is known by construction: for checking rackscope itself, not for measuring anything."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rackscope.errors import UsageError
from rackscope.systems.account import Account
from rackscope.systems.base import KEY_VALUE, Endpoint, Knob, Launch, bounded
from rackscope.systems.server import ServerSystem
from rackscope.systems.text_socket import MemcachedDialect

_MEBIBYTE = 1024 * 1024
_SOURCE = "rackscope's own"
#: The folder, inside the system's own, where the server makes its files; it is removed in the end.
DATA_FOLDER = "synthetic-data"

_KINDS = (
    "cpu:MICROSECONDS, memory-stream:BYTES, memory-stream-regulated:BYTES, page-touch:PAGES, disk-sequential:BYTES, "
    "disk-random:BYTES, disk-write:BYTES, lock:MICROSECONDS, sleep:MICROSECONDS, none, or several joined by +"
)
_SIZE = r"\d+[kmg]?"
_STEP = (
    rf"(?:(?:cpu|page-touch|lock|sleep):\d+|(?:memory-stream|disk-sequential|disk-random|disk-write):{_SIZE}"
    rf"|memory-stream-regulated:{_SIZE}(?:@{_SIZE})?)"
)
#: The program knows amounts and bounds; what is refused here is what it would end on at once.
_WORK = re.compile(rf"none|{_STEP}(?:\+{_STEP}){{0,15}}", re.IGNORECASE)


class Synthetic(ServerSystem):
    """Does a known kind of work for each request and stores nothing."""

    name = "synthetic"
    description = "a known amount of work for each request; for checking rackscope itself"
    protocols = ("memcached_text",)
    operations = KEY_VALUE
    usual_port = 11211
    built_in = True
    programs = ("rackscope-synthetic",)
    version_pattern = r"rackscope-synthetic (\S+)"
    dialect = MemcachedDialect()
    data_folder = DATA_FOLDER
    own_files = 64
    knobs = (
        Knob("on_read", "text", "cpu:20", None, f"what a read does: {_KINDS}", _SOURCE),
        Knob("on_update", "text", "cpu:20", None, "what an update does, as on_read", _SOURCE),
        bounded("value_size", "size", "1000", "bytes of the value that a read is answered with; as the workload's",
                _SOURCE, 1, 32 * _MEBIBYTE),
        bounded("file_size", "size", "256MiB", "bytes of each file that work reads, writes or maps", _SOURCE, _MEBIBYTE,
                1024 * _MEBIBYTE),
        bounded("channel_rate", "size", "1GiB", "bytes a second of the regulated memory channel", _SOURCE, 1024, 2**50),
        bounded("connections", "integer", "1024", "client connections that it serves, each by a thread", _SOURCE, 1,
                10_000),
    )  # fmt: skip

    def check_knobs(self, knobs: Mapping[str, str]) -> None:
        for name in ("on_read", "on_update"):
            if not _WORK.fullmatch(knobs[name]):
                raise UsageError(f"invalid {name}: got '{knobs[name]}'", f"Expected {_KINDS}.")

    def arguments(self, launch: Launch, endpoint: Endpoint, account: Account | None = None) -> list[str]:
        del account
        knobs = launch.knobs
        arguments = ["-l", endpoint.host, "-p", str(endpoint.port)] if endpoint.kind == "tcp" else ["-s", endpoint.path]
        work = [*_regulated(knobs["on_read"]), *_regulated(knobs["on_update"])]
        # A rate that is part of the work is the channel's; two different ones are told by the program.
        channel = [] if any("@" in step for step in work) else ["--channel-bytes-per-second", knobs["channel_rate"]]
        return [
            *arguments,
            "-c", self.served_connections(knobs),
            "--on-read", knobs["on_read"],
            "--on-update", knobs["on_update"],
            "--value-bytes", knobs["value_size"],
            "--folder", ".",
            "--file-bytes", knobs["file_size"],
            *channel,
        ]  # fmt: skip


def _regulated(work: str) -> list[str]:
    return [step for step in work.split("+") if step.startswith("memory-stream-regulated")]


SYSTEM = Synthetic()
