"""rackscope prune removes what it names, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from conftest import Rackscope
from rackscope.api.prune import carry_out, plan_pruning
from rackscope.errors import RunDirectoryError, UsageError
from rackscope.process_identity import boot_id, process_start_ticks

KEPT = Path(__file__).parent / "data" / "format1"
DAY = 86400.0


def change(file: Path, **fields: object) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs and a study of 50, 40 and 10 days ago, and much that is neither."""
    folder = tmp_path / "runs"
    for name, days in (("run-a", 50), ("run-b", 40), ("study", 10)):
        shutil.copytree(KEPT / name, folder / name)
        record = folder / name / ("study.json" if name == "study" else "manifest.json")
        change(record, started_at=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(1.8e9 - days * DAY)))
    outside = Path(shutil.copytree(KEPT / "run-a", tmp_path / "outside"))
    (folder / "link").symlink_to(outside)
    (folder / "website").mkdir()
    (folder / "website" / "manifest.json").write_text('{"name": "a web application"}')
    (folder / "torn").mkdir()
    (folder / "torn" / "manifest.json").write_text('{"format_version": 1')
    (folder / "notes.txt").write_text("mine")
    (folder / "linked").mkdir()
    (folder / "linked" / "manifest.json").symlink_to(outside / "manifest.json")
    return folder


def names(found: tuple[object, ...]) -> list[str]:
    return [one.path.name for one in found]  # type: ignore[attr-defined]


def test_by_age_the_oldest_first_and_nothing_that_is_not_ours(runs: Path) -> None:
    (runs / "run-a" / "logs" / "away").symlink_to(runs.parent / "outside")
    pruning = plan_pruning(runs, older_than_seconds=30 * DAY, now_seconds=1.8e9)
    assert names(pruning.removed) == ["run-a", "run-b"] and names(pruning.kept) == ["study"]
    assert {Path(path).name for path in pruning.refused} == {"link", "website", "torn", "notes.txt", "linked"}
    assert names(tuple(carry_out(pruning))) == ["run-a", "run-b"]
    left = {path.name for path in runs.iterdir()}
    assert left == {"study", "link", "website", "torn", "notes.txt", "linked"}
    assert (runs.parent / "outside" / "samples.parquet").is_file()


def test_by_size_the_newest_stay(runs: Path) -> None:
    sizes = {one.path.name: one.size_bytes for one in plan_pruning(runs, keep_bytes=0).removed}
    assert set(sizes) == {"run-a", "run-b", "study"} and all(size > 10_000 for size in sizes.values())
    pruning = plan_pruning(runs, keep_bytes=sizes["study"] + sizes["run-b"])
    assert names(pruning.removed) == ["run-a"]
    assert pruning.freed_bytes == sizes["run-a"]
    assert names(plan_pruning(runs, keep_bytes=sizes["study"]).removed) == ["run-a", "run-b"]
    assert not plan_pruning(runs, keep_bytes=10**12).removed


def test_what_is_going_on_stays(runs: Path) -> None:
    pid = os.getpid()
    owner = {"rackscope_pid": pid, "rackscope_pid_start_ticks": process_start_ticks(pid), "boot_id": boot_id()}
    change(runs / "run-a" / "manifest.json", status="running", **owner)
    pruning = plan_pruning(runs, keep_bytes=0)
    assert names(pruning.removed) == ["run-b", "study"]
    assert pruning.refused[str(runs / "run-a")] == "it is still going on"


def test_what_became_a_link_meanwhile_is_not_followed(runs: Path) -> None:
    pruning = plan_pruning(runs, older_than_seconds=45 * DAY, now_seconds=1.8e9)
    shutil.rmtree(runs / "run-a")
    (runs / "run-a").symlink_to(runs.parent / "outside")
    with pytest.raises(RunDirectoryError, match="it is a link"):
        list(carry_out(pruning))
    assert (runs.parent / "outside" / "manifest.json").is_file()


def test_what_cannot_be_asked(runs: Path) -> None:
    with pytest.raises(UsageError, match="nothing says what to remove"):
        plan_pruning(runs)
    with pytest.raises(RunDirectoryError, match="is itself a run"):
        plan_pruning(runs / "run-a", keep_bytes=0)
    for folder in (runs / "nothing", runs / "link", runs / "notes.txt"):
        with pytest.raises(RunDirectoryError, match="not a folder"):
            plan_pruning(folder, keep_bytes=0)


def test_the_verb_says_first_and_removes_only_with_yes(runs: Path, rackscope: Rackscope) -> None:
    for arguments in (("--keep-bytes", "0"), ("--keep-bytes", "0", "--yes", "--dry-run")):
        ended = rackscope("prune", str(runs), *arguments)
        assert ended.returncode == 0, ended.stderr
        assert f"would remove {runs / 'run-a'}" in ended.stdout
        assert (runs / "run-a").is_dir()
    ended = rackscope("prune", str(runs), "--keep-bytes", "0", "--yes", "--json")
    said = json.loads(ended.stdout)
    assert said["removed"] == [str(runs / name) for name in ("run-a", "run-b", "study")] and said["freed_bytes"]
    assert not (runs / "run-a").exists() and (runs / "link").is_symlink()
