"""What each change of a knob is worth: ratios from paired runs, with and without the change, side by side.

A pair's two runs follow each other, so that drift falls on both; the logarithm of a pair's ratio is one value, and the
interval is Student's t over pairs. Decisions over the knobs of one search are corrected after Holm 1979.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from rackscope.analysis import wording
from rackscope.analysis.intervals import Interval, mean_error, mean_interval, student_p_value, student_quantile
from rackscope.analysis.multiple import holm
from rackscope.analysis.thresholds import packaged_thresholds

Worth = Literal["better", "worse", "does not matter", "not shown", "too few pairs"]


@dataclass(frozen=True)
class KnobPairs:
    """One knob's change and its runs: ``pairs`` of the measure with the change and without it."""

    knob: str
    before: str
    after: str
    pairs: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class KnobWorth:
    """What a change is worth: ``ratio`` of the measure with it to that without it. ``p_value`` is corrected (Holm)."""

    knob: str
    before: str
    after: str
    ratio: Interval
    p_value: float | None
    worth: Worth
    sentence: str


def value_knobs(changes: Sequence[KnobPairs]) -> list[KnobWorth]:
    """The worth of each change of a measure of which more is better, most valuable first, those not known last.

    "Does not matter" is a finding: the ratio was shown to lie within 2 % of one (``comparison.equivalence``, two
    one-sided tests, Schuirmann 1987). "Not shown" is none.
    """
    logs = [_log_ratios(change) for change in changes]
    raw = {place: p for place, values in enumerate(logs) if (p := _p_value(values)) is not None}
    corrected = dict(zip(raw, holm(list(raw.values())), strict=True))
    valued = [
        _value(change, values, corrected.get(place))
        for place, (change, values) in enumerate(zip(changes, logs, strict=True))
    ]
    order: Mapping[Worth, int] = {"better": 0, "worse": 1, "does not matter": 2, "not shown": 3, "too few pairs": 4}
    return sorted(valued, key=lambda one: (order[one.worth], -_or_one(one.ratio.estimate)))


def _log_ratios(change: KnobPairs) -> list[float]:
    return [
        math.log(changed / plain) for changed, plain in change.pairs if 0 < changed < math.inf and 0 < plain < math.inf
    ]


def _p_value(values: Sequence[float]) -> float | None:
    if len(values) < packaged_thresholds().limit("repetitions.minimum"):
        return None
    return student_p_value(fmean(values), mean_error(values), len(values) - 1)


def _value(change: KnobPairs, values: Sequence[float], p_value: float | None) -> KnobWorth:
    limit = packaged_thresholds().limit
    level = limit("comparison.level")
    ratio = replace(mean_interval(values, confidence=level).mapped(math.exp), confidence=0.95)
    worth: Worth
    if p_value is None:
        worth = "too few pairs"
    elif p_value < 1 - level and abs(ratio.estimate - 1) >= limit("comparison.equivalence"):
        worth = "better" if ratio.estimate > 1 else "worse"
    elif _equivalent(values, level, limit("comparison.equivalence")):
        worth = "does not matter"
    else:
        worth = "not shown"
    return KnobWorth(change.knob, change.before, change.after, ratio, p_value, worth, _sentence(change, ratio, worth))


def _equivalent(values: Sequence[float], level: float, margin: float) -> bool:
    reach = student_quantile(len(values) - 1, 1 - 2 * (1 - level)) * mean_error(values)
    return abs(fmean(values)) + reach < math.log1p(margin)


def _sentence(change: KnobPairs, ratio: Interval, worth: Worth) -> str:
    what = f"{change.knob} from {change.before} to {change.after}"
    if ratio.low is None or ratio.high is None or worth == "too few pairs":
        return f"{what}: too few pairs of runs for a verdict ({ratio.count})."
    margin = packaged_thresholds().limit("comparison.equivalence")
    change_of = f"{(ratio.estimate - 1) * 100:+.1f} %"
    bounds = f"95 % interval {(ratio.low - 1) * 100:+.1f} % to {(ratio.high - 1) * 100:+.1f} %, {ratio.count} pairs"
    said = {
        "better": f"{change_of}, better",
        "worse": f"{change_of}, worse",
        "does not matter": f"makes no difference within {wording.percent(margin)}",
        "not shown": f"{change_of}, but no difference is shown",
    }[worth]
    return f"{what}: {said} ({bounds})."


def _or_one(value: float) -> float:
    return value if math.isfinite(value) else 1.0
