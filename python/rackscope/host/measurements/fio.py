"""fio as a function: a job in, figures out. The file it works on has no name, so nothing is left behind."""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rackscope.host.ceilings import CalibrationError
from rackscope.host.measurements.setting import FioProgram

Pattern = Literal["read", "write", "randread", "randwrite"]

#: Beyond a job's own time: starting, ending, a device that flushes.
_PATIENCE_SECONDS = 60.0
#: Asynchronous engines first; psync reaches a queue depth by as many threads.
ENGINES = ("libaio", "io_uring", "psync")


@dataclass(frozen=True)
class Job:
    """What fio is to do. It ends after ``seconds``, or (``once``) when it has been through the file."""

    pattern: Pattern
    block_bytes: int
    queue_depth: int
    file_bytes: int
    seconds: float
    once: bool = False


@dataclass(frozen=True)
class Figures:
    """What fio measured. Latency is that of one request, from submission to completion."""

    bytes_per_second: float
    operations_per_second: float
    bytes_moved: int
    latency_mean_seconds: float | None
    latency_p99_seconds: float | None


@contextmanager
def unnamed_file(folder: Path) -> Iterator[int]:
    """An open file in ``folder`` that has no name: it is gone with its last descriptor, however we end."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix="rackscope-calibrate-", dir=folder)
    try:
        Path(name).unlink()
        yield descriptor
    finally:
        os.close(descriptor)


def allows_direct(descriptor: int) -> bool:
    """Whether the file can be opened past the page cache."""
    try:
        os.close(os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return True


def choose_engine(program: FioProgram, descriptor: int, *, direct: bool) -> str:
    """The first engine that works: a kernel or a container may forbid any. Raises CalibrationError with fio's words."""
    last: CalibrationError | None = None
    attempt = Job("write", 4096, 1, 64 << 10, seconds=5.0, once=True)
    for engine in ENGINES:
        try:
            run_fio(program, descriptor, attempt, engine=engine, direct=direct)
        except CalibrationError as error:
            last = error
        else:
            return engine
    raise last or CalibrationError("fio has no engine that works here")


def run_fio(program: FioProgram, descriptor: int, job: Job, *, engine: str, direct: bool) -> Figures:
    """Run one job on an open file. Raises CalibrationError with what fio said; fio never outlives the call."""
    command = _command(program, descriptor, job, engine=engine, direct=direct)
    environment = {**os.environ, **program.environment, "LC_ALL": "C"}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            pass_fds=[descriptor],
            # Ctrl-C is for us: fio would print what it has and hold the terminal.
            start_new_session=True,
        )
    except OSError as error:
        raise CalibrationError(
            f"fio could not be started from {program.program}: {error.strerror}", "Run 'rackscope get fio'."
        ) from error
    try:
        output, complaint = process.communicate(timeout=job.seconds + _PATIENCE_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise CalibrationError(
            f"fio did not end within {job.seconds + _PATIENCE_SECONDS:.0f} s", "The disk may be failing: see dmesg."
        ) from error
    finally:
        if process.poll() is None:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=10.0)
    return _figures(output, complaint, process.returncode, job)


def _command(program: FioProgram, descriptor: int, job: Job, *, engine: str, direct: bool) -> Sequence[str]:
    asynchronous = engine != "psync"
    return [
        str(program.program),
        "--output-format=json",
        "--name=rackscope",
        # fio opens the file anew, and with it its own flags, through the descriptor that it inherits.
        f"--filename=/proc/self/fd/{descriptor}",
        "--allow_file_create=0",
        "--fallocate=none",
        "--thread",
        "--group_reporting",
        f"--ioengine={engine}",
        f"--direct={int(direct)}",
        f"--rw={job.pattern}",
        f"--bs={job.block_bytes}",
        f"--size={job.file_bytes}",
        f"--iodepth={job.queue_depth if asynchronous else 1}",
        f"--numjobs={1 if asynchronous else job.queue_depth}",
        "--norandommap",
        "--refill_buffers",
        f"--runtime={max(1, round(job.seconds * 1000))}ms",
        *([] if job.once else ["--time_based"]),
    ]


def _figures(output: bytes, complaint: bytes, status: int, job: Job) -> Figures:
    text = output.decode(errors="replace")
    # fio prints warnings before the object.
    start = text.find("{")
    if status == 0 and start >= 0:
        try:
            report = json.loads(text[start:])["jobs"][0]
            if report["error"] == 0:
                return _read_side(report["read" if job.pattern in ("read", "randread") else "write"])
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise CalibrationError(f"fio's output could not be read: {error}", "Run 'rackscope get fio'.") from error
    said = " ".join(complaint.decode(errors="replace").split())[:300] or f"exit status {status}"
    raise CalibrationError(f"fio failed: {said}", "Choose another folder on the disk to measure.")


def _read_side(side: Mapping[str, Any]) -> Figures:
    latency = side.get("clat_ns", {})
    mean, p99 = latency.get("mean"), latency.get("percentile", {}).get("99.000000")
    return Figures(
        bytes_per_second=float(side["bw_bytes"]),
        operations_per_second=float(side["iops"]),
        bytes_moved=int(side["io_bytes"]),
        latency_mean_seconds=_seconds(mean),
        latency_p99_seconds=_seconds(p99),
    )


def _seconds(nanoseconds: Any) -> float | None:
    if not isinstance(nanoseconds, int | float) or not math.isfinite(nanoseconds) or nanoseconds <= 0:
        return None
    return nanoseconds / 1e9
