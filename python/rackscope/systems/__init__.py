"""Systems under test. Adding one is adding a module to this folder, with an attribute ``SYSTEM``."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from rackscope.errors import named
from rackscope.systems.knobs import resolve_knobs

if TYPE_CHECKING:
    from rackscope.systems.base import System

__all__ = ["find_system", "list_systems", "resolve_knobs"]


def list_systems() -> tuple[System, ...]:
    """Every system, sorted by name."""
    systems: dict[str, System] = {}
    for module in pkgutil.iter_modules(__path__):
        system = getattr(importlib.import_module(f"{__name__}.{module.name}"), "SYSTEM", None)
        if system is not None:
            systems[system.name] = system
    return tuple(systems[name] for name in sorted(systems))


def find_system(name: str) -> System:
    """The system called ``name``. Raises UsageError, with the nearest names and all of them."""
    return named([name], list_systems(), "there is no system", "Systems")[0]
