"""Disk: fewer bytes, or fewer operations, a second at the disk of the system's data, by a throttle of its group."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Achieved, Applied, Capacity, NotSqueezable, Resource, Squeeze, Subject
from rackscope.squeezes.block_device import BlockDevice, find_block_device
from rackscope.squeezes.disk_limits import Direction, Kind, limit_changes, limit_file, tightest_limit
from rackscope.squeezes.groups import Group, group_folders, group_of, require
from rackscope.squeezes.held import hold
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.loads import read_direct
from rackscope.squeezes.verifying import verify_rate
from rackscope.units import format_amount

_FILE_BYTES = 32 << 20
_SMALLEST_BLOCK, _LARGEST_BLOCK = 4096, 1 << 20
_BLOCKS_A_SECOND = 256
_FREE_SECONDS, _FREE_WARM_UP_SECONDS = 0.2, 0.05
#: The throttle gives in slices of a tenth of a second: one more or less of eight stays near the tolerance.
_SECONDS, _WARM_UP_SECONDS = 0.8, 0.15


@dataclass(frozen=True)
class Throttled:
    """What is throttled: reads and, where a ceiling or a limit of theirs is known, writes; both a second."""

    group: Group
    device: BlockDevice
    capacities: dict[Direction, float]
    source: str


class DiskSqueeze(Squeeze):
    """``blkio.throttle.*`` or ``io.max``; each direction is left the fraction of its own capacity."""

    resource: Resource = "disk"
    settle_seconds = 0.2
    kind: Kind
    unit: str
    #: The name of the calibrated ceiling, for a direction and a disk.
    ceiling: str

    def __init__(self, root: Path = Path("/")) -> None:
        """``root`` is where /proc and /sys are looked for."""
        self._root = root

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        """That of reads: the limit that the group has already, or the calibrated ceiling."""
        found = self._find(subject)
        if isinstance(found, NotSqueezable):
            return found
        return Capacity(found.capacities["read"], self.unit, found.source)

    def apply(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        found = require(self._find(subject), self.name)
        limits = {direction: max(1, round(value * fraction)) for direction, value in found.capacities.items()}
        return hold(self.name, limit_changes(found.group, found.device.number, self.kind, limits), journal)

    def verify(self, subject: Subject, fraction: float, journal: Journal) -> Achieved:
        """Random reads past the page cache, in the group."""
        capacity = require(self._find(subject), self.name).capacities["read"]
        assert subject.folder is not None  # _find has seen to it
        groups = group_folders(subject, "blkio")
        block = self._block_bytes(capacity * fraction)
        with _file_to_read(subject.folder) as file:

            def rate(seconds: float, warm_up: float) -> float:
                blocks = read_direct(groups, file, block, seconds, warm_up=warm_up)
                return blocks * block if self.kind == "bps" else blocks

            def held(fraction: float) -> float:
                with self.apply(subject, fraction, journal):
                    return rate(_SECONDS, _WARM_UP_SECONDS)

            free = partial(rate, _FREE_SECONDS, _FREE_WARM_UP_SECONDS)
            return verify_rate(self.unit, capacity, fraction, free, held)

    def _block_bytes(self, limit_per_second: float) -> int:
        """How much the verifying load reads at once: of bytes a power of two, so that a trial holds many of them."""
        if self.kind == "iops":
            # What was calibrated with; larger ones would be split, and counted several times.
            return _SMALLEST_BLOCK
        wanted = int(limit_per_second / _BLOCKS_A_SECOND)
        return min(max(1 << wanted.bit_length() >> 1, _SMALLEST_BLOCK), _LARGEST_BLOCK)

    def _find(self, subject: Subject) -> Throttled | NotSqueezable:
        group = group_of(subject.isolation, "blkio")
        if isinstance(group, NotSqueezable):
            return group
        if subject.folder is None:
            return NotSqueezable("the system keeps no data in a folder", "a system that uses a disk")
        if not limit_file(group, self.kind, "read").exists():
            needs = "a kernel with CONFIG_BLK_DEV_THROTTLING"
            return NotSqueezable(f"{group.folder} has no throttle of disks", needs)
        device = find_block_device(subject.folder, self._root)
        if isinstance(device, NotSqueezable):
            return device
        capacities: dict[Direction, float] = {}
        sources = []
        directions: tuple[Direction, ...] = ("read", "write")
        for direction in directions:
            ceiling = subject.ceilings.get(self.ceiling.format(direction, device.disk))
            limit = tightest_limit(group, device.number, self.kind, direction)
            if limit is not None and (ceiling is None or limit <= ceiling):
                capacities[direction] = float(limit)
                sources.append(f"{direction}s: {format_amount(limit, self.unit)}, the limit of its control group")
            elif ceiling is not None and ceiling >= 1:
                capacities[direction] = ceiling
                sources.append(f"{direction}s: {format_amount(ceiling, self.unit)}, as calibrated")
            else:
                sources.append(f"{direction}s: not known, and not limited")
        if "read" not in capacities:
            return NotSqueezable(f"what {device.disk} can do is not known", "ceilings: run 'rackscope calibrate'")
        if group.version == 1:
            sources.append("writes through the page cache are not held back by version 1 control groups")
        return Throttled(group, device, capacities, "; ".join(sources))


@contextmanager
def _file_to_read(folder: Path) -> Iterator[Path]:
    """A file with blocks of its own on the disk. Written outside of the group, so that no limit holds it up."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".rackscope-verify-") as file:
            file.write(os.urandom(1 << 20) * (_FILE_BYTES >> 20))
            file.flush()
            os.fsync(file.fileno())
            yield Path(file.name)
    except OSError as error:
        raise SqueezeError(f"no file to read can be made in {folder}: {error.strerror}") from error


class DiskBandwidth(DiskSqueeze):
    """Bytes."""

    name = "disk_bandwidth"
    description = "fewer bytes a second from and to the disk, by the throttle of the control group"
    kind: Kind = "bps"
    unit = "bytes/s"
    ceiling = 'disk_sequential_{}_bytes_per_second{{device="{}"}}'


class DiskOperations(DiskSqueeze):
    """Operations."""

    name = "disk_operations"
    description = "fewer operations a second at the disk, by the throttle of the control group"
    kind: Kind = "iops"
    unit = "operations/s"
    ceiling = 'disk_random_{}_operations_per_second{{device="{}"}}'


SQUEEZES = (DiskBandwidth(), DiskOperations())
