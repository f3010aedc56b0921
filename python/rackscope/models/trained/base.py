"""Rows that models are fitted on and asked about, and predictions with an interval of 90 %."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Strings = NDArray[np.str_]
Booleans = NDArray[np.bool_]

#: Columns of a table of servers, or of the one server that is described, by name.
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Examples:
    """Rows to fit on or to judge on, one a prediction.

    ``features`` is rows times columns; the prediction is ``anchor * exp(regression of features)``, in the model's unit,
    and ``target`` what was measured. ``groups`` names the processor of each row: whole processors are left out.
    Rows of different ``parts`` are regressed apart. ``splits`` name what else is left out together (a provider);
    ``years`` are those of publication, with a fraction, or None. ``extra`` holds what a model needs beside.
    ``subsets`` are rows that are also judged by themselves. Of a server that is described, ``target`` is NaN.
    """

    features: Floats
    anchor: Floats
    target: Floats
    groups: Strings
    parts: Strings
    splits: Mapping[str, Strings] = field(default_factory=dict)
    years: Floats | None = None
    extra: Mapping[str, Floats] = field(default_factory=dict)
    subsets: Mapping[str, Booleans] = field(default_factory=dict)
    #: What the columns of ``features`` are, in words.
    columns: tuple[str, ...] = ()
    #: Rows of the tables without a value that is needed; they are not among these.
    incomplete: int = 0

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Booleans) -> Examples:
        return replace(
            self,
            features=self.features[rows],
            anchor=self.anchor[rows],
            target=self.target[rows],
            groups=self.groups[rows],
            parts=self.parts[rows],
            splits={name: values[rows] for name, values in self.splits.items()},
            years=None if self.years is None else self.years[rows],
            extra={name: values[rows] for name, values in self.extra.items()},
            subsets={name: values[rows] for name, values in self.subsets.items()},
        )


@dataclass(frozen=True)
class Predictions:
    """Estimates with the ends of their intervals of 90 %, in the model's unit, and how these were obtained."""

    estimate: Floats
    low: Floats
    high: Floats
    how: str

    def take(self, rows: Booleans) -> Predictions:
        return Predictions(self.estimate[rows], self.low[rows], self.high[rows], self.how)
