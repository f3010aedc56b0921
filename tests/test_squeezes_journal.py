"""The journal: what is in it before a change is made is undone however the process ends, and nothing else is."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.errors import SqueezeError
from rackscope.squeezes.held import Change, hold
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.recovery import find_leftovers, recover
from rackscope.squeezes.undo import RemoveControlGroup, RemoveLink, RestoreFile
from squeezes_trees import bury, journal_in

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("change"), st.integers(0, 2)),
        st.tuples(st.sampled_from(["done", "undo"]), st.integers(0, 9)),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(operations=OPERATIONS, end=st.sampled_from(["close", "crash"]))
def test_exactly_what_was_not_given_back_is_undone_last_first(operations: list[tuple[str, int]], end: str) -> None:
    """The model: a list of (number, file, earlier content); undone in reverse, the earliest of a file's steps wins."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / str(number) for number in range(3)]
        contents = {file: f"start {file.name}" for file in files}
        for file, content in contents.items():
            file.write_text(content)
        journal = journal_in(folder)
        held: list[tuple[int, Path, str]] = []
        for count, (operation, argument) in enumerate(operations):
            if operation == "change":
                file = files[argument]
                held.append((journal.record(RestoreFile(file, contents[file])), file, contents[file]))
                contents[file] = f"change {count}"
                file.write_text(contents[file])
            elif held:
                number, file, earlier = held.pop(argument % len(held))
                getattr(journal, operation)(number)
                if operation == "undo":
                    contents[file] = earlier
        assert [step.content for step in journal.pending if isinstance(step, RestoreFile)] == [e for _, _, e in held]
        for _, file, earlier in reversed(held):
            contents[file] = earlier
        if end == "close":
            journal.close()
            assert journal.pending == ()
        elif journal.path is not None:
            bury(journal)
            assert len(recover(folder / "journals", roots=(folder,))) == bool(held)
        assert {file: file.read_text() for file in files} == contents
        assert not list((folder / "journals").glob("*.json"))
        assert recover(folder / "journals", roots=(folder,)) == []


def test_the_step_is_on_disk_before_the_change(tmp_path: Path) -> None:
    file = tmp_path / "limit"
    file.write_text("before")
    journal = journal_in(tmp_path)
    journal.record(RestoreFile(file, "before"))
    assert journal.path is not None
    assert json.loads(journal.path.read_text())["entries"] == [
        {"id": 1, "kind": "restore_file", "path": str(file), "content": "before"}
    ]
    assert journal.path.stat().st_mode & 0o077 == 0


def test_what_cannot_be_noted_is_not_changed(tmp_path: Path) -> None:
    file, in_the_way = tmp_path / "limit", tmp_path / "state"
    file.write_text("before")
    in_the_way.write_text("")
    journal = Journal(in_the_way / "squeezes", roots=(tmp_path,))
    with pytest.raises(SqueezeError, match="journal of squeezes cannot be written"):
        hold("x", [Change(file, "after", "before")], journal)
    assert file.read_text() == "before"
    assert journal.pending == ()


@pytest.mark.parametrize(
    "step",
    [
        RestoreFile(Path("/etc/passwd"), ""),
        RestoreFile(Path("/sys/fs/cgroup/../../../etc/passwd"), ""),
        RestoreFile(Path("relative"), ""),
        RemoveControlGroup(Path("/sys/fs/cgroup")),
        RemoveControlGroup(Path("/home")),
        RemoveLink("../../x"),
        RemoveLink(""),
    ],
    ids=str,
)
def test_steps_that_name_anything_else_are_refused(tmp_path: Path, step: RestoreFile) -> None:
    with pytest.raises(SqueezeError, match="could not be undone"):
        Journal(tmp_path).record(step)
    assert not list(tmp_path.iterdir())


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "limit").write_text("")
    (inside / "link").symlink_to(outside)
    with pytest.raises(SqueezeError, match="not where squeezes"):
        journal_in(tmp_path, inside).record(RestoreFile(inside / "link" / "limit", ""))


def test_changes_are_all_made_or_none(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("before")
    with journal_in(tmp_path) as journal:
        with pytest.raises(SqueezeError, match="absent"):
            hold("x", [Change(first, "after", "before"), Change(tmp_path / "absent", "1", "0")], journal)
        assert first.read_text() == "before"
        assert journal.pending == ()


def test_what_is_stuck_does_not_keep_the_rest_and_stays_in_the_file(tmp_path: Path) -> None:
    first, stuck, last = (tmp_path / name for name in ("first", "stuck", "last"))
    journal = journal_in(tmp_path)
    for file in (first, stuck, last):
        file.write_text("changed")
        journal.record(RestoreFile(file, "before"))
    stuck.unlink()
    stuck.mkdir()
    with pytest.raises(SqueezeError, match="stuck"):
        journal.close()
    assert first.read_text() == last.read_text() == "before"
    bury(journal)
    [sentence] = recover(tmp_path / "journals", roots=(tmp_path,))
    assert "cannot be undone yet" in sentence
    stuck.rmdir()
    stuck.write_text("changed")
    assert len(recover(tmp_path / "journals", roots=(tmp_path,))) == 1
    assert stuck.read_text() == "before"
    assert find_leftovers(tmp_path / "journals") == []


def test_the_first_mistake_is_told_and_not_the_one_of_undoing(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="first"), journal_in(tmp_path) as journal:
        journal.record(RestoreFile(tmp_path / "folder", ""))
        raise ValueError("first")


def test_a_limit_whose_group_is_gone_counts_as_given_back(tmp_path: Path) -> None:
    with journal_in(tmp_path) as journal:
        journal.record(RestoreFile(tmp_path / "gone" / "limit", "1"))
    assert not (tmp_path / "gone").exists()


def test_a_forked_child_undoes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "limit"
    file.write_text("changed")
    with journal_in(tmp_path) as journal:
        journal.record(RestoreFile(file, "before"))
        child = os.fork()
        if child == 0:
            journal.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert file.read_text() == "changed"
    assert file.read_text() == "before"


def test_threads_share_a_journal(tmp_path: Path) -> None:
    journal = journal_in(tmp_path)

    def work(number: int) -> None:
        file = tmp_path / f"file-{number}"
        for _ in range(10):
            file.write_text("changed")
            journal.undo(journal.record(RestoreFile(file, "before")))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert journal.pending == ()
    journal.close()
    assert {(tmp_path / f"file-{number}").read_text() for number in range(4)} == {"before"}
