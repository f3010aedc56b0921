"""What the analysis has to be told about a run besides its frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

_UNNAMED = "the system"

PhaseKind = Literal["load", "warm-up", "measure", "squeezed"]
LoopKind = Literal["closed", "open"]
ProbeState = Literal["ok", "missing", "untrusted"]


@dataclass(frozen=True)
class PhaseWindow:
    """One window of the run, [start_ns, end_ns), nanoseconds since the epoch; one for each repetition."""

    name: str
    kind: PhaseKind
    repetition: int | None
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class ProbeReport:
    """What a probe said of itself: whether it reads here, why not, and what it would need."""

    name: str
    status: ProbeState
    reason: str = ""
    needs: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class SamplerCost:
    """What the sampler did and what it took: ticks, those it missed, its own CPU time."""

    interval_seconds: float
    ticks: int
    missed_ticks: int
    cpu_seconds: float
    wall_seconds: float
    worst_lateness_seconds: float = 0.0


@dataclass(frozen=True)
class RunFacts:
    """The run as far as its frames do not tell.

    ``ceilings`` maps the names that ``rackscope calibrate`` measures to values in base units; a name that is absent
    was not measured. Names: ``instructions_per_second``, ``dram_read_bytes_per_second``,
    ``dram_write_bytes_per_second``, ``disk_sequential_read_bytes_per_second{device="vda"}`` (and ``write``),
    ``disk_random_read_operations_per_second{device="vda"}`` (and ``write``), ``loopback_bytes_per_second``,
    ``loopback_requests_per_second``, ``network_bytes_per_second{interface="eth0"}`` (one direction).
    """

    phases: tuple[PhaseWindow, ...]
    host_cores: int
    #: Cores that the system was pinned to; empty when it could run anywhere.
    system_cores: tuple[int, ...] = ()
    client_cores: tuple[int, ...] = ()
    memory_total_bytes: float | None = None
    ceilings: Mapping[str, float] = field(default_factory=dict)
    #: Why, by name (labels and all), of ceilings and counters that failed calibrate's checks; they judge nothing.
    distrusted: Mapping[str, str] = field(default_factory=dict)
    probes: tuple[ProbeReport, ...] = ()
    loop: LoopKind = "closed"
    offered_operations_per_second: float | None = None
    connections: int | None = None
    #: Requests outstanding on a connection, and keys a read request asks for.
    pipeline: int = 1
    multiget: int = 1
    #: How sentences call the system.
    system: str = _UNNAMED
    #: Interface that requests came over; ``None`` on a unix socket.
    interface: str | None = "lo"
    sampler: SamplerCost | None = None
    #: Width that repetition aimed for: half of the 95 % interval, as a share of the mean.
    wanted_half_width: float = 0.02
    #: Whether every read should find its key: the data set was loaded and is meant to fit.
    expects_hits: bool = True
    #: What was said about the first operation of a phase that failed, by the phase's name.
    first_errors: Mapping[str, str] = field(default_factory=dict)
    #: Whether the number of repetitions was decided while looking at their results.
    sequential: bool = True
    #: Whether power was asked for: that it is not known is then said.
    power_asked: bool = False

    def begin(self, text: str) -> str:
        """``text`` as the start of a sentence: the name of a system stays as it is written."""
        named = self.system != _UNNAMED and text.startswith((f"{self.system} ", f"{self.system}'s "))
        return text if named else f"{text[:1].upper()}{text[1:]}"

    @property
    def start_ns(self) -> int:
        """Where evidence counts its seconds from: the start of the first phase."""
        return min((phase.start_ns for phase in self.phases), default=0)
