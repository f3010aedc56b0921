"""Studies: designed sets of runs that answer one question.

Adding one is adding a file to this folder, or a folder with a file ``study.py``, with an attribute ``STUDY``. Such a
module is imported whenever studies are listed, so what is heavy (numpy, polars, pydantic) is imported in its functions.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.errors import UsageError

if TYPE_CHECKING:
    from rackscope.studies.base import Study

__all__ = ["STUDY_MODULE", "list_studies", "load_study"]

#: How the names of modules begin that are files of the user's.
STUDY_MODULE = "_study_"


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


def load_study(file: Path) -> Study:
    """The study that a file of the user's defines; the file is run. Raises UsageError."""
    from rackscope.studies.base import Study

    page = "See docs/reference/adding-a-study.md."
    if not file.is_file():
        raise UsageError(f"there is no file {file}", f"Name a study or a file that defines one. {page}")
    spec = importlib.util.spec_from_file_location(f"{STUDY_MODULE}{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{file} cannot be loaded: {type(error).__name__}: {error}", "Correct the file.") from error
    study = getattr(module, "STUDY", None)
    if not isinstance(study, Study):
        raise UsageError(f"{file} defines no STUDY", page)
    return study
