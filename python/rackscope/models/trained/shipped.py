"""Fits as files: what ``rackscope models fit`` writes, and what is read where there are no tables.

A file holds no row of any table: regressions rest on made-up servers (``support_points``). Files are JSON, checked when
they are read; those of ``fitted/`` are part of the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator, ValidationError

from rackscope.errors import ModelError
from rackscope.models.trained import find_model
from rackscope.models.trained.ask import TrainedModel
from rackscope.models.trained.base import Floats
from rackscope.models.trained.conformal import Calibration
from rackscope.models.trained.fit import Ends, Fit
from rackscope.models.trained.grouped_regression import GroupedRegression, Scales
from rackscope.models.trained.redis_elsewhere import Calibrated, LeftOut, RedisElsewhere
from rackscope.models.trained.support_points import from_support_points, support_points
from rackscope.models.trained.validation import Score

FORMAT = 1
#: Of a regression, as they are in the file.
_KEPT = ("mean", "spread", "level", "scales", "drifting", "apart", "lowest", "highest")
REDIS_ELSEWHERE = "redis-elsewhere"


def _array(values: object) -> Floats:
    """Null is not a number."""
    try:
        return np.array(values, dtype=np.float64)
    except TypeError as error:
        raise ValueError(str(error)) from error


def _plain(values: Floats) -> Any:
    return np.where(np.isfinite(values), values, np.array(None)).tolist()


_Array = Annotated[Floats, PlainValidator(_array), PlainSerializer(_plain)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Source(_Record):
    """A table that was fitted on. ``sha256`` is of its files, one after the other."""

    table: str
    rows: int
    sha256: str
    published: str
    licence: str


class Errors(_Record):
    """On processors that were left out of the fit, a quarter of them at a time; None where all were refused."""

    of: str
    predictions: int
    refused: int
    median_error: float | None
    p90_error: float | None
    coverage: float | None


class Cost(_Record):
    """How far the fit on made-up servers is from that on all rows, at the rows: |one / other - 1|."""

    median: float
    p90: float


class _Regression(_Record):
    mean: _Array
    spread: _Array
    level: float
    scales: Scales
    drifting: int | None
    apart: int | None
    lowest: _Array
    highest: _Array
    #: The made-up servers, and what the fit says of each less the level.
    servers: _Array
    values: _Array


class _Ends(_Record):
    usual: Calibration
    later: Calibration | None
    last_year: float | None


class ShippedFit(_Record):
    """One file. ``lowest`` and ``highest`` are of each feature of the rows that were fitted on."""

    format: int
    model: str
    made: str
    made_by: str
    sources: list[Source]
    rows: int
    processors: int
    errors: list[Errors]
    cost: Cost
    features: list[str]
    lowest: _Array
    highest: _Array
    regressions: dict[str, _Regression]
    ends: dict[str, _Ends]
    #: Of ratios between two servers: of pairs of processors that were left out.
    pairs: dict[str, LeftOut] = {}


def errors_of(scores: Sequence[Score]) -> list[Errors]:
    kept = [{**score.to_dict(), "of": score.what} for score in scores]
    return [Errors(**{name: one[name] for name in Errors.model_fields}) for one in kept]


def cost_of(shipped: Floats, full: Floats) -> Cost:
    apart = np.abs(shipped / full - 1.0)
    return Cost(median=round(float(np.median(apart)), 4), p90=round(float(np.quantile(apart, 0.9)), 4))


def to_records(
    regressions: Mapping[str, GroupedRegression], ends: Mapping[str, Ends]
) -> tuple[dict[str, _Regression], dict[str, _Ends]]:
    """What a file holds of a fit on support points."""
    kept = {}
    for name, one in regressions.items():
        servers, values = support_points(one)
        kept[name] = _Regression(**{each: getattr(one, each) for each in _KEPT}, servers=servers, values=values)
    return kept, {
        name: _Ends(usual=one.usual, later=one.later, last_year=one.last_year if np.isfinite(one.last_year) else None)
        for name, one in ends.items()
    }


def read_fit(name: str, text: str | None = None) -> ShippedFit:
    """The file of the model called ``name``, or what ``text`` holds. Raises ModelError where it cannot be read."""
    if text is None:
        file = files(__package__).joinpath("..", "fitted", f"{name}.json")
        if not file.is_file():
            raise ModelError(
                f"rackscope carries no fit of {name}", "Fit it on tables with --fit FOLDER; see docs/models.md."
            )
        text = file.read_text(encoding="utf-8")
    try:
        kept = ShippedFit.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ModelError(f"the fit of {name} cannot be read: {where}: {first['msg']}", "Fit the model again.") from None
    if kept.format != FORMAT or kept.model != name:
        raise ModelError(
            f"this is format {kept.format} of a fit of {kept.model}, not format {FORMAT} of {name}",
            "Fit the model again.",
        )
    return kept


def restore(kept: ShippedFit) -> TrainedModel:
    """The model of a file, ready to be asked."""
    model = find_model(kept.model)
    ends = {
        name: Ends(one.usual, one.later, np.inf if one.last_year is None else one.last_year)
        for name, one in kept.ends.items()
    }
    fit: Fit = model.form({name: _restored(one) for name, one in kept.regressions.items()}, ends)
    return TrainedModel(model, fit, kept.lowest, kept.highest, kept.processors)


def restore_redis_elsewhere(kept: ShippedFit) -> RedisElsewhere:
    """The ratios of redis of a file."""
    fits = {
        part: Calibrated(_restored(one), kept.ends[part].usual.above, kept.pairs[part])
        for part, one in kept.regressions.items()
    }
    return RedisElsewhere(kept.lowest, kept.highest, fits=fits)


def _restored(one: _Regression) -> GroupedRegression:
    empty = np.empty((0, len(one.mean)))
    regression = GroupedRegression(
        **{each: getattr(one, each) for each in _KEPT},
        features=empty,
        weights=empty,
        precision=empty,
        groups=np.array([], dtype=np.str_),
    )
    return from_support_points(regression, one.servers, one.values)
