"""What a study directory or a run directory says about pressure points: per phase and resource, and on what it rests.

A pressure study squeezed resources, so it may prove what limits. A run only knows how hard each resource worked and
whether tasks queued for it: weaker evidence, of which nothing is ever called proven.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from rackscope.analysis.findings import PhaseCharacterisation, ResourceAssessment
from rackscope.errors import RunDirectoryError
from rackscope.runs.directory import RunDirectory
from rackscope.runs.facts import characterise_run
from rackscope.runs.study import STUDY, is_study_or_run, read_study

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Status = Literal["limits", "does_not_limit", "inconclusive", "not_squeezable"]
Verdict = Literal["limits", "does not limit", "inconclusive", "not known"]
Basis = Literal["experiment", "intensity", "none"]

#: The columns of Awasthi 2015, Table 4, with DRAM taken apart, and the last-level cache.
RESOURCES = {
    "cpu": "CPU",
    "dram_capacity": "DRAM capacity",
    "dram_bandwidth": "DRAM bandwidth",
    "last_level_cache": "last-level cache",
    "disk": "disk",
    "network": "network",
}
_VERDICTS: Mapping[_Status, Verdict] = {
    "limits": "limits",
    "does_not_limit": "does not limit",
    "inconclusive": "inconclusive",
    "not_squeezable": "not known",
}
#: Of several squeezes or devices of one resource the first of these speaks for it.
_ORDER: tuple[Verdict, ...] = ("limits", "inconclusive", "does not limit", "not known")
#: Which resource of a characterisation is weaker evidence on which of these.
CHARACTERISED = {"cpu_system": "cpu"} | {name: name for name in ("dram_capacity", "dram_bandwidth", "disk", "network")}
_BY_STATUS: Mapping[str, Verdict] = {
    "limits": "limits",
    "near": "inconclusive",
    "unknown": "not known",
    "spare": "does not limit",
}


@dataclass(frozen=True)
class Estimate:
    """A figure with the ends of its 95 % interval, where these are known."""

    estimate: _Number
    low: _Number | None
    high: _Number | None


@dataclass(frozen=True)
class Cell:
    """What is known of one resource in one phase. ``slack`` is the part of it that could be taken away at no cost."""

    verdict: Verdict
    basis: Basis
    sentence: str
    elasticity: Estimate | None = None
    p99_elasticity: Estimate | None = None
    slack: float | None = None
    #: Use divided by ceiling, where the cell rests on that.
    intensity: float | None = None


@dataclass(frozen=True)
class PressureRow:
    """One phase of one system under one workload; a cell for each of ``RESOURCES``."""

    system: str
    workload: str
    phase: str
    cells: Mapping[str, Cell]


@dataclass(frozen=True)
class Source:
    """A directory and what it says. ``remarks`` are what a reader must know of it, ``damage`` is what of it is lost."""

    path: Path
    kind: Literal["study", "run"]
    rows: tuple[PressureRow, ...]
    host: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()


class MalformedResultError(ValueError):
    """A study's result is not what a pressure study writes; the message names the place."""


def read_pressure_points(path: Path) -> Source:
    """Read a directory of a pressure study or of a run. Raises RunDirectoryError."""
    advice = "Name directories that 'rackscope study pressure' or 'rackscope run' left."
    return _of_study(path) if is_study_or_run(path, advice) else _of_run(path)


def _of_study(path: Path) -> Source:
    record = read_study(path)
    if record.kind != "pressure":
        raise RunDirectoryError(
            f"{path} is a study of another kind ({record.kind}), which squeezed nothing",
            "Name pressure studies and runs.",
        )
    remarks = []
    if record.status != "complete":
        remarks.append(f"{path}: the study did not finish ({record.status_reason or record.status})")
    if not record.result.get("phases"):
        raise RunDirectoryError(
            f"{path} has no pressure points: {record.status_reason or 'no phase was measured'}",
            "Run 'rackscope study pressure' again.",
        )
    try:
        rows = rows_of_result(record.result)
    except MalformedResultError as error:
        raise RunDirectoryError(
            f"{path / STUDY} is damaged: {error}", "Run 'rackscope study pressure' again."
        ) from error
    return Source(path, "study", rows, record.host, tuple(remarks))


def rows_of_result(result: Mapping[str, Any]) -> tuple[PressureRow, ...]:
    """The rows of a pressure study's ``result``. Raises MalformedResultError."""
    try:
        known = _result_adapter().validate_python(result)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise MalformedResultError(f"{'.'.join(map(str, ('result', *first['loc'])))}: {first['msg']}") from error
    rows = []
    for phase in known.phases:
        members = {name: [_squeezed(one) for one in phase.resources if one.resource == name] for name in RESOURCES}
        cells = {name: _strongest(found) for name, found in members.items()}
        rows.append(PressureRow(known.system, known.workload, phase.phase, cells))
    return tuple(rows)


