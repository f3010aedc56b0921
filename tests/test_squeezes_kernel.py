"""Squeezes in this host's own control groups: what is left is measured, and a killed command leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Rackscope
from rackscope.squeezes import dram_capacity
from rackscope.squeezes.base import Achieved, Capacity, Isolation, NotSqueezable, Squeeze, Subject
from rackscope.squeezes.block_device import find_block_device
from rackscope.squeezes.cpu_set import CpuSet
from rackscope.squeezes.cpu_share import CpuShare
from rackscope.squeezes.disk import DiskBandwidth, DiskOperations
from rackscope.squeezes.dram_capacity import DramCapacity
from rackscope.squeezes.isolation import make_isolation
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.provision import Limits, provision

MEBI = 1 << 20


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "journals") as journal:
        yield journal


@pytest.fixture(autouse=True)
def time_to_fill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is filled until the limit is met: on a busy host the second of a study does not suffice."""
    monkeypatch.setattr(dram_capacity, "_FILL_SECONDS", 120.0)


@pytest.fixture
def isolation(journal: Journal) -> Iterator[Isolation]:
    with make_isolation("test", journal, network=False) as isolation:
        yield isolation


def subject_in(isolation: Isolation, folder: Path) -> Subject:
    return Subject(isolation, tuple(sorted(os.sched_getaffinity(0))), folder=folder)


def capacity_or_skip(squeeze: Squeeze, subject: Subject) -> Capacity:
    capacity = squeeze.capacity(subject)
    if isinstance(capacity, NotSqueezable):
        pytest.skip(capacity.reason)
    return capacity


def skip_where_files_are_in_memory(folder: Path, achieved: Achieved) -> None:
    if achieved.fraction is None and isinstance(find_block_device(folder), NotSqueezable):
        pytest.skip(achieved.sentence)


def test_less_cpu_time_is_left(isolation: Isolation, journal: Journal, tmp_path: Path) -> None:
    subject = subject_in(isolation, tmp_path)
    capacity_or_skip(CpuShare(), subject)
    achieved = CpuShare().verify(subject, 0.4, journal)
    assert achieved.fraction is not None
    # Others may take from it on a busy host; more than allowed it cannot get.
    assert 0.02 < achieved.fraction < 0.48, achieved


def test_fewer_cores_are_left(isolation: Isolation, journal: Journal, tmp_path: Path) -> None:
    subject = subject_in(isolation, tmp_path)
    capacity_or_skip(CpuSet(), subject)
    if "cpuset" not in isolation.control_groups:
        pytest.skip(isolation.missing.get("cpuset", "no cpuset controller"))
    achieved = CpuSet().verify(subject, 0.5, journal)
    assert achieved.fraction is not None
    assert achieved.fraction <= (len(subject.cores) + 1) // 2 / len(subject.cores), achieved


def test_less_memory_is_left(isolation: Isolation, journal: Journal, tmp_path: Path) -> None:
    if "memory" not in isolation.control_groups:
        pytest.skip(isolation.missing.get("memory", "no memory controller"))
    provision(isolation, Limits(memory_bytes=256 * MEBI), journal)
    subject = subject_in(isolation, tmp_path)
    assert capacity_or_skip(DramCapacity(), subject).value == 256 * MEBI
    achieved = DramCapacity().verify(subject, 0.5, journal)
    skip_where_files_are_in_memory(tmp_path, achieved)
    assert achieved.fraction is not None
    assert 0.4 < achieved.fraction < 0.56, achieved


def test_a_limit_too_far_away_is_tried_nearer(isolation: Isolation, journal: Journal, tmp_path: Path) -> None:
    subject = subject_in(isolation, tmp_path)
    if capacity_or_skip(DramCapacity(), subject).value < 3 << 30:
        pytest.skip("there is too little memory for a limit to be far away")
    achieved = DramCapacity().verify(subject, 0.8, journal)
    skip_where_files_are_in_memory(tmp_path, achieved)
    assert "trial limit" in achieved.sentence
    assert achieved.fraction is not None
    assert 0.7 < achieved.fraction < 0.9, achieved


@pytest.mark.parametrize("squeeze", [DiskBandwidth(), DiskOperations()], ids=lambda squeeze: squeeze.name)
def test_less_of_the_disk_is_left(isolation: Isolation, journal: Journal, tmp_path: Path, squeeze: Squeeze) -> None:
    limits = Limits(disk_bytes_per_second=16e6, disk_operations_per_second=800)
    if not ({"blkio", "io"} & set(isolation.control_groups)):
        pytest.skip(isolation.missing.get("blkio") or isolation.missing.get("io", "no io controller"))
    device = find_block_device(tmp_path)
    if isinstance(device, NotSqueezable):
        pytest.skip(device.reason)
    provision(isolation, limits, journal, folder=tmp_path)
    subject = subject_in(isolation, tmp_path)
    capacity_or_skip(squeeze, subject)
    achieved = squeeze.verify(subject, 0.5, journal)
    assert achieved.fraction is not None
    # The throttle gives in slices of a tenth of a second: one more than the eight that are counted may get in.
    assert 0.0 < achieved.fraction < 0.8, achieved


_HOLDER = """
import sys, time
from pathlib import Path
from rackscope.squeezes.base import NotSqueezable, Subject
from rackscope.squeezes import find_squeezes
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.isolation import make_isolation
from rackscope.squeezes.provision import Limits, provision
with Journal() as journal, make_isolation("test", journal) as isolation:
    subject = Subject(isolation, (0, 1), folder=Path.cwd())
    for squeeze in find_squeezes():
        if squeeze.resource != "cpu" and squeeze.name != "dram_capacity":
            continue
        if not isinstance(squeeze.capacity(subject), NotSqueezable):
            squeeze.apply(subject, 0.5, journal)
    print(*dict.fromkeys(isolation.control_groups.values()), sep="\\t", flush=True)
    print(isolation.host_interface or "", flush=True)
    time.sleep(600)
"""


def test_after_kill_9_the_next_command_gives_everything_back(
    rackscope: Rackscope, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKSCOPE_STATE_FOLDER", str(tmp_path / "state"))
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        groups = [Path(word) for word in holder.stdout.readline().split()]
        link = holder.stdout.readline().strip()
        assert not groups or list((tmp_path / "state/squeezes").glob("*.json"))
        assert rackscope("doctor", "--repair").stdout == "No limits were left in place.\n", (
            "it lives: nothing to repair"
        )
        assert all(group.is_dir() for group in groups)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    if not groups:
        pytest.skip("no control groups can be made here")
    assert all(group.is_dir() for group in groups)
    said = rackscope("report", "absent").stderr
    assert f"process {holder.pid}" in said
    assert not any(group.exists() for group in groups)
    assert not link or not Path("/sys/class/net", link).exists()
    assert not list((tmp_path / "state/squeezes").glob("*.json"))
