"""What a reader has to know before believing a number, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rackscope.analysis.findings import Characterisation, Finding
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
        found.append(Notice(_SEVERITIES.get(judged.severity, "doubt"), judged.sentence, judged.advice, seconds))
    ranked = sorted(found, key=lambda notice: _ORDER.index(notice.severity))
    unique: dict[str, Notice] = {}
    for notice in ranked:
        unique.setdefault(notice.sentence, notice)
    return tuple(unique.values())


def findings_of(characterisation: Characterisation) -> tuple[Finding, ...]:
    """Findings, the most important first, each sentence once."""
    unique: dict[str, Finding] = {}
    for finding in sorted(characterisation.findings, key=lambda finding: -finding.importance):
        unique.setdefault(finding.sentence, finding)
    return tuple(unique.values())
