"""A limit on what a network link sends: the kernel's token bucket filter (tc-tbf(8)), set over rtnetlink.

It counts whole Ethernet frames without preamble and checksum: 1514 bytes for each full TCP segment at an MTU of 1500,
of which 1448 are the application's. A packet that the kernel will cut up later (TSO, 64 KiB) is counted as the frames
that it becomes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rackscope.errors import SqueezeError
from rackscope.network_namespace import call_in_namespace
from rackscope.units import format_bytes

if TYPE_CHECKING:
    from pyroute2 import IPRoute

#: A full frame of a link with the usual MTU of 1500.
FRAME_BYTES = 1514
#: What of a full frame is the application's, over IPv4 and TCP with timestamps (RFC 7323).
PAYLOAD_BYTES = 1448
#: What passes at once after a pause: as long as a shared virtual machine may be late with a timer, or the rate is lost.
_BURST_SECONDS = 0.004
_SMALLEST_BURST_BYTES = 4 * FRAME_BYTES
#: What may wait. Never reached by senders on this host, whose sockets hold back what the link has not taken (TCP small
#: queues), so that nothing is dropped.
_QUEUE_BYTES = 64 << 20
#: ``struct tc_ratespec`` has 32 bits for bytes a second.
HIGHEST_RATE = (1 << 32) - 1
#: 1 Mbit/s: some eighty full frames a second, below which TCP hardly works.
LOWEST_RATE = 125_000

Result = TypeVar("Result")


def burst_bytes(bytes_per_second: float) -> int:
    return max(_SMALLEST_BURST_BYTES, int(bytes_per_second * _BURST_SECONDS))


def read_rate(interface: str, namespace: Path | None) -> float | None:
    """The limit in bytes a second; ``None`` when the link has none. Raises SqueezeError."""

    def read(netlink: IPRoute, index: int) -> float | None:
        for discipline in netlink.get_qdiscs(index=index):
            if discipline.get_attr("TCA_KIND") == "tbf":
                return float(discipline.get_attr("TCA_OPTIONS").get_attr("TCA_TBF_PARMS")["rate"])
        return None

    return _on_link(interface, namespace, "its limit be read", read)


def set_rate(interface: str, namespace: Path | None, bytes_per_second: float) -> None:
    """Limit what the link sends, instead of any limit before. Raises SqueezeError."""
    if not LOWEST_RATE <= bytes_per_second <= HIGHEST_RATE:
        raise SqueezeError(
            f"a link is not limited to {format_bytes(bytes_per_second)}/s",
            f"Limits go from {LOWEST_RATE} to {HIGHEST_RATE} bytes/s.",
        )
    rate = round(bytes_per_second)

    def change(netlink: IPRoute, index: int) -> None:
        netlink.tc(
            "replace", "tbf", index=index, handle=0x10000, rate=rate, burst=burst_bytes(rate), limit=_QUEUE_BYTES
        )

    _on_link(interface, namespace, f"be limited to {rate} bytes/s", change)


def clear_rate(interface: str, namespace: Path | None) -> None:
    """Take the limit away; a link that is gone, or has none, counts as done. Raises SqueezeError."""

    def remove(netlink: IPRoute, index: int) -> None:
        netlink.tc("del", index=index, handle=0x10000, root=True)

    if read_rate(interface, namespace) is not None:
        _on_link(interface, namespace, "be freed of its limit", remove)


def _on_link(interface: str, namespace: Path | None, doing: str, function: Callable[[IPRoute, int], Result]) -> Result:
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    def call() -> Result:
        with IPRoute() as netlink:
            found = netlink.link_lookup(ifname=interface)
            if not found:
                raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
            return function(netlink, found[0])

    try:
        return call() if namespace is None else call_in_namespace(namespace, call)
    except (OSError, NetlinkError) as error:
        number = error.code if isinstance(error, NetlinkError) else error.errno
        hint = "The kernel may lack sch_tbf." if number == errno.ENOENT else "It takes CAP_NET_ADMIN."
        raise SqueezeError(f"the link {interface} cannot {doing}: {os.strerror(number or 0)}", hint) from error
