"""``study.json``: what a study asked, did and found, in a form that any report can show. This model is its definition.

A study directory holds ``study.json``, ``report.html`` and, under ``runs/``, the run directories of its members.
Findings, tables and charts say what is to be shown and in which unit; how it is drawn is the report's matter, so that
a new study needs no code there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from rackscope.errors import RunDirectoryError
from rackscope.runs.directory import MANIFEST
from rackscope.runs.files import cannot_make, write_record
from rackscope.runs.kept import Conducted, Part, read_kept

FORMAT_VERSION = 2
STUDY = "study.json"
MEMBERS = "runs"
#: Larger than any study of ours; anything beyond is not one.
STUDY_LIMIT_BYTES = 64 * 1024 * 1024

Status = Literal["running", "complete", "interrupted", "failed"]
#: Units that ``report/quantities.py`` writes; the empty one is a plain number, ``text`` is shown as it is.
Unit = Literal["", "text", "ratio", "percent", "seconds", "bytes", "bytes/s", "operations/s", "count", "cores", "hertz"]


class Finding(Part):
    """One sentence that answers the question, or that a reader must know; the first ones matter most."""

    sentence: str
    severity: Literal["finding", "note", "warning", "serious"] = "finding"
    #: What it stands on: figures with their intervals, how many repetitions.
    evidence: str = ""


class Column(Part):
    """A column of a table."""

    name: str
    unit: Unit = "text"
    help: str = ""


class Table(Part):
    """Rows as wide as ``columns``; ``None`` is what is not known. The first column names the row."""

    identifier: str
    title: str
    caption: str = ""
    columns: list[Column]
    rows: list[list[str | float | int | bool | None]] = Field(default_factory=list)

    @model_validator(mode="after")
    def _is_rectangular(self) -> Table:
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} has {len(row)} cells, and there are {len(self.columns)} columns")
        return self


class Axis(Part):
    """An axis of a chart. A ``category`` axis shows ``categories``, and its values are places in that list."""

    label: str
    unit: Unit = ""
    scale: Literal["linear", "logarithmic", "category"] = "linear"
    categories: list[str] = Field(default_factory=list)


class Series(Part):
    """Points of one label; ``low`` and ``high`` are the ends of each point's interval at ``level``, if there are any.

    Along a line they are drawn as a band. ``x_low`` and ``x_high`` are the same of ``x``, of ``points`` whose place on
    both axes is uncertain.
    """

    label: str
    x: list[float]
    y: list[float | None]
    low: list[float | None] = Field(default_factory=list)
    high: list[float | None] = Field(default_factory=list)
    x_low: list[float] = Field(default_factory=list)
    x_high: list[float] = Field(default_factory=list)
    kind: Literal["line", "points", "bars"] = "line"
    level: float = Field(default=0.95, gt=0, lt=1)

    @model_validator(mode="after")
    def _has_pairs(self) -> Series:
        ends: tuple[Sequence[float | None], ...] = (self.low, self.high, self.x_low, self.x_high)
        lengths = {len(self.x), len(self.y), *map(len, filter(None, ends))}
        if len(lengths) > 1:
            raise ValueError(f"x has {len(self.x)} values; y, low and high must have as many")
        return self


class Reference(Part):
    """A line across the chart at a value of one axis, such as the bound of an SLO."""

    label: str
    value: float
    axis: Literal["x", "y"] = "y"


class Chart(Part):
    """One chart."""

    identifier: str
    title: str
    caption: str = ""
    x: Axis
    y: Axis
    series: list[Series] = Field(default_factory=list)
    references: list[Reference] = Field(default_factory=list)


class Member(Part):
    """A run of the study: its folder below ``runs/`` and what it was."""

    folder: str
    label: str
    #: Why it does not count; empty when it does.
    discarded: str = ""


class StudyRecord(Conducted):
    """The whole file."""

    format_version: int = FORMAT_VERSION
    rackscope_version: str
    kind: str
    title: str
    status: Status = "running"
    status_reason: str = ""
    command_line: list[str] = Field(default_factory=list)
    started_at: str
    finished_at: str | None = None
    host: dict[str, Any] = Field(default_factory=dict)
    #: What was asked: option by option, as a reader would write it.
    parameters: dict[str, str] = Field(default_factory=dict)
    findings: list[Finding] = Field(default_factory=list)
    tables: list[Table] = Field(default_factory=list)
    charts: list[Chart] = Field(default_factory=list)
    #: How it was done: repetitions, order, what was discarded and why, which statistics.
    method: list[str] = Field(default_factory=list)
    members: list[Member] = Field(default_factory=list)
    #: The same for programs; docs/reference/study-results.md describes it for each kind of study.
    result: dict[str, Any] = Field(default_factory=dict)


def create_study_folder(path: Path) -> None:
    """Make a study directory, which must hold no study and no run yet. Raises RunDirectoryError."""
    try:
        if (path / STUDY).exists() or (path / MANIFEST).exists():
            raise RunDirectoryError(f"{path} already holds a study or a run", "Choose another folder with --out.")
        (path / MEMBERS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_make(path, error) from error


def write_study(path: Path, record: StudyRecord) -> None:
    """Replace ``study.json`` (temporary name, fsync, rename). Raises RunDirectoryError."""
    write_record(path / STUDY, record)


def is_study(path: Path) -> bool:
    """Whether the folder holds a study."""
    return (path / STUDY).is_file()


def is_study_or_run(path: Path, advice: str) -> bool:
    """Whether the folder holds a study. Raises RunDirectoryError, with the advice, where it holds no run either."""
    if not is_study(path) and path.is_dir() and not (path / MANIFEST).exists():
        raise RunDirectoryError(f"{path} holds neither a study nor a run (no {STUDY}, no {MANIFEST})", advice)
    return is_study(path)


def is_below(folder: str) -> bool:
    """Whether the name of a member, which may come from anywhere, stays in the study's own directory."""
    return bool(folder) and "\0" not in folder and not Path(folder).is_absolute() and ".." not in Path(folder).parts


def read_study(path: Path) -> StudyRecord:
    """Read ``study.json`` and settle what became of the study. Raises RunDirectoryError."""
    file = path / STUDY
    another = "Name a study directory, such as one that 'rackscope study' left under runs/."
    try:
        record = read_kept(
            file,
            StudyRecord,
            what="study",
            limit_bytes=STUDY_LIMIT_BYTES,
            format_version=FORMAT_VERSION,
            upgrade=_upgrade,
            again="Run the study again.",
            another=another,
        )
    except FileNotFoundError:
        raise RunDirectoryError(f"{path} is not a study directory (it has no {STUDY})", another) from None
    if record.status == "running" and not record.is_still_conducted():
        record.status, record.status_reason = "interrupted", "rackscope was killed before the study ended"
    return record


#: Words of format 1 in keys, names of options and verdicts. Sentences stay as they were written.
_RENAMED = {
    "abstains": "inconclusive",
    "abstained": "inconclusive",
    "stretch": "window",
    "stretches": "windows",
    "stretch_seconds": "window_seconds",
}


def _upgrade(value: Any) -> Any:
    """A record of format 1 in the words of this one; the command line is left as it was typed."""
    if isinstance(value, dict):
        return {_RENAMED.get(key, key): one if key == "command_line" else _upgrade(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_upgrade(one) for one in value]
    return _RENAMED.get(value, value) if isinstance(value, str) else value
