"""What the comparison of ways to do a job is made of: the job, its ways, walls, and where the choice changes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rackscope.advice.cost import Advice
from rackscope.advice.job_ways import Known
from rackscope.errors import RackscopeError
from rackscope.models.cost import Amount
from rackscope.models.estimates import Prediction
from rackscope.models.job_points import LEAST_DATA_BYTES
from rackscope.models.job_time import MemoryWall, Way
from rackscope.models.scale_choice import Crossing
from rackscope.models.uncertain import Array
from rackscope.units import format_bytes


@dataclass(frozen=True)
class Job:
    """What is to be done. ``jobs_per_day``: the machines are there for these jobs only; ``None``: others keep them
    busy, and a job pays for its time.
    """

    data_bytes: float
    deadline_seconds: float | None = None
    jobs_per_day: float | None = None

    def __post_init__(self) -> None:
        for name in ("data_bytes", "deadline_seconds", "jobs_per_day"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise RackscopeError(f"{name.replace('_', ' ')} of {value:g} cannot be", "Give it above zero.")
        if self.data_bytes < LEAST_DATA_BYTES:
            raise RackscopeError(
                f"{format_bytes(self.data_bytes)} of data are too few to project from", "Write the unit, such as 120G."
            )


@dataclass(frozen=True)
class ScaleRow:
    """A way to do the job. ``groups`` of ``machines`` do a day's jobs (1 without a number of jobs).

    ``seconds`` is of the next job; ``in_time`` the share of jobs that meet the deadline; ``cost`` per job, or per year
    where jobs a day were given; ``fastest`` and ``cheapest`` the shares of draws in which no other row is less.
    """

    name: str
    server: str
    machines: int
    groups: int
    seconds: Prediction
    in_time: float | None
    cost: Amount | None
    fastest: float
    cheapest: float | None
    stands_on: str


@dataclass(frozen=True)
class ServerWall:
    """Where the memory of one server ends, in bytes of data."""

    server: str
    wall: MemoryWall
    stands_on: str


@dataclass(frozen=True)
class Change:
    """Where one server and a cluster change places by ``what`` ("cost", "time"), if they do between the ends.

    ``one_at_first``: the share of draws in which the one server is less at ``from_bytes``.
    """

    what: str
    one: str
    cluster: str
    from_bytes: float
    to_bytes: float
    one_at_first: float
    at: Crossing | None


@dataclass(frozen=True)
class ScaleAdvice:
    """``rows`` in the order of the advice; ``refused`` are ways that are not counted on, with the reason."""

    job: Job
    currency: str
    cost_is: str
    rows: tuple[ScaleRow, ...]
    walls: tuple[ServerWall, ...]
    changes: tuple[Change, ...]
    advice: tuple[Advice, ...]
    refused: tuple[str, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class Priced:
    """A way, what is known of it, and its draws for the job; ``cost`` is ``None`` without prices."""

    way: Way
    known: Known
    seconds: Prediction
    mean: Array
    cost: Array | None
    groups: int
    in_time: float | None

    @property
    def name(self) -> str:
        """``4 x small``."""
        return f"{self.way.machines * self.groups} x {self.way.server}"
