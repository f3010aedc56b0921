"""What takes longer than ``make test`` may: ``make test-long``, ``make test-long MINUTES=30``, and each part alone::

    python tools/test_long.py --minutes 30                  # everything, cut to half an hour
    python tools/test_long.py --minutes 5 --seed 17 fuzz    # one part, from that seed
    python tools/test_long.py --list                        # what there is

The time is shared by weight among the parts that are still to come; what a part leaves over goes to the next ones. A
part is cut to its time by fewer seeds, trials, tests or seconds. ``--start WORD`` (``START=`` of make; CI gives the
commit's hash) begins at another place in the list. The seed is printed, and with it a failure comes again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CORES = len(os.sched_getaffinity(0))
# Tests that start processes or depend on how threads are scheduled: fifty times in a row, under load.
RUST_PROCESSES = [
    "cached::process",
    "cached::operations",
    "cached::memory_file",
    "cached::threads",
    "cached::tls",
    "cached::transport",
    "keeper::",
    "xdp::lifetime",
    "net::",
    "mica::readers",
    "load::",
]


@dataclass(frozen=True)
class Task:
    """What a part is given."""

    seconds: float
    seed: int
    start: str


@dataclass(frozen=True)
class Part:
    """One part: what it does, its weight in the time, and the commands that do it."""

    name: str
    does: str
    weight: int
    commands: Callable[[Task], list[list[str]]]
    environment: Callable[[Task], dict[str, str]] = lambda _task: {}


def rust(task: Task, *more: str) -> list[str]:
    """Rust tests again and again, each time from another seed, until the time is over."""
    cut = ["--repeat", "1000000", "--seconds", str(int(task.seconds)), "--seed", str(task.seed)]
    return [sys.executable, "tools/rust_tests.py", *cut, *more]


def python(task: Task, *more: str) -> list[str]:
    """Python tests, in an order that begins at another place, until the time is over."""
    cut = ["--for-seconds", str(int(task.seconds)), "--start", task.start or str(task.seed), "--timeout", "1200"]
    return [sys.executable, "-m", "pytest", "-q", *cut, *more]


def fuzz(task: Task) -> list[list[str]]:
    """Every target for the same time, as many at once as there are cores."""
    targets = len(list((REPOSITORY / "fuzz/targets").glob("*.rs")))
    each = max(2, int(task.seconds * CORES / targets))
    return [["fuzz/run", "--build"], ["fuzz/run", str(each)]]


MODELS = ("cache", "large", "store")
LOOM = ["cargo", "test", "-p", "mica", "--lib", "--release", "--quiet", "--target-dir", "target/loom", "--"]
DRAWN = {"RACKSCOPE_SUITE": "long"}

PARTS = (
    Part("fuzz", "every parser, given bytes that an engine makes up", 4, fuzz),
    Part(
        "models",
        "every interleaving of lookups and writes of a partition (loom): a minute, once built",
        1,
        lambda _task: [[*LOOM, *(f"tests::{name}::" for name in MODELS)]],
        # In less time, fewer preemptions: a model that ends early would show nothing.
        lambda task: {"RUSTFLAGS": "--cfg loom", **({"LOOM_MAX_PREEMPTIONS": "1"} if task.seconds < 30 else {})},
    ),
    Part(
        "differential",
        "random commands to the cache engine and to memcached",
        2,
        lambda task: [rust(task, "cached::differential")],
        lambda task: {"PROPTEST_CASES": "5000" if task.seconds > 300 else "1500"},
    ),
    Part(
        "simulation",
        "a whole simulated cache server: a million steps in 200 seconds",
        2,
        lambda task: [[sys.executable, "tools/rust_tests.py", "--seed", str(task.seed), "cached::simulation"]],
        # A slow host makes some 5,000 steps a second.
        lambda task: {"RACKSCOPE_STEPS": str(int(task.seconds * 5000))},
    ),
    Part("rust-seeds", "all Rust tests, with property tests from new seeds", 2, lambda task: [rust(task)]),
    Part(
        "rust-processes",
        "Rust tests that start processes, again and again",
        2,
        lambda task: [rust(task, "--at-once", str(2 * CORES), *RUST_PROCESSES)],
    ),
    Part(
        "documentation",
        "the examples in the words about Rust code",
        1,
        lambda _task: [["cargo", "test", "--doc", "--workspace", "--exclude", "native", "--quiet"]],
    ),
    Part(
        "simulations",
        "coverage of intervals over many trials, and property tests from new seeds",
        3,
        lambda task: [python(task, "-n", str(CORES), "-m", "not servers", f"--hypothesis-seed={task.seed}")],
    ),
    Part(
        "servers",
        "full-length studies on real servers",
        5,
        lambda task: [python(task, "-m", "servers and long")],
    ),
    Part(
        "python-processes",
        "Python tests that start processes, again and again, two at a time and more",
        3,
        lambda task: [
            python(task, "-n", str(2 * CORES), "-m", "servers and not long", "-k", "not studies", "--repeat", "50")
        ],
    ),
)


def span(seconds: float) -> str:
    """A time as a person says it."""
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def run(part: Part, task: Task) -> bool:
    """Whether all commands of a part ended well."""
    environment = {**os.environ, **DRAWN, "RACKSCOPE_SEED": str(task.seed), **part.environment(task)}
    return all(
        subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode in (0, 5)
        if command[1:3] == ["-m", "pytest"]  # 5: no test was selected
        else subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode == 0
        for command in part.commands(task)
    )


def main() -> int:
    """Run the parts; returns 1 if one failed, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="these only")
    parser.add_argument("--minutes", type=float, default=120.0, help="how long all takes (120)")
    parser.add_argument("--start", default="", help="a word or a hash: begin at a place that it gives")
    parser.add_argument("--seed", type=int, default=None, help="draw from this seed, instead of a new one")
    parser.add_argument("--list", action="store_true", help="say what there is")
    given = parser.parse_args()
    if given.list:
        for part in PARTS:
            print(f"{part.name:18} {part.does}")
        return 0
    unknown = set(given.parts) - {part.name for part in PARTS}
    if unknown:
        parser.error(f"no part is named {', '.join(sorted(unknown))}: see --list")
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    first = int.from_bytes(hashlib.sha256(given.start.encode()).digest()[:4]) if given.start else 0
    parts = [part for part in PARTS if not given.parts or part.name in given.parts]
    parts = parts[first % len(parts) :] + parts[: first % len(parts)]

    end = time.monotonic() + given.minutes * 60
    said: dict[str, str] = {}
    status = 0
    try:
        for number, part in enumerate(parts):
            left = max(0.0, end - time.monotonic())
            seconds = left * part.weight / sum(one.weight for one in parts[number:])
            print(
                f"\n[{number + 1}/{len(parts)}] {part.name}: {part.does}; "
                f"{span(seconds)} of {span(left)} left, seed {seed}"
            )
            sys.stdout.flush()
            if seconds < 5:
                said[part.name] = "not run: no time was left"
                continue
            began = time.monotonic()
            good = run(part, Task(seconds, seed, given.start))
            said[part.name] = f"{'passed' if good else 'FAILED'} in {span(time.monotonic() - began)}"
            if not good:
                again = f"python tools/test_long.py --minutes {max(1, round(seconds / 60))} --seed {seed}"
                said[part.name] += f"; again: {again} {part.name}"
                status = 1
    except KeyboardInterrupt:
        status = 130
    print(f"\ntest-long, seed {seed}:")
    for part in parts:
        print(f"  {part.name:18} {said.get(part.name, 'interrupted' if status == 130 else 'not run')}")
    return status


if __name__ == "__main__":
    sys.exit(main())
