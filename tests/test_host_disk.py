"""Disks through fio: what is asked of it, how its answers and failures are read, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from host_kernels import FakeKernels, setting
from host_trees import amd_bare_metal
from rackscope.errors import SystemUnderTestError
from rackscope.host.ceilings import CalibrationError, Ceiling
from rackscope.host.inventory import read_inventory
from rackscope.host.measurements import disk
from rackscope.host.measurements.disk import QUEUE_DEPTHS, Target, choose_file_bytes, distrust_of, measure_file
from rackscope.host.measurements.fio import Figures, Job, allows_direct, choose_engine, run_fio, unnamed_file
from rackscope.host.measurements.setting import FioProgram
from rackscope.host.storage import FolderStorage
from rackscope.systems.acquire import acquire_tool

MEBIBYTE = 1 << 20
TARGET = Target("vda", "fio 3.33 (libaio) in /data (ext4)", None, guest=False)
JOB = Job("randread", 4096, 16, 64 * MEBIBYTE, seconds=0.5)


def fake_fio(folder: Path, body: str) -> FioProgram:
    """A program in place of fio: ``body`` runs with ``arguments`` and ``answer(**side)``."""
    program = folder / "fio"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys, time\n"
        "arguments = dict(one[2:].partition('=')[::2] for one in sys.argv[1:])\n"
        "def answer(error=0, **side):\n"
        "    print('fio: a warning before the answer')\n"
        "    figures = {'bw_bytes': 4096000, 'iops': 1000.0, 'io_bytes': 67108864,\n"
        "               'clat_ns': {'mean': 50000.0, 'percentile': {'99.000000': 90000}}} | side\n"
        "    print(json.dumps({'jobs': [{'error': error, 'read': figures, 'write': figures}]}))\n"
        f"{body}\n"
    )
    program.chmod(0o755)
    return FioProgram(program, "3.33", {"FIO_TEST": "here"})


def test_figures_are_read_from_its_answer(tmp_path: Path) -> None:
    program = fake_fio(tmp_path, "answer()")
    with unnamed_file(tmp_path / "data") as descriptor:
        found = run_fio(program, descriptor, JOB, engine="libaio", direct=True)
    assert found == Figures(4096000.0, 1000.0, 64 * MEBIBYTE, 5e-5, 9e-5)


def test_it_is_asked_for_exactly_the_job(tmp_path: Path) -> None:
    program = fake_fio(
        tmp_path,
        "open(os.environ['ASKED'], 'w').write(json.dumps(arguments | {'environment': os.environ['FIO_TEST']}))\n"
        "answer()",
    )
    program.environment["ASKED"] = str(tmp_path / "asked")
    with unnamed_file(tmp_path / "data") as descriptor:
        run_fio(program, descriptor, JOB, engine="libaio", direct=True)
        asked = json.loads((tmp_path / "asked").read_text())
        assert asked["filename"] == f"/proc/self/fd/{descriptor}"
        assert (asked["rw"], asked["bs"], asked["iodepth"], asked["numjobs"]) == ("randread", "4096", "16", "1")
        assert (asked["direct"], asked["runtime"], asked["environment"]) == ("1", "500ms", "here")
        assert "time_based" in asked
        # A synchronous engine reaches a queue depth by threads.
        run_fio(program, descriptor, JOB, engine="psync", direct=False)
        asked = json.loads((tmp_path / "asked").read_text())
        assert (asked["iodepth"], asked["numjobs"], asked["direct"]) == ("1", "16", "0")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("sys.stderr.write('fio: cannot\\nallocate'); sys.exit(1)", "fio: cannot allocate"),
        ("answer(error=28)", "exit status 0"),
        ("print('{')", "could not be read"),
        ("print(json.dumps({'jobs': []}))", "could not be read"),
        ("answer(iops=None)", "could not be read"),
        ("os.kill(os.getpid(), 9)", "exit status -9"),
        ("pass", "exit status 0"),
    ],
)
def test_whatever_goes_wrong_is_one_line(tmp_path: Path, body: str, says: str) -> None:
    program = fake_fio(tmp_path, body)
    with (
        unnamed_file(tmp_path / "data") as descriptor,
        pytest.raises(CalibrationError, match=says) as caught,
    ):
        run_fio(program, descriptor, JOB, engine="libaio", direct=True)
    assert "\n" not in str(caught.value)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    program = FioProgram(tmp_path / "absent", "3.33")
    with unnamed_file(tmp_path) as descriptor, pytest.raises(CalibrationError, match="could not be started"):
        run_fio(program, descriptor, JOB, engine="libaio", direct=True)


def test_an_engine_that_is_forbidden_gives_way_to_the_next(tmp_path: Path) -> None:
    program = fake_fio(tmp_path, "sys.exit(1) if arguments['ioengine'] == 'libaio' else answer()")
    with unnamed_file(tmp_path / "data") as descriptor:
        assert choose_engine(program, descriptor, direct=True) == "io_uring"
        broken = fake_fio(tmp_path, "sys.stderr.write('no engine here'); sys.exit(1)")
        with pytest.raises(CalibrationError, match="no engine here"):
            choose_engine(broken, descriptor, direct=True)


def test_the_file_has_no_name_while_it_is_used(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), unnamed_file(tmp_path / "data") as descriptor:
        os.ftruncate(descriptor, MEBIBYTE)
        assert os.fstat(descriptor).st_size == MEBIBYTE
        assert list((tmp_path / "data").iterdir()) == []
        raise KeyboardInterrupt
    assert list((tmp_path / "data").iterdir()) == []


def test_fio_does_not_outlive_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake_fio(tmp_path, "open(os.environ['PID'], 'w').write(str(os.getpid())); time.sleep(60)")
    pid_file = tmp_path / "pid"
    program.environment["PID"] = str(pid_file)
    from subprocess import Popen

    from conftest import process_exists, wait_until

    real = Popen.communicate

    def interrupted(self: Popen[bytes], *arguments: object, **options: object) -> object:
        monkeypatch.setattr(Popen, "communicate", real)
        wait_until(lambda: pid_file.exists() and pid_file.read_text() != "", "fio to start")
        raise KeyboardInterrupt

    monkeypatch.setattr(Popen, "communicate", interrupted)
    with unnamed_file(tmp_path / "data") as descriptor, pytest.raises(KeyboardInterrupt):
        run_fio(program, descriptor, JOB, engine="libaio", direct=True)
    assert not process_exists(int(pid_file.read_text()))


class Disk:
    """Answers jobs as a disk would whose rate grows with the queue depth up to 16."""

    def __init__(self, written: int = 1024 * MEBIBYTE) -> None:
        self.jobs: list[Job] = []
        self.written = written

    def __call__(self, job: Job) -> Figures:
        self.jobs.append(job)
        rate = 1000.0 * min(job.queue_depth, 16) + len(self.jobs)
        moved = min(self.written, job.file_bytes) if job.once else 1
        return Figures(rate * job.block_bytes, rate, moved, 1e-4, 2e-4)


def measure(device: Disk, target: Target = TARGET) -> dict[str, Ceiling]:
    found = measure_file(device, 1024 * MEBIBYTE, target, 0.1, lambda *_: None)
    return {ceiling.name: ceiling for ceiling in found}


def test_all_four_ceilings_carry_the_device_and_every_queue_depth() -> None:
    found = measure(Disk())
    assert set(found) == {
        'disk_sequential_read_bytes_per_second{device="vda"}',
        'disk_sequential_write_bytes_per_second{device="vda"}',
        'disk_random_read_operations_per_second{device="vda"}',
        'disk_random_write_operations_per_second{device="vda"}',
    }
    random = found['disk_random_read_operations_per_second{device="vda"}']
    assert list(random.detail["by_queue_depth"]) == [str(depth) for depth in QUEUE_DEPTHS]
    assert random.detail["queue_depth"] in (16, 64)
    assert random.value == max(one["operations_per_second"] for one in random.detail["by_queue_depth"].values())


def test_the_file_is_filled_before_it_is_read() -> None:
    device = Disk()
    measure(device)
    assert (device.jobs[0].pattern, device.jobs[0].once) == ("write", True)
    assert not any(job.once for job in device.jobs[1:])


def test_a_slow_disk_is_measured_over_what_it_took() -> None:
    device = Disk(written=100 * MEBIBYTE + 17)
    measure(device)
    assert {job.file_bytes for job in device.jobs[1:]} == {100 * MEBIBYTE}
    with pytest.raises(CalibrationError, match="took no data"):
        measure(Disk(written=17))


def test_progress_of_a_disk_grows_to_less_than_all() -> None:
    shares: list[float] = []
    list(measure_file(Disk(), MEBIBYTE * 8, TARGET, 0.1, lambda _, share: shares.append(share)))
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] < 1.0


def test_each_ceiling_is_told_as_soon_as_it_is_known() -> None:
    device = Disk()
    found = measure_file(device, MEBIBYTE * 8, TARGET, 0.1, lambda *_: None)
    assert next(found).name.startswith("disk_sequential_read")
    assert {job.pattern for job in device.jobs[1:]} == {"read"}


def test_space_that_is_short_is_refused(tmp_path: Path) -> None:
    assert choose_file_bytes(tmp_path, 100 << 30) == 1 << 30
    assert choose_file_bytes(tmp_path, 1 << 30) == 256 * MEBIBYTE
    with pytest.raises(CalibrationError, match=r"too little to measure") as caught:
        choose_file_bytes(tmp_path, 400 * MEBIBYTE)
    assert "512 MiB" in caught.value.advice


def storage(*disks: str) -> FolderStorage:
    return FolderStorage("/data", "btrfs", "/dev/md0", "/data", "rw", disks, None, in_memory=False)


def test_what_is_not_the_disks_own_is_not_trusted() -> None:
    assert distrust_of(storage("vda"), direct=True) is None
    assert "page cache" in (distrust_of(storage("vda"), direct=False) or "")
    assert "sda, sdb" in (distrust_of(storage("sda", "sdb"), direct=True) or "")
    untrusted = measure(Disk(), Target("vda", "fio", "page cache", guest=True))
    assert {ceiling.distrust for ceiling in untrusted.values()} == {"page cache"}
    assert all("hypervisor" in ceiling.detail["note"] for ceiling in untrusted.values())


def test_without_fio_or_a_disk_the_reason_is_given(tmp_path: Path) -> None:
    root = amd_bare_metal(tmp_path / "amd")
    inventory = read_inventory(root, Path("/"))
    without = setting(inventory, FakeKernels(), root)
    with pytest.raises(CalibrationError, match="fio") as caught:
        list(disk.measure_disk(without, lambda *_: None))
    assert "rackscope get fio" in caught.value.advice
    in_memory = setting(inventory, FakeKernels(), root, fio=fake_fio(tmp_path, "answer()"), folder=Path("/tmp/x"))
    with pytest.raises(CalibrationError, match="in memory"):
        list(disk.measure_disk(in_memory, lambda *_: None))


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    host = setting(read_inventory(), FakeKernels(), Path("/"), fio=fake_fio(tmp_path, "answer()"))
    blocked = setting(host.inventory, FakeKernels(), Path("/"), fio=host.fio, folder=tmp_path / "file" / "below")
    if not read_inventory(folder=tmp_path).working_folder.disks:
        pytest.skip("the temporary folder is on no disk")
    with pytest.raises(CalibrationError, match="could not be measured") as caught:
        list(disk.measure_disk(blocked, lambda *_: None))
    assert "--folder" in caught.value.advice


def test_the_real_fio_understands_its_jobs(tmp_path: Path) -> None:
    try:
        acquired = acquire_tool("fio", fetch=False)
    except SystemUnderTestError as error:
        pytest.skip(str(error))
    program = FioProgram(acquired.program, acquired.version, dict(acquired.environment))
    size = 4 * MEBIBYTE
    with unnamed_file(tmp_path) as descriptor:
        os.ftruncate(descriptor, size)
        direct = allows_direct(descriptor)
        engine = choose_engine(program, descriptor, direct=direct)
        fill = run_fio(
            program, descriptor, Job("write", MEBIBYTE, 4, size, 10.0, once=True), engine=engine, direct=direct
        )
        assert fill.bytes_moved == size
        assert os.fstat(descriptor).st_blocks * 512 >= size
        for pattern in ("read", "randread", "randwrite"):
            job = Job(pattern, 4096, 4, size, seconds=0.2)  # type: ignore[arg-type]
            found = run_fio(program, descriptor, job, engine=engine, direct=direct)
            assert found.operations_per_second > 0
            assert found.latency_p99_seconds
    assert list(tmp_path.iterdir()) == []