@dataclass(frozen=True)
class _Squeezed:
    """A squeeze in a study's result, as far as it is read here."""

    resource: str
    status: _Status
    evidence: str
    sentence: str | None = None
    elasticity: Estimate | None = None
    p99_elasticity: Estimate | None = None
    slack: _Number | None = None
    weaker_status: _Status | None = None


@dataclass(frozen=True)
class _Phase:
    phase: str
    resources: list[_Squeezed]


@dataclass(frozen=True)
class _Result:
    system: str
    workload: str
    phases: list[_Phase]


@cache
def _result_adapter() -> TypeAdapter[_Result]:
    return TypeAdapter(_Result)


def _squeezed(found: _Squeezed) -> Cell:
    is_weaker = found.status == "not_squeezable" and found.evidence == "intensity"
    verdict = _VERDICTS[(found.weaker_status or found.status) if is_weaker else found.status]
    known: Mapping[str, Basis] = {"experiment": "experiment", "intensity": "intensity"}
    basis = "none" if verdict == "not known" else known.get(found.evidence, "none")
    return Cell(verdict, basis, found.sentence or "", found.elasticity, found.p99_elasticity, found.slack)


def _strongest(cells: Sequence[Cell]) -> Cell:
    """Several ways to squeeze one resource, as one: it limits where one of them shows that, and proof goes first."""
    if not cells:
        return Cell("not known", "none", "the study did not squeeze it")
    proven = [cell for cell in cells if cell.basis == "experiment"] or list(cells)
    verdict = min((cell.verdict for cell in proven), key=_ORDER.index)
    chosen = [cell for cell in proven if cell.verdict == verdict]
    leader = max(chosen, key=lambda cell: -math.inf if cell.elasticity is None else cell.elasticity.estimate)
    slacks = [cell.slack for cell in proven]
    known = [slack for slack in slacks if slack is not None]
    return Cell(
        verdict=verdict,
        basis=leader.basis,
        sentence="; ".join(dict.fromkeys(cell.sentence for cell in chosen if cell.sentence)),
        elasticity=leader.elasticity,
        p99_elasticity=leader.p99_elasticity,
        # What one way to take it away cannot show to be free is not free.
        slack=min(known) if known and len(known) == len(slacks) else None,
        intensity=leader.intensity,
    )


def _of_run(path: Path) -> Source:
    run = RunDirectory.open(path)
    characterisation = characterise_run(run)
    measured = [phase for phase in characterisation.phases if phase.kind == "measure"]
    if not measured:
        why = (*run.damage, *run.remarks, "no measured phase was completed")
        raise RunDirectoryError(
            f"{path} shows no pressure points: {why[0]}", "Name a run whose measured phase was completed."
        )
    manifest = run.manifest
    remarks = [f"{path}: {remark}" for remark in run.remarks]
    remarks += [
        f"{path}, {phase.phase}: the load generator was the limit, so nothing is known of what would limit the system"
        for phase in measured
        if phase.verdict.kind == "generator"
    ]
    rows = tuple(
        PressureRow(manifest.system.name, manifest.workload.name, phase.phase, _characterised(phase))
        for phase in measured
    )
    return Source(path, "run", rows, manifest.host, tuple(remarks), run.damage)


def by_resource(phase: PhaseCharacterisation) -> dict[str, list[ResourceAssessment]]:
    """What a run shows of each of ``RESOURCES`` that it shows anything of."""
    members: dict[str, list[ResourceAssessment]] = {}
    for one in phase.resources:
        if one.resource in CHARACTERISED:
            members.setdefault(CHARACTERISED[one.resource], []).append(one)
    return members


def worst_of(members: Sequence[ResourceAssessment]) -> tuple[ResourceAssessment, str]:
    """The device that is closest to its limit, and that in words; one of which nothing is known goes before one with
    capacity to spare."""
    order = ("limits", "near", "unknown", "spare")
    worst = min(members, key=lambda one: (order.index(one.status), -(one.intensity or 0.0)))
    if worst.intensity is None:
        sentence = f"{worst.label}: {worst.intensity_reason or 'its use is not known'}"
    else:
        sentence = f"{worst.label} was used at {100 * worst.intensity:.0f} % of its ceiling"
    if worst.saturation not in (None, "none"):
        sentence += f", with {worst.saturation} signs of waiting"
    return worst, sentence


def _characterised(phase: PhaseCharacterisation) -> dict[str, Cell]:
    members = by_resource(phase)
    unmeasured = Cell("not known", "none", "a run does not measure it; 'rackscope study pressure' can")
    return {name: _busiest(members[name]) if name in members else unmeasured for name in RESOURCES}


def _busiest(members: Sequence[ResourceAssessment]) -> Cell:
    worst, sentence = worst_of(members)
    verdict = _BY_STATUS[worst.status]
    if verdict == "not known" and worst.advice:
        sentence += f". {worst.advice}"
    return Cell(verdict, "none" if verdict == "not known" else "intensity", sentence, intensity=worst.intensity)
