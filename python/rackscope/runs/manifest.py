"""``manifest.json``: what ran, where, how, and what to know before believing it. This model is its definition."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field

from rackscope.metrics import parse_metric
from rackscope.runs.kept import Conducted, Part

#: Format 1 had no starts, hosts and drivers; it is read as one start, on one host, driven by our load generator.
FORMAT_VERSION = 2

#: A squeezed phase ran while a part of some resource was taken away: it says nothing of the system as it is.
PhaseKind = Literal["load", "warm-up", "measure", "squeezed"]
Status = Literal["running", "complete", "interrupted", "failed"]
#: A moment since the epoch, as tables hold it.
Nanoseconds = Annotated[int, Field(ge=0, lt=2**63)]


class KnobValue(Part):
    """A knob of the system with the value it ran with and why."""

    value: str
    default: str
    source: Literal["default", "tuned", "set"]


class SystemPart(Part):
    """The system under test as it was started."""

    name: str
    version: str = "unknown"
    program: str = ""
    origin: str = ""
    command: list[str] = Field(default_factory=list)
    knobs: dict[str, KnobValue] = Field(default_factory=dict)
    cores: list[int] = Field(default_factory=list)
    endpoint: str = ""
    #: The interface over which the client reaches it, where that is not the loopback.
    interface: str | None = None
    pid: int | None = None
    ready_seconds: float | None = None
    statistics: dict[str, str] = Field(default_factory=dict)


class WorkloadPart(Part):
    """What was asked of it."""

    name: str
    description: str = ""
    source: str = ""
    parameters: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)
    keys: dict[str, Any] = Field(default_factory=dict)
    values: dict[str, Any] = Field(default_factory=dict)


class ClientPart(Part):
    """How it was asked: the load generator's side."""

    protocol: str
    connections: int
    pipeline: int = 1
    multiget: int = 1
    cores: list[int] = Field(default_factory=list)
    loop: Literal["closed", "open"] = "closed"
    arrivals: Literal["poisson", "constant"] | None = None
    rate_per_second: float | None = None
    seed: int = 0
    verify: bool = True


class PhasePart(Part):
    """A window of the run; ``end_ns`` is null while it lasts."""

    name: str
    kind: PhaseKind
    repetition: int | None = None
    #: The start of the system that it belongs to, as the column ``start`` of the tables; from 1.
    start: int = 1
    start_ns: Nanoseconds
    end_ns: Nanoseconds | None = None
    #: What the system (or the generator) said about the first operation that failed.
    first_error: str = ""


class ProbePart(Part):
    """A source of samples: whether it could be read here, and if not, why."""

    name: str
    status: str
    reason: str = ""
    needs: str = ""
    columns: list[str] = Field(default_factory=list)


class MeterPart(Part):
    """A power meter that was read: what it measured, in watts or as energy, and what to know of it."""

    meter: str
    name: str
    domains: list[str] = Field(default_factory=list)
    columns: list[str] = Field(default_factory=list)
    status: str
    reason: str = ""


class RepetitionPart(Part):
    """How often the measured phases were repeated, and why it stopped."""

    duration_seconds: float
    minimum: int
    maximum: int | None = None
    budget_seconds: float | None = None
    target_relative_half_width: float = 0.02
    achieved: int = 0
    stopping_reason: str = ""
    relative_half_width: float | None = None
    discarded: list[str] = Field(default_factory=list)


class OverheadPart(Part):
    """What rackscope itself cost the host while it measured."""

    sampler_interval_seconds: float | None = None
    sampler_ticks: int | None = None
    sampler_missed_ticks: int | None = None
    sampler_cpu_seconds: float | None = None
    sampler_wall_seconds: float | None = None
    sampler_worst_lateness_seconds: float | None = None
    generator_cpu_seconds: float | None = None
    rackscope_cpu_seconds: float | None = None


class WarningPart(Part):
    """Something the reader should know first."""

    code: str
    severity: Literal["note", "warning", "serious"] = "warning"
    text: str


class CeilingsPart(Part):
    """This host's ceilings as they stood when the run started; empty when it was never calibrated."""

    measured_at: str | None = None
    values: dict[str, float] = Field(default_factory=dict)
    untrusted: dict[str, str] = Field(default_factory=dict)


class AmountPart(Part):
    """An amount that is not known exactly: see ``models.uncertain``."""

    shape: Literal["certain", "uniform", "triangular", "lognormal"]
    low: float
    middle: float
    high: float


class ServerPart(Part):
    """What the user said of the server: its watts when idle and at full load, for a host without a meter."""

    name: str
    source: str = ""
    idle_watts: AmountPart
    full_watts: AmountPart
    #: The part of the server that a guest has; null where the host is the server.
    share: float | None = None


class Manifest(Conducted):
    """The whole file."""

    format_version: int = FORMAT_VERSION
    rackscope_version: str
    status: Status = "running"
    status_reason: str = ""
    command_line: list[str] = Field(default_factory=list)
    started_at: str
    finished_at: str | None = None
    system: SystemPart
    workload: WorkloadPart
    client: ClientPart
    #: Inventory of the host that rackscope ran on: ``localhost`` in the column ``host`` of the tables.
    host: dict[str, Any] = Field(default_factory=dict)
    #: Inventories of further hosts, by the names that their rows have.
    other_hosts: dict[str, dict[str, Any]] = Field(default_factory=dict)
    server: ServerPart | None = None
    ceilings: CeilingsPart = Field(default_factory=CeilingsPart)
    phases: list[PhasePart] = Field(default_factory=list)
    repetition: RepetitionPart
    probes: list[ProbePart] = Field(default_factory=list)
    #: The power meters among the probes that could be read.
    meters: list[MeterPart] = Field(default_factory=list)
    #: The meters that the user named (``--meter``).
    named_meters: list[str] = Field(default_factory=list)
    overhead: OverheadPart = Field(default_factory=OverheadPart)
    warnings: list[WarningPart] = Field(default_factory=list)


def meter_parts(probes: Iterable[ProbePart]) -> list[MeterPart]:
    """The power meters among the probes, without those that could not be read."""
    meters = []
    for probe in probes:
        if probe.status == "missing" or not probe.name.startswith("power:"):
            continue
        name = probe.name.removeprefix("power:")
        domains = [parse_metric(column)[1].get("domain", "") for column in probe.columns]
        meters.append(
            MeterPart(
                meter=name.partition(":")[0],
                name=name,
                domains=list(dict.fromkeys(domains)),
                columns=probe.columns,
                status=probe.status,
                reason=probe.reason,
            )
        )
    return meters
