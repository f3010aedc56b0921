"""Studies that squeeze real servers, from the command to what is left behind: a directory, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import Rackscope, process_exists, wait_until
from rackscope.squeezes.base import NotSqueezable, Subject
from rackscope.squeezes.cpu_share import CpuShare
from rackscope.squeezes.isolation import make_isolation
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.recovery import recover
from rackscope.squeezes.removal import PARENT_NAME

PRESSURE = ("study", "pressure", "cache", "ycsb-c", "--window", "100ms", "--set", "keys=1000")
#: Under a busy host a window is measured up to three times, and each squeeze is tried as often.
SECONDS = 240.0


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the commands keep their journals; after each test none is left."""
    folder = tmp_path / "state"
    monkeypatch.setenv("RACKSCOPE_STATE_FOLDER", str(folder))
    yield folder
    left = journals(folder)
    # Whatever failed, the host is given back.
    recover(folder / "squeezes")
    assert left == []


@pytest.fixture
def squeezable(tmp_path: Path) -> None:
    """Skips where the CPU share of a system cannot be squeezed."""
    with Journal(tmp_path / "look") as journal, make_isolation("look", journal, network=False) as isolation:
        found = CpuShare().capacity(Subject(isolation, tuple(sorted(os.sched_getaffinity(0)))))
        if isinstance(found, NotSqueezable):
            pytest.skip(f"{found.reason}; {'; '.join(isolation.missing.values())}")


def wait_for_links_to_go(names: set[str]) -> None:
    """The kernel takes a namespace's links away a moment after its last process."""
    wait_until(lambda: names.isdisjoint(name for _, name in socket.if_nameindex()), f"links {names} to go")


def journals(state: Path) -> list[Path]:
    return sorted((state / "squeezes").glob("*.json"))


def steps(state: Path, kind: str) -> list[dict[str, Any]]:
    """Steps of one kind that the journals hold now."""
    found = []
    for journal in journals(state):
        try:
            found += json.loads(journal.read_text())["entries"]
        except FileNotFoundError:
            # It was closed meanwhile.
            continue
    return [step for step in found if step["kind"] == kind]


def own_groups(state: Path) -> list[Path]:
    """Control groups of the study's own; the folder that holds all groups stays while another test has one in it."""
    paths = [Path(step["path"]) for step in steps(state, "remove_control_group")]
    return [path for path in paths if path.name != PARENT_NAME]


def is_squeezed(state: Path) -> bool:
    """Whether a file that the journals would restore holds something else now."""
    for step in steps(state, "restore_file"):
        try:
            if Path(step["path"]).read_text().split() != step["content"].split():
                return True
        except OSError:
            # Given back meanwhile, with its group.
            continue
    return False


def study_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "study.json").read_text())
    return content


def measured_phases(folder: Path) -> list[dict[str, Any]]:
    try:
        phases: list[dict[str, Any]] = study_of(folder)["result"].get("phases", [])
    except FileNotFoundError:
        return []
    return phases


def wait_for(running: subprocess.Popen[str], condition: Any, what: str) -> None:
    """As wait_until, and fails at once, with what the command said, when it ends before."""

    def there_or_ended() -> bool:
        return condition() or running.poll() is not None

    wait_until(there_or_ended, what, seconds=SECONDS)
    if running.poll() is not None:
        pytest.fail(f"ended before {what}: {running.communicate()[1]}")


