"""What every measurement is given: the host, the cores, how long it may take, the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackscope.errors import RackscopeError, UsageError
from rackscope.host.inventory import Inventory
from rackscope.host.processor import Processor
from rackscope.host.tree import Tree


@dataclass(frozen=True)
class FioProgram:
    """fio, wherever it was found, and the environment that it needs."""

    program: Path
    version: str
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """Circumstances; ``cores`` in the order to take them, ``kernels`` is ``rackscope._native`` (or a fake of tests)."""

    inventory: Inventory
    tree: Tree
    cores: tuple[int, ...]
    quick: bool
    kernels: Any
    folder: Path
    fio: FioProgram | RackscopeError | None

    def seconds(self, quick: float, full: float) -> float:
        """How long one measurement may take."""
        return quick if self.quick else full


def choose_cores(inventory: Inventory, wished: Sequence[int] | None) -> tuple[int, ...]:
    """Cores to measure on, in the order in which threads take them. Raises UsageError for one that is not to be had."""
    usable = inventory.usable_cores or inventory.processor.online
    if not usable:
        raise UsageError("the cores of this host could not be found out", "Name them with --cores 0-3.")
    absent = sorted(set(wished or ()) - set(usable))
    if absent:
        listed = ", ".join(map(str, absent))
        raise UsageError(
            f"core {listed} may not be used by this process or does not exist",
            f"Choose from {', '.join(map(str, usable))}.",
        )
    return spread(tuple(wished or usable), inventory.processor)


def spread(cores: Sequence[int], processor: Processor) -> tuple[int, ...]:
    """Order cores so that the first few lie far apart: one thread of each physical core first, NUMA nodes in turn."""
    node_of = {core: node.number for node in processor.numa_nodes for core in node.cores}
    sibling_rank: dict[int, int] = {}
    for siblings in processor.siblings:
        present = [core for core in siblings if core in cores]
        sibling_rank.update({core: rank for rank, core in enumerate(present)})
    place_in_node: dict[tuple[int, int], int] = {}

    def key(core: int) -> tuple[int, int, int]:
        rank, node = sibling_rank.get(core, 0), node_of.get(core, 0)
        place = place_in_node[rank, node] = place_in_node.get((rank, node), -1) + 1
        return rank, place, node

    return tuple(core for _, core in sorted((key(core), core) for core in sorted(set(cores))))
