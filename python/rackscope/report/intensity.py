"""Use of each resource against its ceiling: bars for what was measured, a matrix over all phases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackscope.report.quantities import as_sentence, format_quantity

if TYPE_CHECKING:
    from rackscope.analysis.findings import Characterisation, PhaseCharacterisation, ResourceAssessment

STATUS_WORDS = {
    "limits": "limits",
    "near": "near its limit",
    "spare": "spare capacity",
    "unknown": "not known",
}


@dataclass(frozen=True)
class Bar:
    """One resource in one phase."""

    label: str
    #: Percent of the ceiling; None when it is not known.
    percent: float | None
    #: Width of the bar, never beyond the track.
    width: float
    status: str
    status_words: str
    use: str
    ceiling: str
    reason: str
    saturation: str
    advice: str


@dataclass(frozen=True)
class BarGroup:
    """The bars of one measured phase."""

    phase: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class IntensityTable:
    """Bars of the measured phases; the matrix has a row a resource and a cell a phase."""

    groups: tuple[BarGroup, ...]
    phases: tuple[str, ...]
    matrix: tuple[tuple[str, tuple[Bar | None, ...]], ...]
    #: Why something is not known, each once, with the labels that it is about.
    reasons: tuple[tuple[str, tuple[str, ...]], ...]


def intensity_of(characterisation: Characterisation) -> IntensityTable | None:
    """None when no phase was assessed."""
    phases = characterisation.phases
    if not any(phase.resources for phase in phases):
        return None
    measured = [phase for phase in phases if phase.kind == "measure"] or list(phases)
    labels = list(dict.fromkeys(resource.label for phase in phases for resource in phase.resources))
    reasons: dict[str, dict[str, None]] = {}
    for resource in (one for phase in measured for one in phase.resources if one.intensity is None):
        text = f"{as_sentence(resource.intensity_reason)} {resource.advice}".strip()
        reasons.setdefault(text, {})[resource.label] = None
    return IntensityTable(
        groups=tuple(BarGroup(phase.phase, tuple(_bar(item) for item in phase.resources)) for phase in measured),
        phases=tuple(phase.phase for phase in phases),
        matrix=tuple((label, tuple(_cell(phase, label) for phase in phases)) for label in labels),
        reasons=tuple((reason, tuple(names)) for reason, names in reasons.items() if reason),
    )


def _cell(phase: PhaseCharacterisation, label: str) -> Bar | None:
    return next((_bar(resource) for resource in phase.resources if resource.label == label), None)


def _bar(resource: ResourceAssessment) -> Bar:
    percent = None if resource.intensity is None else 100 * resource.intensity
    saturation = "" if resource.saturation in (None, "none") else f"{resource.saturation} queueing"
    return Bar(
        label=resource.label,
        percent=percent,
        width=0.0 if percent is None else round(min(100.0, max(0.0, percent)), 2),
        status=resource.status,
        status_words=STATUS_WORDS.get(resource.status, resource.status),
        use=format_quantity(resource.use, resource.unit),
        ceiling=_ceiling(resource),
        reason=as_sentence(resource.intensity_reason),
        saturation=saturation,
        advice=resource.advice,
    )


def _ceiling(resource: ResourceAssessment) -> str:
    if resource.ceiling is None:
        return ""
    amount = format_quantity(resource.ceiling, resource.unit)
    if not resource.ceiling_source or amount == resource.ceiling_source:
        return amount
    return f"{amount} ({resource.ceiling_source})"
