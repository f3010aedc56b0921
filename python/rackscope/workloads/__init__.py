"""What is asked of a system. One file a family; each module's ``WORKLOADS`` is found here."""

from __future__ import annotations

import importlib
import pkgutil

from rackscope.errors import UsageError, named
from rackscope.workloads.base import Parameter, PhasePlan, Stage, Workload, WorkloadPlan
from rackscope.workloads.parameters import plan

__all__ = [
    "Parameter",
    "PhasePlan",
    "Stage",
    "Workload",
    "WorkloadPlan",
    "find_workload",
    "list_workloads",
    "plan",
]


def list_workloads() -> tuple[Workload, ...]:
    """Every workload of every family, in the order of the families' names."""
    found: list[Workload] = []
    for module_info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        family = getattr(module, "WORKLOADS", ())
        if not isinstance(family, tuple):
            raise UsageError(f"WORKLOADS of {module.__file__} is not a tuple", "Put a comma after its only entry.")
        found.extend(family)
    return tuple(found)


def find_workload(name: str) -> Workload:
    """The workload called ``name``. Raises UsageError that names the nearest ones."""
    return named([name], list_workloads(), "there is no workload", "There are")[0]
