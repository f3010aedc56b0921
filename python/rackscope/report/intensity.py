"""Use of each resource against its ceiling: bars for what was measured, a matrix over all phases."""

from __future__ import annotations

from dataclasses import dataclass

from rackscope.analysis.findings import Characterisation, PhaseCharacterisation, ResourceAssessment
from rackscope.report.quantities import as_sentence, format_quantity


@dataclass(frozen=True)
class IntensityTable:
    """Bars of the ``measured`` phases; the matrix has a row a resource and a cell a phase."""

    measured: tuple[PhaseCharacterisation, ...]
    phases: tuple[str, ...]
    matrix: tuple[tuple[str, tuple[ResourceAssessment | None, ...]], ...]
    #: Why something is not known, each once, with the labels that it is about.
    reasons: tuple[tuple[str, tuple[str, ...]], ...]


def intensity_of(characterisation: Characterisation) -> IntensityTable | None:
    """None when no phase was assessed."""
    phases = characterisation.phases
    if not any(phase.resources for phase in phases):
        return None
    measured = [phase for phase in phases if phase.kind == "measure"] or list(phases)
    by_label = [{resource.label: resource for resource in reversed(phase.resources)} for phase in phases]
    labels = dict.fromkeys(resource.label for phase in phases for resource in phase.resources)
    reasons: dict[str, dict[str, None]] = {}
    for resource in (one for phase in measured for one in phase.resources if one.intensity is None):
        text = f"{as_sentence(resource.intensity_reason)} {resource.advice}".strip()
        reasons.setdefault(text, {})[resource.label] = None
    return IntensityTable(
        measured=tuple(measured),
        phases=tuple(phase.phase for phase in phases),
        matrix=tuple((label, tuple(resources.get(label) for resources in by_label)) for label in labels),
        reasons=tuple((reason, tuple(names)) for reason, names in reasons.items() if reason),
    )


def describe_use(resource: ResourceAssessment) -> str:
    """``1.61 cores of 2.00 cores (2 cores, minus steal)``, ``6.2 GiB/s used``."""
    use = format_quantity(resource.use, resource.unit)
    if resource.ceiling is None:
        return f"{use} used"
    ceiling = format_quantity(resource.ceiling, resource.unit)
    source = resource.ceiling_source
    return f"{use} of {ceiling}" + (f" ({source})" if source and source != ceiling else "")
