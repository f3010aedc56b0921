"""What a model is: examples out of tables, a fit on them, predictions with an interval of 90 %."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

    from rackscope.models.trained.fit import Fit

Floats = NDArray[np.float64]
Strings = NDArray[np.str_]
Booleans = NDArray[np.bool_]

#: What is said of one server: by the name of an input, a number, a word, or several numbers by name.
Described = Mapping[str, "float | str | Mapping[Any, float]"]
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
    #: Rows of the tables that lack a value that is needed, and are not among these.
    incomplete: int = 0

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: Booleans) -> Examples:
        """Only the ``rows`` that are true."""
        return Examples(
            features=self.features[rows],
            anchor=self.anchor[rows],
            target=self.target[rows],
            groups=self.groups[rows],
            parts=self.parts[rows],
            splits={name: values[rows] for name, values in self.splits.items()},
            years=None if self.years is None else self.years[rows],
            extra={name: values[rows] for name, values in self.extra.items()},
            subsets={name: values[rows] for name, values in self.subsets.items()},
            columns=self.columns,
            incomplete=self.incomplete,
        )


@dataclass(frozen=True)
class Predictions:
    """Estimates with the ends of their intervals of 90 %, in the model's unit, and how these were obtained."""

    estimate: Floats
    low: Floats
    high: Floats
    how: str

    def take(self, rows: Booleans) -> Predictions:
        """Only the ``rows`` that are true."""
        return Predictions(self.estimate[rows], self.low[rows], self.high[rows], self.how)


@dataclass(frozen=True)
class Aim:
    """The errors that a model is to stay below, as fractions of what was measured."""

    median: float
    p90: float | None = None


@dataclass(frozen=True)
class Input:
    """Something to be said of a server that is to be predicted: its name, and what it is, with the unit.

    ``column`` is the column of the tables that has it, whose bounds a number must keep (``columns.UNITS``).
    """

    name: str
    meaning: str
    optional: bool = False
    column: str = ""


@dataclass(frozen=True)
class Model:
    """One model; one or more a file, found by the module attribute ``MODELS``.

    ``tables`` are the files it reads, by the start of their names. ``measured`` and ``predicted`` say, in words, what
    must be known of a server never seen and what is then predicted. ``examples`` raises ModelError where a table lacks
    columns, or where its units cannot be what they are said to be; ``fit`` where there is too little to fit on. Given a
    fit of the same model, ``fit`` takes over how smooth and how noisy that one found things to be: this takes its time.
    ``describe`` makes examples out of what is said of one server by ``inputs``, whose ``target`` is NaN.
    ``restore`` gives a fit its form back after its numbers were read from a file.
    ``later_years`` are the first years of the windows that are also predicted from the years before alone.
    """

    name: str
    help: str
    unit: str
    tables: tuple[str, ...]
    measured: str
    predicted: str
    aim: Aim
    examples: Callable[[Mapping[str, pl.DataFrame]], Examples]
    fit: Callable[[Examples, Fit | None], Fit]
    inputs: tuple[Input, ...]
    describe: Callable[[Described], Examples]
    form: type[Fit]
    later_years: tuple[int, ...] = ()
