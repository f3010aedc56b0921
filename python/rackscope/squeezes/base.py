"""What a squeeze is: a part of one resource taken away from one system, measured, and given back however things end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from rackscope.squeezes.journal import Journal

#: The macro-architectural categories of Awasthi 2015, Table 4, with DRAM taken apart, and the last-level cache.
Resource = Literal["cpu", "dram_capacity", "dram_bandwidth", "last_level_cache", "disk", "network"]


@dataclass(frozen=True)
class Isolation:
    """Where a system was started so that it can be squeezed: control groups and a network of its own.

    ``control_groups`` are the group's folders by controller (``cpu``, ``cpuset``, ``memory``, ``blkio``; the same
    folder several times where the hierarchy is the unified one, whose names are ``cpu``, ``cpuset``, ``memory``,
    ``io``). ``network_namespace`` is the file under which the system's network namespace can be entered,
    ``address`` what the system listens on there, ``host_interface`` and ``system_interface`` the two ends of the veth.
    ``missing`` says, by what it would have been, why a part is not there.
    """

    control_groups: Mapping[str, Path] = field(default_factory=dict)
    cgroup_version: Literal[1, 2] | None = None
    network_namespace: Path | None = None
    address: str | None = None
    host_interface: str | None = None
    system_interface: str | None = None
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """What is squeezed.

    ``spare_cores`` are cores that neither the system nor its client needs: antagonists run there. ``ceilings`` are
    this host's calibrated ceilings by name. ``folder`` is where the system keeps its data, which tells its disk.
    """

    isolation: Isolation
    cores: tuple[int, ...]
    spare_cores: tuple[int, ...] = ()
    pid: int | None = None
    folder: Path | None = None
    ceilings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Capacity:
    """How much the system has when nothing is squeezed; ``floor`` is the least fraction that does not endanger it."""

    value: float
    unit: str
    source: str
    floor: float = 0.05


@dataclass(frozen=True)
class NotSqueezable:
    """Why a resource cannot be squeezed here, and what (a right, a kernel feature) it would need."""

    reason: str
    needs: str = ""


@dataclass(frozen=True)
class Achieved:
    """What was really left while a squeeze was held.

    ``fraction`` of the capacity, measured; ``None`` where it could not be measured, and ``sentence`` says how it was,
    or why it was not. ``effective`` is whether the squeeze did what it was asked within its tolerance.
    """

    fraction: float | None
    sentence: str
    effective: bool


class Applied(ABC):
    """A squeeze that is being held; leaving the ``with`` block, or ``release``, gives the resource back."""

    @abstractmethod
    def release(self) -> None:
        """Give it back. Idempotent. Raises SqueezeError when the resource cannot be given back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_ending: object) -> None:
        self.release()


class Squeeze(ABC):
    """One way to take away one resource. Stateless: what is held is in ``Applied`` and in the journal."""

    #: snake_case, the same in tables, reports and on the command line: ``cpu_share``, ``disk_bandwidth``.
    name: str
    resource: Resource
    description: str
    #: Seconds of load from applying (and from releasing) until the workload feels it in full.
    settle_seconds: float = 0.1
    #: Whether the cores' own speed is what it changes: then that is not corrected for.
    changes_core_speed: bool = False

    @property
    def has_control(self) -> bool:
        """Whether ``apply_control`` is what to compare with: an antagonist disturbs in more ways than the one meant."""
        return False

    @abstractmethod
    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        """What there is to squeeze, or why it cannot be. Changes nothing."""

    @abstractmethod
    def apply(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        """Leave ``fraction`` of the capacity; the journal knows how to undo it before. Raises SqueezeError."""

    def apply_control(self, subject: Subject, fraction: float, journal: Journal) -> Applied:
        """The disturbance of ``apply`` without the squeeze; only where ``has_control``."""
        raise NotImplementedError(f"{self.name} has no control")

    @abstractmethod
    def verify(self, subject: Subject, fraction: float, journal: Journal) -> Achieved:
        """Apply it for half a second while the system is idle, and measure what a load gets. Raises SqueezeError."""
