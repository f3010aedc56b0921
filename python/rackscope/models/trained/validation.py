"""How far a model is off on what it never saw, and how often its intervals of 90 % hold.

Two kinds of split: what is left out together (a processor, a provider, a server), fitted on all others and predicted;
and later years, predicted from the years before them alone. Or one table is fitted on and another is judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from rackscope.errors import ModelError
from rackscope.models.trained.base import Booleans, Examples, Floats, Predictions, Strings
from rackscope.models.trained.fit import Fit
from rackscope.models.trained.model import Model
from rackscope.models.trained.refusals import refusals

#: Names are left out in at most this many turns: with more names than that, a few at a time.
_MOST_TURNS = 36
#: How smooth and noisy things are is found this often, each time without those that are then left out one by one.
_QUARTERS = 4
_YEARS_AHEAD = 3
_FEWEST_TO_JUDGE = 10


@dataclass(frozen=True)
class Score:
    """One line of the table: errors are |predicted / measured - 1|, as shares; ``None`` for an aim that there is not.

    ``bias`` is the median of predicted / measured - 1, ``coverage`` the share of outcomes within the intervals of 90 %,
    ``interval_ratio`` the median of upper end / lower end. ``processors_seen`` of ``processors`` were in the fit, too.
    All of these are of the ``predictions`` that a user would be given; ``refused`` more would be refused
    (``refusals.py``), and where all are, errors, coverage and ratio are not a number.
    """

    model: str
    split: str
    what: str
    predictions: int
    refused: int
    processors: int
    processors_seen: int
    median_error: float
    p90_error: float
    bias: float
    coverage: float
    interval_ratio: float
    aim_median: float | None
    aim_p90: float | None

    @property
    def reaches_aims(self) -> bool:
        """Whether both errors are within their aims."""
        return (self.aim_median is None or self.median_error <= self.aim_median) and (
            self.aim_p90 is None or self.p90_error <= self.aim_p90
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what is not a number is null."""
        known = {key: None if isinstance(of, float) and math.isnan(of) else of for key, of in asdict(self).items()}
        return {**known, "reaches_aims": self.reaches_aims}


def validate(model: Model, examples: Examples, progress: Callable[[str], None] = lambda _: None) -> list[Score]:
    """Leave out processors, then what else the examples name, then later years. Raises ModelError."""
    progress("leaving processors out")
    whole = np.ones(len(examples), dtype=bool)
    scores = _scores(model, "CPU model left out", examples, whole, *_leave_out(model, examples, examples.groups))
    for name, values in examples.splits.items():
        if len(np.unique(values)) < 2:
            continue
        progress(f"leaving {name}s out")
        predicted, refused = _leave_out(model, examples, values)
        seen = {group for group in set(examples.groups.tolist()) if len(set(values[examples.groups == group])) > 1}
        scores += _scores(model, f"{name} left out", examples, whole, predicted, refused, parts=False, seen=seen)
    for year in model.later_years:
        if examples.years is None:
            break
        before = examples.years < year
        after = ~before & (examples.years < year + _YEARS_AHEAD)
        if before.sum() < 60 or after.sum() < _FEWEST_TO_JUDGE:
            continue
        progress(f"predicting {year} and later from before")
        earlier, later = examples.take(before), examples.take(after)
        predicted = model.fit(earlier, None).predict(later)
        split = f"{year} to {year + _YEARS_AHEAD - 1} from before"
        seen = set(examples.groups[before].tolist())
        everything, refused = np.ones(len(later), dtype=bool), refusals(earlier, later, predicted)
        scores += _scores(model, split, later, everything, predicted, refused, seen=seen)
    return scores


def judge(model: Model, fit_on: Examples, judged_on: Examples, fitted: Fit | None = None) -> list[Score]:
    """Fit on one table, judge on another: all rows, and those of processors that the fit did not see.

    ``fitted`` is the fit on ``fit_on``, where there is one already. Raises ModelError.
    """
    if len(judged_on) == 0:
        raise ModelError("there is nothing to judge the model on", "Give a table with servers in it.")
    predicted = (fitted or model.fit(fit_on, None)).predict(judged_on)
    seen, refused = set(fit_on.groups.tolist()), refusals(fit_on, judged_on, predicted)
    whole = np.ones(len(judged_on), dtype=bool)
    scores = _scores(model, "other table", judged_on, whole, predicted, refused, seen=seen)
    new = np.array([group not in seen for group in judged_on.groups])
    if new.any() and not new.all():
        split = "other table, CPU models never seen"
        scores += _scores(model, split, judged_on, new, predicted, refused, seen=seen)
    return scores


