"""A server that speaks a protocol over a socket: found a place to listen, started, polled until it responds."""

from __future__ import annotations

import os
import shutil
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rackscope.errors import SystemUnderTestError, UsageError
from rackscope.systems import ports
from rackscope.systems.account import Account, account_for_systems
from rackscope.systems.acquire import acquire_built_in, acquire_program
from rackscope.systems.base import Acquired, Endpoint, Launch, ProgressText, RunningSystem, System
from rackscope.systems.process import Command, KeptProcess
from rackscope.systems.text_socket import Dialect
from rackscope.systems.tools import Tool

#: Seconds until a server that was started must respond.
_READY_SECONDS = 30.0
#: How often another port is tried when the one that was free has been taken.
_PORT_ATTEMPTS = 5
_SHORTEST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.05


class ServerSystem(System):
    """A system that is one server: subclasses say how its program is found and what it is told."""

    #: What its program may be called, how it is asked for its version, and what finds that in the reply.
    programs: tuple[str, ...]
    version_option = "--version"
    version_pattern: str
    #: The distribution's packages that hold the first of ``programs``; empty: it must be on PATH.
    packages: tuple[str, ...] = ()
    #: Whether the program comes with rackscope.
    built_in = False
    dialect: Dialect
    #: A folder to make and start it in, for one that reads or writes files; it is removed in the end.
    data_folder: str | None = None
    #: Connections of rackscope's own (readiness, statistics), beyond those of the client.
    own_connections = 8
    #: Descriptors beyond connections: listening sockets, event queues, files.
    own_files = 256

    def acquire(self, *, fetch: bool, progress: ProgressText | None = None) -> Acquired:
        tried = [
            Tool(self.name, program, self.version_pattern, self.description, self.packages, self.version_option)
            for program in self.programs
        ]
        return acquire_built_in(tried[0]) if self.built_in else acquire_program(*tried, fetch=fetch, progress=progress)

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

    def dialect_of(self, launch: Launch) -> Dialect:
        """How it is talked to."""
        del launch
        return self.dialect

    def following_ports(self, launch: Launch) -> int:
        """How many ports it takes behind the one that it is given."""
        del launch
        return 0

    def starts_as_root(self, launch: Launch) -> bool:
        """Whether it is started as root and gives that up by itself (its arguments say as whom it goes on)."""
        del launch
        return False

    def start(self, acquired: Acquired, launch: Launch) -> RunningSystem:
        """Start it and wait until it responds: only then is it sure that a chosen port is really its own."""
        account = account_for_systems()
        network = ports.network_of(launch)
        if launch.endpoint_kind == "unix":
            if launch.port is not None:
                raise UsageError(f"{self.name} on a unix socket has no port", "Leave the port out.")
            socket_folder = ports.make_socket_folder(f"{self.name}.sock", account)
            endpoint = Endpoint("unix", path=str(socket_folder / f"{self.name}.sock"))
            return self._start_at(endpoint, acquired, launch, account, [socket_folder])
        if launch.port is not None:
            ports.require_free(launch.port, self.name, network)
            return self._start_at(Endpoint("tcp", network.address, launch.port), acquired, launch, account, [])
        following = self.following_ports(launch)
        attempts = 0
        while True:
            attempts += 1
            endpoint = Endpoint("tcp", network.address, ports.choose_port(network, following))
            try:
                return self._start_at(endpoint, acquired, launch, account, [])
            except SystemUnderTestError:
                taken = range(endpoint.port, endpoint.port + 1 + following)
                if attempts == _PORT_ATTEMPTS or all(ports.is_free(port, network) for port in taken):
                    raise

    def _start_at(
        self, endpoint: Endpoint, acquired: Acquired, launch: Launch, account: Account | None, scratch: list[Path]
    ) -> RunningServer:
        started = time.monotonic()
        try:
            folder = self._working_folder(launch, account, scratch)
            arguments = tuple(self.arguments(launch, endpoint, account))
            process = KeptProcess(
                Command(
                    name=self.name,
                    program=acquired.program,
                    arguments=arguments,
                    folder=folder,
                    log=launch.folder / f"{self.name}.log",
                    cores=launch.cores,
                    account=None if self.starts_as_root(launch) else account,
                    environment=acquired.environment,
                    open_files=self.open_files(launch.knobs),
                    scratch=scratch,
                    control_groups=launch.control_groups,
                    network_namespace=launch.network_namespace,
                )
            )
        except BaseException:
            for path in scratch:
                shutil.rmtree(path, ignore_errors=True)
            raise
        command = (str(acquired.program), *arguments)
        server = RunningServer(self.name, self.dialect_of(launch), process, endpoint, command, started)
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
            ports.give_to(folder, account)
        except OSError as error:
            raise SystemUnderTestError(
                f"{self.name} cannot have {folder} for its data: {error.strerror}", "Choose another folder."
            ) from error
        return folder


class RunningServer(RunningSystem):
    """A server under the keeper."""

    def __init__(
        self,
        name: str,
        dialect: Dialect,
        process: KeptProcess,
        endpoint: Endpoint,
        command: tuple[str, ...],
        started: float,
    ) -> None:
        self.name = name
        self.pid = process.pid
        self.endpoint = endpoint
        self.command = command
        self.log = process.log
        self._dialect = dialect
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
