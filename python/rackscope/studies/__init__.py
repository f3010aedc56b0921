"""Studies: designed sets of runs that answer one question.

Adding one is adding a module to this folder, with an attribute ``STUDY``. Such a module is imported whenever studies
are listed, so what is heavy (numpy, polars, pydantic, the record models) is imported in its functions.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rackscope.studies.base import Study

__all__ = ["list_studies"]


def list_studies() -> tuple[Study, ...]:
    """Every study, sorted by name."""
    studies: dict[str, Study] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.ispkg or not _defines_a_study(module):
            continue
        study: Study = importlib.import_module(f"{__name__}.{module.name}").STUDY
        studies[study.name] = study
    return tuple(studies[name] for name in sorted(studies))


def _defines_a_study(module: pkgutil.ModuleInfo) -> bool:
    """Read rather than imported: the modules that studies are made of import what is heavy."""
    found = module.module_finder.find_spec(module.name, None)
    source = getattr(found.loader, "get_source", None) if found is not None else None
    text = source(module.name) if source is not None else None
    return text is not None and "\nSTUDY = " in text
