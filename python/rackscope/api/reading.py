"""``rackscope.read``: what a folder holds."""

from __future__ import annotations

from pathlib import Path

from rackscope.api.run import Run
from rackscope.api.study import Study
from rackscope.runs.study import is_study


def read(folder: str | Path) -> Run | Study:
    """Open a run directory or a study directory, of this format or an older one.

    A run that was killed is readable up to that moment: see ``remarks``. Raises RunDirectoryError for a folder that is
    neither, or that cannot be read.
    """
    path = Path(folder)
    return Study.open(path) if is_study(path) else Run.open(path)
