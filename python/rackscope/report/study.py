"""From a study directory to its one file."""

from __future__ import annotations

from pathlib import Path

from rackscope.report.build import REPORT_NAME
from rackscope.runs.files import write_atomically
from rackscope.runs.study import read_study


def write_study_report(path: Path, out: Path | None = None) -> Path:
    """Write the report of the study in ``path``; where it was written. Raises RunDirectoryError."""
    record = read_study(path)
    target = out if out is not None else path / REPORT_NAME
    write_atomically(target, record.title.encode())
    return target
