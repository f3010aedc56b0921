"""Ways to do a job: on one server, or on a number of machines of one kind, each with its time over the size of data.

One server follows ``data_size`` up to its wall, a cluster ``cluster_size``. A server that was not measured but is more
of the same as one that was (more of its cores, more memory) follows the latter's line, divided by the throughput that
``core_scaling`` gives for its cores. Where memory ends is not extrapolated: it is the memory of the server over the
memory that a byte of data was measured to take (``MemoryWall``; Sevilla 2013 calls it the resource wall).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rackscope.errors import RackscopeError
from rackscope.models.cluster_size import ClusterSizeModel, fit_cluster_size
from rackscope.models.core_scaling import CoreScalingModel
from rackscope.models.data_size import DataSizeModel, fit_data_size
from rackscope.models.estimates import Prediction, from_draws
from rackscope.models.gates import ProjectionRefused
from rackscope.models.information_value import narrowing
from rackscope.models.job_points import JobPoint
from rackscope.models.non_negative import NonNegativeFit
from rackscope.models.uncertain import Uncertain
from rackscope.units import format_bytes

#: Of a server's memory, what is left to the job by the kernel and whatever else runs: an assumption, not measured.
_MEMORY_FOR_THE_JOB = Uncertain.uniform(0.9, 1.0)
#: Data beyond this many times what was measured may meet another wall than that of memory. Our choice.
_FURTHEST_DATA = 16.0
#: Numbers of machines beyond those measured are as many times as many as ``cluster_size`` goes.
_MOST_TIMES_MACHINES = 4
_AS_MEASURED = Uncertain.certain(1.0)


@dataclass(frozen=True)
class MemoryWall:
    """Data at which a server's memory is full: 90 % of the draws lie from ``low_bytes`` to ``high_bytes``."""

    bytes: float
    low_bytes: float
    high_bytes: float
    memory_bytes: float


def memory_wall(
    memory_bytes: float, memory_per_data_byte: Uncertain, *, draws: int = 20_000, seed: int = 1
) -> MemoryWall:
    """Where ``memory_bytes`` are full, of which 90 to 100 % are taken to be the job's. Raises RackscopeError."""
    if not 0 < memory_bytes < math.inf or memory_per_data_byte.low <= 0:
        raise RackscopeError(
            "a wall needs a size of memory, and how much of it a byte of data takes", "Give both above zero."
        )
    each = memory_per_data_byte.draw("memory of a byte of data", draws, seed)
    share = _MEMORY_FOR_THE_JOB.draw("memory for the job", draws, seed)
    full = from_draws(memory_bytes * share / each, "bytes", "")
    return MemoryWall(full.value, full.low, full.high, memory_bytes)


@dataclass(frozen=True)
class OneServer:
    """One server. ``wall`` is where its memory ends, ``None`` where that is not known; ``like`` is the server that was
    measured in its place, and ``factor`` its time over that one's.
    """

    server: str
    model: DataSizeModel
    wall: MemoryWall | None
    like: str | None = None
    factor: Uncertain = _AS_MEASURED
    machines: int = 1

    @property
    def family(self) -> str:
        return f"one {self.like or self.server}"

    @property
    def fit(self) -> NonNegativeFit:
        return self.model.fit

    def terms(self, data_bytes: float) -> tuple[float, ...]:
        """Start and size."""
        return 1.0, data_bytes

    def measurable(self) -> list[tuple[int, float]]:
        """The smallest size, the largest below the wall, and one between; none of a server that is not there."""
        low, high = self.model.smallest_bytes, self.model.line_bytes
        return [] if self.like is not None else [(1, low), (1, math.sqrt(low * high)), (1, high)]

    @property
    def largest_bytes(self) -> float:
        """Up to the wall, and not far beyond what was measured."""
        model, line = self.model, self.model.line_bytes
        if model.wall is not None:
            return line
        return min(max(model.no_wall_below_bytes, line), line * _FURTHEST_DATA)

    def predict(self, data_bytes: float) -> Prediction:
        """Seconds; the interval has both errors where it is projected from another server's."""
        wall = self.wall
        if wall is not None and data_bytes > max(wall.low_bytes, self.model.line_bytes):
            raise ProjectionRefused(
                f"{format_bytes(data_bytes)} may be past the wall of {self.server}: its "
                f"{format_bytes(wall.memory_bytes)} of memory are full at {format_bytes(wall.bytes)} of data "
                f"({format_bytes(wall.low_bytes)} to {format_bytes(wall.high_bytes)})",
                "Take a server with more memory, or more machines.",
            )
        if data_bytes > self.model.line_bytes * _FURTHEST_DATA:
            raise ProjectionRefused(
                f"{format_bytes(data_bytes)} are more than {_FURTHEST_DATA:g} times the "
                f"{format_bytes(self.model.line_bytes)} that were measured for {self.server}",
                "Measure larger data.",
            )
        one = self.model.predict(data_bytes)
        if self.like is None:
            return one
        value = one.value * self.factor.middle
        reach = math.exp(math.hypot(math.log(one.high / one.value), math.log(self.factor.high / self.factor.middle)))
        basis = f"{one.basis}; projected from {self.like} over cores, whose error is in it too"
        return Prediction(value, value / reach, value * reach, "seconds", basis, extrapolated=True)


