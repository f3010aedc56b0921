"""What is missing on this host for measuring, and what that disables (``rackscope doctor``). Nothing here prints.

One file a subject. A check is a function from what was examined to one ``Check`` or several; the list below is all.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from rackscope.host.checks import access, machine, noise, own, power
from rackscope.host.checks.check import Check, Examined, Probes, Status
from rackscope.host.inventory import read_inventory
from rackscope.host.tree import Tree

__all__ = ["Check", "Status", "run_checks"]

#: In the order in which they are shown: what stops everything first.
_CHECKS: tuple[Callable[[Examined], list[Check]], ...] = (
    own.native_module,
    machine.kernel,
    machine.cores,
    machine.cpu_limit,
    machine.virtualisation,
    access.perf_events,
    access.probes,
    power.power_meters,
    access.pressure,
    access.cgroups,
    access.processes,
    access.file_descriptors,
    machine.memory,
    machine.disk_space,
    noise.clock_frequency,
    noise.turbo,
    noise.steal,
    noise.swap,
    noise.transparent_huge_pages,
    noise.clock_source,
    own.calibration,
    own.leftovers,
    own.packages,
)


def run_checks(
    root: Path = Path("/"),
    folder: Path | None = None,
    *,
    pause: Callable[[float], None] = time.sleep,
    probes: Probes | None = None,
) -> list[Check]:
    """Examine the host below ``root`` and the storage of ``folder`` (by default the current one); about a second.

    ``probes`` is by default ``rackscope._native.list_probes``.
    """
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
    return [check for examine in _CHECKS for check in examine(examined)]
