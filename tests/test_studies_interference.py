"""What others took of a host, read from recorded trees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rackscope.studies.bench import interference
from rackscope.studies.bench.interference import Interference, Judge, Taken, Watch


def host(root: Path, *, user_ticks: int, steal_ticks: int, idle_ticks: int, usage_seconds: float | None) -> Path:
    stat = root / "proc/stat"
    stat.parent.mkdir(parents=True, exist_ok=True)
    stat.write_text(f"cpu  {user_ticks} 0 0 {idle_ticks} 0 0 0 {steal_ticks} 0 0\ncpu0 1 2 3\n")
    if usage_seconds is not None:
        usage = root / "sys/fs/cgroup/cpuacct/cpuacct.usage"
        usage.parent.mkdir(parents=True, exist_ok=True)
        usage.write_text(f"{int(usage_seconds * 1e9)}\n")
    return root


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interference.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(interference.os, "sysconf", lambda _name: 100)
    # This process: half a second of work between two looks.
    own = iter([10.0, 10.5, 11.0, 11.5])
    monkeypatch.setattr(interference, "_own_cpu_seconds", lambda: next(own))


def test_what_the_scheduler_measured_goes_before_what_ticks_sampled(tmp_path: Path) -> None:
    watch = Watch(host(tmp_path, user_ticks=0, steal_ticks=0, idle_ticks=0, usage_seconds=100.0))
    # A second of two cores; ticks charge tasks with 1.9 s, of which 1.3 s were real.
    host(tmp_path, user_ticks=190, steal_ticks=0, idle_ticks=10, usage_seconds=101.3)
    taken = watch.taken(system_seconds=0.75)
    assert taken.others_cores == pytest.approx(0.05)
    assert taken.interference == ""


def test_other_programs_are_told_from_rackscope_and_the_system(tmp_path: Path) -> None:
    watch = Watch(host(tmp_path, user_ticks=0, steal_ticks=0, idle_ticks=0, usage_seconds=100.0))
    host(tmp_path, user_ticks=190, steal_ticks=0, idle_ticks=10, usage_seconds=101.9)
    taken = watch.taken(system_seconds=0.75)
    assert taken.others_cores == pytest.approx(0.65)
    assert taken.interference == "other processes ran"


def test_what_keeps_cores_awake_disturbs_nobody(tmp_path: Path) -> None:
    spun = iter([3.0, 3.9])
    before = host(tmp_path, user_ticks=0, steal_ticks=0, idle_ticks=0, usage_seconds=100.0)
    watch = Watch(before, beside=lambda: next(spun))
    host(tmp_path, user_ticks=200, steal_ticks=0, idle_ticks=0, usage_seconds=102.2)
    taken = watch.taken(system_seconds=0.75)
    assert taken.others_cores == pytest.approx(0.05)
    assert taken.interference == ""


def test_ticks_do_where_nothing_better_is_there(tmp_path: Path) -> None:
    watch = Watch(host(tmp_path, user_ticks=0, steal_ticks=0, idle_ticks=0, usage_seconds=None))
    host(tmp_path, user_ticks=138, steal_ticks=2, idle_ticks=60, usage_seconds=None)
    taken = watch.taken(system_seconds=0.75)
    # Within what ticks are wrong by.
    assert taken.others_cores == pytest.approx(1.38 - 1.25 * 1.1)
    assert taken.steal_ratio == pytest.approx(0.01)
    watch = Watch(tmp_path)
    host(tmp_path, user_ticks=328, steal_ticks=12, idle_ticks=60, usage_seconds=None)
    taken = watch.taken(system_seconds=0.75)
    assert taken.steal_ratio == pytest.approx(0.05)
    assert taken.interference == "the hypervisor gave the cores to other guests (steal)"


def test_a_host_that_tells_nothing_is_not_called_disturbed(tmp_path: Path) -> None:
    taken = Watch(tmp_path).taken(system_seconds=0.5)
    assert (taken.steal_ratio, taken.others_cores, taken.interference) == (None, None, "")


def test_a_window_with_interference_is_measured_again_twice_and_then_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interference, "Watch", lambda **_: one)

    class OneWatch:
        def taken(self, system_seconds: float) -> Taken:
            return Taken(steal_ratio=system_seconds, others_cores=0.0)

    one = OneWatch()
    steals = iter([0.5, 0.5, 0.0, 0.5, 0.5, 0.5])

    def once(begin: Callable[[], Judge]) -> dict[str, Any]:
        row: dict[str, Any] = {"system_cpu_seconds": next(steals)}
        return {**row, "discarded": begin()(row)}

    seen = Interference()
    assert seen.measure(once) == {"system_cpu_seconds": 0.0, "discarded": ""}
    assert (seen.windows, seen.discarded, seen.kept) == (3, 2, 0)
    # Without patience for more the third counts, whatever was taken.
    assert seen.measure(once) == {"system_cpu_seconds": 0.5, "discarded": ""}
    assert (seen.windows, seen.discarded, seen.kept) == (6, 4, 1)
    assert seen.reasons == {"the hypervisor gave the cores to other guests (steal)"}


def test_windows_are_measured_once_where_measuring_them_again_did_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    disturbed = iter([True] * 6 + [True] * 2 + [False] + [True] * 3)
    monkeypatch.setattr(Watch, "taken", lambda self, seconds: Taken(others_cores=1.0 if next(disturbed) else 0.0))
    monkeypatch.setattr(interference, "_own_cpu_seconds", lambda: 0.0)
    seen, tries = Interference(futile_after=2), 0

    def once(begin: Callable[[], Judge]) -> dict[str, Any]:
        nonlocal tries
        tries += 1
        row: dict[str, Any] = {"system_cpu_seconds": 0.0}
        return {**row, "discarded": begin()(row) or None}

    made = []
    for _ in range(6):
        before = tries
        seen.measure(once)
        made.append(tries - before)
    # Two windows are tried three times each in vain; then once each, until one meets no interference.
    assert made == [3, 3, 1, 1, 1, 3]
    assert (seen.kept, seen.discarded) == (5, 6)
