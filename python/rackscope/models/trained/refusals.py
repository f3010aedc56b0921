"""What a trained model refuses to say: of servers far outside of those that it was fitted on, or nothing but a guess.

One rule for a question about one server (``ask.py``) and for the tables of errors (``validation.py``), which count what
is refused apart, so that they judge the answers that a user gets.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from rackscope.models.trained.base import Booleans, Examples, Floats, Predictions

#: A feature may be this far outside of what was fitted (as a logarithm: twice, or a half), or so many years later.
FURTHEST, YEARS_FURTHEST = 0.694, 4.0
#: An interval whose ends are further apart than this, as a ratio, says nothing.
VAGUEST = 20.0


def seen_range(features: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest of each feature; not a number where none is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.nanmin(features, axis=0), np.nanmax(features, axis=0)


def outside(examples: Examples, lowest: Floats, highest: Floats) -> Iterator[tuple[int, str, Floats, bool]]:
    """Of each named column, by how much each row is outside of the fitted range, and whether that may be too far.

    Column, name, distances (of rows), and whether more than ``furthest`` is refused: a column of zeros and ones, such
    as a maker, is extrapolated and not refused.
    """
    for column, name in enumerate(examples.columns):
        values, least, most = examples.features[:, column], lowest[column], highest[column]
        if not (np.isfinite(least) and np.isfinite(most)):
            continue
        by = np.where(np.isfinite(values), np.maximum(np.maximum(least - values, values - most), 0.0), 0.0)
        yield column, name, by, not {float(least), float(most)} <= {0.0, 1.0}


def furthest(name: str) -> float:
    """How far outside the column called ``name`` may be."""
    return YEARS_FURTHEST if name == "year" else FURTHEST


def refusals(fitted_on: Examples, asked: Examples, answers: Predictions) -> Booleans:
    """Which rows of ``asked`` a user would be refused, by a fit on ``fitted_on`` that says ``answers``."""
    # Written so that an interval that is no number is refused as well.
    refused: Booleans = ~np.asarray(answers.high <= VAGUEST * answers.low, dtype=np.bool_)
    for _, name, by, limited in outside(asked, *seen_range(fitted_on.features)):
        if limited:
            refused |= by > furthest(name)
    return refused
