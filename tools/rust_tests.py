"""Build the Rust tests once, run them, and say which were slow and which were skipped::

    python tools/rust_tests.py                        # all, as many at a time as there are cores
    python tools/rust_tests.py cached::protocol heap  # those whose name contains one of these
    python tools/rust_tests.py --repeat 50 process    # fifty times in a row
    python tools/rust_tests.py --seed 17              # property tests draw from another seed

Each job is one module of one test program, in a process of its own with one thread, so that a test's time is its own
and one that breaks its process takes no others along. Property tests draw from a fixed seed unless one is given.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import skips

REPOSITORY = Path(__file__).resolve().parent.parent
JOB_SECONDS_MAX = 900
SLOWEST = 10


@dataclass
class Job:
    """Tests of one module of one program."""

    program: str
    folder: Path
    label: str
    tests: list[str]


@dataclass
class Outcome:
    """What came of all jobs."""

    passed: int = 0
    ignored: int = 0
    failed: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def build(cargo: list[str]) -> list[tuple[str, str, Path]]:
    """Build the test programs; returns package::target, program and the package's folder of each."""
    command = ["cargo", "test", "--workspace", "--exclude", "native", "--lib", "--bins", "--tests", "--no-run"]
    command += [*cargo, "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode:
        sys.exit(built.returncode)
    programs = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            folder = Path(message["manifest_path"]).parent
            name, kind = message["target"]["name"], message["target"]["kind"][0]
            label = folder.name if kind == "lib" or name == "main" else f"{folder.name}::{name}"
            programs.append((label, message["executable"], folder))
    return programs


def jobs_of(programs: list[tuple[str, str, Path]], environment: dict[str, str], filters: list[str]) -> list[Job]:
    """The tests of each program whose name contains one of ``filters``, by module."""
    jobs = []
    for label, program, folder in programs:
        listed = subprocess.run(
            [program, "--list", "--format=terse"],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        modules = defaultdict(list)
        for line in listed.stdout.splitlines():
            name, _, kind = line.rpartition(": ")
            if kind == "test" and (not filters or any(one in f"{label}::{name}" for one in filters)):
                modules[name.rpartition("::")[0].partition("::")[0]].append(name)
        jobs += [Job(program, folder, f"{label}::{module}".rstrip(":"), tests) for module, tests in modules.items()]
    # What has most to do first, so that no core waits for it at the end; servers and clients before structures.
    return sorted(jobs, key=lambda job: (not job.label.startswith(("cached", "xdp", "keeper")), -len(job.tests)))


def run(job: Job, environment: dict[str, str], outcome: Outcome, lock: threading.Lock, many: bool) -> None:
    """Run the tests of one job."""
    command = [job.program, "--test-threads=1", "--show-output", "--exact", *job.tests]
    began = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=job.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    killer = threading.Timer(JOB_SECONDS_MAX, process.kill)
    killer.start()
    lines, at, seconds, passed, ignored = [], began, {}, 0, 0
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        ended = re.match(r"test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)", line)
        if ended:
            now = time.monotonic()
            seconds[f"{job.label.partition('::')[0]}::{ended[1]}"] = now - at
            at = now
            passed += ended[2] == "ok"
            ignored += ended[2] == "ignored"
    status = process.wait()
    killer.cancel()
    output = "".join(lines)
    skipped = {}
    for section in re.split(r"^---- ", output, flags=re.MULTILINE)[1:]:
        reason = re.search(r"^skipped: (.*)", section, re.MULTILINE)
        if reason:
            skipped[f"{job.label.partition('::')[0]}::{section.split()[0]}"] = reason[1]
    with lock:
        outcome.passed += passed
        outcome.ignored += ignored
        outcome.skipped.update(skipped)
        for name, taken in seconds.items():
            outcome.seconds[name] = max(taken, outcome.seconds.get(name, 0.0))
        if status or passed + ignored < len(job.tests):
            outcome.failed += re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED", output, re.MULTILINE) or [
                f"{job.label} ({status})"
            ]
            seed = environment["PROPTEST_RNG_SEED"]
            print(f"{output}\nFAILED {job.label}, after {time.monotonic() - began:.0f} s, seed {seed}")
        elif not many:
            print(f"{job.label}: {passed} passed in {time.monotonic() - began:.1f} s")
        sys.stdout.flush()


def memcached(environment: dict[str, str]) -> None:
    """Where memcached is, which answers are compared with; tests say where there is none."""
    if environment.get("RACKSCOPE_MEMCACHED"):
        return
    from rackscope.errors import RackscopeError
    from rackscope.systems.acquire import acquire_by_name

    try:
        acquired = acquire_by_name("memcached", fetch=False, progress=lambda _text: None)
    except RackscopeError as error:
        print(f"rust tests: {error}")
        return
    environment.update(acquired.environment)
    environment["RACKSCOPE_MEMCACHED"] = str(acquired.program)


def main() -> int:
    """Build, run, tell."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("filters", nargs="*", help="run tests whose name contains one of these")
    arguments.add_argument("--repeat", type=int, default=1, help="run each so many times")
    arguments.add_argument("--seconds", type=float, help="begin no further repetition after so many seconds")
    arguments.add_argument("--seed", type=int, default=1, help="of property tests")
    arguments.add_argument("--at-once", type=int, default=len(os.sched_getaffinity(0)), help="jobs at a time")
    given = arguments.parse_args()

    environment = {**os.environ, "PROPTEST_RNG_SEED": str(given.seed), "RUST_BACKTRACE": "1"}
    memcached(environment)
    began = time.monotonic()
    programs = build([])
    print(f"rust tests: built in {time.monotonic() - began:.0f} s")
    began = time.monotonic()
    jobs = jobs_of(programs, environment, given.filters)
    if not jobs:
        sys.exit(f"no Rust test has a name with {' or '.join(given.filters)}")

    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    repeated = 0
    outcome, lock = Outcome(), threading.Lock()

    def work() -> None:
        while True:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                return
            run(job, environment, outcome, lock, given.repeat > 1)

    while repeated < given.repeat and not outcome.failed:
        if given.seconds is not None and repeated and time.monotonic() - began > given.seconds:
            break
        environment["PROPTEST_RNG_SEED"] = str(given.seed + repeated)
        for job in jobs:
            waiting.put(job)
        workers = [threading.Thread(target=work) for _ in range(given.at_once)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        repeated += 1

    for name, reason in sorted(outcome.skipped.items()):
        print(f"SKIPPED {name}: {reason}")
        if skips.is_strict() and not skips.is_allowed(reason):
            outcome.failed.append(f"{name} (skipped, which CI need not do)")
    print(f"slowest {SLOWEST} Rust tests:")
    for name, seconds in sorted(outcome.seconds.items(), key=lambda one: -one[1])[:SLOWEST]:
        print(f"{seconds:8.2f} s  {name}")
    for name in outcome.failed:
        print(f"FAILED {name}")
    times = f" ({repeated} times)" if given.repeat > 1 else ""
    print(
        f"rust tests: {outcome.passed} passed, {len(outcome.failed)} failed, {outcome.ignored} ignored, "
        f"{len(outcome.skipped)} skipped in {time.monotonic() - began:.0f} s{times}"
    )
    return bool(outcome.failed)


if __name__ == "__main__":
    sys.exit(main())
