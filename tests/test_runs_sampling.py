"""The host sampler as frames, and the control group that limits a system."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rackscope.errors import ProbeError
from rackscope.host.meters import parse_meters
from rackscope.runs.sampling import HostSampler, _interpolate, cgroup_of


@pytest.mark.parametrize(
    ("lines", "group"),
    [
        ("0::/system.slice/memcached.service\n", "/system.slice/memcached.service"),
        ("0::/\n", "/"),
        ("5:cpu,cpuacct:/\n4:memory:/docker/abc\n1:name=systemd:/a/b/c\n0::/\n", "/docker/abc"),
        ("", None),
    ],
)
def test_the_deepest_group_that_limits_is_taken(tmp_path: Path, lines: str, group: str | None) -> None:
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "cgroup").write_text(lines)
    assert cgroup_of(7, tmp_path) == group


def test_a_process_that_is_gone_has_no_group(tmp_path: Path) -> None:
    assert cgroup_of(7, tmp_path) is None


def test_samples_of_this_host_become_a_frame() -> None:
    sampler = HostSampler(0.01, {"system": os.getpid()})
    sampler.start()
    try:
        rows = 0
        spun = 0
        while rows < 5:
            frame = sampler.drain()
            rows += frame.height
            spun += sum(range(1000))
    finally:
        cost = sampler.stop()
    assert frame["timestamp_ns"].is_sorted()
    assert cost["ticks"] >= 5
    assert 'process_resident_bytes{process="system"}' in frame.columns
    assert sampler.stop() == cost


def test_a_meter_that_was_asked_for_and_cannot_be_read_is_no_run(tmp_path: Path) -> None:
    meters = parse_meters(["none", f"file:{tmp_path}/watts,unit=watts,interval=50ms"])
    with pytest.raises(ProbeError, match=r"power meter file:server cannot be read: cannot open .*watts: No such file"):
        HostSampler(0.01, {}, meters=meters)


def test_system_use_is_taken_between_the_ticks_around_both_ends() -> None:
    sampler = HostSampler(0.01, {"system": os.getpid()})
    second = 1_000_000_000
    sampler._system_rows = [(0, 1.0, 100.0), (second, 2.0, 200.0), (2 * second, 4.0, 300.0)]
    cpu_seconds, resident_bytes = sampler.system_use(second // 2, 3 * second // 2)
    assert cpu_seconds == pytest.approx(3.0 - 1.5)
    assert resident_bytes == 200.0


def test_a_moment_that_no_tick_reaches_gives_nothing() -> None:
    sampler = HostSampler(0.01, {"system": os.getpid()})
    sampler._system_rows = [(0, 1.0, 100.0)]
    assert sampler.system_use(10_000_000_000, 20_000_000_000)[0] is None


def test_a_moment_beyond_the_ticks_takes_the_nearest_within_a_second() -> None:
    rows = [(2_000_000_000, 5.0, 0.0), (3_000_000_000, 7.0, 0.0)]
    at = {seconds: _interpolate(rows, int(seconds * 1e9)) for seconds in (0.9, 1.0, 2.5, 4.0, 4.1)}
    assert at == {0.9: None, 1.0: 5.0, 2.5: 6.0, 4.0: 7.0, 4.1: None}
    assert _interpolate([], 0) is None
