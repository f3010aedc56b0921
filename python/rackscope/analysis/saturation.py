"""Signs that work queues for a resource, after the rules in thresholds.toml."""

from __future__ import annotations

from dataclasses import dataclass

from rackscope.analysis import wording
from rackscope.analysis.context import Phase
from rackscope.analysis.findings import Evidence, SaturationLevel
from rackscope.analysis.rates import Series
from rackscope.analysis.thresholds import SaturationRule

#: Labels that tell several devices of one resource apart.
_INSTANCE_LABELS = ("device", "interface")


@dataclass(frozen=True)
class Sign:
    """One rule's reading, at or above its lower line."""

    rule: SaturationRule
    level: SaturationLevel
    #: How often the upper line goes into the value.
    strength: float
    words: str
    evidence: Evidence


@dataclass(frozen=True)
class Saturation:
    """All signs of one resource, the strongest first; ``level`` is ``None`` when no rule could be looked at."""

    level: SaturationLevel | None
    signs: tuple[Sign, ...]
    reason: str

    @property
    def decides(self) -> bool:
        """Whether a strong sign is of the kind that alone makes the resource the limit."""
        return any(sign.level == "strong" and sign.rule.decides for sign in self.signs)


def assess_saturation(phase: Phase, resource: str, instance: str | None = None, *, primary: bool = True) -> Saturation:
    """Every rule of a resource; signs of the whole host count for the ``primary`` instance only."""
    signs: list[Sign] = []
    seen = 0
    unseen: list[str] = []
    for rule in phase.run.thresholds.saturation:
        if rule.resource != resource:
            continue
        series = _series(phase, rule, instance, primary)
        if series is None:
            if primary and not any(map(_instance_of, phase.run.samples.find_all(rule.quantity))):
                unseen.append(rule.quantity)
            continue
        reading = series.over(phase.windows)
        if reading.value is None and reading.seconds == 0:
            unseen.append(series.name)
            continue
        seen += 1
        sign = _sign(phase, rule, series, reading.value, instance)
        if sign is not None:
            signs.append(sign)
    signs.sort(key=lambda sign: (sign.level == "strong", sign.rule.decides, sign.strength), reverse=True)
    if seen == 0:
        return Saturation(None, (), _not_seen(unseen))
    level: SaturationLevel = signs[0].level if signs else "none"
    return Saturation(level, tuple(signs), "; ".join(sign.words for sign in signs))


def _sign(phase: Phase, rule: SaturationRule, series: Series, value: float | None, instance: str | None) -> Sign | None:
    if value is None or not _applies(phase, rule, instance):
        return None
    divisor = {"system_cores": phase.run.system_core_count, "host_cores": phase.run.host_core_count}.get(rule.per, 1)
    scaled = value / divisor
    if scaled < rule.some:
        return None
    level: SaturationLevel = "strong" if scaled >= rule.strong else "some"
    seconds = phase.windows_above(series, rule.some * divisor) or phase.windows
    evidence = phase.evidence(series, scaled, f"saturation.{rule.name}.{level}", seconds=seconds)
    words = rule.words.replace("{value}", wording.number(scaled, series.quantity.unit))
    return Sign(rule, level, scaled / rule.strong, words, evidence)


def _series(phase: Phase, rule: SaturationRule, instance: str | None, primary: bool) -> Series | None:
    for series in phase.run.samples.find_all(rule.quantity, **rule.labels):
        own = _instance_of(series)
        if own == instance if own is not None else primary:
            return series
    return None


def _instance_of(series: Series) -> str | None:
    return next((series.labels[label] for label in _INSTANCE_LABELS if label in series.labels), None)


def _applies(phase: Phase, rule: SaturationRule, instance: str | None) -> bool:
    if rule.only_when is None:
        return True
    for series in phase.run.samples.find_all(rule.only_when["quantity"]):
        if _instance_of(series) in (None, instance):
            value = series.over(phase.windows).value
            return value is not None and value > rule.only_when["above"]
    return False


def _not_seen(quantities: list[str]) -> str:
    if not quantities:
        return "queueing for it is not measured"
    return f"not sampled here: {wording.listing(list(dict.fromkeys(quantities)))}"
