"""Studies: designed sets of runs that answer one question.

Adding one is adding a file to this folder, or a folder with a file ``study.py``, with an attribute ``STUDY``. Such a
module is imported whenever studies are listed, so what is heavy (numpy, polars, pydantic) is imported in its functions.
"""

from __future__ import annotations

import importlib
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rackscope.studies.base import Study

__all__ = ["list_studies"]


def list_studies() -> tuple[Study, ...]:
    """Every study, sorted by name."""
    studies: dict[str, Study] = {}
    for entry in resources.files(__name__).iterdir():
        name = entry.name.removesuffix(".py")
        file = entry / "study.py" if entry.is_dir() else entry
        # Read rather than imported: the other modules of this folder import what is heavy.
        if not file.is_file() or not file.name.endswith(".py") or "\nSTUDY = " not in file.read_text("utf-8"):
            continue
        module = importlib.import_module(f"{__name__}.{name}.study" if entry.is_dir() else f"{__name__}.{name}")
        study: Study = module.STUDY
        studies[study.name] = study
    return tuple(studies[name] for name in sorted(studies))
