"""A fit: regressions and ends of intervals, by name, that a model puts together to predict rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from rackscope.errors import ModelError
from rackscope.models.trained.base import Booleans, Examples, Floats, Predictions, Strings
from rackscope.models.trained.conformal import Calibration, calibrate
from rackscope.models.trained.grouped_regression import LENGTHS, GroupedRegression, fit_grouped_regression

_HOW = "conformal, calibrated on processors left out of the fit"
_HOW_LATER = f"{_HOW}; past the last year of the fit, on later years predicted from earlier ones"
#: From so many years the next few are forecast, each from those before it, to see by how much later servers are missed.
_ORIGINS, _YEARS_AHEAD, _FEWEST_BEFORE, _FEWEST_GROUPS = 10, 3.0, 60, 5
#: A forecast from this many years before counts half.
_HALF_LIFE_YEARS = 4.0
#: Of 90 % of a normal distribution, either side.
_NORMAL_QUANTILE = 1.645


@dataclass(frozen=True)
class Ends:
    """The ends of intervals; ``later`` are those of rows after ``last_year``, where rows have years."""

    usual: Calibration
    later: Calibration | None = None
    last_year: float = float("inf")


@dataclass(frozen=True)
class Located:
    """Of each row: what the logarithm is added to, the logarithm, its deviation, and the name of its ``Ends``."""

    anchor: Floats
    centre: Floats
    deviation: Floats
    names: Strings


@dataclass(frozen=True)
class Fit(ABC):
    """What fitting found: numbers only, so that it can be kept in a file. Subclasses say how rows are located."""

    regressions: Mapping[str, GroupedRegression]
    ends: Mapping[str, Ends]

    how: ClassVar[str] = _HOW
    #: As in ``calibrate``.
    evenness: ClassVar[float] = 0.5
    caution: ClassVar[float] = 0.5
    #: What is predicted is never below its anchor.
    at_least_anchor: ClassVar[bool] = False

    @abstractmethod
    def locate(self, examples: Examples) -> Located:
        """Raises ModelError for rows of a kind that the fit has seen nothing of."""

    def predict(self, examples: Examples) -> Predictions:
        """Predict each row; ``examples.target`` is not looked at. Raises ModelError as ``locate`` does."""
        located = self.locate(examples)
        below, above = np.empty(len(examples)), np.empty(len(examples))
        for name in np.unique(located.names):
            rows, ends = located.names == name, self.ends[str(name)]
            below[rows], above[rows] = ends.usual.below, ends.usual.above
            if examples.years is not None and ends.later is not None:
                rows &= examples.years > ends.last_year
                below[rows], above[rows] = ends.later.below, ends.later.above
        estimate, low, high = (
            located.anchor * np.exp(located.centre + by * located.deviation) for by in (0.0, below, above)
        )
        if self.at_least_anchor:
            estimate, low, high = (np.maximum(one, located.anchor) for one in (estimate, low, high))
        return Predictions(estimate, low, high, self.how if examples.years is None else _HOW_LATER)


def calibrate_by_folds(
    examples: Examples, refit: Callable[[Examples], Fit], folds: int, evenness: float, caution: float
) -> dict[str, Calibration]:
    """Ends by name, from ``folds`` sets of processors that ``refit`` on all others predicts."""
    names = np.unique(examples.groups)
    np.random.default_rng(0).shuffle(names)
    fold = {str(name): number % folds for number, name in enumerate(names)}
    fold_of = np.array([fold[str(name)] for name in examples.groups])
    scores, kinds = np.empty(len(examples)), np.empty(len(examples), dtype=object)
    for number in np.unique(fold_of):
        left = fold_of == number
        out = examples.take(left)
        located = refit(examples.take(~left)).locate(out)
        scores[left] = (np.log(out.target / located.anchor) - located.centre) / located.deviation
        kinds[left] = located.names
    return {
        str(kind): calibrate(scores[rows], examples.groups[rows], evenness=evenness, caution=caution)
        for kind in np.unique(kinds.astype(np.str_))
        if (rows := kinds == kind).sum() >= 20
    }


@dataclass(frozen=True)
class Regressed(Fit):
    """``anchor * exp(regression)``: one grouped regression for each of the examples' ``parts``."""

    #: As in ``fit_grouped_regression``.
    lengths: ClassVar[tuple[float, ...]] = LENGTHS

    def locate(self, examples: Examples) -> Located:
        """Raises ModelError for a part that the fit had no examples of."""
        unknown = sorted(set(examples.parts.tolist()) - set(self.regressions))
        if unknown:
            raise ModelError(f"the fit saw nothing of {', '.join(unknown)}", "Fit on a table that has them.")
        centre, deviation = np.empty(len(examples)), np.empty(len(examples))
        for part in np.unique(examples.parts):
            rows = examples.parts == part
            centre[rows], deviation[rows] = self.regressions[str(part)].predict(examples.features[rows])
        return Located(examples.anchor, centre, deviation, examples.parts)

    @classmethod
    def fit(cls, examples: Examples, like: Fit | None = None) -> Self:
        """Fit each part; the scales and the ends are those of ``like``, where that has the part. Raises ModelError."""
        fits = {}
        for part in np.unique(examples.parts):
            rows = examples.take(examples.parts == part)
            fits[str(part)] = fit_part(rows, str(part), like, caution=cls.caution, lengths=cls.lengths)
        return cls({part: one for part, (one, _) in fits.items()}, {part: ends for part, (_, ends) in fits.items()})


