"""A network of a system's own: a namespace, and a veth pair (veth(4)) that joins it to the host.

The namespace is held by a descriptor: it ends with the process that made it and leaves no file and no mount. Its name
is ``/proc/PID/fd/N``. Everything is said to the kernel over rtnetlink (rtnetlink(7)), without programs on PATH.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.errors import SqueezeError
from rackscope.network_namespace import call_in_namespace, new_namespace
from rackscope.squeezes.held import Changes
from rackscope.squeezes.undo import RemoveLink

if TYPE_CHECKING:
    from pyroute2 import IPRoute

#: RFC 2544, section C.2.2: for measurements of networks, never routed on the Internet.
ADDRESSES = IPv4Network("198.18.0.0/15")
#: Two hosts, the network and the broadcast address.
_PREFIX_LENGTH = 30
_MOST_NETWORKS = 100


@dataclass(frozen=True)
class PrivateNetwork:
    """A namespace that is held open, and the two ends of the veth that leads into it."""

    descriptor: int
    host_interface: str
    system_interface: str
    host_address: str
    address: str

    @property
    def namespace(self) -> Path:
        """The file under which it can be entered while this process holds it."""
        return Path(f"/proc/{os.getpid()}/fd/{self.descriptor}")

    def close(self) -> None:
        """Let go of the namespace, which ends when nothing runs in it."""
        os.close(self.descriptor)


def make_private_network(changes: Changes, queues: int | None = None) -> PrivateNetwork:
    """A namespace with loopback, joined to the host by a veth of so many ``queues`` that ``changes`` removes.

    Raises OSError, with the kernel's reason, and SqueezeError.
    """
    descriptor = new_namespace()
    try:
        return _join(descriptor, changes, queues)
    except BaseException:
        os.close(descriptor)
        raise


def free_network(taken: Iterable[IPv4Network], start: int) -> IPv4Network:
    """A /30 of ``ADDRESSES`` beside all ``taken``: the ``start``-th, or one after it. Raises SqueezeError."""
    inside = [network for network in taken if network.overlaps(ADDRESSES) and network.prefixlen > 0]
    size = 1 << (32 - _PREFIX_LENGTH)
    count = ADDRESSES.num_addresses // size
    tried = 0
    while tried < count:
        first = int(ADDRESSES.network_address) + (start + tried) % count * size
        network = IPv4Network((first, _PREFIX_LENGTH))
        last = max((int(other.broadcast_address) for other in inside if network.overlaps(other)), default=None)
        if last is None:
            return network
        # On to the first one behind it; past the end of the range that is the range's beginning.
        tried += (last - first) // size + 1
    raise SqueezeError(f"every address of {ADDRESSES} is in use on this host", "Free some of it.")


def _join(descriptor: int, changes: Changes, queues: int | None) -> PrivateNetwork:
    from pyroute2 import IPRoute
    from pyroute2.netlink.exceptions import NetlinkError

    with changes.undone_on_failure(len(changes)):
        try:
            with IPRoute() as netlink:
                host, system = _free_names(netlink)
                addresses = list(free_network(_taken(netlink), os.getpid()).hosts())
                network = PrivateNetwork(descriptor, host, system, str(addresses[0]), str(addresses[1]))
                changes.record(RemoveLink(host))
                # The far end is made inside at once: nothing on the host sees it and takes it for its own.
                counts = {} if queues is None else {"num_tx_queues": queues, "num_rx_queues": queues}
                peer = {"ifname": system, "net_ns_fd": descriptor, **counts}
                netlink.link("add", ifname=host, kind="veth", peer=peer, **counts)
                _bring_up(netlink, host, network.host_address)
            call_in_namespace(network.namespace, lambda: _bring_up_inside(network))
        except NetlinkError as error:
            raise OSError(error.code, os.strerror(error.code)) from error
    return network


def _bring_up_inside(network: PrivateNetwork) -> None:
    from pyroute2 import IPRoute

    with IPRoute() as netlink:
        netlink.link("set", index=netlink.link_lookup(ifname="lo")[0], state="up")
        _bring_up(netlink, network.system_interface, network.address)


def _bring_up(netlink: IPRoute, name: str, address: str) -> None:
    index = netlink.link_lookup(ifname=name)[0]
    netlink.addr("add", index=index, address=address, prefixlen=_PREFIX_LENGTH)
    netlink.link("set", index=index, state="up")


def _free_names(netlink: IPRoute) -> tuple[str, str]:
    """Names of the two ends, 15 bytes at most; several pairs of one process are told apart by a number."""
    used = {link.get_attr("IFLA_IFNAME") for link in netlink.get_links()}
    for number in range(_MOST_NETWORKS):
        base = f"rs{os.getpid()}-{number}"
        if f"{base}h" not in used:
            return f"{base}h", f"{base}s"
    raise SqueezeError(f"this process has made {_MOST_NETWORKS} networks already", "End some of them.")


def _taken(netlink: IPRoute) -> list[IPv4Network]:
    """What the host has addresses in, or a route to that is not the default one."""
    addresses = [(one.get_attr("IFA_ADDRESS"), one["prefixlen"]) for one in netlink.get_addr(family=socket.AF_INET)]
    routes = [(one.get_attr("RTA_DST"), one["dst_len"]) for one in netlink.get_routes(family=socket.AF_INET)]
    return [
        IPv4Network((IPv4Address(address), length), strict=False)
        for address, length in (*addresses, *routes)
        if address is not None
    ]
