"""A server that speaks a protocol over a socket: found a place to listen, started, polled until it responds."""

from __future__ import annotations

import os
import shutil
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rackscope.errors import SystemUnderTestError, UsageError
from rackscope.systems.account import Account, account_for_systems
from rackscope.systems.acquire import acquire_from_path
from rackscope.systems.base import Acquired, Endpoint, Launch, ProgressText, RunningSystem, System
from rackscope.systems.ports import (
    choose_port,
    give_to,
    is_free,
    make_socket_folder,
    network_of,
    require_free,
)
from rackscope.systems.process import Command, KeptProcess
from rackscope.systems.text_socket import Dialect
from rackscope.systems.tools import Tool

#: Seconds until a server that was started must respond.
_READY_SECONDS = 30.0
#: How often another port is tried when the one that was free has been taken.
_PORT_ATTEMPTS = 5
_SHORTEST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class Server:
    """One kind of server: how it is told what to do, and how it is talked to.

    ``arguments`` builds the command line for an endpoint and the account it will run as. ``data_folder`` names a
    folder to make and start it in, for one that reads or writes files; it is removed in the end.
    """

    name: str
    arguments: Callable[[Endpoint, Account | None], Sequence[str]]
    dialect: Dialect
    open_files: int | None = None
    data_folder: str | None = None
    #: Ports that it takes behind the one that it is given.
    following_ports: int = 0
    #: Whether it is started as root and gives that up by itself (its arguments say as whom it goes on).
    starts_as_root: bool = False

    def start(self, acquired: Acquired, launch: Launch) -> RunningServer:
        """Start it and wait until it responds: only then is it sure that a chosen port is really its own.

        Raises SystemUnderTestError or UsageError.
        """
        account = account_for_systems()
        network = network_of(launch)
        if launch.endpoint_kind == "unix":
            if launch.port is not None:
                raise UsageError(f"{self.name} on a unix socket has no port", "Leave the port out.")
            socket_folder = make_socket_folder(f"{self.name}.sock", account)
            endpoint = Endpoint("unix", path=str(socket_folder / f"{self.name}.sock"))
            return self._start_at(endpoint, acquired, launch, account, [socket_folder])
        if launch.port is not None:
            require_free(launch.port, self.name, network)
            return self._start_at(Endpoint("tcp", network.address, launch.port), acquired, launch, account, [])
        for _ in range(_PORT_ATTEMPTS - 1):
            endpoint = Endpoint("tcp", network.address, choose_port(network, self.following_ports))
            try:
                return self._start_at(endpoint, acquired, launch, account, [])
            except SystemUnderTestError:
                taken = range(endpoint.port, endpoint.port + 1 + self.following_ports)
                if all(is_free(port, network) for port in taken):
                    raise
        return self._start_at(
            Endpoint("tcp", network.address, choose_port(network, self.following_ports)), acquired, launch, account, []
        )

    def _start_at(
        self,
        endpoint: Endpoint,
        acquired: Acquired,
        launch: Launch,
        account: Account | None,
        scratch: list[Path],
    ) -> RunningServer:
        started = time.monotonic()
        try:
            folder = self._working_folder(launch, account, scratch)
            arguments = tuple(self.arguments(endpoint, account))
            process = KeptProcess(
                Command(
                    name=self.name,
                    program=acquired.program,
                    arguments=arguments,
                    folder=folder,
                    log=launch.folder / f"{self.name}.log",
                    cores=launch.cores,
                    account=None if self.starts_as_root else account,
                    environment=acquired.environment,
                    open_files=self.open_files,
                    scratch=scratch,
                    control_groups=launch.control_groups,
                    network_namespace=launch.network_namespace,
                )
            )
        except BaseException:
            for path in scratch:
                shutil.rmtree(path, ignore_errors=True)
            raise
        server = RunningServer(self, process, endpoint, (str(acquired.program), *arguments), started)
        try:
            server.wait_ready(_READY_SECONDS)
        except BaseException:
            server.stop()
            raise
        return server

    def _working_folder(self, launch: Launch, account: Account | None, scratch: list[Path]) -> Path:
        if self.data_folder is None:
            return launch.folder
        folder = launch.folder / self.data_folder
        try:
            folder.mkdir(parents=True)
            scratch.append(folder)
            give_to(folder, account)
        except OSError as error:
            raise SystemUnderTestError(
                f"{self.name} cannot have {folder} for its data: {error.strerror}", "Choose another folder."
            ) from error
        return folder


