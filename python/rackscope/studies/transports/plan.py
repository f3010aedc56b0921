"""What ``study transports`` measures: ways to the cache, who may touch what behind them, and under which load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rackscope.errors import UsageError, unknown_name
from rackscope.studies.bench.turns import rounds_of
from rackscope.systems.base import EndpointKind

#: Requests outstanding where it says deep: enough that neither end waits for the other.
_DEEP = 512
#: Requests of a datagram, as in MICA's comparisons.
_BATCH = 32
KEY_BYTES, VALUE_BYTES = 20, 32


@dataclass(frozen=True)
class Contender:
    """A server with its clients: ``connections`` (or sockets), each with ``depth`` messages of ``batch`` requests
    outstanding. ``knobs`` are the system's."""

    name: str
    words: str
    connections: int
    depth: int
    knobs: Mapping[str, str] = field(default_factory=dict, hash=False)
    batch: int = 1
    system: str = "cache"
    endpoint_kind: EndpointKind = "tcp"
    workers: int = 1
    #: Whether the kernel's stack is used over a veth, to a network namespace of the server's own.
    over_veth: bool = False

    @property
    def outstanding(self) -> int:
        """Requests on their way at any time."""
        return self.connections * self.depth * self.batch

    @property
    def loses(self) -> bool:
        """Whether what carries requests may lose some."""
        return self.knobs.get("transport", "tcp") != "tcp"

    def parameters(self, keys: int) -> dict[str, str]:
        """As parameters of the workload."""
        protocol = {"protocol": "batch", "batch": str(self.batch)} if self.batch > 1 else {}
        sizes = {"keys": str(keys), "key_size": str(KEY_BYTES), "value_size": str(VALUE_BYTES)}
        return {**sizes, "pipeline": str(self.depth), **protocol}


def _udp(**others: str) -> dict[str, str]:
    return {"transport": "udp", **others}


