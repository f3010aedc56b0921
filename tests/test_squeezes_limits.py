"""Limits in recorded control groups of both versions: what is written while held, and that all is as it was after."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from host_trees import write_tree
from rackscope import _native
from rackscope.errors import SqueezeError
from rackscope.squeezes import find_squeezes
from rackscope.squeezes.base import Capacity, Isolation, NotSqueezable, Squeeze, Subject
from rackscope.squeezes.block_device import BlockDevice, _block_folder_of_mount, find_block_device
from rackscope.squeezes.core_frequency import CoreFrequency
from rackscope.squeezes.cpu_set import CpuSet, cores_left
from rackscope.squeezes.cpu_share import CpuShare
from rackscope.squeezes.disk_limits import limit_changes, tightest_limit
from rackscope.squeezes.dram_capacity import DramCapacity
from rackscope.squeezes.groups import Group
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.loads import _result
from rackscope.squeezes.provision import Limits, provision
from squeezes_trees import DISK, journal_in, subject_of, write_groups

Version = Literal[1, 2]
MEBI = 1 << 20


@pytest.fixture(params=[1, 2], ids=["v1", "v2"])
def version(request: pytest.FixtureRequest) -> Version:
    return 1 if request.param == 1 else 2


@pytest.fixture
def isolation(tmp_path: Path, version: Version) -> Isolation:
    return write_groups(tmp_path, version)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with journal_in(tmp_path) as journal:
        yield journal
        assert journal.pending == (), "a squeeze was released and is still in the journal"


def contents(isolation: Isolation) -> dict[Path, list[str]]:
    """Every file of the groups, by its words."""
    return {
        path: path.read_text().split() for folder in set(isolation.control_groups.values()) for path in folder.iterdir()
    }


def test_they_are_found_in_one_order() -> None:
    names = [squeeze.name for squeeze in find_squeezes()]
    assert len(names) == len(set(names))
    expected = ["cpu_share", "cpu_set", "core_frequency", "dram_capacity", "disk_bandwidth", "disk_operations"]
    assert [name for name in names if name in expected] == expected


def test_those_that_are_compared_with_a_control_have_one() -> None:
    for squeeze in find_squeezes():
        assert squeeze.has_control == (type(squeeze).apply_control is not Squeeze.apply_control), squeeze.name


@pytest.mark.parametrize("squeeze", find_squeezes(), ids=lambda squeeze: squeeze.name)
def test_without_a_place_each_says_why_not(squeeze: Squeeze, tmp_path: Path) -> None:
    subject = Subject(Isolation(missing={"control_group": "it takes root"}), (0,), folder=tmp_path)
    found = squeeze.capacity(subject)
    if isinstance(found, Capacity):
        return  # Some need no isolation: an antagonist, the clock.
    assert found.reason
    with pytest.raises(SqueezeError), journal_in(tmp_path) as journal:
        squeeze.apply(subject, 0.5, journal)


def test_a_share_of_the_cores_in_short_periods(isolation: Isolation, version: Version, journal: Journal) -> None:
    subject, before, folder = subject_of(isolation), contents(isolation), isolation.control_groups["cpu"]
    assert CpuShare().capacity(subject) == Capacity(4.0, "cores", "the system's cores", 0.05)
    with CpuShare().apply(subject, 0.6, journal) as held:
        if version == 1:
            assert (folder / "cpu.cfs_quota_us").read_text() == "24000"
            assert (folder / "cpu.cfs_period_us").read_text() == "10000"
        else:
            assert (folder / "cpu.max").read_text() == "24000 10000"
        held.release()
        assert contents(isolation) == before
    assert contents(isolation) == before


def test_a_tighter_quota_is_the_capacity_and_comes_back(
    isolation: Isolation, version: Version, journal: Journal
) -> None:
    folder = isolation.control_groups["cpu"]
    if version == 1:
        (folder / "cpu.cfs_quota_us").write_text("50000\n")
    else:
        (folder / "cpu.max").write_text("50000 100000\n")
    before, subject = contents(isolation), subject_of(isolation)
    capacity = CpuShare().capacity(subject)
    assert isinstance(capacity, Capacity)
    assert (capacity.value, capacity.source) == (0.5, "the CPU quota of its control group")
    with CpuShare().apply(subject, 0.5, journal):
        now = contents(isolation)
        assert now[folder / ("cpu.cfs_quota_us" if version == 1 else "cpu.max")][0] == "25000"
        if version == 1:
            assert now[folder / "cpu.cfs_period_us"] == ["100000"]
    assert contents(isolation) == before


def test_a_quota_of_a_group_above_counts(tmp_path: Path) -> None:
    isolation = write_groups(tmp_path, 2)
    write_tree(tmp_path / "sys/fs/cgroup", {"rackscope/cpu.max": "150000 100000\n"})
    capacity = CpuShare().capacity(subject_of(isolation))
    assert isinstance(capacity, Capacity)
    assert capacity.value == 1.5


def test_a_quota_below_what_the_kernel_takes_is_refused(isolation: Isolation, journal: Journal) -> None:
    before = contents(isolation)
    with pytest.raises(SqueezeError, match="the kernel takes no less"):
        CpuShare().apply(subject_of(isolation, cores=(0,)), 0.05, journal)
    assert contents(isolation) == before


@pytest.mark.parametrize(("fraction", "left"), [(0.75, "0,1,2"), (0.5, "0,1"), (0.01, "0"), (0.99, "0,1,2")])
def test_whole_cores_are_taken(isolation: Isolation, journal: Journal, fraction: float, left: str) -> None:
    before, file = contents(isolation), isolation.control_groups["cpuset"] / "cpuset.cpus"
    with CpuSet().apply(subject_of(isolation), fraction, journal):
        assert file.read_text() == left
    assert contents(isolation) == before


@pytest.mark.parametrize("count", [2, 3, 8, 64])
def test_one_core_at_least_is_left_and_one_taken(count: int) -> None:
    assert all(1 <= cores_left(count, step / 100) < count for step in range(101))


def test_a_single_core_cannot_be_divided(isolation: Isolation) -> None:
    assert isinstance(CpuSet().capacity(subject_of(isolation, cores=(0,))), NotSqueezable)


def test_a_version_1_cpuset_is_given_memory_nodes_first(tmp_path: Path) -> None:
    isolation = write_groups(tmp_path, 1)
    write_tree(
        tmp_path / "sys/fs/cgroup/cpuset",
        {"rackscope/cpuset.mems": "0-1\n", "rackscope/x/cpuset.mems": "\n", "rackscope/cpuset.cpus": "0-7\n"},
    )
    with journal_in(tmp_path) as journal, CpuSet().apply(subject_of(isolation), 0.5, journal):
        assert (isolation.control_groups["cpuset"] / "cpuset.mems").read_text() == "0-1"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_without_a_cpuset_the_threads_are_kept_to_fewer_cores(tmp_path: Path) -> None:
    cores = tuple(sorted(os.sched_getaffinity(0)))
    with subprocess.Popen(["sleep", "600"]) as child:
        try:
            subject = Subject(Isolation(), cores, pid=child.pid)
            before = os.sched_getaffinity(child.pid)
            with journal_in(tmp_path) as journal, CpuSet().apply(subject, 0.5, journal):
                assert os.sched_getaffinity(child.pid) == set(cores[: cores_left(len(cores), 0.5)])
            assert os.sched_getaffinity(child.pid) == before
        finally:
            child.kill()


def test_memory_of_which_some_is_available(
    tmp_path: Path, isolation: Isolation, version: Version, journal: Journal
) -> None:
    squeeze, subject, before = DramCapacity(tmp_path), subject_of(isolation), contents(isolation)
    capacity = squeeze.capacity(subject)
    assert isinstance(capacity, Capacity)
    assert capacity.value == 1324 * MEBI
    # 100 MiB that no swap takes, a tenth, and 16 MiB.
    assert capacity.floor == pytest.approx(126 / 1324, abs=0.001)
    folder = isolation.control_groups["memory"]
    with squeeze.apply(subject, 0.5, journal):
        name = "memory.limit_in_bytes" if version == 1 else "memory.high"
        assert (folder / name).read_text() == str(662 * MEBI)
        if version == 1:
            assert (folder / "memory.oom_control").read_text() == "1"
    after = contents(isolation)
    if version == 1:
        # The kernel's own way of writing "none" and "0" is not what one writes to say so.
        assert after.pop(folder / "memory.limit_in_bytes") == ["-1"]
        assert after.pop(folder / "memory.oom_control") == ["0"]
    assert after.items() <= before.items()


def test_anonymous_memory_is_never_squeezed_out(tmp_path: Path, isolation: Isolation, journal: Journal) -> None:
    before = contents(isolation)
    with pytest.raises(SqueezeError, match="less than the system must keep"):
        DramCapacity(tmp_path).apply(subject_of(isolation), 0.08, journal)
    assert contents(isolation) == before


def test_memory_that_is_all_anonymous_cannot_be_squeezed(
    tmp_path: Path, isolation: Isolation, version: Version
) -> None:
    name = "memory.limit_in_bytes" if version == 1 else "memory.max"
    (isolation.control_groups["memory"] / name).write_text(f"{105 * MEBI}\n")
    found = DramCapacity(tmp_path).capacity(subject_of(isolation))
    assert isinstance(found, NotSqueezable)
    assert "100 MiB of the 105 MiB" in found.reason


def test_swap_takes_anonymous_memory_as_far_as_it_goes(tmp_path: Path) -> None:
    isolation = write_groups(tmp_path, 2)
    write_tree(tmp_path, {"proc/meminfo": f"MemAvailable: {1 << 20} kB\nSwapFree: {60 << 10} kB\n"})
    capacity = DramCapacity(tmp_path).capacity(subject_of(isolation))
    assert isinstance(capacity, Capacity)
    assert capacity.floor == pytest.approx(60 / 1324, abs=0.01)


def disk_squeezes(root: Path) -> list[Squeeze]:
    from rackscope.squeezes.disk import DiskBandwidth, DiskOperations

    return [DiskBandwidth(root), DiskOperations(root)]


def on_the_recorded_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose device number is that of a partition of the recorded disk."""
    monkeypatch.setattr(
        "rackscope.squeezes.disk.find_block_device", lambda folder, _: find_block_device(folder, root, "254:1")
    )
    return root


