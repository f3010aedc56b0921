"""What a reader has to know before believing a number, and what was found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
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


def findings_of(characterisation: Characterisation) -> tuple[tuple[ShownFinding, ...], tuple[ShownFinding, ...]]:
    """Findings about what was measured, the most important first, and those about preparations."""
    preparations = {phase.phase for phase in characterisation.phases if phase.kind != "measure"}
    shown: dict[str, Finding] = {}
    for finding in sorted(characterisation.findings, key=lambda finding: -finding.importance):
        shown.setdefault(finding.sentence, finding)
    main = tuple(_show(finding) for finding in shown.values() if finding.phase not in preparations)
    aside = tuple(_show(finding) for finding in shown.values() if finding.phase in preparations)
    return main, aside


def _show(finding: Finding) -> ShownFinding:
    lead, stop, rest = _without_citations(finding.sentence, finding.evidence).partition(". ")
    return ShownFinding(finding.kind, lead + stop.strip(), rest, finding.advice, finding.evidence)


def _without_citations(sentence: str, evidence: Sequence[Evidence]) -> str:
    """The evidence stands below the sentence here, so what the sentence shows of it in brackets is left out."""
    descriptions = [item.describe() for item in evidence if item.columns]

    def keep(match: re.Match[str]) -> str:
        return "" if any(text in match.group(0) for text in descriptions) else match.group(0)

    return re.sub(r" ?\[[^\[\]]*\]", keep, sentence)
