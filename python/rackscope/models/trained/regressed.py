"""A model that is ``anchor * exp(regression)``: one grouped regression a part, with conformal intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rackscope.errors import ModelError
from rackscope.models.trained.base import Examples, Fitted, Predictions
from rackscope.models.trained.conformal import Calibration, calibrate
from rackscope.models.trained.grouped_regression import LENGTHS, GroupedRegression, fit_grouped_regression

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_HOW = "conformal, calibrated on processors left out of the fit"
_HOW_LATER = f"{_HOW}; past the last year of the fit, on later years predicted from earlier ones"
#: From so many years the next few are forecast, each from those before it, to see by how much later servers are missed.
_ORIGINS, _YEARS_AHEAD, _FEWEST_BEFORE, _FEWEST_GROUPS = 10, 3.0, 60, 5
#: A forecast from this many years before counts half.
_HALF_LIFE_YEARS = 4.0
#: Of 90 % of a normal distribution, either side.
_NORMAL_QUANTILE = 1.645


@dataclass(frozen=True)
class _Part:
    regression: GroupedRegression
    calibration: Calibration
    #: For rows later than ``last_year``.
    later: Calibration
    last_year: float


@dataclass(frozen=True)
class Regressed:
    """The fit of ``fit_regressed``."""

    parts: Mapping[str, _Part]

    def predict(self, examples: Examples) -> Predictions:
        """Raises ModelError for a part that the fit had no examples of."""
        import numpy as np

        unknown = sorted(set(examples.parts.tolist()) - set(self.parts))
        if unknown:
            raise ModelError(f"the fit saw nothing of {', '.join(unknown)}", "Fit on a table that has them.")
        estimate, low, high = (np.empty(len(examples)) for _ in range(3))
        for name, part in self.parts.items():
            rows = examples.parts == name
            if not rows.any():
                continue
            centre, deviation = part.regression.predict(examples.features[rows])
            later = np.zeros(len(centre), dtype=bool)
            if examples.years is not None:
                later = examples.years[rows] > part.last_year
            below = np.where(later, part.later.below, part.calibration.below)
            above = np.where(later, part.later.above, part.calibration.above)
            anchor = examples.anchor[rows]
            estimate[rows] = anchor * np.exp(centre)
            low[rows] = anchor * np.exp(centre + below * deviation)
            high[rows] = anchor * np.exp(centre + above * deviation)
        return Predictions(estimate, low, high, _HOW if examples.years is None else _HOW_LATER)


def fit_regressed(
    examples: Examples,
    like: Fitted | None = None,
    *,
    drifting: int | None = None,
    apart: int | None = None,
    caution: float = 0.5,
    lengths: tuple[float, ...] = LENGTHS,
) -> Regressed:
    """Fit each part; ``drifting``, ``apart`` and ``lengths`` as in ``fit_grouped_regression``, ``caution`` as in
    ``calibrate``.

    Raises ModelError where there is too little.

    The scales are those of ``like``, where that is given and has the part; so are the calibrations.
    """
    import numpy as np

    parts: dict[str, _Part] = {}
    for name in np.unique(examples.parts):
        rows = examples.take(examples.parts == name)
        # Rows of a processor are thinned evenly over its servers, from the smallest to the greatest.
        order = np.lexsort((rows.anchor, rows.groups))
        features, groups = rows.features[order], rows.groups[order]
        target = np.log(rows.target[order] / rows.anchor[order])
        known = like.parts.get(str(name)) if isinstance(like, Regressed) else None
        scales = None if known is None else known.regression.scales
        regression = fit_grouped_regression(
            features, target, groups, drifting=drifting, apart=apart, scales=scales, lengths=lengths
        )
        if known is not None:
            calibration = known.calibration
        else:
            left = regression.leave_out(features, target, groups)
            calibration = calibrate(left.residual / left.deviation, left.groups, caution=caution)
        later, last_year = calibration, np.inf
        if rows.years is not None:
            last_year = float(rows.years.max())
            later = (
                known.later
                if known is not None
                else _later(features, target, groups, rows.years[order], regression, calibration)
            )
        parts[str(name)] = _Part(regression, calibration, later, last_year)
    return Regressed(parts)


def _later(
    features: Floats,
    target: Floats,
    groups: NDArray[np.str_],
    years: Floats,
    fitted: GroupedRegression,
    usual: Calibration,
) -> Calibration:
    """What later years turned out like when forecast from the years before them alone, the recent ones weighing most.

    Only the interval takes this up: in which direction they were missed changed every few years, so that moving the
    estimate by it made later windows worse. It replaces ``usual``, which is of servers of years that the fit knows.
    """
    import numpy as np

    scores: list[Floats] = []
    names: list[NDArray[np.str_]] = []
    importance: list[Floats] = []
    for ago in range(1, _ORIGINS + 1):
        start = years.max() - ago
        before, after = years <= start, (years > start) & (years <= start + _YEARS_AHEAD)
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
