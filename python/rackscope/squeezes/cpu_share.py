"""CPU share: a quota of CPU time for the system's control group, in short periods."""

from __future__ import annotations

from rackscope.errors import SqueezeError
from rackscope.squeezes import cpu_quota
from rackscope.squeezes.base import Achieved, Applied, Capacity, NotSqueezable, Resource, Squeeze, Subject
from rackscope.squeezes.groups import group_folders, group_of, require
from rackscope.squeezes.held import hold
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.loads import spin
from rackscope.squeezes.verifying import verify_rate

_FREE_SECONDS, _SPIN_SECONDS = 0.2, 0.4


class CpuShare(Squeeze):
    """``cpu.cfs_quota_us`` or ``cpu.max``."""

    name = "cpu_share"
    resource: Resource = "cpu"
    description = "less CPU time on the same cores, by a quota of the control group"

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        """The system's cores, or the quota that its group or one above has already."""
        group = group_of(subject.isolation, "cpu")
        if isinstance(group, NotSqueezable):
            return group
        own = cpu_quota.read_quota(group.folder, group.version)
        if own is None:
            return NotSqueezable(
                f"{group.folder} has no CPU quota", "a kernel with CONFIG_CFS_BANDWIDTH and the 'cpu' controller"
            )
        cores, source = float(len(subject.cores)), "the system's cores"
        quota = cpu_quota.tightest_quota_cores(group.folder, group.version)
        if quota is not None and quota < cores:
            cores, source = quota, "the CPU quota of its control group"
        period = cpu_quota.PERIOD_MICROSECONDS if own.cores is None else own.period_microseconds
        floor = max(0.05, cpu_quota.SMALLEST_QUOTA_MICROSECONDS / (period * cores)) if cores else 1.0
        if floor >= 1:
            return NotSqueezable(f"{cores:.3g} cores in periods of {period} µs are the least that the kernel takes")
        return Capacity(cores, "cores", source, floor)

    def apply(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        cores = require(self.capacity(subject), self.name).value * fraction
        group = require(group_of(subject.isolation, "cpu"), self.name)
        try:
            changes = cpu_quota.quota_changes(group.folder, group.version, cores)
        except ValueError as error:
            raise SqueezeError(f"{self.name}: {error}") from error
        return hold(self.name, changes, journal)

    def verify(self, subject: Subject, fraction: float, journal: Journal) -> Achieved:
        """Busy processes, one a core, in the group."""
        capacity = require(self.capacity(subject), self.name).value
        groups, count = group_folders(subject, "cpu"), len(subject.cores)

        def held(fraction: float) -> float:
            with self.apply(subject, fraction, journal):
                return sum(spin(groups, subject.cores, count, _SPIN_SECONDS).cpu_seconds_per_second)

        def free() -> float:
            return sum(spin(groups, subject.cores, count, _FREE_SECONDS).cpu_seconds_per_second)

        return verify_rate("cores", capacity, fraction, free, held)


SQUEEZES = (CpuShare(),)