class ServerSystem(System):
    """A system that is one server: subclasses say how its program is found and what it is told."""

    #: What its program may be called, looked for on PATH; ``acquire`` may find it in another way.
    programs: tuple[Tool, ...] = ()
    dialect: Dialect
    data_folder: str | None = None
    #: Connections of rackscope's own (readiness, statistics), beyond those of the client.
    own_connections = 8
    #: Descriptors beyond connections: listening sockets, event queues, files.
    own_files = 256

    def acquire(self, *, fetch: bool, progress: ProgressText | None = None) -> Acquired:
        del fetch
        return acquire_from_path(*self.programs, progress=progress)

    def connection_limit(self, knobs: Mapping[str, str]) -> int | None:
        return int(knobs["connections"]) if "connections" in knobs else None

    def open_files(self, knobs: Mapping[str, str]) -> int | None:
        """How many descriptors it may need."""
        return int(knobs["connections"]) + self.own_connections + self.own_files

    def served_connections(self, knobs: Mapping[str, str]) -> str:
        """What the server is told: the client's connections and rackscope's own."""
        return str(int(knobs["connections"]) + self.own_connections)

    @abstractmethod
    def arguments(self, launch: Launch, endpoint: Endpoint, account: Account | None = None) -> Sequence[str]:
        """The command line, without the program; ``account`` is who it will run as."""

    def server(self, launch: Launch) -> Server:
        """How it is started."""
        arguments = partial(self.arguments, launch)
        return Server(self.name, arguments, self.dialect, self.open_files(launch.knobs), self.data_folder)

    def start(self, acquired: Acquired, launch: Launch) -> RunningSystem:
        return self.server(launch).start(acquired, launch)


class RunningServer(RunningSystem):
    """A server under the keeper."""

    def __init__(
        self, server: Server, process: KeptProcess, endpoint: Endpoint, command: tuple[str, ...], started: float
    ) -> None:
        self.name = server.name
        self.pid = process.pid
        self.endpoint = endpoint
        self.command = command
        self.log = process.log
        self._dialect = server.dialect
        self._process = process
        self._started = started
        self._ready_seconds: float | None = None

    def wait_ready(self, timeout_seconds: float = _READY_SECONDS) -> float:
        if self._ready_seconds is None:
            self._await_response(timeout_seconds)
            self._ready_seconds = time.monotonic() - self._started
        self.check_alive()
        return self._ready_seconds

    def check_alive(self) -> None:
        if self._process.exit_reason() is not None:
            raise self._process.death("while it was needed")

    def statistics(self) -> Mapping[str, str]:
        try:
            return self._dialect.statistics(self.endpoint)
        except OSError:
            return {}

    @property
    def target(self) -> Mapping[str, Any]:
        try:
            return self._dialect.target(self.endpoint)
        except OSError as error:
            raise SystemUnderTestError(
                f"{self.name} does not tell where its workers listen: {error}", f"Its log is {self.log}."
            ) from error

    def stop(self) -> None:
        self._process.stop()

    def _await_response(self, timeout_seconds: float) -> None:
        deadline = time.monotonic() + timeout_seconds
        pause = _SHORTEST_PAUSE_SECONDS
        while True:
            if self._process.exit_reason() is not None:
                raise self._process.death("while starting")
            if self._responds():
                return
            if time.monotonic() >= deadline:
                tail = self._process.log_tail()
                raise SystemUnderTestError(
                    f"{self.name} did not respond on {self.endpoint.describe()} within {timeout_seconds:g} s"
                    + (f"; it said: {tail}" if tail else ""),
                    f"Its log is {self.log}.",
                )
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)

    def _responds(self) -> bool:
        """Whether it serves, and it is this process that does: another could have taken the port."""
        try:
            if not self._dialect.is_ready(self.endpoint):
                return False
            told = self._dialect.statistics(self.endpoint).get(self._dialect.process_id_counter)
        except OSError:
            return False
        if told is not None and told != str(self.pid):
            raise SystemUnderTestError(
                f"{self.endpoint.describe()} is answered by process {told}, not by the {self.name} just started",
                "Choose another port, or leave it out.",
            )
        return True


def needs_root_flag(account: Account | None) -> bool:
    """Whether the server will see itself as root although it is not: in a user namespace that maps no one else."""
    return account is None and os.geteuid() == 0
