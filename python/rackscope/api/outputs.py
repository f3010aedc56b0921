"""What each verb prints with ``--json``, as models for schemas. What is not known, or not finite, is null."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from rackscope.analysis.comparison import ComparisonRow
from rackscope.analysis.findings import Characterisation
from rackscope.api.run import RunWarning
from rackscope.api.systems import Output
from rackscope.host.checks import Check
from rackscope.models.trained.pair_validation import PairScore
from rackscope.models.trained.shipped import Cost, Errors
from rackscope.models.trained.validation import Score
from rackscope.runs.manifest import ClientPart, OverheadPart, RepetitionPart, SystemPart, WorkloadPart
from rackscope.runs.study import Chart, Status, StudyRecord
from rackscope.studies.pressure.points import Cell


class FailureOutput(Output):
    """Any verb that failed or was stopped: standard error has the same as a line."""

    status: Literal["failed", "interrupted"]
    error: str = ""
    advice: str = ""
    #: Where what was measured until then is; null when nothing was.
    run_directory: str | None = None
    study_directory: str | None = None


class RunOutput(Output):
    """``run`` and ``report RUN``."""

    status: Status
    status_reason: str
    run_directory: str
    report: str | None
    system: SystemPart
    workload: WorkloadPart
    client: ClientPart
    repetition: RepetitionPart
    #: Rows of results.parquet, with watts and joules where power was metered.
    results: list[dict[str, int | float | str | None]]
    characterisation: Characterisation
    #: Metered (``source`` is ``metered``) or modelled power; null where neither is known.
    energy: dict[str, Any] | None
    overhead: OverheadPart
    warnings: list[RunWarning]
    remarks: list[str]
    damage: list[str]


class StudyOutput(StudyRecord):
    """``study`` and ``report STUDY``: ``study.json`` without its charts."""

    model_config = ConfigDict(extra="forbid", json_schema_serialization_defaults_required=True)

    charts: list[Chart] = Field(default_factory=list, exclude=True)
    study_directory: str
    report: str
    remarks: list[str]


class CompareOutput(Output):
    """``compare A B``."""

    a: str
    b: str
    remarks_a: list[str]
    remarks_b: list[str]
    rows: tuple[ComparisonRow, ...]
    warnings: tuple[str, ...]


class MatrixRow(Output):
    """A system under a workload; ``cells`` by resource."""

    label: str
    path: str
    kind: str
    system: str
    workload: str
    phase: str
    limits: list[str]
    cells: dict[str, Cell]


class NotRead(Output):
    """A directory that could not be read, and why."""

    path: str
    error: str
    advice: str


class MatrixOutput(Output):
    """``matrix RUN...``."""

    rows: list[MatrixRow]
    remarks: list[str]
    not_read: list[NotRead]
    report: str | None


class DoctorOutput(Output):
    """``doctor``; ``bad`` when something would make results wrong or impossible."""

    checks: list[Check]
    bad: bool


class RepairOutput(Output):
    """``doctor --repair``."""

    repaired: list[str]
    left: list[str]


class AcquiredProgram(Output):
    """A program, where it is and what it came from."""

    name: str
    program: str
    version: str
    source: str


class GetOutput(Output):
    """``get NAME...``."""

    acquired: list[AcquiredProgram]


class PruneOutput(Output):
    """``prune``: paths; ``refused`` has the reason of each."""

    chosen: list[str]
    removed: list[str]
    freed_bytes: int
    kept: list[str]
    refused: dict[str, str]


class ProjectedFigure(Output):
    """One figure on another server: with ``value`` and its interval (of ``level``), or ``refused`` with the reason."""

    name: str
    what: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: str | None = None
    basis: str | None = None
    extrapolated: bool | None = None
    level: float | None = None
    stands_on: str
    changes_if: str
    refused: str


class ProjectedServer(Output):
    """One server of the file."""

    server: str
    cores: int
    same_processor: bool
    answers: list[ProjectedFigure]
    notes: list[str]


class ProjectOutput(Output):
    """``project RUN... --to FILE``."""

    system: str
    workload: str
    phase: str
    runs: list[str]
    host: str | None
    servers_file: str
    rate_per_second: float | None
    servers: list[ProjectedServer]
    refused: list[str]
    remarks: list[str]
    report: str | None = None
    catalogue: str | None = None


class ModelInput(Output):
    """What has to be known of a server."""

    model_config = ConfigDict(extra="allow")


class DescribedModel(Output):
    """A trained model."""

    model_config = ConfigDict(extra="allow")

    name: str
    help: str
    unit: str
    inputs: list[ModelInput]
    predicted: str


class ModelsListOutput(Output):
    """``models list``."""

    models: list[DescribedModel]


class ServerPrediction(Output):
    """What one model says of the described server; the interval holds ``level`` of the time."""

    model: str
    what: str
    value: float
    low: float
    high: float
    unit: str
    basis: str
    extrapolated: bool
    level: float


class ModelsPredictOutput(Output):
    """``models predict``: ``not_predicted`` says by model what it needs, or why it refuses."""

    server: dict[str, Any]
    predictions: list[ServerPrediction]
    not_predicted: dict[str, str]


class WrittenFit(Output):
    """The file of one model, with its errors on processors left out of the fit."""

    path: str
    model: str
    rows: int
    processors: int
    errors: list[Errors]
    cost: Cost


class ModelsFitOutput(Output):
    """``models fit``."""

    fits: list[WrittenFit]


class ModelsValidateOutput(Output):
    """``models validate``."""

    fitted_on: str
    judged_on: str
    confidence: float
    models: dict[str, DescribedModel]
    #: ``reaches_aims``: whether the errors are within those aimed at.
    scores: list[Score]
    rows_left_out_as_incomplete: dict[str, Any]
    not_judged: dict[str, str]
    no_public_table: Any


class ModelsPairsOutput(Output):
    """``models validate --pairs``."""

    judged_on: str
    confidence: float
    scores: list[PairScore]


class ListedPaper(Output):
    """A paper, and the studies that redo it."""

    name: str
    title: str
    citation: str
    studies: list[str]


class PaperFigure(Output):
    """A table or figure of a paper, and the command that redoes it."""

    what: str
    shows: str
    here: str


class PaperOutput(Output):
    """``paper``: what all pages have; each adds its own numbers by name."""

    model_config = ConfigDict(extra="allow")
    paper: str
    citation: str
    #: Studies of ``--runs``.
    measured: list[dict[str, Any]]
    figures: list[PaperFigure]


class PaperListOutput(Output):
    """``paper --list``."""

    papers: list[ListedPaper]
