"""A study directory, opened: its findings, tables and members."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from rackscope.api.run import Run
from rackscope.report.study import write_study_report
from rackscope.runs.directory import MANIFEST, REPORT
from rackscope.runs.study import MEMBERS, Finding, StudyRecord, is_below, is_study, read_study


class Study:
    """One study of any kind; ``record`` is all of ``study.json``."""

    def __init__(self, path: Path, record: StudyRecord) -> None:
        self.path = path
        self.record = record

    @classmethod
    def open(cls, folder: str | Path) -> Study:
        """Read a study directory. Raises RunDirectoryError."""
        path = Path(folder)
        return cls(path, read_study(path))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, the most important first; each has ``sentence``, ``severity`` and ``evidence``."""
        return tuple(self.record.findings)

    @property
    def result(self) -> Mapping[str, Any]:
        """The findings for programs; each kind of study describes its own (docs/reference/study-results.md)."""
        return self.record.result

    @cached_property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The study's tables by their identifiers; columns as they are headed, null is not known."""
        return {
            table.identifier: pl.DataFrame(
                {column.name: [row[at] for row in table.rows] for at, column in enumerate(table.columns)}, strict=False
            )
            for table in self.record.tables
        }

    @cached_property
    def runs(self) -> Mapping[str, Run]:
        """The member runs that were begun, by folder below ``runs/``. Raises RunDirectoryError for one that is none."""
        return {name: Run.open(folder) for name, folder in self.members.items()}

    @property
    def members(self) -> Mapping[str, Path]:
        """The folders of the member runs that were begun."""
        names = [member.folder for member in self.record.members]
        folders = {name: self.path / MEMBERS / name for name in names if is_below(name)}
        return {name: folder for name, folder in folders.items() if (folder / MANIFEST).is_file()}

    @property
    def remarks(self) -> tuple[str, ...]:
        """How the study ended, where not well, and where what it measured is."""
        if self.record.status in ("complete", "running"):
            return ()
        said = f"This study did not finish: {self.record.status_reason or 'it was interrupted'}."
        if not self.members:
            return (said, "Nothing was measured.")
        return (
            said,
            "The windows measured until then are in "
            + ", ".join(str(folder) for folder in self.members.values())
            + ": 'rackscope report' reads each of these folders.",
        )

    def write_report(self, out: str | Path | None = None) -> Path:
        """Write the HTML report, into the study directory by default; where it is. Raises RunDirectoryError."""
        return write_study_report(self.path, None if out is None else Path(out))

    def to_dict(self, report: Path | None = None) -> dict[str, Any]:
        """What ``rackscope study --json`` and ``rackscope report --json`` print."""
        page = report or self.path / REPORT
        return {
            "study_directory": str(self.path),
            "report": str(page),
            "remarks": list(self.remarks),
            **self.record.model_dump(exclude={"charts"}),
        }

    def __repr__(self) -> str:
        """The findings in words: what a notebook shows."""
        head = f"{self.record.title}, {self.record.status}: {self.path}"
        return "\n".join([head, *self.remarks, *(f"- {finding.sentence}" for finding in self.findings[:5])])


def read(folder: str | Path) -> Run | Study:
    """Open a run directory or a study directory, of this format or an older one.

    A run that was killed is readable up to that moment: see ``remarks``. Raises RunDirectoryError for a folder that is
    neither, or that cannot be read.
    """
    path = Path(folder)
    return Study.open(path) if is_study(path) else Run.open(path)
