"""Verdicts from elasticities: which resources limit a phase, which do not, and which stay open.

Several resources may limit at once. Is the elasticity of a squeeze above or below the line ``elasticity.limits``?
Above is judged at its mildest level, below at any (see ``_decisive``). One two-sided t test a squeeze and level,
corrected after Holm 1979 over the squeezes of the phase; the side is read from the estimate. When blocks are added
until verdicts are reached, the level is that of ``elasticity.level`` (see thresholds.toml; a simulation in the tests
keeps it honest).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rackscope.analysis import wording
from rackscope.analysis.elasticity import LevelEstimate, decision_confidence, shown_slack
from rackscope.analysis.intervals import student_p_value
from rackscope.analysis.multiple import holm
from rackscope.analysis.thresholds import packaged_thresholds

Verdict = Literal["limits", "does not limit", "inconclusive"]


@dataclass(frozen=True)
class SqueezeVerdict:
    """What one squeeze showed. ``judged`` is the level the verdict rests on; ``p_value`` is corrected (Holm)."""

    squeeze: str
    resource: str
    verdict: Verdict
    sentence: str
    slack: float | None
    levels: tuple[LevelEstimate, ...]
    judged: LevelEstimate | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class WeakerEvidence:
    """What intensity and saturation say of a resource that could not be squeezed. Never proof."""

    verdict: Verdict
    sentence: str


@dataclass(frozen=True)
class ResourceVerdict:
    """The verdict of all squeezes of one resource together; not ``proven`` where the evidence is the weaker one."""

    resource: str
    verdict: Verdict
    proven: bool
    sentence: str
    slack: float | None
    squeezes: tuple[SqueezeVerdict, ...] = ()


@dataclass(frozen=True)
class PhaseJudgement:
    """All verdicts of a phase. ``none_limits`` is the finding that none of the judged resources does."""

    resources: tuple[ResourceVerdict, ...]
    squeezes: tuple[SqueezeVerdict, ...]
    none_limits: bool
    sentence: str

    @property
    def limits(self) -> tuple[str, ...]:
        """Resources that were proven to limit."""
        return tuple(found.resource for found in self.resources if found.proven and found.verdict == "limits")

    @property
    def open(self) -> tuple[str, ...]:
        """Resources on which there is no proven verdict."""
        return tuple(found.resource for found in self.resources if not found.proven or found.verdict == "inconclusive")


def judge_squeezes(
    estimates: Sequence[LevelEstimate], resources: Mapping[str, str] | None = None
) -> list[SqueezeVerdict]:
    """A verdict for each squeeze; ``resources`` gives the resource of a squeeze, which is its name where missing."""
    by_squeeze: dict[str, list[LevelEstimate]] = {}
    for estimate in estimates:
        by_squeeze.setdefault(estimate.squeeze, []).append(estimate)
    decisive = {name: _decisive(levels) for name, levels in by_squeeze.items()}
    judged = {name: level for name, (level, _) in decisive.items()}
    p_values = {name: p for name, (_, p) in decisive.items() if p is not None}
    corrected = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    verdicts = []
    for name, levels in by_squeeze.items():
        verdict, sentence = _verdict(name, judged[name], levels, corrected.get(name), len(corrected))
        slack = shown_slack(levels)
        verdicts.append(
            SqueezeVerdict(
                name,
                (resources or {}).get(name, name),
                verdict,
                sentence,
                slack,
                tuple(levels),
                judged[name],
                corrected.get(name),
            )
        )
    return verdicts


def judge_phase(
    estimates: Sequence[LevelEstimate],
    resources: Mapping[str, str] | None = None,
    weaker: Mapping[str, WeakerEvidence] | None = None,
) -> PhaseJudgement:
    """Verdicts of a phase. ``weaker`` holds, by resource, the evidence on what could not be squeezed."""
    squeezes = judge_squeezes(estimates, resources)
    by_resource: dict[str, list[SqueezeVerdict]] = {}
    for squeeze in squeezes:
        by_resource.setdefault(squeeze.resource, []).append(squeeze)
    found = [_resource(resource, members) for resource, members in by_resource.items()]
    for resource, evidence in (weaker or {}).items():
        if resource not in by_resource:
            found.append(ResourceVerdict(resource, evidence.verdict, False, evidence.sentence, None))
    proven = [one for one in found if one.proven]
    none_limits = bool(proven) and all(one.verdict == "does not limit" for one in proven)
    none_limits = none_limits and not any(one.verdict == "limits" for one in found)
    return PhaseJudgement(tuple(found), tuple(squeezes), none_limits, _phase_sentence(found, none_limits))


def needs_more(estimates: Sequence[LevelEstimate]) -> set[str]:
    """Conditions that more blocks can decide, with controls: the levels of open verdicts. Estimates: ``sequential``."""
    wanted: set[str] = set()
    for squeeze in judge_squeezes(estimates):
        judged = squeeze.judged
        if squeeze.verdict != "inconclusive" or judged is None or judged.elasticity is None:
            continue
        wanted.add(judged.condition)
        if judged.control is not None:
            wanted.add(judged.control)
    return wanted


def _decisive(levels: Sequence[LevelEstimate]) -> tuple[LevelEstimate | None, float | None]:
    """The level that the verdict rests on, and its p value, corrected (Bonferroni) for there having been a choice.

    That a resource limits is shown at the mildest level. That it does not may be shown at a harsher one too, where
    more is taken and noise weighs less: throughput gains less and less from more of a resource, so the elasticity near
    its full capacity is at most that over the wider range.
    """
    mildest = _mildest(levels)
    if mildest is None:
        return None, None
    line = packaged_thresholds().limit("elasticity.limits")
    tested = [(level, p) for level in levels if level.elasticity is not None and (p := _p_value(level)) is not None]
    told = [
        (level, p)
        for level, p in tested
        if level is mildest or (level.elasticity is not None and level.elasticity.estimate < line)
    ]
    if not told:
        return mildest, None
    level, p_value = min(told, key=lambda one: one[1])
    return level, min(1.0, p_value * len(tested))


def _mildest(levels: Sequence[LevelEstimate]) -> LevelEstimate | None:
    """The level with most of the resource left of those that took away enough of it to be judged."""
    usable = [level for level in levels if level.elasticity is not None and level.achieved_fraction is not None]
    return max(usable, key=lambda level: level.achieved_fraction or 0.0, default=None)


def _p_value(level: LevelEstimate) -> float | None:
    """Two-sided p value of "the elasticity is the line's", by Student's t over blocks."""
    if level.achieved_fraction is None or level.standard_error is None or level.degrees is None:
        return None
    if len(level.values) < packaged_thresholds().limit("elasticity.blocks"):
        return None
    line = packaged_thresholds().limit("elasticity.limits")
    away = level.log_ratio.estimate - line * math.log(level.achieved_fraction)
    return student_p_value(away, level.standard_error, level.degrees)


