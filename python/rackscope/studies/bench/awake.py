"""Keeping the cores of a virtual machine from going to sleep while systems are measured in turns.

A guest's core that has nothing to do is given back to the hypervisor and has to wait when it is needed again:
tenths of a millisecond on a quiet host, tens of milliseconds on one that is shared, and the guest sees both as stolen
time. A system that sleeps between requests is then slower alone than beside a neighbour that keeps its core awake. That
says nothing of the two. So a process of the idle scheduling class (sched(7), SCHED_IDLE) spins on each core: it runs
only when nothing else would, and gives way at once. (``idle=poll`` of the kernel's parameters does the same.)
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rackscope.errors import SqueezeError
from rackscope.host.confinement import read_virtualisation
from rackscope.host.cpu_time import process_cpu_seconds
from rackscope.host.processor import read_processor
from rackscope.host.tree import Tree
from rackscope.squeezes.control_groups import find_own_groups, make_control_group
from rackscope.squeezes.held import Changes
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.removal import write_control

#: Spins until its parent is gone; says when it is where it belongs. Of rackscope only the native part is loaded.
_SPIN = """
import json, os, sys
work = json.loads(sys.argv[1])
parent = os.getppid()
sys.path.insert(0, work["native"])
import _native
os.sched_setaffinity(0, [work["core"]])
for path in work["join"]:
    with open(path, "w") as file:
        file.write("0")
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
os.write(1, b"\\n")
_native.stay_awake(parent)
"""
_NO_IDLE_GROUP = "the kernel has no control groups that run only when nothing else would (cpu.idle, Linux 5.15)"


@dataclass(frozen=True)
class Awake:
    """``cores`` that are kept awake by ``pids``. Where they should be and are not ``reason`` says why."""

    cores: tuple[int, ...] = ()
    pids: tuple[int, ...] = ()
    reason: str = ""

    @property
    def sentence(self) -> str:
        """For the record; empty where it is not called for."""
        if self.cores:
            return (
                "The cores of this virtual machine were kept awake by processes that run only when nothing else does: "
                "a core that sleeps is given to other guests and has to wait when it is needed again."
            )
        if self.reason:
            return f"The cores of this virtual machine could not be kept awake: {self.reason}. Systems wait for them."
        return ""

    def cpu_seconds(self) -> float:
        """What keeping them awake has taken of them so far: time that nothing else needed."""
        return sum(process_cpu_seconds(pid) or 0.0 for pid in self.pids)


def is_guest(root: Path = Path("/")) -> bool:
    """Whether the hypervisor gives cores that sleep to other guests here."""
    tree = Tree(root)
    return read_virtualisation(tree, read_processor(tree).flags).guest is True


@contextlib.contextmanager
def kept_awake(system_cores: Sequence[int], client_cores: Sequence[int], journal: Journal) -> Iterator[Awake]:
    """Within, no core sleeps that systems or load generators use; on hosts that are no guests nothing is done.

    Beside systems in control groups only a group of its own gives way (``cpu.idle``, cgroup-v2.rst): the class of a
    process counts within its group. Where there is none nothing is kept awake. Raises SqueezeError, in the end, when
    the group cannot be removed.
    """
    if not is_guest():
        yield Awake()
        return
    changes = Changes(journal)
    try:
        group = _idle_group(changes)
        if isinstance(group, str):
            yield Awake(reason=group)
            return
        cores = tuple(sorted({*system_cores, *client_cores}))
        with contextlib.ExitStack() as stack:
            try:
                # Beside rackscope's own threads, which are in its group, the class is enough.
                pids = [stack.enter_context(_spinning(core, group if core in system_cores else None)) for core in cores]
            except SqueezeError as error:
                stack.close()
                yield Awake(reason=error.what)
                return
            yield Awake(cores, tuple(pids))
    finally:
        changes.undo_to(0)


def _idle_group(changes: Changes) -> Path | str:
    """A control group that runs only when nothing else would, or why there is none."""
    try:
        group, missing = make_control_group(f"awake-{os.getpid()}", find_own_groups(), changes)
    except SqueezeError as error:
        return error.what
    folder = None if group is None else group.folders.get("cpu")
    if folder is None:
        return missing.get("cpu") or missing.get("control_group") or _NO_IDLE_GROUP
    try:
        write_control(folder / "cpu.idle", "1")
    except OSError:
        return _NO_IDLE_GROUP
    return folder


@contextlib.contextmanager
def _spinning(core: int, group: Path | None) -> Iterator[int]:
    """The process id of what spins on ``core``. Raises SqueezeError when it does not."""
    import rackscope

    task = {
        "core": core,
        "join": [str(group / "cgroup.procs")] if group is not None else [],
        "native": str(Path(rackscope.__file__).parent),
    }
    command = [sys.executable, "-I", "-S", "-c", _SPIN, json.dumps(task)]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=nothing) as child:
        try:
            assert child.stdout is not None
            if not child.stdout.readline():
                raise SqueezeError(f"core {core} could not be kept awake")
            yield child.pid
        finally:
            child.kill()
