"""CPU set: fewer of the system's cores, by a cpuset or, where there is none, by the affinity of its threads."""

from __future__ import annotations

import os

from rackscope.errors import SqueezeError
from rackscope.squeezes.affinity import keep_affinity, read_process_tree, restrict_tree
from rackscope.squeezes.base import Achieved, Applied, Capacity, NotSqueezable, Resource, Squeeze, Subject
from rackscope.squeezes.groups import Group, group_folders, group_of, require
from rackscope.squeezes.held import Change, Changes, hold, read_text, with_parents
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.loads import spin
from rackscope.squeezes.verifying import judge

_SPIN_SECONDS = 0.4


class CpuSet(Squeeze):
    """``cpuset.cpus``, or sched_setaffinity(2). Whole cores only: the nearest number of them to the fraction."""

    name = "cpu_set"
    resource: Resource = "cpu"
    description = "fewer of its cores, whole ones, by the cpuset of the control group or the affinity of its threads"

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        """The system's cores; of one core none can be taken."""
        count = len(subject.cores)
        if count < 2:
            return NotSqueezable(f"the system has {count} core, and needs that one", "two cores for the system")
        group = _usable_group(subject)
        if isinstance(group, Group):
            return Capacity(float(count), "cores", "the system's cores, by its cpuset", 1 / count)
        if subject.pid is None:
            return group
        return Capacity(float(count), "cores", "the system's cores, by the affinity of its threads", 1 / count)

    def apply(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        require(self.capacity(subject), self.name)
        kept = subject.cores[: cores_left(len(subject.cores), fraction)]
        group = _usable_group(subject)
        if isinstance(group, Group):
            changes = Changes(journal)
            if subject.pid is not None:
                keep_affinity(subject.pid, changes)
            return hold(self.name, _cpuset_changes(group, kept), journal, changes)
        assert subject.pid is not None  # capacity has seen to it
        return restrict_tree(subject.pid, kept, journal)

    def verify(self, subject: Subject, fraction: float, journal: Journal) -> Achieved:
        """As many busy processes as the system has cores, in the group; or whether every thread obeys."""
        count = len(subject.cores)
        require(self.capacity(subject), self.name)
        kept = cores_left(count, fraction)
        wanted = kept / count
        with self.apply(subject, fraction, journal):
            if isinstance(_usable_group(subject), NotSqueezable):
                return self._verify_affinity(subject, wanted)
            groups = group_folders(subject, "cpuset")
            spun = spin(groups, subject.cores, count, _SPIN_SECONDS)
        # Where they ran, and not how much they got: others may use the same cores.
        got = sum(spun.cpu_seconds_per_second)
        sentence = f"{count} busy processes ran on {len(spun.cores)} of {count} cores, and got {got:.3g} CPU s/s"
        return judge(len(spun.cores) / count, wanted, sentence)

    def _verify_affinity(self, subject: Subject, wanted: float) -> Achieved:
        allowed: set[int] = set()
        for threads in read_process_tree(subject.pid or 0).values():
            for thread in threads:
                try:
                    allowed |= os.sched_getaffinity(thread)
                except ProcessLookupError:
                    continue
                except OSError as error:
                    raise SqueezeError(f"{self.name}: the cores of thread {thread} cannot be read: {error}") from error
        return judge(
            len(allowed) / len(subject.cores), wanted, f"its threads may run on {len(allowed)} cores, says the kernel"
        )


def cores_left(count: int, fraction: float) -> int:
    """Whole cores nearest to the fraction, at least one, and at least one taken."""
    return min(max(round(count * fraction), 1), count - 1)


def _usable_group(subject: Subject) -> Group | NotSqueezable:
    group = group_of(subject.isolation, "cpuset")
    if isinstance(group, Group) and not (group.folder / "cpuset.cpus").exists():
        return NotSqueezable(f"{group.folder} has no cpuset.cpus", "the 'cpuset' controller")
    return group


def _cpuset_changes(group: Group, cores: tuple[int, ...]) -> list[Change]:
    changes = []
    if group.version == 1 and not read_text(group.folder / "cpuset.mems"):
        # A version 1 group without memory nodes takes no process in (cgroup-v1/cpusets.rst, 1.4).
        above = [read_text(path) for path in with_parents(group.folder, "cpuset.mems")]
        nodes = next((text for text in above if text), "0")
        changes.append(Change(group.folder / "cpuset.mems", nodes, "\n"))
    before = read_text(group.folder / "cpuset.cpus") or "\n"
    return [*changes, Change(group.folder / "cpuset.cpus", ",".join(map(str, cores)), before)]


SQUEEZES = (CpuSet(),)
