"""What was measured here, for a paper's page: the studies that ``--runs`` names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackscope.errors import UsageError
from rackscope.papers.document import Section, Table
from rackscope.report.quantities import format_cell
from rackscope.runs.study import StudyRecord, read_study


@dataclass(frozen=True)
class Measured:
    path: Path
    record: StudyRecord

    def section(self) -> Section:
        """Findings and tables, as the study states them."""
        parts: list[str | Table] = [f"{one.sentence} {one.evidence}".strip() for one in self.record.findings]
        for table in self.record.tables:
            columns = table.columns
            rows = (
                tuple(format_cell(cell, column.unit) for cell, column in zip(row, columns, strict=True))
                for row in table.rows
            )
            parts += [f"{table.title}:", Table(tuple(column.name for column in columns), tuple(rows))]
        return Section(f"Measured here: {self.record.title}", tuple(parts))

    def values(self) -> dict[str, Any]:
        """The same for programs."""
        kept = ("kind", "title", "status", "host", "result")
        return {"path": str(self.path), **{name: getattr(self.record, name) for name in kept}}


def read_measured(paper: str, kinds: Sequence[str], runs: Sequence[Path]) -> list[Measured]:
    """The studies in ``runs``. Raises UsageError for one of a kind not in ``kinds``, RunDirectoryError."""
    found = [Measured(path, read_study(path)) for path in dict.fromkeys(runs)]
    for one in found:
        if one.record.kind not in kinds:
            raise UsageError(
                f"{one.path} is a study of the kind '{one.record.kind}', which {paper} has nothing to set beside",
                f"Name directories that 'rackscope study {' or '.join(kinds)}' left."
                if kinds
                else "Leave out --runs: this page is computed from the paper alone.",
            )
    return found