@dataclass(frozen=True)
class ClusterOf:
    """``machines`` of one kind."""

    server: str
    model: ClusterSizeModel
    machines: int
    factor: Uncertain = _AS_MEASURED

    @property
    def family(self) -> str:
        return f"cluster of {self.server}"

    @property
    def fit(self) -> NonNegativeFit:
        return self.model.fit

    def terms(self, data_bytes: float) -> tuple[float, ...]:
        """Those of Ernest."""
        return 1.0, data_bytes / self.machines, math.log(self.machines), float(self.machines)

    def measurable(self) -> list[tuple[int, float]]:
        """As many machines as were measured, with as much data each and with half of it."""
        few, many = self.model.fewest_machines, self.model.most_machines
        counts = sorted({few, round(math.sqrt(few * many)), many})
        return [(count, self.model.most_data_a_machine * count * part) for count in counts for part in (0.5, 1.0)]

    @property
    def largest_bytes(self) -> float:
        """As much a machine as one was measured with."""
        return self.model.most_data_a_machine * self.machines

    def predict(self, data_bytes: float) -> Prediction:
        """Seconds, as ``cluster_size`` says."""
        return self.model.predict(self.machines, data_bytes)


#: Ways of one family share a fit and its errors; the fitted ``terms`` add up to the time, which ``factor`` multiplies.
Way = OneServer | ClusterOf


def one_server(
    server: str, points: Sequence[JobPoint], wall: MemoryWall | None, *, most_cores: int | None = None
) -> OneServer:
    """From jobs on one machine of ``server`` with most of the cores that were tried (``most_cores`` where known).

    Raises RackscopeError and ProjectionRefused as ``fit_data_size`` does. A wall that the jobs themselves show goes
    before that of memory.
    """
    used = _with_all_cores(points, most_cores)
    model = _fit_below(used, wall)
    return OneServer(server, model, None if model.wall is not None else wall)


def more_of_the_same(
    server: str,
    cores: int,
    like: str,
    points: Sequence[JobPoint],
    scaling: CoreScalingModel,
    like_cores: int,
    wall: MemoryWall | None,
) -> OneServer:
    """``server`` with ``cores`` cores like those of ``like``, measured with ``like_cores``, and a wall of its own.

    Raises ProjectionRefused past the knee and as ``fit_data_size`` does; what ``like`` did past its wall says nothing.
    """
    used = _with_all_cores(points, like_cores)
    seen = _fit_below(used, None)
    model = _fit_below([one for one in used if one.data_bytes <= seen.line_bytes], wall)
    more, same = scaling.predict(cores), scaling.predict(like_cores)
    factor = Uncertain.lognormal(same.value / more.value, more.high / more.value)
    return OneServer(server, model, wall, like, factor)


def core_scaling_points(points: Sequence[JobPoint]) -> tuple[list[int], list[float]]:
    """Cores and bytes a second of jobs on one machine, of that size of data which was run on the most numbers of cores.

    Empty where no job says on how many cores it ran.
    """
    alone = [one for one in points if one.machines == 1 and one.cores is not None]
    sizes = {one.data_bytes for one in alone}
    if not sizes:
        return [], []
    size = max(sizes, key=lambda size: (len({one.cores for one in alone if one.data_bytes == size}), size))
    chosen = [one for one in alone if one.data_bytes == size]
    return [one.cores or 0 for one in chosen], [one.data_bytes / one.seconds for one in chosen]


def clusters(
    server: str, points: Sequence[JobPoint], wall: MemoryWall | None, most: int | None = None
) -> list[ClusterOf]:
    """Clusters of up to four times the machines measured, from jobs that fitted. Raises as ``fit_cluster_size``."""
    used = [one for one in points if wall is None or one.data_bytes / one.machines <= wall.high_bytes]
    model = fit_cluster_size(
        [one.machines for one in used], [one.data_bytes for one in used], [one.seconds for one in used]
    )
    furthest = model.most_machines * _MOST_TIMES_MACHINES
    return [ClusterOf(server, model, count) for count in range(1, min(furthest, most or furthest) + 1)]


def next_job(way: Way, data_bytes: float) -> tuple[int, float, float] | None:
    """The one job more, like those measured, that narrows the interval of the mean time of ``data_bytes`` the most.

    Machines, bytes, and how wide the interval is then over what it is (``information_value.narrowing``); ``None`` where
    there is no such job.
    """
    places = way.measurable()
    if not places:
        return None
    points = [replace(way, machines=count).terms(size) for count, size in places]
    left = narrowing(way.fit, way.terms(data_bytes), points)
    best = min(range(len(places)), key=lambda place: left[place])
    return (*places[best], left[best])


def _with_all_cores(points: Sequence[JobPoint], most_cores: int | None) -> list[JobPoint]:
    alone = [one for one in points if one.machines == 1]
    given = [one.cores for one in alone if one.cores is not None]
    most = most_cores if most_cores is not None else max(given, default=None)
    return [one for one in alone if one.cores is None or one.cores == most]


def _fit_below(points: Sequence[JobPoint], wall: MemoryWall | None) -> DataSizeModel:
    sizes, seconds = [one.data_bytes for one in points], [one.seconds for one in points]
    model = fit_data_size(sizes, seconds)
    if model.wall is None and wall is not None and wall.low_bytes > model.line_bytes:
        return fit_data_size(sizes, seconds, no_wall_below_bytes=wall.low_bytes)
    return model
