"""The disk that a folder is on: sequential bytes and random operations over queue depths, by fio."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackscope.errors import RackscopeError
from rackscope.host.ceilings import CalibrationError, Ceiling
from rackscope.host.measurements import fio
from rackscope.host.measurements.setting import Setting
from rackscope.host.storage import FolderStorage, read_folder_storage
from rackscope.units import format_bytes

_MEBIBYTE = 1 << 20
_FILE_BYTES = 1024 * _MEBIBYTE
_SMALLEST_FILE_BYTES = 128 * _MEBIBYTE
#: The file takes at most this share of what is free.
_SHARE_OF_FREE = 0.25
_LAYOUT_SECONDS = 20.0
_SEQUENTIAL_BLOCK_BYTES = _MEBIBYTE
_SEQUENTIAL_QUEUE_DEPTH = 8
_RANDOM_BLOCK_BYTES = 4096
QUEUE_DEPTHS = (1, 4, 16, 64)
_SEQUENTIAL: tuple[tuple[str, fio.Pattern], ...] = (("read", "read"), ("write", "write"))
_RANDOM: tuple[tuple[str, fio.Pattern], ...] = (("read", "randread"), ("write", "randwrite"))
_SEQUENTIAL_REPETITIONS = 3
_RANDOM_REPETITIONS = 2


@dataclass(frozen=True)
class Target:
    """What the file lies on, and what is to be said about every figure from it."""

    device: str
    method: str
    distrust: str | None
    guest: bool


RunJob = Callable[[fio.Job], fio.Figures]
#: What is being done now, and the share of it all that is over.
Report = Callable[[str, float], None]


def measure_disk(setting: Setting, report: Report) -> Iterator[Ceiling]:
    """The four ceilings of the disk below ``setting.folder``. Raises CalibrationError when they cannot be measured."""
    if setting.fio is None:
        raise CalibrationError("fio, which measures disks, is not on this host", "Run 'rackscope get fio' first.")
    if isinstance(setting.fio, RackscopeError):
        raise setting.fio
    storage = _storage(setting)
    file_bytes = choose_file_bytes(setting.folder, shutil.disk_usage(_existing(setting.folder)).free)
    program = setting.fio
    try:
        with fio.unnamed_file(setting.folder) as descriptor:
            # fio writes into a file that is long enough, and would replace one that is not.
            os.ftruncate(descriptor, file_bytes)
            direct = fio.allows_direct(descriptor)
            engine = fio.choose_engine(program, descriptor, direct=direct)
            target = Target(
                device=_label(storage),
                method=f"fio {program.version} ({engine}) in {setting.folder} ({storage.file_system})",
                distrust=distrust_of(storage, direct=direct),
                guest=setting.inventory.virtualisation.guest is True,
            )

            def run_job(job: fio.Job) -> fio.Figures:
                return fio.run_fio(program, descriptor, job, engine=engine, direct=direct)

            yield from measure_file(run_job, file_bytes, target, setting.seconds(1.0, 2.0), report)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise CalibrationError(
            f"the disk could not be measured in {setting.folder}: {error.strerror or error}",
            "Free some space there." if full else "Choose a folder that can be written with --folder.",
        ) from error


def measure_file(run_job: RunJob, file_bytes: int, target: Target, seconds: float, report: Report) -> Iterator[Ceiling]:
    """Fill the file, then measure it. Every byte is written first: reading a hole would touch no disk."""
    measurements = len(_SEQUENTIAL) + len(_RANDOM) * len(QUEUE_DEPTHS)
    done = 0

    def say(activity: str) -> None:
        nonlocal done
        report(f"disk {target.device}: {activity}", done / (measurements + 1))
        done += 1

    say(f"filling {format_bytes(file_bytes)}")
    fill = fio.Job("write", _MEBIBYTE, _SEQUENTIAL_QUEUE_DEPTH, file_bytes, _LAYOUT_SECONDS, once=True)
    # A slow disk does not get through in time: what was written is what is measured.
    file_bytes = min(file_bytes, run_job(fill).bytes_moved // _MEBIBYTE * _MEBIBYTE)
    if file_bytes == 0:
        raise CalibrationError(f"disk {target.device} took no data within {_LAYOUT_SECONDS:.0f} s", "See dmesg.")
    for direction, pattern in _SEQUENTIAL:
        say(f"sequential {direction}")
        job = fio.Job(pattern, _SEQUENTIAL_BLOCK_BYTES, _SEQUENTIAL_QUEUE_DEPTH, file_bytes, seconds)
        rates = [run_job(job).bytes_per_second for _ in range(_SEQUENTIAL_REPETITIONS)]
        yield _ceiling(f"disk_sequential_{direction}_bytes_per_second", rates, "bytes/s", target, job, {})
    for direction, pattern in _RANDOM:
        by_depth: dict[int, list[fio.Figures]] = {}
        for depth in QUEUE_DEPTHS:
            say(f"random {direction}, queue depth {depth}")
            job = fio.Job(pattern, _RANDOM_BLOCK_BYTES, depth, file_bytes, seconds)
            by_depth[depth] = [run_job(job) for _ in range(_RANDOM_REPETITIONS)]
        depth, best = max(by_depth.items(), key=lambda item: max(run.operations_per_second for run in item[1]))
        job = fio.Job(pattern, _RANDOM_BLOCK_BYTES, depth, file_bytes, seconds)
        rates = [run.operations_per_second for run in best]
        detail = {"by_queue_depth": {str(depth): _at_depth(runs) for depth, runs in by_depth.items()}}
        yield _ceiling(f"disk_random_{direction}_operations_per_second", rates, "operations/s", target, job, detail)


def _ceiling(
    name: str, rates: list[float], unit: str, target: Target, job: fio.Job, detail: Mapping[str, Any]
) -> Ceiling:
    note = {"note": "the hypervisor may have answered from its own cache"} if target.guest else {}
    return Ceiling.of(
        f'{name}{{device="{target.device}"}}',
        rates,
        unit,
        method=f"{target.method}, {format_bytes(job.block_bytes)} at queue depth {job.queue_depth}",
        distrust=target.distrust,
        detail={
            "block_bytes": job.block_bytes,
            "queue_depth": job.queue_depth,
            "file_bytes": job.file_bytes,
            **detail,
            **note,
        },
    )


def _at_depth(runs: list[fio.Figures]) -> dict[str, Any]:
    best = max(runs, key=lambda run: run.operations_per_second)
    return {
        "operations_per_second": best.operations_per_second,
        "latency_mean_seconds": best.latency_mean_seconds,
        "latency_p99_seconds": best.latency_p99_seconds,
    }


def choose_file_bytes(folder: Path, free_bytes: int) -> int:
    """How long the file may be. Raises CalibrationError when space is short."""
    allowed = int(free_bytes * _SHARE_OF_FREE) // _MEBIBYTE * _MEBIBYTE
    if allowed < _SMALLEST_FILE_BYTES:
        needed = int(_SMALLEST_FILE_BYTES / _SHARE_OF_FREE)
        raise CalibrationError(
            f"{folder} has {format_bytes(free_bytes)} free, too little to measure its disk",
            f"Free at least {format_bytes(needed)}, or choose another folder with --folder.",
        )
    return min(allowed, _FILE_BYTES)


def distrust_of(storage: FolderStorage, *, direct: bool) -> str | None:
    """Why what was measured would not be the disk's own."""
    if not direct:
        return f"{storage.file_system} does not allow direct access, so the page cache was measured too"
    if len(storage.disks) > 1:
        return f"the folder lies on several disks together ({', '.join(storage.disks)})"
    return None


def _label(storage: FolderStorage) -> str:
    if len(storage.disks) == 1:
        return storage.disks[0]
    return Path(storage.source or "unknown").name


def _storage(setting: Setting) -> FolderStorage:
    storage = read_folder_storage(setting.tree, _existing(setting.folder))
    if not storage.disks:
        raise CalibrationError(
            f"the disk below {setting.folder} is not known: {storage.reason}",
            "Choose a folder on the disk to measure with --folder.",
        )
    return storage


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next((path for path in (folder, *folder.parents) if path.exists()), folder)