@pytest.mark.alone
def test_a_pressure_study_leaves_its_directory_and_nothing_else(rackscope: Rackscope, state: Path) -> None:
    done = rackscope.process(*PRESSURE, "--blocks", "2", "--budget", "1s", "--out", "study", "--json", timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["status"] == "complete"
    [phase] = told["result"]["phases"]
    assert phase["throughput_operations_per_second"]["estimate"] > 0
    statuses = {one["squeeze"]: one["status"] for one in phase["resources"]}
    assert set(statuses.values()) <= {"limits", "does_not_limit", "inconclusive", "not_squeezable"}
    folder = rackscope.folder / "study"
    assert (folder / "report.html").stat().st_size > 10_000
    results = pl.read_parquet(folder / "runs" / "squeezed" / "results.parquet")
    squeezed = results.filter(pl.col("kind") == "squeezed")
    # On a host without the rights nothing can be squeezed, and the study says so.
    assert (squeezed.height > 0) == (set(statuses.values()) != {"not_squeezable"})
    for one in phase["resources"]:
        for level in one["levels"]:
            name = f"measure under {one['squeeze']}@{level['asked_fraction']:g}"
            assert level["blocks"] <= squeezed.filter(pl.col("phase") == name, pl.col("discarded").is_null()).height
    manifest = json.loads((folder / "runs" / "squeezed" / "manifest.json").read_text())
    assert not process_exists(manifest["system"]["pid"])
    wait_for_links_to_go({manifest["system"]["interface"]} - {None, ""})

    again = rackscope(*PRESSURE, "--out", "study")
    assert again.returncode != 0
    assert "already holds a study" in again.stderr
    assert study_of(folder)["finished_at"] == told["finished_at"]


@pytest.mark.parametrize("next_command", [("doctor", "--repair"), ("run", "--list")])
@pytest.mark.usefixtures("squeezable")
def test_what_a_killed_study_left_squeezed_is_undone_by_the_next_command(
    rackscope: Rackscope, state: Path, next_command: tuple[str, ...]
) -> None:
    running = rackscope.start(*PRESSURE, "--out", "study")
    try:
        wait_for(running, lambda: is_squeezed(state), "a squeeze")
        os.killpg(running.pid, signal.SIGKILL)
    finally:
        running.kill()
        running.communicate()
    assert journals(state)
    groups = own_groups(state)
    own_links = {step["name"] for step in steps(state, "remove_link")}
    assert groups
    undone = rackscope(*next_command)
    assert undone.returncode == 0, undone.stderr
    said = undone.stdout if next_command[0] == "doctor" else undone.stderr
    assert "a rackscope that has ended" in said
    assert not any(group.exists() for group in groups)
    assert journals(state) == []
    wait_for_links_to_go(own_links)
    quiet = rackscope(*next_command)
    assert "a rackscope that has ended" not in quiet.stdout + quiet.stderr


@pytest.mark.alone
@pytest.mark.usefixtures("squeezable")
def test_ctrl_c_in_a_squeeze_keeps_what_was_found_and_gives_everything_back(rackscope: Rackscope, state: Path) -> None:
    # However much else runs, a block is not waited for: with the budget, patience with interference ends.
    one = ("--squeeze", "cpu_share", "--blocks", "20", "--budget", "1s")
    running = rackscope.start(*PRESSURE, *one, "--out", "study", "--json")
    folder = rackscope.folder / "study"
    wait_for(running, lambda: measured_phases(folder), "the first block")
    groups = own_groups(state)
    own_links = {step["name"] for step in steps(state, "remove_link")}
    wait_for(running, lambda: is_squeezed(state), "the next squeeze")
    running.send_signal(signal.SIGINT)
    output, errors = running.communicate(timeout=SECONDS)
    assert running.returncode == 130, errors
    assert "Traceback" not in errors
    assert json.loads(output)["status"] == "interrupted"
    study = study_of(folder)
    assert study["status"] == "interrupted"
    assert study["findings"]
    [phase] = study["result"]["phases"]
    assert phase["blocks"] >= 1
    assert (folder / "report.html").exists()
    assert groups
    assert not any(group.exists() for group in groups)
    wait_for_links_to_go(own_links)
    system = json.loads((folder / "runs" / "squeezed" / "manifest.json").read_text())["system"]["pid"]
    assert not process_exists(system)


def kept_at_half_the_cpu(folder: Path, case: str) -> float:
    """The part of its throughput that a case kept, by the windows of the study."""
    [file] = folder.glob(f"study/runs/{case}-*/results.parquet")
    windows = pl.read_parquet(file).filter(pl.col("discarded").is_null())
    free = windows.filter(pl.col("kind") == "measure")
    squeezed = windows.filter(pl.col("kind") == "squeezed", pl.col("phase").str.ends_with("under cpu_share@0.5"))
    median = pl.col("throughput_operations_per_second").median()
    kept: float = squeezed.select(median).item() / free.select(median).item()
    return kept


def known_answers(rackscope: Rackscope, *options: str) -> dict[str, Any]:
    done = rackscope.process(
        "study", "known-answers", *options, "--levels", "0.5", "--out", "study", "--json", timeout=4 * SECONDS
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.alone
@pytest.mark.usefixtures("squeezable")
def test_a_workload_of_known_limit_is_judged(rackscope: Rackscope) -> None:
    told = known_answers(rackscope, "--case", "cpu", "--window", "100ms", "--blocks", "2", "--budget", "4s")
    [row] = told["result"]["phases"]
    assert (row["case"], row["expected"]) == ("cpu", ["cpu"])
    assert any("cpu_share" in sentence or "CPU" in sentence for sentence in row["squeezes"])
    assert kept_at_half_the_cpu(rackscope.folder, "cpu") < 0.8


@pytest.mark.alone
@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.usefixtures("squeezable")
def test_verdicts_on_workloads_of_known_limit_are_not_wrong(rackscope: Rackscope) -> None:
    told = known_answers(
        rackscope, "--case", "cpu", "--case", "lock", "--window", "150ms", "--blocks", "4", "--budget", "20s"
    )
    rows = told["result"]["phases"]
    assert [(row["case"], row["expected"]) for row in rows] == [("cpu", ["cpu"]), ("lock", ["none"])]
    for row in rows:
        assert row["windows"] >= row["disturbed"] >= 0
        # Where others took part of the host, what was theirs may look like a limit, or hide one; the study says so.
        if row["disturbed"] == 0:
            assert row["found"] == row["expected"], row["squeezes"]
        elif row["disturbed"] < row["windows"] / 2:
            assert set(row["found"]) <= set(row["expected"]), row["squeezes"]
    # Half of the CPU time is worth much to the one and little to the other, whatever was made of it.
    assert kept_at_half_the_cpu(rackscope.folder, "cpu") < kept_at_half_the_cpu(rackscope.folder, "lock") - 0.15
    if any(row["disturbed"] for row in rows):
        assert any("Interference" in finding["sentence"] for finding in told["findings"])


def test_a_thing_is_compared_with_itself(rackscope: Rackscope) -> None:
    done = rackscope.process(
        *("study", "a-a", "cache", "ycsb-c", "--comparisons", "2", "--pairs", "3", "--window", "100ms"),
        *("--set", "keys=1000", "--out", "study", "--json"),
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["result"]
    assert result["comparisons"] == 2
    assert result["different"] == sum(ratio["different"] for ratio in result["ratios"])
    assert result["low"] <= result["share"] <= result["high"]
    folder = rackscope.folder / "study"
    results = pl.read_parquet(folder / "runs" / "windows" / "results.parquet").filter(pl.col("kind") == "measure")
    assert results.filter(pl.col("discarded").is_null()).height == 2 * 2 * 3
    assert results.filter(pl.col("discarded").is_not_null()).height == result["discarded"]
    assert (folder / "report.html").exists()