def hold_out(
    model: Model, examples: Examples, times: int, progress: Callable[[str], None] = lambda _: None
) -> list[Score]:
    """``times`` another quarter of the processors is held out and predicted by a fit on the rest: means over these.

    Nothing of the fit, its scales and the calibration of its intervals included, sees what is held out. ``predictions``
    and ``processors`` are means as well. Raises ModelError.
    """
    names = np.unique(examples.groups)
    each: dict[str, list[Score]] = {}
    for draw in range(times):
        progress(f"a quarter of the processors held out, {draw + 1} of {times}")
        out = np.random.default_rng(draw + 100).permutation(names)[: len(names) // 4]
        left = np.isin(examples.groups, out)
        if not left.any():
            raise ModelError(f"{len(names)} processors are too few to hold a quarter out", "Give at least 8.")
        for score in judge(model, examples.take(~left), examples.take(left)):
            each.setdefault(score.what, []).append(score)
    split = f"a quarter of CPU models, {times} times"
    return [_mean(scores, split) for scores in each.values()]


def _mean(scores: list[Score], split: str) -> Score:
    answered = [score for score in scores if score.predictions]

    def mean(name: str, of: list[Score]) -> float:
        return sum(float(getattr(score, name)) for score in of) / len(of) if of else math.nan

    found: dict[str, Any] = {name: round(mean(name, scores)) for name in ("predictions", "refused", "processors")}
    rates = ("median_error", "p90_error", "bias", "coverage", "interval_ratio")
    found |= {name: mean(name, answered) for name in rates}
    return replace(scores[0], split=split, **found)


def leave_quarters_out(model: Model, examples: Examples) -> list[Score]:
    """Each quarter of the processors by a fit on the other three, which saw nothing of it. Raises ModelError."""
    whole = np.ones(len(examples), dtype=bool)
    predicted, refused = _leave_out(model, examples, examples.groups, _QUARTERS)
    return _scores(model, "a quarter of the CPU models left out", examples, whole, predicted, refused)


def _leave_out(
    model: Model, examples: Examples, names: Strings, most_turns: int = _MOST_TURNS
) -> tuple[Predictions, Booleans]:
    """Predict every row by a fit that saw nothing of its name; and which of these a user would be refused."""
    distinct = np.unique(names)
    if len(distinct) < 2:
        raise ModelError(
            f"there is only '{distinct[0] if len(distinct) else ''}' to leave out of the fit of {model.name}",
            "Give a table with more kinds of servers.",
        )
    np.random.default_rng(0).shuffle(distinct)
    turns = min(len(distinct), most_turns)
    turn = {str(name): number % turns for number, name in enumerate(distinct)}
    turn_of = np.array([turn[str(name)] for name in names])
    estimate, low, high = (np.full(len(examples), np.nan) for _ in range(3))
    how, refused = "", np.zeros(len(examples), dtype=bool)
    quarters = _QUARTERS if turns >= 4 * _QUARTERS else turns
    for quarter in range(quarters):
        apart = turn_of % quarters == quarter
        like: Fit = model.fit(examples.take(~apart), None)
        for number in np.unique(turn_of[apart]):
            left = turn_of == number
            fitted = like if quarters == turns else model.fit(examples.take(~left), like)
            one = fitted.predict(examples.take(left))
            refused[left] = refusals(examples.take(~apart if quarters == turns else ~left), examples.take(left), one)
            estimate[left], low[left], high[left], how = one.estimate, one.low, one.high, one.how
    return Predictions(estimate, low, high, how), refused


def _scores(
    model: Model,
    split: str,
    examples: Examples,
    rows: Booleans,
    predicted: Predictions,
    refused: Booleans,
    *,
    parts: bool = True,
    seen: set[str] | frozenset[str] = frozenset(),
) -> list[Score]:
    """One score of all ``rows``, one of each subset and, where there are several, one of each part."""
    kinds: dict[str, Booleans] = {"all": rows}
    if parts:
        kinds |= {name: rows & chosen for name, chosen in examples.subsets.items()}
        names = np.unique(examples.parts)
        if len(names) > 1:
            kinds |= {str(name): rows & (examples.parts == name) for name in names}
    found: list[Score] = []
    for what, chosen in kinds.items():
        if chosen.any():
            given = chosen & ~refused
            score = _score(model, split, what, examples.take(given), predicted.take(given), seen)
            found.append(replace(score, refused=int((chosen & refused).sum())))
    return found


def _score(
    model: Model, split: str, what: str, examples: Examples, predicted: Predictions, known: set[str] | frozenset[str]
) -> Score:
    ratio = predicted.estimate / examples.target - 1.0
    held = (examples.target >= predicted.low) & (examples.target <= predicted.high)
    processors = set(examples.groups.tolist())

    def middle(values: Floats) -> float:
        return float(np.median(values)) if len(values) else float("nan")

    return Score(
        model=model.name,
        split=split,
        what=what,
        predictions=len(examples),
        refused=0,
        processors=len(processors),
        processors_seen=len(processors & known),
        median_error=middle(np.abs(ratio)),
        p90_error=float(np.quantile(np.abs(ratio), 0.9)) if len(ratio) else float("nan"),
        bias=middle(ratio),
        coverage=float(np.mean(held)) if len(held) else float("nan"),
        interval_ratio=middle(predicted.high / predicted.low),
        aim_median=model.aim.median,
        aim_p90=model.aim.p90,
    )
