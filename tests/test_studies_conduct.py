"""However a study ends, its directory says how, keeps what was found, and is never written over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rackscope.errors import RackscopeError, RunDirectoryError, StudyError, UsageError
from rackscope.runs.options import Progress, RunOptions
from rackscope.runs.study import Finding, StudyRecord, read_study
from rackscope.studies.base import Conduct, Option, Request, Study
from rackscope.studies.conduct import begin, conduct


def ignore(_step: Progress) -> None:
    """Nobody looks."""


def study_that(ends: Callable[[], None], *, saves: bool = True) -> Study:
    """Finds something, saves it, and ends as asked."""

    def work(under_way: Conduct) -> None:
        under_way.member("first", "the first run")
        under_way.record.findings = [Finding(sentence="something was found")]
        under_way.record.result = {"found": 1}
        if saves:
            under_way.save()
        ends()

    budget = Option("budget", "duration", "how long it may take")
    return Study("made-up", "made up", "Made up.", work, subject="none", options=(budget,))


def raising(error: BaseException) -> Callable[[], None]:
    def end() -> None:
        raise error

    return end


def conducted(study: Study, folder: Path) -> StudyRecord:
    conduct(study, begin(study, Request(None, {"budget": 30.0}, folder, ("rackscope", "study")), ignore))
    return read_study(folder)


def test_a_study_that_ends_well_is_complete(tmp_path: Path) -> None:
    # What was not saved before the end is saved at the end.
    record = conducted(study_that(lambda: None, saves=False), tmp_path / "study")
    assert (record.status, record.status_reason) == ("complete", "")
    assert record.finished_at is not None
    assert record.findings[0].sentence == "something was found"
    assert (record.kind, record.title, record.parameters) == ("made-up", "Made-up", {"budget": "30.0 s"})
    assert record.command_line == ["rackscope", "study"]
    assert [member.folder for member in record.members] == ["first"]


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (StudyError("the system went away", "Look at its log."), "failed", "the system went away"),
        (KeyboardInterrupt(), "interrupted", "stopped by Ctrl-C"),
        (KeyboardInterrupt("stopped by SIGTERM"), "interrupted", "stopped by SIGTERM"),
        (ZeroDivisionError("division by zero"), "failed", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_study_that_is_cut_short_says_how_and_keeps_what_was_found(
    tmp_path: Path, error: BaseException, status: str, reason: str
) -> None:
    study, folder = study_that(raising(error)), tmp_path / "study"
    with pytest.raises(type(error)) as raised:
        conducted(study, folder)
    assert raised.value is error
    record = read_study(folder)
    assert (record.status, record.status_reason) == (status, reason)
    assert record.finished_at is not None
    assert record.result == {"found": 1}
    assert [member.label for member in record.members] == ["the first run"]


def test_while_it_lasts_a_study_is_running_and_what_it_saved_can_be_read(tmp_path: Path) -> None:
    seen: list[StudyRecord] = []
    conducted(study_that(lambda: seen.append(read_study(tmp_path / "study"))), tmp_path / "study")
    [record] = seen
    assert record.status == "running"
    assert record.result == {"found": 1}


def test_an_existing_study_is_not_written_over(tmp_path: Path) -> None:
    study, folder = study_that(lambda: None), tmp_path / "study"
    conducted(study, folder)
    before = (folder / "study.json").read_bytes()
    with pytest.raises(RunDirectoryError, match="already holds a study"):
        conducted(study, folder)
    assert (folder / "study.json").read_bytes() == before


def test_what_is_refused_leaves_no_directory(tmp_path: Path) -> None:
    def refuse(_request: Request) -> None:
        raise UsageError("there is no such case", "Choose another.")

    study = Study("made-up", "made up", "Made up.", lambda _: None, subject="none", check=refuse)
    with pytest.raises(RackscopeError):
        conducted(study, tmp_path / "study")
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(("system", "workload"), [("no-such", "ycsb-b"), ("cache", "no-such")])
def test_a_mistyped_name_leaves_no_directory(tmp_path: Path, system: str, workload: str) -> None:
    study = Study("made-up", "made up", "Made up.", lambda under_way: None, subject="workload")
    with pytest.raises(UsageError, match="no-such"):
        begin(study, Request(RunOptions(system, workload), {}, tmp_path / "study"), ignore)
    assert not (tmp_path / "study").exists()
