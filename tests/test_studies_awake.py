"""Cores are kept awake by processes that give way, and nothing of it is left."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rackscope.squeezes.journal import Journal
from rackscope.studies.bench import awake
from rackscope.studies.bench.awake import is_guest, kept_awake

_GUEST = "processor : 0\nflags : fpu tsc hypervisor\n"
_METAL = "processor : 0\nflags : fpu tsc\n"


@pytest.mark.parametrize(("flags", "guest"), [(_GUEST, True), (_METAL, False)])
def test_a_guest_is_told_from_a_machine(tmp_path: Path, flags: str, guest: bool) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(flags)
    assert is_guest(tmp_path) is guest


def test_on_a_machine_of_its_own_nothing_is_done(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(awake, "is_guest", lambda: False)
    with Journal(tmp_path / "journals") as journal, kept_awake((0,), (1,), journal) as found:
        assert (found.cores, found.pids, found.sentence) == ((), (), "")
        assert journal.pending == ()


def test_each_core_has_one_that_gives_way_and_nothing_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(awake, "is_guest", lambda: True)
    usable = sorted(os.sched_getaffinity(0))
    with Journal(tmp_path / "journals") as journal:
        with kept_awake(usable[:1], usable[1:2], journal) as found:
            if found.reason:
                pytest.skip(found.reason)
            assert found.cores == tuple(usable[:2])
            for core, pid in zip(found.cores, found.pids, strict=True):
                assert os.sched_getscheduler(pid) == os.SCHED_IDLE
                assert os.sched_getaffinity(pid) == {core}
            # Beside systems in groups of their own only a group gives way.
            assert "/rackscope/awake-" in Path(f"/proc/{found.pids[0]}/cgroup").read_text()
            assert "kept awake" in found.sentence
            before = found.cpu_seconds()
            _wait_until(lambda: found.cpu_seconds() > before)
            assert journal.pending
        assert journal.pending == ()
    for pid in found.pids:
        assert not Path(f"/proc/{pid}").exists()


def test_without_the_right_to_a_group_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(awake, "is_guest", lambda: True)
    monkeypatch.setattr(awake, "_idle_group", lambda _: "it takes root")
    with Journal(tmp_path / "journals") as journal, kept_awake((0,), (0,), journal) as found:
        assert found.pids == ()
        assert "could not be kept awake: it takes root" in found.sentence


def test_a_core_that_may_not_be_used_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(awake, "is_guest", lambda: True)
    monkeypatch.setattr(awake, "_idle_group", lambda _: tmp_path)
    with Journal(tmp_path / "journals") as journal, kept_awake((), (0, 100_000), journal) as found:
        assert found.pids == ()
        assert "core 100000" in found.reason


_KEEPS_AWAKE = """
import sys
from rackscope.studies.bench import awake
with awake._spinning(0, None) as pid:
    print(pid, flush=True)
    sys.stdin.read()
"""


def test_what_spins_ends_with_the_one_that_asked_for_it() -> None:
    command = [sys.executable, "-c", _KEEPS_AWAKE.replace("(0,", f"({min(os.sched_getaffinity(0))},")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asker:
        assert asker.stdout is not None
        spinning = os.pidfd_open(int(asker.stdout.readline()))
        asker.send_signal(signal.SIGKILL)
        try:
            ended, _, _ = select.select([spinning], [], [], 30)
        finally:
            os.close(spinning)
    assert ended


def _wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        os.sched_yield()
