"""What a model is: examples out of tables, a fit on them, and what must be said of a server that is asked about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rackscope.models.trained.base import Examples
from rackscope.models.trained.fit import Fit

if TYPE_CHECKING:
    import polars as pl

#: What is said of one server: by the name of an input, a number, a word, or several numbers by name.
Described = Mapping[str, "float | str | Mapping[Any, float]"]


@dataclass(frozen=True)
class Aim:
    """The errors that a model is to stay below, as fractions of what was measured."""

    median: float
    p90: float | None = None


@dataclass(frozen=True)
class Input:
    """What is to be said of a server, with its unit; ``column`` of the tables has bounds that it must keep."""

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
