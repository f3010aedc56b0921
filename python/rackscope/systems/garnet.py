"""Garnet: Redis's protocol over a log-structured store, in .NET."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from rackscope.systems.account import Account
from rackscope.systems.base import KEY_VALUE, Acquired, Endpoint, Launch, ProgressText, bounded
from rackscope.systems.server import ServerSystem
from rackscope.systems.text_socket import RedisDialect

_MANUAL = "garnet-server --help"
_MEBIBYTE = 1024 * 1024


class Garnet(ServerSystem):
    """Garnet on TCP alone, as it keeps a port open beside a unix socket; .NET sizes its thread pool by the cores."""

    name = "garnet"
    description = "in-memory store of Microsoft Research, found on PATH"
    protocols = ("resp",)
    operations = KEY_VALUE
    endpoint_kinds = ("tcp",)
    usual_port = 6379
    #: As a .NET tool, and as its build calls it.
    programs = ("garnet-server", "GarnetServer")
    version_pattern = r"(\d+\.\d+[\w.]*)"
    dialect = RedisDialect()
    data_folder = "garnet-data"
    knobs = (
        bounded("memory", "memory", "1GiB", "memory of its log (--memory)", _MANUAL, 8 * _MEBIBYTE),
        bounded("index_memory", "size", "128MiB", "memory that its hash index starts with (--index)", _MANUAL,
                _MEBIBYTE),
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