def fit_part(
    rows: Examples,
    name: str,
    like: Fit | None = None,
    *,
    caution: float = 0.5,
    drifting: int | None = None,
    apart: int | None = None,
    lengths: tuple[float, ...] = LENGTHS,
) -> tuple[GroupedRegression, Ends]:
    """One regression of ``rows`` and its ends; scales and ends of ``like`` by ``name``. ModelError where too little."""
    # Rows of a processor are thinned evenly over its servers, from the smallest to the greatest.
    order = np.lexsort((rows.anchor, rows.groups))
    features, groups = rows.features[order], rows.groups[order]
    target = np.log(rows.target[order] / rows.anchor[order])
    known = None if like is None else like.regressions.get(name)
    scales = None if known is None else known.scales
    regression = fit_grouped_regression(
        features, target, groups, drifting=drifting, apart=apart, scales=scales, lengths=lengths
    )
    last_year = float("inf") if rows.years is None else float(rows.years.max())
    if like is not None and known is not None:
        return regression, replace(like.ends[name], last_year=last_year)
    left = regression.leave_out(features, target, groups)
    usual = calibrate(left.residual / left.deviation, left.groups, caution=caution)
    if rows.years is None:
        return regression, Ends(usual)
    return regression, Ends(usual, _later(features, target, groups, rows.years[order], regression, usual), last_year)


def _later(
    features: Floats, target: Floats, groups: Strings, years: Floats, fitted: GroupedRegression, usual: Calibration
) -> Calibration:
    """What later years turned out like when forecast from the years before them alone, the recent ones weighing most.

    Only the interval takes this up: in which direction they were missed changed every few years, so that moving the
    estimate by it made later windows worse. It replaces ``usual``, which is of servers of years that the fit knows.
    """
    scores: list[Floats] = []
    names: list[Strings] = []
    importance: list[Floats] = []
    for ago in range(1, _ORIGINS + 1):
        start = years.max() - ago
        before: Booleans = years <= start
        after: Booleans = (years > start) & (years <= start + _YEARS_AHEAD)
        if before.sum() < _FEWEST_BEFORE or len(np.unique(groups[before])) < _FEWEST_GROUPS or not after.any():
            break
        regression = fit_grouped_regression(
            features[before],
            target[before],
            groups[before],
            drifting=fitted.drifting,
            apart=fitted.apart,
            scales=fitted.scales,
        )
        centre, deviation = regression.predict(features[after])
        scores.append((target[after] - centre) / deviation)
        names.append(np.char.add(groups[after].astype(str), f" {ago}"))
        importance.append(np.full(int(after.sum()), 2.0 ** (-ago / _HALF_LIFE_YEARS)))
    if not scores or sum(map(len, scores)) < 20:
        return usual
    # One vote a processor: later years bring others, and how many servers have each is not known beforehand.
    seen = calibrate(np.concatenate(scores), np.concatenate(names), evenness=1.0, importance=np.concatenate(importance))
    # All servers of a year share its step: the forecasts hold a few steps only, which say too little of the next one
    # where they were small. Half of what the walk itself expects beyond them is added.
    return replace(
        seen,
        below=(seen.below + min(seen.below, -_NORMAL_QUANTILE)) / 2,
        above=(seen.above + max(seen.above, _NORMAL_QUANTILE)) / 2,
    )
