"""The host's part of a manifest: its inventory and its ceilings."""

from __future__ import annotations

from typing import Any

from rackscope.host.ceilings import CalibrationError, load_ceilings
from rackscope.host.inventory import host_identity, read_inventory
from rackscope.runs.manifest import CeilingsPart, WarningPart


def inventory_part() -> tuple[dict[str, Any], str]:
    """The inventory as plain values, and the host's identity."""
    inventory = read_inventory()
    identity = host_identity(inventory)
    return inventory.to_dict(), identity


def ceilings_part(identity: str) -> tuple[CeilingsPart, list[WarningPart]]:
    """What ``rackscope calibrate`` measured here, empty when it never ran; and a warning when it cannot be read.

    A counter that failed its check against a known kernel is in ``untrusted`` under its column's name.
    """
    try:
        ceilings = load_ceilings(identity)
    except CalibrationError as error:
        return CeilingsPart(), [WarningPart(code="ceilings_unreadable", text=str(error))]
    if ceilings is None:
        return CeilingsPart(), []
    counters = {check.column: check.reason for check in ceilings.counters if check.status == "untrusted"}
    untrusted = {**ceilings.untrusted(), **counters}
    return CeilingsPart(measured_at=ceilings.measured_at, values=ceilings.values(), untrusted=untrusted), []
