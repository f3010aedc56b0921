"""The cores that the threads of a process tree may use, where there is no cpuset to say it for all of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.process_identity import process_start_ticks
from rackscope.squeezes.held import Changes
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.undo import RestoreAffinity

#: A thread that starts another one while it is restricted: the next pass finds that.
_PASSES = 10


def read_process_tree(pid: int) -> dict[int, list[int]]:
    """Threads of ``pid`` and of every process below it, by process; empty when it is gone."""
    tree: dict[int, list[int]] = {}
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        folder = Path(f"/proc/{process}/task")
        try:
            threads = [int(entry.name) for entry in folder.iterdir()]
        except OSError:
            continue
        tree[process] = threads
        for thread in threads:
            with suppress(OSError):
                # Needs CONFIG_PROC_CHILDREN, which distributions have.
                waiting += [int(word) for word in (folder / str(thread) / "children").read_text().split()]
    return tree


def restrict_tree(pid: int, cores: Sequence[int], journal: Journal) -> Changes:
    """Let every thread of the tree run on ``cores`` only. Raises SqueezeError."""
    changes = Changes(journal)
    with changes.undone_on_failure():
        _restrict(pid, set(cores), changes)
    return changes


def keep_affinity(pid: int, changes: Changes) -> None:
    """Have affinities brought back with ``changes``: a kernel before 6.2 forgets them when a cpuset shrinks."""
    for process, threads in read_process_tree(pid).items():
        with suppress(OSError):
            before = _common_affinity(threads)
            if before is not None:
                _record(process, before, changes)


def _restrict(pid: int, cores: set[int], changes: Changes) -> None:
    recorded: set[int] = set()
    for _ in range(_PASSES):
        tree = read_process_tree(pid)
        if not tree:
            raise SqueezeError(f"the system's process {pid} is gone")
        changed = False
        for process, threads in tree.items():
            with suppress(ProcessLookupError):
                if process not in recorded:
                    before = _common_affinity(threads)
                    if before is None:
                        raise SqueezeError(f"threads of process {process} are kept to cores of their own already")
                    _record(process, before, changes)
                    recorded.add(process)
                changed |= _restrict_threads(threads, cores)
        if not changed:
            return
    raise SqueezeError(f"process {pid} starts threads faster than they can be kept to fewer cores")


def _restrict_threads(threads: Sequence[int], cores: set[int]) -> bool:
    changed = False
    for thread in threads:
        with suppress(ProcessLookupError):
            before = os.sched_getaffinity(thread)
            if not before <= cores:
                _set(thread, before & cores or cores)
                changed = True
    return changed


def _common_affinity(threads: Sequence[int]) -> set[int] | None:
    """What all threads share; ``None`` where they differ. Raises OSError."""
    affinities: set[frozenset[int]] = set()
    for thread in threads:
        with suppress(ProcessLookupError):
            affinities.add(frozenset(os.sched_getaffinity(thread)))
    return set(affinities.pop()) if len(affinities) == 1 else None


def _record(process: int, before: set[int], changes: Changes) -> None:
    ticks = process_start_ticks(process)
    if ticks is None:
        raise ProcessLookupError(process)
    changes.record(RestoreAffinity(process, ticks, ",".join(map(str, sorted(before)))))


def _set(thread: int, cores: set[int]) -> None:
    try:
        os.sched_setaffinity(thread, cores)
    except ProcessLookupError:
        raise
    except OSError as error:
        raise SqueezeError(f"thread {thread} cannot be kept to fewer cores: {error.strerror}") from error
