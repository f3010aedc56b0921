"""Disk operations: fewer reads and writes a second at the disk of the system's data."""

from __future__ import annotations

from rackscope.squeezes.disk import DiskSqueeze
from rackscope.squeezes.disk_limits import Direction, Kind

_BLOCK_BYTES = 4096


class DiskOperations(DiskSqueeze):
    """Operations."""

    name = "disk_operations"
    description = "fewer operations a second at the disk, by the throttle of the control group"
    kind: Kind = "iops"
    unit = "operations/s"

    def ceiling_name(self, direction: Direction, disk: str) -> str:
        """Random."""
        return f'disk_random_{direction}_operations_per_second{{device="{disk}"}}'

    def block_bytes(self, limit_per_second: float) -> int:
        """What was calibrated with; larger ones would be split, and counted several times."""
        del limit_per_second
        return _BLOCK_BYTES

    def in_units(self, blocks_per_second: float, block_bytes: int) -> float:
        """Operations a second."""
        del block_bytes
        return blocks_per_second


SQUEEZES = (DiskOperations(),)
