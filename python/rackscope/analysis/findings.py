"""What the analysis returns: findings with their evidence, as plain values that become JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from rackscope.analysis.columns import describe_columns

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

#: ``limits``: near its ceiling or queueing so much that it holds the work back. ``near``: little is left.
#: ``spare``: much is left. ``unknown``: a sensor or a ceiling is missing.
ResourceStatus = Literal["limits", "near", "spare", "unknown"]
SaturationLevel = Literal["none", "some", "strong"]
#: ``limited``: some resource limits. ``generator``: the load generator was the limit. ``none_near``: no measured
#: resource is near its limit. ``no_verdict``: what would decide was not measured.
VerdictKind = Literal["limited", "generator", "none_near", "no_verdict"]
#: ``wrong``: do not use the numbers. ``doubt``: they may mislead. ``note``: worth knowing.
Severity = Literal["wrong", "doubt", "note"]
#: ``verdict``: what limits a phase. ``saturation``: work queued for a resource. ``insight``: worth knowing.
FindingKind = Literal["verdict", "saturation", "insight"]


@dataclass(frozen=True)
class Evidence:
    """A number that a sentence rests on: which columns, which seconds of the run, against which threshold."""

    #: Columns of samples.parquet, results.parquet or latency.parquet that it was derived from.
    columns: tuple[str, ...]
    #: Windows in seconds since the start of the run's first phase.
    seconds: tuple[tuple[float, float], ...]
    #: What the number is, such as ``cpu_core_busy_ratio{core="0"}``.
    quantity: str
    value: float
    unit: str
    #: Name in thresholds.toml and its value; ``None`` where nothing was compared.
    threshold: str | None = None
    threshold_value: float | None = None

    def describe(self) -> str:
        """``cpu_core_seconds_total core 0, 12.0-27.0 s``: what a sentence shows in brackets."""
        names = describe_columns(self.columns)
        return f"{names}, {describe_seconds(self.seconds)}" if self.seconds else names


@dataclass(frozen=True)
class ResourceAssessment:
    """How hard one resource worked in one phase."""

    #: ``cpu_system``, ``cpu_host``, ``dram_capacity``, ``dram_bandwidth``, ``disk`` or ``network``.
    resource: str
    #: Device or interface, where there are several.
    instance: str | None
    #: What a person calls it: "system's cores (0)", "disk vda", "loopback".
    label: str
    use: float | None
    ceiling: float | None
    unit: str
    #: What the ceiling is: "2 cores", "measured by calibrate", "installed memory".
    ceiling_source: str
    #: use / ceiling; ``None`` with the reason in ``intensity_reason``.
    intensity: float | None
    intensity_reason: str
    saturation: SaturationLevel | None
    saturation_reason: str
    status: ResourceStatus
    evidence: tuple[Evidence, ...] = ()
    #: What to do to learn more or to relieve it.
    advice: str = ""


@dataclass(frozen=True)
class Verdict:
    """What held a phase back, in one sentence with its evidence."""

    kind: VerdictKind
    #: Keys of the resources that limit, the hardest first: ``cpu_system``, ``disk:vda``.
    resources: tuple[str, ...]
    sentence: str
    evidence: tuple[Evidence, ...] = ()
    advice: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing that a reader should know; ``importance`` falls from 100, findings come sorted by it."""

    kind: FindingKind
    importance: int
    phase: str | None
    sentence: str
    evidence: tuple[Evidence, ...] = ()
    advice: str = ""


@dataclass(frozen=True)
class TrustWarning:
    """Something that makes the run less believable; ``code`` is stable, for programs."""

    code: str
    severity: Severity
    sentence: str
    advice: str = ""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class PhaseCharacterisation:
    """One phase, all its repetitions together."""

    phase: str
    kind: str
    repetitions: int
    #: Windows in seconds since the start of the run.
    seconds: tuple[tuple[float, float], ...]
    resources: tuple[ResourceAssessment, ...]
    verdict: Verdict
    #: Named figures: ``cpu_seconds_per_operation``, ``hit_ratio``, ... in base units.
    figures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PhaseOverlap:
    """A declared phase (seconds since the start of the run) and whether the series show it as one."""

    name: str
    start_seconds: float
    end_seconds: float
    found: bool
    #: How many found phases lie mostly within; more than one where its behaviour changes on the way.
    parts: int
    #: Length of the intersection with the best of them over that of the union.
    overlap: float


@dataclass(frozen=True)
class PhasesFound:
    """What change-point detection found (``analysis.phases``), in seconds since the start of the run."""

    phases: tuple[tuple[float, float], ...]
    declared: tuple[PhaseOverlap, ...]
    undeclared_boundaries_seconds: tuple[float, ...]


@dataclass(frozen=True)
class Characterisation:
    """The whole answer about a run."""

    findings: tuple[Finding, ...]
    warnings: tuple[TrustWarning, ...]
    phases: tuple[PhaseCharacterisation, ...]
    #: ``None`` where the series do not allow it.
    phases_found: PhasesFound | None = None

    def to_dict(self) -> dict[str, Any]:
        return plain_fields(self)


def pointing(sentence: str, evidence: Sequence[Evidence]) -> str:
    """A sentence with its evidence in brackets."""
    shown = [one.describe() for one in evidence if one.columns]
    return f"{sentence} [{'; '.join(dict.fromkeys(shown))}]" if shown else sentence


def describe_seconds(seconds: tuple[tuple[float, float], ...]) -> str:
    """``12.0-27.0 s``, or ``12.0-27.0 s in 3 parts``."""
    if not seconds:
        return ""
    text = f"{seconds[0][0]:.1f}-{seconds[-1][1]:.1f} s"
    return text if len(seconds) == 1 else f"{text} in {len(seconds)} parts"


def plain_fields(value: DataclassInstance) -> dict[str, Any]:
    return {name: plain(item) for name, item in asdict(value).items()}


def plain(value: Any) -> Any:
    """``value`` as JSON knows it: tuples become lists, numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