def test_reads_and_writes_are_each_left_their_part(
    tmp_path: Path, isolation: Isolation, version: Version, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = subject_of(isolation, on_the_recorded_disk(tmp_path, monkeypatch))
    bandwidth, operations = disk_squeezes(tmp_path)
    capacity = bandwidth.capacity(subject)
    assert isinstance(capacity, Capacity)
    assert capacity.value == 1000.0
    assert ("page cache" in capacity.source) == (version == 1)
    folder = next(folder for name, folder in isolation.control_groups.items() if name in ("blkio", "io"))
    with bandwidth.apply(subject, 0.6, journal):
        if version == 1:
            assert (folder / "blkio.throttle.read_bps_device").read_text() == "254:0 600"
            assert (folder / "blkio.throttle.write_bps_device").read_text() == "254:0 300"
        else:
            assert (folder / "io.max").read_text() == "254:0 rbps=600 wbps=300"
    # Writes have no ceiling of operations there: they are left as they are.
    with operations.apply(subject, 0.5, journal):
        if version == 1:
            assert (folder / "blkio.throttle.read_iops_device").read_text() == "254:0 100"
            assert (folder / "blkio.throttle.write_iops_device").read_text() == ""
        else:
            assert (folder / "io.max").read_text() == "254:0 riops=100"
    if version == 1:
        assert (folder / "blkio.throttle.read_bps_device").read_text() == "254:0 0"
    else:
        assert (folder / "io.max").read_text() == "254:0 riops=max"


def test_a_limit_that_was_there_is_the_capacity_and_comes_back(isolation: Isolation, version: Version) -> None:
    folder = next(folder for name, folder in isolation.control_groups.items() if name in ("blkio", "io"))
    group = Group(folder, version)
    if version == 1:
        (folder / "blkio.throttle.read_bps_device").write_text("8:0 5\n254:0 777\n")
    else:
        (folder / "io.max").write_text("8:0 rbps=5 wbps=max\n254:0 rbps=777 wbps=max riops=max wiops=max\n")
    assert tightest_limit(group, DISK, "bps", "read") == 777
    assert tightest_limit(group, DISK, "bps", "write") is None
    [change] = limit_changes(group, DISK, "bps", {"read": 400})
    assert change.restore == ("254:0 777" if version == 1 else "254:0 rbps=777")


def test_a_disk_that_was_never_measured_cannot_be_squeezed(
    tmp_path: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = replace(subject_of(isolation, on_the_recorded_disk(tmp_path, monkeypatch)), ceilings={})
    for squeeze in disk_squeezes(tmp_path):
        found = squeeze.capacity(subject)
        assert isinstance(found, NotSqueezable)
        assert "rackscope calibrate" in found.needs


def test_a_partition_is_limited_as_its_whole_disk_and_a_layer_is_named_after_the_disk_below(tmp_path: Path) -> None:
    write_groups(tmp_path, 1)
    assert find_block_device(tmp_path, tmp_path, "254:1") == BlockDevice("254:0", "vda", "vda")
    write_tree(tmp_path, {"sys/devices/virtual/block/dm-0/dev": "253:0\n"})
    layer = tmp_path / "sys/devices/virtual/block/dm-0"
    (layer / "slaves").mkdir()
    (layer / "slaves" / "vda1").symlink_to(tmp_path / "sys/devices/virtio/block/vda/vda1")
    (tmp_path / "sys/dev/block/253:0").symlink_to(layer)
    assert find_block_device(tmp_path, tmp_path, "253:0") == BlockDevice("253:0", "dm-0", "vda")
    nowhere = find_block_device(tmp_path, tmp_path, "0:44")
    assert isinstance(nowhere, NotSqueezable)
    assert "is on no block device that is seen from here" in nowhere.reason
    assert isinstance(find_block_device(tmp_path / "absent", tmp_path), NotSqueezable)


def frequencies(root: Path, affected: str = "0") -> Path:
    return write_tree(
        root,
        {
            f"sys/devices/system/cpu/cpu{core}/cpufreq/{name}": text
            for core in (0, 1)
            for name, text in (
                ("scaling_max_freq", "3000000\n"),
                ("cpuinfo_min_freq", "600000\n"),
                ("affected_cpus", f"{core if affected == '0' else affected}\n"),
            )
        },
    )


def test_the_clock_of_the_systems_cores(tmp_path: Path, journal: Journal) -> None:
    squeeze = CoreFrequency(frequencies(tmp_path))
    subject = Subject(Isolation(), (0, 1))
    assert squeeze.capacity(subject) == Capacity(3e9, "hertz", "scaling_max_freq of the system's cores", 0.2)
    files = [tmp_path / f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_max_freq" for core in (0, 1)]
    with squeeze.apply(subject, 0.6, journal):
        assert [file.read_text() for file in files] == ["1800000", "1800000"]
    assert [file.read_text() for file in files] == ["3000000", "3000000"]


@pytest.mark.parametrize("error", [RuntimeError("no core 7"), OSError("it is offline"), ValueError("no time")])
def test_a_clock_that_cannot_be_measured_is_an_error_that_names_the_core(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(seconds: float, core: int) -> None:
        raise error

    monkeypatch.setattr(_native, "measure_core_clock", refuse)
    with pytest.raises(SqueezeError, match=f"the clock of core 1 could not be measured: {error}"):
        CoreFrequency(frequencies(tmp_path)).verify(Subject(Isolation(), (1, 0)), 0.6, journal)


def test_a_clock_that_others_share_is_left_alone(tmp_path: Path) -> None:
    found = CoreFrequency(frequencies(tmp_path, "0 1")).capacity(Subject(Isolation(), (0,)))
    assert isinstance(found, NotSqueezable)
    assert "shares its clock" in found.reason
    assert isinstance(CoreFrequency(tmp_path / "absent").capacity(Subject(Isolation(), (0,))), NotSqueezable)


def test_a_smaller_server_is_all_there_or_not_at_all(isolation: Isolation, version: Version, journal: Journal) -> None:
    before = contents(isolation)
    with provision(isolation, Limits(cpu_cores=0.8, memory_bytes=512 * MEBI), journal):
        memory = "memory.limit_in_bytes" if version == 1 else "memory.max"
        assert (isolation.control_groups["memory"] / memory).read_text() == str(512 * MEBI)
        capacity = CpuShare().capacity(subject_of(isolation))
        assert isinstance(capacity, Capacity)
        assert capacity.value == 0.8
        # The period stays the short one, so that a squeeze of this server is as smooth.
        with CpuShare().apply(subject_of(isolation), 0.5, journal):
            written = contents(isolation)[
                isolation.control_groups["cpu"] / ("cpu.cfs_quota_us" if version == 1 else "cpu.max")
            ]
            assert written[0] == "4000"
    without_memory = replace(isolation, control_groups={"cpu": isolation.control_groups["cpu"]})
    with pytest.raises(SqueezeError, match="memory"):
        provision(without_memory, Limits(cpu_cores=0.8, memory_bytes=1), journal)
    with pytest.raises(SqueezeError, match="network"):
        provision(isolation, Limits(cpu_cores=0.8, network_bytes_per_second=1e6), journal)
    with pytest.raises(SqueezeError, match="which disk"):
        provision(isolation, Limits(cpu_cores=0.8, disk_bytes_per_second=1e6), journal)
    after = contents(isolation)
    cpu = [path for path in before if path.name.startswith("cpu.")]
    assert cpu
    assert {path: after[path] for path in cpu} == {path: before[path] for path in cpu}


def test_a_load_that_failed_is_told_in_its_last_line() -> None:
    with pytest.raises(SqueezeError, match="failed: no space"):
        _result(1, b"", b"Traceback\nOSError\nno space")
    with pytest.raises(SqueezeError, match="failed: status 9"):
        _result(9, b"", b"")
    assert _result(0, b'{"bytes": 3}', b"") == {"bytes": 3}


def test_a_mount_with_a_number_of_its_own_names_its_device(tmp_path: Path) -> None:
    (tmp_path / "sys/dev/block/254:1").mkdir(parents=True)
    tree = {
        "proc/self/mountinfo": "36 35 0:39 / /proc rw - proc proc rw\n37 35 0:40 / /data rw - btrfs /dev/vda1 rw\n",
        "sys/class/block/vda1/dev": "254:1\n",
    }
    write_tree(tmp_path, tree)
    assert _block_folder_of_mount(tmp_path, "0:40") == (tmp_path / "sys/dev/block/254:1").resolve()
    assert _block_folder_of_mount(tmp_path, "0:41") is None
