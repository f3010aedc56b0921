"""Workloads whose limit is known because it was built in, each as if on a small server of known capacities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rackscope.squeezes.provision import Limits

_MEBIBYTE = 1024 * 1024
#: The server that every case runs on unless it says otherwise: less than any host has, so that its capacities are
#: what limits. Each resource has room for everything that a case does beside its limit.
_SERVER = Limits(
    cpu_cores=0.8,
    memory_bytes=512 * _MEBIBYTE,
    disk_bytes_per_second=150.0 * _MEBIBYTE,
    disk_operations_per_second=4000.0,
    network_bytes_per_second=100e6,
)


@dataclass(frozen=True)
class Case:
    """One workload. ``expected`` says, phase by phase, which resources limit it: none of them where it is empty.

    ``channel`` is whether it uses the regulated memory channel, which then is squeezed in place of the host's DRAM
    bandwidth: cores of many hosts cannot exhaust that.
    """

    name: str
    about: str
    workload: str
    expected: Mapping[str, frozenset[str]]
    settings: Mapping[str, str]
    connections: int = 8
    limits: Limits = field(default=_SERVER)
    channel: bool = False


def _server(**capacities: Any) -> Limits:
    return replace(_SERVER, **capacities)


def _limited(*resources: str) -> frozenset[str]:
    return frozenset(resources)


_NONE = _limited()
_SMALL = {"value_size": "100", "file_size": "128m"}

CASES: tuple[Case, ...] = (
    Case(
        "cpu", "each read computes for 100 µs", "synthetic-read", {"read": _limited("cpu")},
        {**_SMALL, "on_read": "cpu:100"},
    ),
    Case(
        "cpu-single", "one connection whose reads compute for 1 ms", "synthetic-read", {"read": _limited("cpu")},
        {**_SMALL, "on_read": "cpu:1000"}, connections=1,
    ),
    Case(
        "memory-channel", "each read streams 256 KiB over a memory channel of 1 GB/s", "synthetic-read",
        {"read": _limited("dram_bandwidth")},
        {**_SMALL, "on_read": "memory-stream-regulated:256k", "channel_rate": "1000000000"}, connections=4,
        channel=True,
    ),
    Case(
        "memory-capacity", "each read touches 8 random pages of a file larger than the memory", "synthetic-read",
        {"read": _limited("dram_capacity")},
        {"value_size": "100", "file_size": "64m", "on_read": "page-touch:8"}, connections=1,
        limits=_server(
            memory_bytes=56 * _MEBIBYTE, disk_bytes_per_second=400.0 * _MEBIBYTE, disk_operations_per_second=40_000.0
        ),
    ),
    Case(
        "disk-sequential", "each read fetches the next 256 KiB of a file", "synthetic-read",
        {"read": _limited("disk")}, {**_SMALL, "on_read": "disk-sequential:256k"},
        limits=_server(disk_bytes_per_second=60.0 * _MEBIBYTE),
    ),
    Case(
        "disk-random", "each read fetches 4 KiB from anywhere in a file", "synthetic-read",
        {"read": _limited("disk")}, {**_SMALL, "on_read": "disk-random:4k"},
        limits=_server(disk_operations_per_second=1000.0),
    ),
    Case(
        "disk-write", "each update writes the next 256 KiB of a file", "synthetic-update",
        {"update": _limited("disk")}, {**_SMALL, "on_update": "disk-write:256k"},
        limits=_server(disk_bytes_per_second=60.0 * _MEBIBYTE),
    ),
    Case(
        "network-out", "each read is answered with 64 KiB", "synthetic-read", {"read": _limited("network")},
        {"value_size": "64k", "file_size": "1m", "on_read": "none"},
    ),
    Case(
        "network-in", "each update brings 64 KiB", "synthetic-update", {"update": _limited("network")},
        {"value_size": "64k", "file_size": "1m", "on_update": "none"},
    ),
    Case(
        "lock", "each read sleeps for 500 µs while it holds the one lock", "synthetic-read", {"read": _NONE},
        {**_SMALL, "on_read": "lock:500"},
    ),
    Case(
        "sleep", "each read waits for 2 ms for something outside", "synthetic-read", {"read": _NONE},
        {**_SMALL, "on_read": "sleep:2000"},
    ),
    Case(
        "disk-and-network",
        "half the operations read the disk, half bring 64 KiB, and both are full",
        "synthetic-mixed",
        {"mixed": _limited("disk", "network")},
        {"value_size": "64k", "file_size": "128m", "on_read": "disk-random:4k", "on_update": "none"},
        connections=16,
        # 1000 operations/s of each kind; 1514 bytes of a frame carry 1448.
        limits=_server(disk_operations_per_second=1000.0, network_bytes_per_second=1000 * 65536 * 1514 / 1448),
    ),
    Case(
        "memory-and-disk",
        "half the operations stream 256 KiB over the memory channel, half read the disk, and both are full",
        "synthetic-mixed",
        {"mixed": _limited("dram_bandwidth", "disk")},
        {
            **_SMALL,
            "on_read": "memory-stream-regulated:256k",
            "on_update": "disk-random:4k",
            "channel_rate": str(1000 * 256 * 1024),
        },
        connections=16,
        limits=_server(disk_operations_per_second=1000.0),
        channel=True,
    ),
    Case(
        "cpu-then-disk", "a phase that computes, then one that reads the disk", "synthetic-phases",
        {"read": _limited("cpu"), "update": _limited("disk")},
        {**_SMALL, "on_read": "cpu:200", "on_update": "disk-random:4k"},
        limits=_server(disk_operations_per_second=1000.0),
    ),
    Case(
        "lock-then-network", "a phase that waits for a lock, then one that brings 64 KiB an operation",
        "synthetic-phases", {"read": _NONE, "update": _limited("network")},
        {"value_size": "64k", "file_size": "1m", "on_read": "lock:2000", "on_update": "none"},
    ),
)  # fmt: skip
