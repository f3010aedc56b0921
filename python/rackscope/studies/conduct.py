"""From a request to a study directory, however the study ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rackscope
from rackscope.errors import UsageError
from rackscope.host.inventory import read_inventory
from rackscope.runs.ending import Ending, watched
from rackscope.runs.execute import new_folder
from rackscope.runs.interruption import Interruptions, held_back
from rackscope.runs.options import ProgressCallback
from rackscope.runs.study import MEMBERS, Member, StudyRecord, create_study_folder, read_study, write_study
from rackscope.studies.base import Conduct, OptionKind, Request, Study
from rackscope.systems import find_system
from rackscope.units import format_bytes, format_duration, now_text
from rackscope.workloads import find_workload


def begin(study: Study, request: Request, progress: ProgressCallback) -> Conduct:
    """Make the study's directory and its record, or take up those of the one to go on with. Raises RackscopeError."""
    if study.subject in ("workload", "system") and request.run is not None:
        # Before there is a directory: a name that was mistyped leaves nothing.
        find_system(request.run.system)
        if study.subject == "workload":
            find_workload(request.run.workload)
    if study.check is not None:
        study.check(request)
    resumed = request.values.get("resume") if study.resumable else None
    if resumed:
        folder = Path(resumed)
        record = _taken_up(study, folder)
    else:
        parts = () if request.run is None else (request.run.system, request.run.workload)
        folder = request.out or new_folder("-".join([study.name, *filter(None, parts)]))
        create_study_folder(folder)
        record = _new_record(study, request)
    record.stamp()

    def save() -> None:
        write_study(folder, record)

    def member(name: str, label: str) -> Path:
        record.members.append(Member(folder=name, label=label))
        save()
        return folder / MEMBERS / name

    save()
    return Conduct(folder, record, request, progress, save, member)


def _new_record(study: Study, request: Request) -> StudyRecord:
    return StudyRecord(
        rackscope_version=rackscope.__version__,
        kind=study.name,
        title=_title(study, request),
        command_line=list(request.command_line),
        started_at=now_text(),
        host=read_inventory().to_dict(),
        parameters={
            option.name: _written(value, option.kind)
            for option in study.options
            if (value := request.values.get(option.name.replace("-", "_"))) not in (None, False, ())
        },
    )


def _written(value: Any, kind: OptionKind) -> str:
    """A value as a user would write it."""
    if isinstance(value, tuple):
        return ", ".join(_written(one, kind) for one in value)
    if value is True:
        return "yes"
    if kind == "duration":
        return format_duration(value)
    return format_bytes(value) if kind == "size" else str(value)


def _taken_up(study: Study, folder: Path) -> StudyRecord:
    """The record of a study that ended early. What it had found is found again from its members."""
    record = read_study(folder)
    if record.kind != study.name:
        raise UsageError(f"{folder} holds a study of kind {record.kind}, not {study.name}", "Name another --resume.")
    if record.status == "running":
        raise UsageError(f"the study in {folder} is still going on", "Wait until it ends.")
    record.status, record.status_reason, record.finished_at = "running", "", None
    record.findings, record.tables, record.charts, record.method = [], [], [], []
    return record


def conduct(study: Study, under_way: Conduct) -> None:
    """Do the study; its record says how it ended. Raises what the study raised, after that."""
    with held_back() as interruptions:
        _conduct(study, under_way, interruptions)


def _conduct(study: Study, under_way: Conduct, interruptions: Interruptions) -> None:
    record = under_way.record
    ending = Ending()
    try:
        with watched() as ending, interruptions.allowed():
            study.conduct(under_way)
    finally:
        record.status, record.status_reason = ending.status, ending.reason
        record.finished_at = now_text()
        under_way.save()


def _title(study: Study, request: Request) -> str:
    if study.title is not None:
        return study.title(request)
    if request.run is None:
        return study.name.capitalize()
    return f"{study.name.capitalize()} of {request.run.system} under {request.run.workload}"
