"""A smaller server: limits that are set before a system starts, and are its capacity from then on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Applied, Isolation
from rackscope.squeezes.block_device import find_block_device
from rackscope.squeezes.cpu_quota import quota_changes
from rackscope.squeezes.disk_limits import Kind, limit_changes
from rackscope.squeezes.groups import group_of, require
from rackscope.squeezes.held import Change, HeldTogether, hold
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.memory_use import limit_text


@dataclass(frozen=True)
class Limits:
    """What the smaller server has; ``None`` leaves the host's.

    ``cpu_cores`` is CPU seconds a second. The disk's figures hold for reads and for writes, each; the network's for
    each direction.
    """

    cpu_cores: float | None = None
    memory_bytes: int | None = None
    disk_bytes_per_second: float | None = None
    disk_operations_per_second: float | None = None
    network_bytes_per_second: float | None = None


def provision(isolation: Isolation, limits: Limits, journal: Journal, *, folder: Path | None = None) -> Applied:
    """Set the limits for whatever is started in ``isolation``; all or none. ``folder`` tells which disk is limited.

    Memory is a hard limit: a system that needs more than that is ended by the kernel, as on the smaller server.
    Raises SqueezeError that names the limit that cannot be set here.
    """
    changes = [
        *_cpu(isolation, limits.cpu_cores),
        *_memory(isolation, limits.memory_bytes),
        *_disk(isolation, folder, "bps", limits.disk_bytes_per_second),
        *_disk(isolation, folder, "iops", limits.disk_operations_per_second),
    ]
    held = hold("a limit", changes, journal)
    if limits.network_bytes_per_second is None:
        return held
    from rackscope.squeezes.network import limit_link

    with held.undone_on_failure():
        return HeldTogether(held, limit_link(isolation, limits.network_bytes_per_second, journal))


def _cpu(isolation: Isolation, cores: float | None) -> list[Change]:
    if cores is None:
        return []
    group = require(group_of(isolation, "cpu"), "CPU time")
    try:
        return quota_changes(group.folder, group.version, cores)
    except ValueError as error:
        raise SqueezeError(f"a limit of {cores:.3g} cores cannot be set: {error}") from error


def _memory(isolation: Isolation, limit_bytes: int | None) -> list[Change]:
    if limit_bytes is None:
        return []
    group = require(group_of(isolation, "memory"), "memory")
    name = "memory.limit_in_bytes" if group.version == 1 else "memory.max"
    return [Change(group.folder / name, str(limit_bytes), limit_text(group, name))]


def _disk(isolation: Isolation, folder: Path | None, kind: Kind, limit_per_second: float | None) -> list[Change]:
    if limit_per_second is None:
        return []
    group = require(group_of(isolation, "blkio"), "the disk")
    if folder is None:
        raise SqueezeError("which disk is to be limited is not known: the system keeps no data in a folder")
    device = require(find_block_device(folder), "the disk")
    limit = max(1, round(limit_per_second))
    return limit_changes(group, device.number, kind, {"read": limit, "write": limit})