TRANSPORTS: tuple[Contender, ...] = (
    Contender("tcp", "TCP, 50 connections with one request outstanding", 50, 1),
    Contender("tcp-deep", "TCP, 32 connections with 16 requests outstanding", 32, _DEEP // 32),
    Contender("unix-deep", "a unix socket, likewise", 32, _DEEP // 32, endpoint_kind="unix"),
    Contender("udp", "UDP, one request a datagram, 64 outstanding", 1, 64, _udp()),
    Contender("udp-deep", "UDP, one request a datagram, 512 outstanding", 1, _DEEP, _udp()),
    Contender("udp-batch", "UDP, 32 requests a datagram", 4, _DEEP // 4 // _BATCH, _udp(), _BATCH),
    Contender(
        "udp-batch-veth",
        "the same over a veth, as AF_XDP has it",
        4,
        _DEEP // 4 // _BATCH,
        _udp(),
        _BATCH,
        over_veth=True,
    ),
    Contender(
        "af_xdp", "AF_XDP over a veth, 32 requests a datagram", 1, _DEEP // _BATCH, {"transport": "af_xdp"}, _BATCH
    ),
    Contender("memcached-udp", "memcached over UDP, 64 outstanding", 1, 64, _udp(), system="memcached"),
)
#: With two workers; batches go to the worker that owns their keys.
MODES: tuple[Contender, ...] = (
    *(
        Contender(
            mode,
            f"{mode.upper()}, two workers, UDP with 32 requests a datagram",
            # Many, as under CRCW the kernel spreads them over the workers by a hash.
            _DEEP // _BATCH,
            1,
            _udp(access=mode),
            _BATCH,
            workers=2,
        )
        for mode in ("erew", "crew", "crcw")
    ),
    *(
        Contender(
            name,
            f"EREW, two workers, UDP with one request a datagram, {how}",
            _DEEP // _BATCH,
            _BATCH,
            _udp(access="erew", request_direction=direction),
            workers=2,
        )
        for name, direction, how in (
            ("erew-directed", "client", "sent to the worker that owns the key"),
            ("erew-forwarded", "server", "sent to any worker, which forwards it"),
        )
    ),
)


@dataclass(frozen=True)
class Pair:
    """What is compared: ``first`` over ``second``, and what differs between them."""

    first: str
    second: str
    words: str

    @property
    def label(self) -> str:
        """``udp-batch / udp-deep``."""
        return f"{self.first} / {self.second}"


PAIRS: tuple[Pair, ...] = (
    Pair("udp", "memcached-udp", "this cache instead of memcached, both over UDP"),
    Pair("af_xdp", "memcached-udp", "this cache with batches over AF_XDP instead of memcached over UDP"),
    Pair("tcp-deep", "tcp", "16 requests outstanding on a TCP connection instead of one"),
    Pair("unix-deep", "tcp-deep", "a unix socket instead of TCP"),
    Pair("udp-deep", "tcp-deep", "UDP with one request a datagram instead of TCP"),
    Pair("udp-batch", "udp-deep", "32 requests a datagram instead of one"),
    Pair("af_xdp", "udp-batch-veth", "AF_XDP instead of the kernel's UDP, both over a veth"),
    Pair("af_xdp", "udp-batch", "AF_XDP over a veth instead of the kernel's UDP over loopback"),
    Pair("af_xdp", "udp-deep", "32 requests a datagram over AF_XDP instead of one over the kernel's UDP"),
    Pair("erew", "crcw", "EREW instead of CRCW"),
    Pair("erew", "crew", "EREW instead of CREW"),
    Pair("erew-directed", "erew-forwarded", "requests sent to the worker that owns the key, under EREW"),
)


@dataclass(frozen=True)
class Condition:
    """What is asked of all alike. ``theta`` is the exponent of zipfian keys; uniform without."""

    name: str
    theta: float | None
    reads_percent: int

    @property
    def label(self) -> str:
        """``zipfian, 95 % reads``."""
        return f"{'uniform' if self.theta is None else 'zipfian'}, {self.reads_percent} % reads"

    @property
    def operations(self) -> dict[str, float]:
        reads = self.reads_percent / 100
        return {"read": reads, "update": 1 - reads}

    @property
    def distribution(self) -> dict[str, Any]:
        """As the load generator takes it."""
        if self.theta is None:
            return {"kind": "uniform"}
        return {"kind": "zipfian", "theta": self.theta, "scrambled": True}


BASE = Condition("base", 0.99, 95)
#: The base, and what differs from it in one thing.
CONDITIONS = (BASE, Condition("uniform", None, 95), Condition("write-heavy", 0.99, 50))


@dataclass(frozen=True)
class Plan:
    """What is measured. ``loads`` are fractions of what each transport does at most."""

    transports: tuple[Contender, ...]
    modes: tuple[Contender, ...]
    loads: tuple[float, ...]
    keys: int
    seconds: float
    repetitions: int
    budget_seconds: float
    seed: int = 42
    fetch: bool = True

    @property
    def contenders(self) -> tuple[Contender, ...]:
        return self.transports + self.modes

    @property
    def pairs(self) -> list[Pair]:
        """Those of which both are measured."""
        names = {one.name for one in self.contenders}
        return [pair for pair in PAIRS if {pair.first, pair.second} <= names]

    def rounds(self, names: Sequence[str]) -> list[list[tuple[str, Condition]]]:
        """Each round holds every contender under every condition once."""
        cells = [(name, condition) for name in names for condition in CONDITIONS]
        return rounds_of(cells, self.repetitions, self.seed)


def parse_contenders(text: str | None, known: Sequence[Contender], option: str) -> tuple[Contender, ...]:
    """By name; all without any, and nothing for ``none``. Raises UsageError."""
    if text is None:
        return tuple(known)
    if text.strip() == "none":
        return ()
    names = {one.name: one for one in known}
    asked = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in asked:
        if name not in names:
            raise unknown_name(f"{option}: there is no", name, "There are", names)
    return tuple(names[name] for name in asked)


def require_some(plan: Plan) -> None:
    """Raises UsageError where there is nothing to measure."""
    if not plan.contenders:
        raise UsageError("there is nothing to measure", "Name some --transports or --modes.")
