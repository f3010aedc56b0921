"""What a system under test is: acquired, started, made ready, stopped. It knows no workloads, probes or reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

EndpointKind = Literal["tcp", "unix"]
KnobKind = Literal["integer", "size", "memory", "choice", "flag", "text"]
#: What every key-value system can be asked for, and what those with data structures can be asked besides.
KEY_VALUE = frozenset({"read", "update", "insert", "read_modify_write"})
DATA_STRUCTURES = KEY_VALUE | {"lpush", "lpop", "zadd", "zrange", "sadd"}
#: Told, in a few words, what is being done now.
ProgressText = Callable[[str], None]


@dataclass(frozen=True)
class Endpoint:
    """Where a system listens: TCP (host, port), loopback or in a network of its own, or a unix socket (path)."""

    kind: EndpointKind
    host: str = "127.0.0.1"
    port: int = 0
    path: str = ""

    def describe(self) -> str:
        """``127.0.0.1:11211`` or ``unix:/run/x.sock``."""
        return f"{self.host}:{self.port}" if self.kind == "tcp" else f"unix:{self.path}"

    def target(self) -> dict[str, Any]:
        """As the load generator takes it."""
        if self.kind == "tcp":
            return {"kind": "tcp", "host": self.host, "port": self.port}
        return {"kind": "unix", "path": self.path}


@dataclass(frozen=True)
class Knob:
    """A setting of a system, with the value it has untouched and the value the papers tuned it to.

    ``default`` and ``tuned`` are strings as a user would write them. ``tuned`` may be ``None``: nothing better known.
    ``source`` says where the values come from (for example "Awasthi 2015, Table 2").

    Two kinds depend on the host: an ``integer`` may be ``cores`` (how many the system was given), and ``memory``, a
    size of what the system may fill, may be a share of what is available, ``47%``. See ``systems/knobs.py``.
    """

    name: str
    kind: KnobKind
    default: str
    tuned: str | None
    help: str
    source: str = ""
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None


def bounded(
    name: str,
    kind: KnobKind,
    default: str,
    what: str,
    source: str,
    minimum: int,
    maximum: int | None = None,
    *,
    tuned: str | None = None,
) -> Knob:
    """A knob that is a number, a size or memory; ``what`` is its help."""
    return Knob(name, kind, default, tuned, what, source, (), minimum, maximum)


@dataclass(frozen=True)
class Acquired:
    """A system that is on this machine: its program, version, where it came from, what it needs to run."""

    name: str
    program: Path
    version: str
    source: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Launch:
    """How to start a system: a folder of its own, cores, knob values (all of them, resolved), endpoint.

    ``control_groups`` are folders of control groups to start in, ``network_namespace`` the file of one to enter, in
    which the system listens on ``address``. ``host_interface`` and ``system_interface`` are the two ends of the veth
    that leads there.
    """

    folder: Path
    cores: Sequence[int]
    knobs: Mapping[str, str]
    endpoint_kind: EndpointKind = "tcp"
    port: int | None = None
    control_groups: Sequence[Path] = ()
    network_namespace: Path | None = None
    address: str = "127.0.0.1"
    host_interface: str | None = None
    system_interface: str | None = None


class RunningSystem(ABC):
    """A started system. ``stop`` is idempotent and leaves no process and no socket behind."""

    name: str
    pid: int
    endpoint: Endpoint
    command: tuple[str, ...]
    log: Path

    @abstractmethod
    def wait_ready(self, timeout_seconds: float = 30.0) -> float:
        """Poll until it responds; the seconds it took. Raises SystemUnderTestError with the log's last lines."""

    @abstractmethod
    def check_alive(self) -> None:
        """Raises SystemUnderTestError, with the exit status and the log's last lines, when it has died."""

    @abstractmethod
    def statistics(self) -> Mapping[str, str]:
        """The system's own counters (memcached ``stats``, redis ``INFO``); empty when it gives none."""

    @property
    def target(self) -> Mapping[str, Any]:
        """Where the load generator reaches it (``crates/load/src/config/client.rs``). Raises SystemUnderTestError."""
        return self.endpoint.target()

    @abstractmethod
    def stop(self) -> None:
        """End it: politely, then firmly."""


class System(ABC):
    """One kind of system; one file each, found by its module attribute ``SYSTEM``."""

    name: str
    description: str
    knobs: tuple[Knob, ...]
    #: Protocols of ``rackscope._native.LoadClient`` that it speaks, the preferred one first.
    protocols: tuple[str, ...]
    #: Operations it can be asked for: read, update, insert, read_modify_write, lpush, ... ("scan" where it has scans).
    operations: frozenset[str]
    endpoint_kinds: tuple[EndpointKind, ...] = ("tcp", "unix")
    #: The TCP port that its clients expect, where there is one.
    usual_port: int | None = None

    @abstractmethod
    def acquire(self, *, fetch: bool, progress: ProgressText | None = None) -> Acquired:
        """Find the program; with ``fetch``, unpack the distribution's package. Raises SystemUnderTestError."""

    def connection_limit(self, knobs: Mapping[str, str]) -> int | None:
        """How many client connections it serves with these (resolved) knobs; ``None`` when it sets no limit."""
        del knobs
        return None

    def memory_limit(self, knobs: Mapping[str, str]) -> int | None:
        """Bytes of data that it holds at most with these (resolved) knobs; ``None`` when it sets no limit."""
        return int(knobs["memory"]) or None if "memory" in knobs else None

    def interface_queues(self, knobs: Mapping[str, str], connections: int) -> int | None:
        """Queues of the network interface (a veth) that it needs with these knobs; ``None`` when it needs none."""
        del knobs, connections
        return None

    def check_knobs(self, knobs: Mapping[str, str]) -> None:
        """Raises UsageError for (resolved) knobs that it would not start with, before anything is started."""
        del knobs

    @abstractmethod
    def start(self, acquired: Acquired, launch: Launch) -> RunningSystem:
        """Start it under the keeper. Raises SystemUnderTestError (a port in use, a program that does not start)."""
