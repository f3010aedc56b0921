"""Studies: designed sets of runs that answer one question.

Adding one is adding a module to this folder, with an attribute ``STUDY``.
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
        study = getattr(importlib.import_module(f"{__name__}.{module.name}"), "STUDY", None)
        if study is not None:
            studies[study.name] = study
    return tuple(studies[name] for name in sorted(studies))
