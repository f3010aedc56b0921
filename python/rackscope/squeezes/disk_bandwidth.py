"""Disk bandwidth: fewer bytes a second from and to the disk of the system's data."""

from __future__ import annotations

from rackscope.squeezes.disk import DiskSqueeze
from rackscope.squeezes.disk_limits import Direction, Kind

_SMALLEST_BLOCK, _LARGEST_BLOCK = 4096, 1 << 20
_BLOCKS_A_SECOND = 256


class DiskBandwidth(DiskSqueeze):
    """Bytes."""

    name = "disk_bandwidth"
    description = "fewer bytes a second from and to the disk, by the throttle of the control group"
    kind: Kind = "bps"
    unit = "bytes/s"

    def ceiling_name(self, direction: Direction, disk: str) -> str:
        """Sequential."""
        return f'disk_sequential_{direction}_bytes_per_second{{device="{disk}"}}'

    def block_bytes(self, limit_per_second: float) -> int:
        """A power of two."""
        wanted = int(limit_per_second / _BLOCKS_A_SECOND)
        return min(max(1 << wanted.bit_length() >> 1, _SMALLEST_BLOCK), _LARGEST_BLOCK)

    def in_units(self, blocks_per_second: float, block_bytes: int) -> float:
        """Bytes a second."""
        return blocks_per_second * block_bytes


SQUEEZES = (DiskBandwidth(),)
