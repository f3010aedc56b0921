"""The host's part of a manifest: its inventory and its ceilings."""

from __future__ import annotations

from typing import Any

from rackscope.host.ceilings import load_ceilings
from rackscope.host.inventory import host_identity, read_inventory
from rackscope.runs.manifest import CeilingsPart


def inventory_part() -> tuple[dict[str, Any], str]:
    """The inventory as plain values, and the host's identity."""
    inventory = read_inventory()
    identity = host_identity(inventory)
    return inventory.to_dict(), identity


def ceilings_part(identity: str) -> CeilingsPart:
    """What ``rackscope calibrate`` measured here; empty when it never ran."""
    ceilings = load_ceilings(identity)
    if ceilings is None:
        return CeilingsPart()
    return CeilingsPart(measured_at=ceilings.measured_at, values=ceilings.values(), untrusted=ceilings.untrusted())
