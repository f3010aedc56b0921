"""Network interfaces."""

from __future__ import annotations

from dataclasses import dataclass

from rackscope.host.tree import Tree

_LOOPBACK_TYPE = 772  # ARPHRD_LOOPBACK, linux/if_arp.h
_MEGABIT_BYTES = 1_000_000 / 8


@dataclass(frozen=True)
class NetworkInterface:
    """One interface. ``speed_bytes_per_second`` is what its driver claims; guests and bridges often claim nothing."""

    name: str
    loopback: bool
    virtual: bool
    driver: str | None
    state: str | None
    mtu_bytes: int | None
    speed_bytes_per_second: float | None


def read_interfaces(tree: Tree) -> tuple[NetworkInterface, ...]:
    """Every interface of ``/sys/class/net``."""
    interfaces = []
    for name in tree.names("sys/class/net"):
        folder = f"sys/class/net/{name}"
        # Plain files, such as bonding_masters, lie between the interfaces.
        if not tree.exists(f"{folder}/type"):
            continue
        megabits = tree.integer(f"{folder}/speed")
        interfaces.append(
            NetworkInterface(
                name=name,
                loopback=tree.integer(f"{folder}/type") == _LOOPBACK_TYPE,
                virtual=not tree.exists(f"{folder}/device"),
                driver=tree.link(f"{folder}/device/driver"),
                state=tree.text(f"{folder}/operstate"),
                mtu_bytes=tree.integer(f"{folder}/mtu"),
                # A link that is down says -1.
                speed_bytes_per_second=megabits * _MEGABIT_BYTES if megabits and megabits > 0 else None,
            )
        )
    return tuple(interfaces)
