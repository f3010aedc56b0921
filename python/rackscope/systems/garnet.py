"""Garnet: Redis's protocol over a log-structured store, in .NET."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from rackscope.systems.account import Account
from rackscope.systems.base import Acquired, Endpoint, Knob, Launch, ProgressText
from rackscope.systems.server import ServerSystem
from rackscope.systems.text_socket import RedisDialect
from rackscope.systems.tools import Tool

_MANUAL = "garnet-server --help"
_MEBIBYTE = 1024 * 1024


def _tool(program: str) -> Tool:
    return Tool(
        name="garnet",
        program=program,
        version_pattern=r"(\d+\.\d+[\w.]*)",
        description="in-memory store of Microsoft Research",
    )


#: As a .NET tool, and as its build calls it.
_PROGRAMS = (_tool("garnet-server"), _tool("GarnetServer"))


class Garnet(ServerSystem):
    """Garnet on loopback. Its thread pool is as large as .NET makes it for the cores that it was given.

    Beside a unix socket it would keep a TCP port open, so it is offered on TCP alone.
    """

    name = "garnet"
    description = "in-memory store of Microsoft Research, found on PATH"
    protocols = ("resp",)
    operations = frozenset({"read", "update", "insert", "read_modify_write"})
    endpoint_kinds = ("tcp",)
    usual_port = 6379
    programs = _PROGRAMS
    dialect = RedisDialect()
    data_folder = "garnet-data"
    knobs = (
        Knob(
            "memory", "memory", "1GiB", None, "memory of its log (--memory)", _MANUAL, minimum=8 * _MEBIBYTE,
        ),
        Knob(
            "index_memory", "size", "128MiB", None, "memory that its hash index starts with (--index)", _MANUAL,
            minimum=_MEBIBYTE,
        ),
    )  # fmt: skip

    def acquire(self, *, fetch: bool, progress: ProgressText | None = None) -> Acquired:
        acquired = super().acquire(fetch=fetch, progress=progress)
        # Where its runtime is, when that is in no usual folder.
        runtime = os.environ.get("DOTNET_ROOT")
        return replace(acquired, environment={"DOTNET_ROOT": runtime}) if runtime else acquired

    def open_files(self, knobs: Mapping[str, str]) -> int | None:
        del knobs
        # Connections are not limited; descriptors are.
        return 20_000

    def arguments(self, launch: Launch, endpoint: Endpoint, account: Account | None = None) -> list[str]:
        del account
        return [
            "--bind", endpoint.host,
            "--port", str(endpoint.port),
            "--memory", f"{int(launch.knobs['memory']) // _MEBIBYTE}m",
            "--index", f"{int(launch.knobs['index_memory']) // _MEBIBYTE}m",
        ]  # fmt: skip


SYSTEM = Garnet()