def _verdict(
    name: str, level: LevelEstimate | None, levels: Sequence[LevelEstimate], p_value: float | None, tests: int
) -> tuple[Verdict, str]:
    line = packaged_thresholds().limit("elasticity.limits")
    if level is None or level.elasticity is None:
        if all(one.achieved_fraction is None for one in levels):
            return "inconclusive", f"{name}: what the squeeze left of the resource could not be measured"
        if all(not one.values for one in levels):
            return (
                "inconclusive",
                f"{name}: no block has both a squeezed window with throughput and a free window next to it",
            )
        return "inconclusive", f"{name}: the squeeze took away too little of the resource"
    elasticity = level.elasticity
    if p_value is None:
        fewest = packaged_thresholds().limit("elasticity.blocks")
        return "inconclusive", f"{name}: {elasticity.count} of at least {fewest:.0f} blocks were measured"
    taken = f"{wording.percent(1 - (level.achieved_fraction or 0))} less"
    figures = f"elasticity {elasticity.estimate:.2f}"
    if elasticity.low is not None and elasticity.high is not None:
        figures += f" (95 % interval {elasticity.low:.2f} to {elasticity.high:.2f}, {elasticity.count} blocks)"
    lost = -math.expm1(level.log_ratio.estimate)
    answer = (
        f"{taken} of it cost {wording.percent(lost)} of the throughput"
        if lost > 0
        else f"{taken} of it cost no throughput"
    )
    if p_value < 1 - decision_confidence(level.sequential):
        verdict: Verdict = "limits" if elasticity.estimate > line else "does not limit"
        return verdict, f"{name}: {answer}; {figures}"
    why = (
        f"the interval contains {line:g}"
        if elasticity.contains(line)
        else (f"the interval is too close to {line:g}, corrected for {tests} squeezes")
    )
    return "inconclusive", f"{name}: {answer}; {figures}: {why}, above which a resource limits"


def _resource(resource: str, squeezes: Sequence[SqueezeVerdict]) -> ResourceVerdict:
    verdicts = {squeeze.verdict for squeeze in squeezes}
    verdict: Verdict = (
        "limits" if "limits" in verdicts else "inconclusive" if "inconclusive" in verdicts else "does not limit"
    )
    sentence = "; ".join(squeeze.sentence for squeeze in squeezes if squeeze.verdict == verdict)
    slacks = [squeeze.slack for squeeze in squeezes]
    known = [slack for slack in slacks if slack is not None]
    slack = min(known) if known and len(known) == len(slacks) else None
    return ResourceVerdict(resource, verdict, True, sentence, slack, tuple(squeezes))


def _phase_sentence(found: Sequence[ResourceVerdict], none_limits: bool) -> str:
    limiting = [one.resource for one in found if one.proven and one.verdict == "limits"]
    undecided = [one.resource for one in found if one.proven and one.verdict == "inconclusive"]
    unproven = [one.resource for one in found if not one.proven]
    parts = []
    if limiting:
        parts.append(f"limited by {wording.listing(limiting)}")
    elif none_limits:
        names = [one.resource for one in found if one.proven]
        parts.append(f"none of these resources limits: {wording.listing(names)}")
    if undecided:
        parts.append(f"inconclusive: {wording.listing(undecided)}")
    if unproven:
        parts.append(f"not squeezed, so not proven either way: {wording.listing(unproven)}")
    return "; ".join(parts) or "no resource was judged"
