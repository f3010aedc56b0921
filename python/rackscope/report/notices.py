"""What a reader has to know before believing a number, and what was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rackscope.analysis.findings import Characterisation, Evidence, Finding
from rackscope.runs.manifest import Manifest

_SEVERITIES: dict[str, Literal["wrong", "doubt", "note"]] = {
    "wrong": "wrong",
    "serious": "wrong",
    "doubt": "doubt",
    "warning": "doubt",
    "note": "note",
}
_ORDER = ("wrong", "doubt", "note")


@dataclass(frozen=True)
class Notice:
    """One warning; ``wrong``: do not use the numbers, ``doubt``: they may mislead, ``note``: worth knowing."""

    severity: Literal["wrong", "doubt", "note"]
    sentence: str
    advice: str = ""
    seconds: tuple[tuple[float, float], ...] = ()


def notices_of(manifest: Manifest, characterisation: Characterisation) -> tuple[Notice, ...]:
    """Warnings of the run itself and of the analysis, the gravest first, each once."""
    own = [warning for warning in manifest.warnings if warning.text]
    found = [Notice(_SEVERITIES.get(warning.severity, "doubt"), warning.text) for warning in own]
    for judged in characterisation.warnings:
        seconds = judged.evidence[0].seconds if judged.evidence else ()
        sentence = _without_citations(judged.sentence, judged.evidence)
        found.append(Notice(_SEVERITIES.get(judged.severity, "doubt"), sentence, judged.advice, seconds))
    ranked = sorted(found, key=lambda notice: _ORDER.index(notice.severity))
    unique: dict[str, Notice] = {}
    for notice in ranked:
        unique.setdefault(notice.sentence, notice)
    return tuple(unique.values())


@dataclass(frozen=True)
class ShownFinding:
    """A finding as it is read: what was found, what more there is to say, what it rests on."""

    kind: str
    lead: str
    rest: str
    advice: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class FindingGroup:
    """Findings about one measured phase, or about the run as a whole (``phase`` is None)."""

    phase: str | None
    shown: tuple[ShownFinding, ...]
    #: Less pressing: folded away where several phases would repeat themselves.
    folded: tuple[ShownFinding, ...] = ()


@dataclass(frozen=True)
class Findings:
    """What was found, the most important first."""

    groups: tuple[FindingGroup, ...]
    #: About loading and warming up.
    preparations: tuple[ShownFinding, ...]


def findings_of(characterisation: Characterisation) -> Findings:
    """Findings by measured phase, those of one phase all in sight, of several with the verdicts in sight."""
    ranked = sorted(characterisation.findings, key=lambda finding: -finding.importance)
    kinds = {phase.phase: phase.kind for phase in characterisation.phases}
    measured = [name for name, kind in kinds.items() if kind == "measure"]
    preparations = tuple(_show(one) for one in ranked if kinds.get(one.phase or "", "measure") != "measure")
    groups = []
    for phase in (None, *measured):
        own = [one for one in ranked if (one.phase if one.phase in kinds else None) == phase]
        pressing = [one for one in own if len(measured) < 2 or phase is None or one.kind != "insight"]
        rest = [one for one in own if one not in pressing]
        if own:
            groups.append(FindingGroup(phase, tuple(map(_show, pressing)), tuple(map(_show, rest))))
    return Findings(tuple(groups), preparations)


def _show(finding: Finding) -> ShownFinding:
    lead, stop, rest = _without_citations(finding.sentence, finding.evidence).partition(". ")
    return ShownFinding(finding.kind, lead + stop.strip(), rest, finding.advice, finding.evidence)


def _without_citations(sentence: str, evidence: Sequence[Evidence]) -> str:
    """The evidence stands below the sentence here, so what the sentence shows of it in brackets is left out."""
    descriptions = [item.describe() for item in evidence if item.columns]

    def keep(match: re.Match[str]) -> str:
        return "" if any(text in match.group(0) for text in descriptions) else match.group(0)

    return re.sub(r" ?\[[^\[\]]*\]", keep, sentence)
