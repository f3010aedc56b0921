"""Models: from servers that were measured to one that was not, each prediction with its interval.

Adding one is adding a module to this folder, with an attribute ``MODELS``. Such a module is imported whenever models
are listed, so scipy and polars, which only fitting needs, are imported in its functions.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from rackscope.errors import named

if TYPE_CHECKING:
    from rackscope.models.trained.model import Model

__all__ = ["find_model", "list_models"]


def list_models() -> tuple[Model, ...]:
    """Every model, sorted by name."""
    found: dict[str, Model] = {}
    for module in pkgutil.iter_modules(__path__):
        for model in getattr(importlib.import_module(f"{__name__}.{module.name}"), "MODELS", ()):
            found[model.name] = model
    return tuple(found[name] for name in sorted(found))


def find_model(name: str) -> Model:
    """The model called ``name``. Raises UsageError, with all names."""
    return named([name], list_models(), "there is no model", "Models")[0]
