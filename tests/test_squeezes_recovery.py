"""What a killed command left: found and undone by the next one, whatever the journals look like."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from conftest import Rackscope
from rackscope.squeezes.journal import Journal, journal_folder
from rackscope.squeezes.recovery import find_leftovers, recover
from rackscope.squeezes.undo import RestoreFile
from squeezes_trees import bury, journal_in


def left_by_the_dead(folder: Path, name: str = "limit") -> tuple[Path, Path]:
    """A changed file and the journal that would bring it back."""
    file = folder / name
    file.write_text("changed")
    journal = journal_in(folder)
    journal.record(RestoreFile(file, "before"))
    return file, bury(journal)


def recover_in(folder: Path) -> list[str]:
    return recover(folder / "journals", roots=(folder,))


def test_the_dead_are_told_apart_from_the_living(tmp_path: Path) -> None:
    file, path = left_by_the_dead(tmp_path)
    living = journal_in(tmp_path)
    other = tmp_path / "other"
    other.write_text("changed")
    living.record(RestoreFile(other, "before"))
    [left] = find_leftovers(tmp_path / "journals")
    assert str(file) in left
    [said] = recover_in(tmp_path)
    assert str(file) in said
    assert (file.read_text(), other.read_text()) == ("before", "changed")
    assert not path.exists()
    living.close()


def test_after_a_boot_nothing_is_left_to_undo(tmp_path: Path) -> None:
    file, path = left_by_the_dead(tmp_path)
    content = json.loads(path.read_text())
    content["owner"]["boot_id"] = "another"
    path.write_text(json.dumps(content))
    assert find_leftovers(tmp_path / "journals") == recover_in(tmp_path) == []
    assert file.read_text() == "changed"
    assert not path.exists()


def test_processes_of_another_container_are_not_judged(tmp_path: Path) -> None:
    file, path = left_by_the_dead(tmp_path)
    content = json.loads(path.read_text())
    content["owner"]["pid_namespace"] = "pid:[1]"
    path.write_text(json.dumps(content))
    [said] = recover_in(tmp_path)
    assert "another container" in said
    assert file.read_text() == "changed"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"format_version": 2, "owner": {}, "entries": []}',
        b'{"format_version": 1, "owner": {"pid": "1"}, "entries": []}',
        b'{"format_version": 1, "owner": {}, "entries": [{"id": 1, "kind": "remove_everything"}]}',
        b'{"format_version": 1, "owner": {}, "entries": [{"id": 1, "kind": "restore_file", "path": 7}]}',
        b'{"format_version": 1, "owner": {}, "entries": [7]}',
    ],
    ids=range(11),
)
def test_a_damaged_journal_is_named_and_stops_nothing(tmp_path: Path, content: bytes) -> None:
    file, _ = left_by_the_dead(tmp_path)
    damaged = tmp_path / "journals" / "1-1-a.json"
    damaged.write_bytes(content)
    said = recover_in(tmp_path)
    assert file.read_text() == "before"
    assert len(said) == 2
    assert any(str(damaged) in sentence for sentence in said)
    assert all("\n" not in sentence for sentence in said)


def test_paths_where_no_squeeze_changes_anything_are_not_written(tmp_path: Path) -> None:
    inside, file = tmp_path / "inside", tmp_path / "secret"
    inside.mkdir()
    file.write_text("untouched")
    journal = journal_in(tmp_path)
    journal.record(RestoreFile(file, "overwritten"))
    bury(journal)
    [said] = recover(tmp_path / "journals", roots=(inside,))
    assert "not where squeezes change anything" in said
    assert file.read_text() == "untouched"


def test_journals_that_others_could_have_written_are_not_obeyed(tmp_path: Path) -> None:
    file, path = left_by_the_dead(tmp_path)
    path.chmod(0o666)
    assert "other users may write" in recover_in(tmp_path)[0]
    path.chmod(0o600)
    (tmp_path / "journals").chmod(0o777)
    assert "other users may write" in recover_in(tmp_path)[0]
    assert file.read_text() == "changed"


@pytest.mark.skipif(os.geteuid() != 0, reason="giving files to another user takes root")
def test_journals_of_another_user_are_not_obeyed(tmp_path: Path) -> None:
    file, path = left_by_the_dead(tmp_path)
    os.chown(path, 12345, 12345)
    assert "another user" in recover_in(tmp_path)[0]
    os.chown(tmp_path / "journals", 12345, 12345)
    assert "another user" in recover_in(tmp_path)[0]
    assert file.read_text() == "changed"


def test_a_link_or_a_pipe_in_place_of_a_journal_is_not_followed(tmp_path: Path) -> None:
    file, path = left_by_the_dead(tmp_path)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "journals" / "2-2-b.json")
    assert len(recover_in(tmp_path)) == 2
    assert file.read_text() == "changed"


def test_commands_at_the_same_time_undo_once(tmp_path: Path) -> None:
    files = [left_by_the_dead(tmp_path, f"limit-{number}")[0] for number in range(8)]
    said: list[str] = []
    start = threading.Barrier(4)

    def work() -> None:
        start.wait()
        said.extend(recover_in(tmp_path))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == len(files)
    assert {file.read_text() for file in files} == {"before"}


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RACKSCOPE_STATE_FOLDER", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert journal_folder() == Path("/run/rackscope/squeezes")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert journal_folder() == tmp_path / "rackscope" / "squeezes"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert journal_folder() == tmp_path / ".local/state/rackscope/squeezes"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 987_654_321)
    assert journal_folder().name == "squeezes", "a user without a home has a folder too"
    monkeypatch.setenv("RACKSCOPE_STATE_FOLDER", str(tmp_path / "x"))
    assert journal_folder() == tmp_path / "x" / "squeezes"


@pytest.fixture
def gone_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal of a dead process that names a limit of a group that is gone: harmless to undo on any host."""
    monkeypatch.setenv("RACKSCOPE_STATE_FOLDER", str(tmp_path / "state"))
    limit = Path("/sys/fs/cgroup/rackscope/absent/cpu.max")
    journal = Journal()
    journal.record(RestoreFile(limit, "max 100000"))
    bury(journal)
    return limit


