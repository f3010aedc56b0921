"""Squeezes take away a known part of one resource, show how much is left, and give it back. One file a resource."""

from __future__ import annotations

from rackscope.squeezes.base import Squeeze

__all__ = ["find_squeezes"]

#: The order in which they are shown and made: resources as Awasthi 2015, Table 4, has them, by module. Others follow.
_ORDER = (
    "cpu_share",
    "cpu_set",
    "core_frequency",
    "last_level_cache",
    "dram_bandwidth",
    "dram_capacity",
    "disk",
    "network",
)


def find_squeezes() -> tuple[Squeeze, ...]:
    """Every squeeze there is, whether or not it can be made here, always in the same order."""
    # Here, as every command imports this room at its start, to see whether something is left squeezed.
    import importlib
    import pkgutil

    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    names.sort(key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
    found: list[Squeeze] = []
    for name in names:
        found.extend(getattr(importlib.import_module(f"{__name__}.{name}"), "SQUEEZES", ()))
    return tuple(found)
