"""Each resource of a phase: intensity and saturation together, and what follows."""

from __future__ import annotations

from dataclasses import dataclass

from rackscope.analysis.context import Phase
from rackscope.analysis.findings import ResourceAssessment, ResourceStatus
from rackscope.analysis.intensity import Intensity, key, measure_intensities
from rackscope.analysis.saturation import Saturation, assess_saturation
from rackscope.analysis.thresholds import Thresholds


@dataclass(frozen=True)
class Judged:
    """A resource with everything that the verdict's sentence is made of."""

    intensity: Intensity
    saturation: Saturation
    status: ResourceStatus

    @property
    def key(self) -> str:
        """``disk:vda`` or ``cpu_system``."""
        return key(self.intensity)

    @property
    def was_sampled(self) -> bool:
        """Whether anything at all is known of its use or of waiting for it."""
        return self.intensity.use is not None or self.intensity.ratio is not None or self.saturation.level is not None

    @property
    def hardness(self) -> float:
        """What limiting resources are ordered by."""
        peak = self.intensity.peak.value if self.intensity.peak else 0.0
        return max(self.intensity.ratio or 0.0, peak, 1.0 if self.saturation.decides else 0.0)

    def assessment(self) -> ResourceAssessment:
        """As the characterisation shows it."""
        intensity, saturation = self.intensity, self.saturation
        evidence = (
            *intensity.evidence,
            *((intensity.peak,) if intensity.peak else ()),
            *(sign.evidence for sign in saturation.signs),
        )
        return ResourceAssessment(
            resource=intensity.resource,
            instance=intensity.instance,
            label=intensity.label,
            use=intensity.use,
            ceiling=intensity.ceiling,
            unit=intensity.unit,
            ceiling_source=intensity.ceiling_source,
            intensity=intensity.ratio,
            intensity_reason=intensity.reason,
            saturation=saturation.level,
            saturation_reason=saturation.reason,
            status=self.status,
            evidence=evidence,
            advice=intensity.advice,
        )


def judge_resources(phase: Phase) -> list[Judged]:
    """All resources of a phase, judged one by one."""
    judged = []
    for intensity in measure_intensities(phase):
        saturation = assess_saturation(phase, intensity.resource, intensity.instance, primary=intensity.primary)
        judged.append(Judged(intensity, saturation, _status(intensity, saturation, phase.run.thresholds)))
    return judged


def _status(intensity: Intensity, saturation: Saturation, thresholds: Thresholds) -> ResourceStatus:
    if intensity.resource == "dram_capacity":
        return _capacity_status(intensity, saturation, thresholds)
    rule = thresholds.intensity[intensity.resource]
    ratio = intensity.ratio
    strong = saturation.level == "strong"
    if saturation.decides or (ratio is not None and ratio >= rule.limit):
        return "limits"
    if strong and ratio is not None and ratio >= rule.near:
        return "limits"
    peak = intensity.peak.value if intensity.peak else None
    if intensity.resource == "disk":
        return _disk_status(ratio, peak, saturation, thresholds)
    if peak is not None and peak >= rule.limit:
        # One core is full while others are not: a single thread can be the limit.
        return "limits"
    if strong or (ratio is not None and ratio >= rule.near):
        return "near"
    return "unknown" if ratio is None else "spare"


def _capacity_status(intensity: Intensity, saturation: Saturation, thresholds: Thresholds) -> ResourceStatus:
    """Full memory slows nothing by itself: only what the lack of it causes does."""
    rule = thresholds.intensity["dram_capacity"]
    ratio = intensity.ratio
    if saturation.decides:
        return "limits"
    full = ratio is not None and ratio >= rule.limit
    if full and saturation.level in ("some", "strong"):
        return "limits"
    if saturation.level == "strong" or (ratio is not None and ratio >= rule.near):
        return "near"
    if ratio is None:
        return "unknown" if saturation.level is None else "spare"
    return "spare"


def _disk_status(
    ratio: float | None, busy: float | None, saturation: Saturation, thresholds: Thresholds
) -> ResourceStatus:
    rule, busy_rule = thresholds.intensity["disk"], thresholds.intensity["disk_busy"]
    strong = saturation.level == "strong"
    if busy is not None and busy >= busy_rule.limit and strong:
        return "limits"
    if ratio is not None and ratio >= rule.near:
        return "near"
    if strong or (busy is not None and busy >= busy_rule.near and ratio is None):
        return "near"
    if ratio is not None or busy is not None:
        return "spare"
    return "unknown" if saturation.level is None else "spare"
