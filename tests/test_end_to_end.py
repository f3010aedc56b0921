"""Whole runs against the real servers, and everything that can cut one short."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import shutil
import signal
import struct
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import Rackscope, process_exists, wait_until

QUICK = ("--duration", "0.2s", "--warm-up", "0.1s", "--repeat", "3")
SHORT = (*QUICK, "--set", "keys=2000")
#: Would go on for long.
ENDLESS = ("--duration", "0.2s", "--warm-up", "0.1s", "--repeat", "1000", "--set", "keys=2000")


def run_directory(rackscope: Rackscope) -> Path:
    (folder,) = (rackscope.folder / "runs").iterdir()
    return folder


def manifest_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    return content


def assert_complete(folder: Path) -> None:
    manifest = manifest_of(folder)
    assert manifest["status"] == "complete"
    for name in ("samples.parquet", "latency.parquet", "results.parquet", "report.html", "logs"):
        assert (folder / name).exists(), name
    assert (folder / "report.html").stat().st_size < 1_000_000
    assert not list(folder.glob("*.parts")) and not list(folder.glob(".*.tmp"))
    results = pl.read_parquet(folder / "results.parquet", glob=False)
    measured = results.filter(pl.col("kind") == "measure")
    assert measured.height >= 3
    assert (measured["operations"] > 0).all() and (measured["wrong_values"] == 0).all()
    assert measured["system_cpu_seconds"].null_count() == 0
    assert not process_exists(manifest["system"]["pid"])


@pytest.mark.parametrize(
    ("system", "workload", "more"),
    [
        ("cache", "ycsb-b", ()),
        ("cache", "ycsb-c", ("--rate", "2000")),
        ("cache", "usr", ("--set", "pipeline=4")),
        ("cache", "app", ("--set", "flags=7", "--set", "expire_seconds=1")),
        ("memcached", "var", ("--set", "flags=7", "--set", "expire_seconds=1")),
        pytest.param("memcached", "sys", (), marks=pytest.mark.long),
        pytest.param("cache", "ycsb-a", ("--endpoint", "unix"), marks=pytest.mark.long),
        ("cache", "ycsb-a", ("--set", "threads=2", "--set", "access=crew")),
        ("memcached", "ycsb-b", ("--tuned",)),
        ("memcached", "etc", ("--set", "protocol=memcached_meta", "--set", "multiget=4")),
        ("memcached", "ycsb-d", ("--endpoint", "unix")),
        pytest.param("redis", "ycsb-a", (), marks=pytest.mark.long),
        ("redis", "ycsb-f", ("--set", "pipeline=8", "--set", "expire_seconds=1")),
        ("redis", "redis-stages", ()),
    ],
)
def test_a_run_leaves_a_complete_directory(
    rackscope: Rackscope, system: str, workload: str, more: tuple[str, ...]
) -> None:
    ended = rackscope("run", system, workload, *SHORT, *more, "--json")
    assert ended.returncode == 0, ended.stderr
    summary = json.loads(ended.stdout)
    assert summary["status"] == "complete"
    assert_complete(Path(rackscope.folder / summary["run_directory"]))


@pytest.mark.parametrize("system", ["cache", "memcached", "redis"])
def test_items_that_expire_are_missed_and_never_read_wrong(rackscope: Rackscope, system: str) -> None:
    flags = () if system == "redis" else ("--set", "flags=7")
    expiry = ("--set", "expire_seconds=1", "--set", "keys=5000", *flags)
    ended = rackscope(
        "run", system, "ycsb-b", "--duration", "2", "--repeat", "1", "--warm-up", "0s", *expiry, "--out", "e"
    )
    assert ended.returncode == 0, ended.stderr
    results = pl.read_parquet(rackscope.folder / "e" / "results.parquet", glob=False)
    measured = results.filter(pl.col("kind") == "measure")
    assert measured["misses"].sum() > 0 and measured["hits"].sum() > 0
    assert results["wrong_values"].sum() == 0 and results["errors"].sum() == 0
    assert "evicted" not in ended.stdout


def test_two_runs_compare(rackscope: Rackscope, finished_run: Path) -> None:
    shutil.copytree(finished_run, rackscope.folder / "a")
    assert rackscope("run", "cache", "ycsb-c", *SHORT, "--out", "b").returncode == 0
    ended = rackscope("compare", "a", "b")
    assert ended.returncode == 0, ended.stderr
    assert "throughput" in ended.stdout.lower()
    rows = json.loads(rackscope("compare", "a", "b", "--json").stdout)["rows"]
    assert any(row["metric"].startswith("throughput") for row in rows)


def test_report_needs_only_the_directory(rackscope: Rackscope, finished_run: Path) -> None:
    shutil.copytree(finished_run, rackscope.folder / "one")
    (rackscope.folder / "one" / "report.html").unlink()
    ended = rackscope("report", "one")
    assert ended.returncode == 0, ended.stderr
    assert (rackscope.folder / "one" / "report.html").exists()


@pytest.mark.parametrize(
    ("system", "phase"),
    [
        ("cache", "load"),
        ("memcached", "measure"),
        *(
            pytest.param(system, phase, marks=pytest.mark.long)
            for system, phase in (
                ("cache", "warm-up"),
                ("cache", "measure"),
                ("memcached", "load"),
                ("memcached", "warm-up"),
            )
        ),
    ],
)
def test_kill_leaves_no_server_and_a_readable_run(rackscope: Rackscope, system: str, phase: str) -> None:
    # Long enough to be seen: the phase that is waited for.
    keys, warm_up = {"load": ("200000", "0.1s"), "warm-up": ("2000", "20s"), "measure": ("2000", "0.1s")}[phase]
    options = ("--repeat", "50", "--set", f"keys={keys}", "--warm-up", warm_up)
    running = rackscope.start("run", system, "ycsb-b", *options)
    try:
        wait_until(lambda: _in_phase(rackscope, phase), f"the phase {phase}")
        folder = run_directory(rackscope)
        server = manifest_of(folder)["system"]["pid"]
        assert process_exists(server)
        os.killpg(running.pid, signal.SIGKILL)
    finally:
        running.kill()
        running.communicate()
    wait_until(lambda: not process_exists(server), "the server to be gone")
    ended = rackscope("report", str(folder))
    assert ended.returncode == 0, ended.stderr
    assert "did not finish" in ended.stdout
    assert (folder / "report.html").exists()


def test_interrupt_keeps_what_was_measured(rackscope: Rackscope) -> None:
    running = rackscope.start("run", "cache", "ycsb-b", *ENDLESS, "--json")
    wait_until(lambda: _measured(rackscope) >= 2, "two repetitions")
    running.send_signal(signal.SIGINT)
    output, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert json.loads(output)["status"] == "interrupted"
    assert "Traceback" not in errors
    folder = run_directory(rackscope)
    assert manifest_of(folder)["status"] == "interrupted"
    assert pl.read_parquet(folder / "results.parquet").filter(pl.col("kind") == "measure").height >= 2
    assert (folder / "report.html").exists()


def test_a_second_interrupt_does_not_cut_the_closing_short(rackscope: Rackscope) -> None:
    running = rackscope.start("run", "cache", "ycsb-b", *ENDLESS, "--json")
    wait_until(lambda: _measured(rackscope) >= 1, "one repetition")
    for _ in range(3):
        running.send_signal(signal.SIGINT)
    output, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert json.loads(output)["status"] == "interrupted"
    assert "Traceback" not in errors
    folder = run_directory(rackscope)
    assert manifest_of(folder)["status"] == "interrupted"
    assert (folder / "results.parquet").exists() and not list(folder.glob("*.parts"))


def test_termination_is_told_from_an_interrupt(rackscope: Rackscope) -> None:
    running = rackscope.start("run", "cache", "ycsb-b", *ENDLESS)
    wait_until(lambda: _in_phase(rackscope, "measure"), "the measured phase")
    running.terminate()
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert manifest_of(run_directory(rackscope))["status_reason"] == "stopped by SIGTERM"


def test_client_and_system_may_share_one_core_and_it_is_said_first(rackscope: Rackscope) -> None:
    core = str(min(os.sched_getaffinity(0)))
    ended = rackscope("run", "cache", "ycsb-c", *SHORT, "--cores", core, "--client-cores", core, "--json")
    assert ended.returncode == 0, ended.stderr
    codes = {warning["code"] for warning in json.loads(ended.stdout)["characterisation"]["warnings"]}
    assert "shared_cores" in codes


def test_a_system_that_refuses_everything_is_not_reported_as_if_all_were_well(rackscope: Rackscope) -> None:
    ended = rackscope("run", "cache", "ycsb-b", *QUICK, "--set", "value_size=2m", "--set", "keys=20", "--json")
    assert ended.returncode == 0, ended.stderr
    warnings = json.loads(ended.stdout)["characterisation"]["warnings"]
    wrong = {warning["code"]: warning["sentence"] for warning in reversed(warnings) if warning["severity"] == "wrong"}
    # Refusals come so fast that on some machines the generator is the limit as well, and then that is said too.
    assert {"errors", "misses"} <= set(wrong) <= {"errors", "misses", "generator_limit"}
    assert "object too large" in wrong["errors"]


def test_a_name_that_looks_like_a_pattern_is_only_a_name(rackscope: Rackscope) -> None:
    name = "kä [red]*?"
    assert rackscope("run", "cache", "ycsb-c", *SHORT, "--out", name).returncode == 0
    assert_complete(rackscope.folder / name)
    assert rackscope("report", name).returncode == 0


def test_a_damaged_table_costs_only_itself_and_the_exit_status(rackscope: Rackscope, finished_run: Path) -> None:
    shutil.copytree(finished_run, rackscope.folder / "one")
    table = rackscope.folder / "one" / "samples.parquet"
    table.write_bytes(table.read_bytes()[: table.stat().st_size // 2])
    (rackscope.folder / "one" / "report.html").unlink()
    ended = rackscope("report", "one", "--json")
    assert ended.returncode == 1
    assert "samples.parquet is damaged" in ended.stderr
    summary = json.loads(ended.stdout)
    assert summary["results"] and summary["damage"]
    assert (rackscope.folder / "one" / "report.html").exists()
    assert rackscope("compare", "one", "one").returncode == 0
    (rackscope.folder / "one" / "results.parquet").write_bytes(b"")
    ended = rackscope("compare", "one", "one")
    assert ended.returncode == 1
    assert "has nothing to compare" in ended.stderr


def test_a_server_that_dies_ends_the_run_with_its_reason(rackscope: Rackscope) -> None:
    running = rackscope.start("run", "memcached", "ycsb-b", *ENDLESS)
    wait_until(lambda: _measured(rackscope) >= 1, "one repetition")
    folder = run_directory(rackscope)
    os.kill(manifest_of(folder)["system"]["pid"], signal.SIGKILL)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 1
    assert "memcached" in errors and "Traceback" not in errors
    assert manifest_of(folder)["status"] == "failed"
    assert pl.read_parquet(folder / "results.parquet").height >= 2


def test_a_full_disk_loses_nothing_measured_before(rackscope: Rackscope) -> None:
    # No file may grow past this, which is what a full disk looks like from inside.
    options = ("--sample-rate", "100", "--duration", "0.5s", "--warm-up", "0.1s", "--repeat", "3", "--set", "keys=2000")
    limited = ["prlimit", "--fsize=60000", *rackscope.command("run", "cache", "ycsb-b", *options)]
    ended = subprocess.run(
        limited, cwd=rackscope.folder, env=rackscope.environment(), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert "cannot write" in ended.stderr and "Traceback" not in ended.stderr
    folder = run_directory(rackscope)
    assert rackscope("report", str(folder)).returncode == 0


def refuse_perf_events() -> None:
    """Between fork and exec: the kernel answers perf_event_open with EACCES from here on (a seccomp filter)."""
    number = {"x86_64": 298, "aarch64": 241}[platform.machine()]
    load, jump_if_equal, give = 0x20, 0x15, 0x06
    refuse, allow = 0x0005_0000 | errno.EACCES, 0x7FFF_0000
    steps = ((load, 0, 0, 0), (jump_if_equal, 0, 1, number), (give, 0, 0, refuse), (give, 0, 0, allow))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
    kernel = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, seccomp, filtered = 38, 22, 2
    if kernel.prctl(no_new_privileges, 1, 0, 0, 0) or kernel.prctl(seccomp, filtered, program, 0, 0):
        raise OSError(ctypes.get_errno(), "no seccomp filter can be set")


def test_without_permission_for_perf_events_the_run_goes_on(rackscope: Rackscope) -> None:
    ended = subprocess.run(
        rackscope.command("run", "cache", "ycsb-c", *SHORT, "--out", "one"),
        cwd=rackscope.folder,
        env=rackscope.environment(),
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=refuse_perf_events,
    )
    assert ended.returncode == 0, ended.stderr
    assert_complete(rackscope.folder / "one")
    probes = {probe["name"]: probe for probe in manifest_of(rackscope.folder / "one")["probes"]}
    counters = {name: probe for name, probe in probes.items() if "perf" in name.replace("rackscope", "")}
    assert {"perf:host", "power:rapl_perf"} <= counters.keys()
    for probe in counters.values():
        assert probe["status"] == "missing" and probe["reason"], probe
    assert probes["cpu"]["status"] == "ok"
    samples = pl.read_parquet(rackscope.folder / "one" / "samples.parquet")
    assert not [name for name in samples.columns if name.startswith("perf_")]


def _in_phase(rackscope: Rackscope, phase: str) -> bool:
    for manifest in (rackscope.folder / "runs").glob("*/manifest.json"):
        content = json.loads(manifest.read_text())
        return any(part["name"] == phase and part["end_ns"] is None for part in content["phases"])
    return False


def _measured(rackscope: Rackscope) -> int:
    for manifest in (rackscope.folder / "runs").glob("*/manifest.json"):
        content = json.loads(manifest.read_text())
        return sum(part["kind"] == "measure" and part["end_ns"] is not None for part in content["phases"])
    return 0
