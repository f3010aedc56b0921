"""Sweeps and walls of the built-in cache engine, through the command: short, and about structure rather than speed."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from conftest import Rackscope, process_exists, wait_until
from rackscope.studies.wall.bench import why_no_group

MEBIBYTE = 1024**2
SHORT = ("--duration", "200ms", "--warm-up", "50ms", "--set", "key_size=24")
SWEEP = ("study", "sweep", "cache", "ycsb-b", "--vary", "value_size=64,2m", "--vary", "connections=2,8")


def study_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "study.json").read_text())
    return content


def systems_of(folder: Path) -> list[int]:
    """Processes of the systems that members started."""
    manifests = [json.loads(file.read_text()) for file in folder.glob("runs/*/manifest.json")]
    return [manifest["system"]["pid"] for manifest in manifests if manifest["system"]["pid"]]


def test_a_grid_is_measured_and_a_value_that_is_too_large_is_named(rackscope: Rackscope) -> None:
    done = rackscope(*SWEEP, *SHORT, "--set", "keys=500", "--repeat", "2", "--out", "study", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [cell["label"] for cell in told["result"]["cells"]] == [
        "value_size=64 connections=2",
        "value_size=64 connections=8",
    ]
    assert all(cell["throughput_operations_per_second"]["estimate"] > 0 for cell in told["result"]["cells"])
    failed = {failure["label"]: failure["reason"] for failure in told["result"]["failures"]}
    assert set(failed) == {"value_size=2m connections=2", "value_size=2m connections=8"}
    assert all("object too large" in reason for reason in failed.values())
    assert "4 cells x 2 repetitions: 8 runs, about" in done.stderr
    folder = rackscope.folder / "study"
    assert (folder / "report.html").exists()
    kept = [member for member in told["members"] if not member["discarded"]]
    assert len(kept) == 4
    for member in kept:
        assert json.loads((folder / "runs" / member["folder"] / "manifest.json").read_text())["status"] == "complete"
    assert not any(process_exists(pid) for pid in systems_of(folder))


def test_a_sweep_that_was_killed_goes_on(rackscope: Rackscope) -> None:
    arguments = ("study", "sweep", "cache", "ycsb-b", "--vary", "value_size=64,128", *SHORT, "--set", "keys=500")
    folder = rackscope.folder / "study"
    process = rackscope.start(*arguments, "--repeat", "3", "--out", "study")
    wait_until(lambda: len(list(folder.glob("runs/*/results.parquet"))) >= 2, "two finished runs")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = {file.parent.name: file.stat().st_mtime_ns for file in folder.glob("runs/*/results.parquet")}
    assert len(before) < 6

    refused = rackscope(*arguments, "--repeat", "4", "--resume", "study")
    assert refused.returncode == 2
    assert "4 repetitions instead of 3" in refused.stderr

    done = rackscope("study", "sweep", "--resume", "study", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [cell["repetitions"] for cell in told["result"]["cells"]] == [3, 3]
    after = {file.parent.name: file.stat().st_mtime_ns for file in folder.glob("runs/*/results.parquet")}
    assert {name: after[name] for name in before} == before
    wait_until(lambda: not any(process_exists(pid) for pid in systems_of(folder)), "the systems to end")


@pytest.mark.long
def test_the_wall_of_a_systems_own_limit_is_where_reads_miss(rackscope: Rackscope) -> None:
    done = rackscope(
        *("study", "wall", "cache", "ycsb-c", "--by", "knob", "--memory", "32m", "--repeat", "1", "--json"),
        *(*SHORT, "--set", "value_size=4000", "--set", "distribution=uniform", "--out", "study"),
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["result"]
    assert result["limited_by"] == "knob"
    low, high = result["misses_begin_bytes"]
    assert low < high
    assert low <= 32 * MEBIBYTE
    assert high <= 64 * MEBIBYTE
    assert len(result["points"]) == 11
    assert not any(process_exists(pid) for pid in systems_of(rackscope.folder / "study"))


def test_a_system_that_runs_out_of_memory_is_stopped_and_not_killed(rackscope: Rackscope) -> None:
    reason = why_no_group()
    if reason:
        pytest.skip(f"memory cannot be limited here: {reason}")
    done = rackscope(
        *("study", "wall", "cache", "ycsb-c", "--memory", "32m", "--repeat", "1", "--json", "--out", "study"),
        *(*SHORT, "--set", "value_size=4000"),
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)["result"]
    assert result["limited_by"] == "control group"
    [ran_out] = result["ran_out"]
    assert 0 < ran_out["held_bytes"] <= 32 * MEBIBYTE
    assert all(point["data_bytes"] < ran_out["data_bytes"] for point in result["points"])
    folder = rackscope.folder / "study"
    assert not any(process_exists(pid) for pid in systems_of(folder))
    logs = "".join(log.read_text(errors="replace") for log in folder.glob("runs/*/logs/*.log"))
    assert "SIGKILL" not in logs
    for place in Path("/sys/fs/cgroup").glob("**/rackscope/wall-*"):
        assert not (place / "cgroup.procs").read_text().strip(), f"{place} still holds processes"
