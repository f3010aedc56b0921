"""From a request to a study directory, however the study ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rackscope
from rackscope.errors import RackscopeError
from rackscope.runs.execute import new_folder
from rackscope.runs.hostfacts import inventory_part
from rackscope.runs.interruption import Interruptions, held_back
from rackscope.runs.prepare import now_text
from rackscope.runs.study import MEMBERS, Member, StudyRecord, create_study_folder, stamp, write_study
from rackscope.studies.base import Conduct

if TYPE_CHECKING:
    from pathlib import Path

    from rackscope.runs.options import ProgressCallback
    from rackscope.runs.study import Status
    from rackscope.studies.base import Request, Study


def begin(study: Study, request: Request, progress: ProgressCallback) -> Conduct:
    """Make the study's directory and its record. Raises RackscopeError."""
    subject = "" if request.run is None else f"-{request.run.system}-{request.run.workload}"
    folder = request.out or new_folder(f"{study.name}{subject}")
    create_study_folder(folder)
    inventory, _ = inventory_part()
    record = StudyRecord(
        rackscope_version=rackscope.__version__,
        kind=study.name,
        title=_title(study, request),
        command_line=list(request.command_line),
        started_at=now_text(),
        host=inventory,
        parameters={name: str(value) for name, value in request.values.items() if value not in (None, False, ())},
    )
    stamp(record)

    def save() -> None:
        write_study(folder, record)

    def member(name: str, label: str) -> Path:
        record.members.append(Member(folder=name, label=label))
        save()
        return folder / MEMBERS / name

    save()
    return Conduct(folder, record, request, progress, save, member)


def conduct(study: Study, under_way: Conduct) -> None:
    """Do the study; its record says how it ended. Raises what the study raised, after that."""
    with held_back() as interruptions:
        _conduct(study, under_way, interruptions)


def _conduct(study: Study, under_way: Conduct, interruptions: Interruptions) -> None:
    record = under_way.record
    status: Status = "failed"
    reason = ""
    try:
        with interruptions.allowed():
            study.conduct(under_way)
        status = "complete"
    except KeyboardInterrupt as stop:
        status, reason = "interrupted", str(stop) or "stopped by Ctrl-C"
        raise
    except RackscopeError as error:
        reason = error.what
        raise
    except BaseException as error:
        reason = f"{type(error).__name__}: {error}"
        raise
    finally:
        record.status, record.status_reason = status, reason
        record.finished_at = now_text()
        under_way.save()


def _title(study: Study, request: Request) -> str:
    if study.title is not None:
        return study.title(request)
    if request.run is None:
        return study.name
    return f"{study.name} of {request.run.system} under {request.run.workload}"
