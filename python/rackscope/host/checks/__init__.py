"""What is missing on this host for measuring, and what that disables: one file a subject, functions to a ``Check``."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rackscope.host.checks import access, machine, noise, own, power
from rackscope.host.checks.check import Check, Examined, Probes, Status
from rackscope.host.inventory import read_inventory
from rackscope.host.tree import Tree

__all__ = ["Check", "Status", "run_checks"]

#: In the order in which they are shown: what stops everything first.
_CHECKS: Mapping[str, Callable[[Examined], Check | list[Check] | None]] = {
    "native module": own.native_module,
    "kernel": machine.kernel,
    "cores": machine.cores,
    "CPU limit": machine.cpu_limit,
    "virtual machine": machine.virtual_machine,
    "container": machine.container,
    "perf events": access.perf_events,
    "probes": access.probes,
    "power meters": power.power_meters,
    "pressure": access.pressure,
    "control groups": access.cgroups,
    "processes": access.processes,
    "open files": access.file_descriptors,
    "memory": machine.memory,
    "disk space": machine.disk_space,
    "frequency": noise.clock_frequency,
    "turbo": noise.turbo,
    "steal": noise.steal,
    "swap": noise.swap,
    "huge pages": noise.transparent_huge_pages,
    "clock": noise.clock_source,
    "calibration": own.calibration,
    "leftovers": own.leftovers,
    "packages": own.packages,
}


def run_checks(
    root: Path = Path("/"),
    folder: Path | None = None,
    *,
    pause: Callable[[float], None] = time.sleep,
    probes: Probes | None = None,
) -> list[Check]:
    """Examine the host below ``root`` and the storage of ``folder`` (by default the current one); about a second."""
    inventory = read_inventory(root, folder)
    examined = Examined(
        tree=Tree(root),
        inventory=inventory,
        folder=Path(inventory.working_folder.folder),
        user_id=os.geteuid(),
        now=datetime.now().astimezone(),
        pause=pause,
        # Several checks ask, and some meters take a second to answer.
        probes=functools.cache(probes or own.native_probes),
    )
    checks: list[Check] = []
    for name, examine in _CHECKS.items():
        found = examine(examined)
        several = found if isinstance(found, list) else [found] if found else []
        checks.extend(replace(check, name=check.name or name) for check in several)
    return checks
