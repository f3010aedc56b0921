"""Loads of our own that are put into a system's control groups, to measure what is left there."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackscope.errors import SqueezeError

#: Seconds between telling the loads when to begin and that moment.
_START_SECONDS = 0.03
#: Seconds beyond those asked for after which a load is given up: one that is left almost nothing ends late.
_PATIENCE_SECONDS = 20.0

#: What every load begins with: its cores and groups, saying so, and being told the moment at which all begin. Joining a
#: group may take the kernel a while, which is not to be measured. ``time.monotonic`` is the same for all processes.
_PRELUDE = """
import json, os, sys, time
work = json.loads(sys.argv[1])
if work["cores"]:
    os.sched_setaffinity(0, work["cores"])
for path in work["join"]:
    with open(path, "w") as file:
        file.write("0")
os.write(1, b"\\n")
work["start"] = float(sys.stdin.readline())
time.sleep(max(0.0, work["start"] - time.monotonic()))
if time.monotonic() > work["start"] + work["seconds"] / 2:
    sys.exit("this host is too busy for it to begin in time")
"""
_SPIN = """
began, used, seen = time.monotonic(), time.process_time(), set()
status = open("/proc/self/stat", "rb", buffering=0)
while time.monotonic() < work["start"] + work["seconds"]:
    for _ in range(20000):
        pass
    # Field 39 of proc_pid_stat(5) is the core that it last ran on.
    seen.add(int(os.pread(status.fileno(), 4096, 0).rpartition(b")")[2].split()[36]))
took = time.monotonic() - began
rate = (time.process_time() - used) / took
os.write(1, json.dumps({"cpu_seconds_per_second": rate, "cores": sorted(seen)}).encode())
os._exit(0)
"""
_READ_DIRECT = """
import mmap, random, threading
file = os.open(work["file"], os.O_RDONLY | os.O_DIRECT)
size, block = work["file_bytes"], work["block_bytes"]
warm, end = work["start"] + work["warm_up_seconds"], work["start"] + work["seconds"]
counts, lasts, errors = [0] * work["threads"], [warm] * work["threads"], []
def reader(number):
    buffer, chance = mmap.mmap(-1, block), random.Random(number)
    try:
        while time.monotonic() < end:
            os.preadv(file, [buffer], chance.randrange(size // block) * block)
            now = time.monotonic()
            if warm < now < end:
                counts[number] += 1
    except OSError as error:
        errors.append(str(error))
threads = [threading.Thread(target=reader, args=(n,)) for n in range(work["threads"])]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
rate = sum(counts) / (end - warm)
os.write(1, json.dumps({"rate": rate, "error": errors[0] if errors else None}).encode())
os._exit(0)
"""
_FILL = """
file = os.open(work["file"], os.O_RDONLY)
done = 0
while done < work["bytes"] and time.monotonic() < work["start"] + work["seconds"]:
    got = len(os.pread(file, 1 << 20, done))
    if not got:
        break
    done += got
os.write(1, json.dumps({"bytes": done, "usage": open(work["usage"]).read()}).encode())
os._exit(0)
"""


@dataclass(frozen=True)
class Spun:
    """What busy processes got, one figure each, and the cores on which they ran."""

    cpu_seconds_per_second: tuple[float, ...]
    cores: frozenset[int]


def spin(groups: Iterable[Path], cores: Sequence[int], count: int, seconds: float) -> Spun:
    """Keep ``count`` processes busy on ``cores``, as far as ``groups`` let them. Raises SqueezeError."""
    results = _run([_SPIN] * count, groups, cores, {"seconds": seconds})
    return Spun(
        tuple(float(result["cpu_seconds_per_second"]) for result in results),
        frozenset(core for result in results for core in result["cores"]),
    )


def read_direct(
    groups: Iterable[Path], file: Path, block_bytes: int, seconds: float, *, threads: int = 8, warm_up: float = 0.1
) -> float:
    """Blocks a second of random reads that pass by the page cache, in ``groups``. Raises SqueezeError."""
    work = {
        "file": str(file),
        "file_bytes": file.stat().st_size,
        "block_bytes": block_bytes,
        "seconds": seconds + warm_up,
        "warm_up_seconds": warm_up,
        "threads": threads,
    }
    [result] = _run([_READ_DIRECT], groups, (), work)
    if result["error"]:
        raise SqueezeError(f"{file} could not be read past the page cache: {result['error']}")
    return float(result["rate"])


def fill_page_cache(groups: Iterable[Path], file: Path, count: int, usage: Path, seconds: float) -> tuple[int, int]:
    """Read ``count`` bytes in ``groups``: bytes read, and what ``usage`` said after the last. Raises SqueezeError."""
    work = {"file": str(file), "bytes": count, "usage": str(usage), "seconds": seconds}
    [result] = _run([_FILL], groups, (), work)
    return int(result["bytes"]), int(result["usage"])


def _run(
    programs: Sequence[str], groups: Iterable[Path], cores: Sequence[int], work: dict[str, Any]
) -> list[dict[str, Any]]:
    """Run them at the same time; what each printed. None of them is left behind."""
    task = {"join": [str(group / "cgroup.procs") for group in groups], "cores": list(cores), **work}
    with ExitStack() as stack:
        children = []
        for program in programs:
            # Nothing of rackscope is imported there: an interpreter alone starts in a few hundredths of a second.
            command = [sys.executable, "-I", "-S", "-c", _PRELUDE + program, json.dumps(task)]
            pipe = subprocess.PIPE
            child = stack.enter_context(subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe))
            # Ends it however this block is left; Popen's own exit then waits for it.
            stack.callback(child.kill)
            children.append(child)
        for child in children:
            assert child.stdout is not None
            # An empty answer is that of one which has ended: its last words are read below.
            child.stdout.readline()
        start = time.monotonic() + _START_SECONDS
        for child in children:
            assert child.stdin is not None
            with suppress(BrokenPipeError):
                child.stdin.write(f"{start}\n".encode())
        results = []
        for child in children:
            try:
                output, complaint = child.communicate(timeout=float(work["seconds"]) + _PATIENCE_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise SqueezeError("the load that was to measure what is left did not end in time") from error
            results.append(_result(child.returncode, output, complaint))
    return results


def _result(status: int, output: bytes, complaint: bytes) -> dict[str, Any]:
    try:
        result = json.loads(output)
    except ValueError:
        lines = complaint.decode(errors="replace").strip().splitlines()
        raise SqueezeError(
            f"the load that was to measure what is left failed: {lines[-1] if lines else f'status {status}'}"
        ) from None
    if not isinstance(result, dict):
        raise SqueezeError("the load that was to measure what is left gave no result")
    return result
