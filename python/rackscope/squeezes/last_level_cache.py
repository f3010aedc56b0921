"""Last-level cache: by the processor's own partitions (resctrl CAT), else by threads that fill it from spare cores."""

from __future__ import annotations

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Achieved, NotSqueezable, Resource, Subject
from rackscope.squeezes.groups import require
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.regulated import Regulated

_MEASURE_SECONDS = 0.2
#: How much slower a load must become for its line to have been taken out of the cache rather than to be noise.
_SLOWER = 1.15
#: The part of the cache that the measured working set fills, above what is left of it.
_FILLED = 0.7


class LastLevelCache(Regulated):
    """CAT for the system's tasks, or antagonists that sweep the cache, with a placebo as the control."""

    name = "last_level_cache"
    resource: Resource = "last_level_cache"
    description = "less of the last-level cache, by resctrl, or by threads on spare cores that fill it"
    settle_seconds = 0.2
    resctrl_name = "L3"
    regulator_title = "CAT"
    taken = "cache"

    def amount(self, subject: Subject) -> tuple[float, str, str] | NotSqueezable:
        """The cache's size, as the kernel tells it."""
        del subject
        from rackscope import _native

        size = _native.last_level_cache_bytes()
        if size is None:
            return NotSqueezable(
                "the kernel does not tell the size of the last-level cache", "cache/index* of the cores in sysfs"
            )
        return float(size), "bytes", "the kernel's figure"

    def verify(self, subject: Subject, fraction: float, journal: Journal) -> Achieved:
        """Whether lines of a working set that fits into the cache, not into what is left, are evicted."""
        capacity = require(self.capacity(subject), self.name)
        core = subject.cores[0]
        working_set = int(capacity.value * (fraction + (1 - fraction) * _FILLED))
        alone, squeezed = self._measure(subject, fraction, journal, lambda: _load_seconds(working_set, core))
        figures = (
            f"a load over {working_set / 2**20:.0f} MiB took {squeezed * 1e9:.1f} ns instead of {alone * 1e9:.1f} ns"
        )
        if squeezed >= alone * _SLOWER:
            return Achieved(None, f"{figures}: cache lines were evicted", effective=True)
        return Achieved(None, f"{figures}: the working set stayed in the cache", effective=False)


def _load_seconds(working_set: int, core: int) -> float:
    """Median seconds of a dependent load. Raises SqueezeError."""
    from rackscope import _native

    try:
        found = _native.measure_dram_latency(working_set, _MEASURE_SECONDS, core)
    except (OSError, ValueError, RuntimeError) as error:
        raise SqueezeError(f"the latency of memory could not be measured: {error}") from error
    return float(found["median_seconds_per_load"])


SQUEEZES = (LastLevelCache(),)