def test_every_verb_undoes_at_its_start_and_says_so_once(rackscope: Rackscope, gone_limit: Path) -> None:
    first, second = rackscope("report", "absent"), rackscope("report", "absent")
    assert str(gone_limit) in first.stderr.splitlines()[0]
    assert str(gone_limit) not in second.stderr


def test_the_doctor_shows_what_is_left_and_repairs_it_when_asked(rackscope: Rackscope, gone_limit: Path) -> None:
    shown = json.loads(rackscope("doctor", "--json").stdout)
    [check] = [check for check in shown["checks"] if check["name"] == "squeezes"]
    assert check["status"] == "bad"
    assert str(gone_limit) in check["what"]
    assert "--repair" in check["advice"]
    repaired = rackscope("doctor", "--repair")
    assert repaired.returncode == 0
    assert str(gone_limit) in repaired.stdout
    again = rackscope("doctor", "--repair", "--json")
    assert json.loads(again.stdout) == {"repaired": [], "left": []}
    [check] = [c for c in json.loads(rackscope("doctor", "--json").stdout)["checks"] if c["name"] == "squeezes"]
    assert check["status"] == "ok"


def test_the_doctor_fails_when_something_stays(
    rackscope: Rackscope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKSCOPE_STATE_FOLDER", str(tmp_path / "state"))
    folder = journal_folder()
    folder.mkdir(parents=True, mode=0o700)
    (folder / "1-1-a.json").write_text("{")
    failed = rackscope("doctor", "--repair")
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
    assert "undo by hand" in failed.stdout
