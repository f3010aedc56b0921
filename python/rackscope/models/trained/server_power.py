"""Watts of a server at full load and at idle, from what its data sheet says: modelled, never measured.

Fitted on published SPECpower_ssj2008 results. The logarithm of watts a chip, over cores a chip, clock, memory, chips,
threads a core and what the processor's name says of its kind; how each of these counts drifts with the years. The
published score is not used, as it was divided by the watts that are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rackscope.errors import ModelError
from rackscope.models.trained.base import Aim, Examples, Fitted, Model

if TYPE_CHECKING:
    import polars as pl

TABLE = "specpower-servers"
FULL, IDLE = "avg. watts @ 100%", "avg. watts @ active idle"
_NUMBERS = ("# Cores", "Chips", "Processor MHz", "Total Memory (GB)", FULL, IDLE)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: Which feature is the year.
_YEAR = 0


def _examples(frames: Mapping[str, pl.DataFrame], asked: str) -> Examples:
    import numpy as np
    import polars as pl

    from rackscope.models.trained.columns import numbers, require
    from rackscope.models.trained.processor_names import parse_processor_name

    table = frames[TABLE]
    require(table, TABLE, ("CPU Description", "Published"))
    frame = numbers(table, TABLE, _NUMBERS)
    threads = pl.col("# Threads Per Core") if "# Threads Per Core" in frame.columns else pl.lit(None)
    system = pl.col("System") if "System" in frame.columns else pl.col("CPU Description")
    frame = frame.with_columns(
        pl.col("Published").cast(pl.String).str.extract(r"((?:19|20)\d\d)").cast(pl.Float64).alias("year"),
        pl.col("Published")
        .cast(pl.String)
        .str.extract("(" + "|".join(_MONTHS) + ")")
        .replace_strict({name: number / 12 for number, name in enumerate(_MONTHS)}, default=0.5)
        .cast(pl.Float64)
        .alias("month"),
        threads.cast(pl.Float64, strict=False).fill_null(2.0).clip(1.0, 8.0).alias("threads"),
        system.cast(pl.String).alias("system"),
    )
    complete = frame.drop_nulls([*_NUMBERS, "year", "CPU Description"])
    if complete.is_empty():
        raise ModelError(f"no row of {TABLE} is complete", "See the columns and units in docs/models.md.")
    if (complete[IDLE] > complete[FULL]).mean() > 0.5:  # type: ignore[operator]
        raise ModelError(f"'{IDLE}' is above '{FULL}' in most rows of {TABLE}", "Swap the two columns.")
    names = [parse_processor_name(str(text)) for text in complete["CPU Description"]]
    chips = complete["Chips"].to_numpy()
    years = (complete["year"] + complete["month"]).to_numpy()
    kinds = [
        np.array([getattr(name, kind) for name in names], dtype=np.float64)
        for kind in ("amd", "arm", "server_line", "low_power", "high_power")
    ]
    return Examples(
        features=np.column_stack(
            [
                years,
                np.log(chips),
                np.log(complete["# Cores"].to_numpy() / chips),
                np.log(complete["Processor MHz"].to_numpy()),
                np.log(complete["Total Memory (GB)"].to_numpy() / chips),
                np.log(complete["threads"].to_numpy()),
                *kinds,
            ]
        ),
        anchor=chips,
        target=complete[asked].to_numpy(),
        groups=np.array([name.model for name in names]),
        parts=np.full(len(names), asked),
        splits={"server": np.array([" ".join(text.lower().split()) for text in complete["system"].fill_null("?")])},
        years=years,
        incomplete=len(frame) - len(complete),
    )


def _full(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _examples(frames, FULL)


def _idle(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _examples(frames, IDLE)


def _fit(examples: Examples, like: Fitted | None = None) -> Fitted:
    from rackscope.models.trained.regressed import fit_regressed

    return fit_regressed(examples, like, drifting=_YEAR)


_MEASURED = "nothing: chips, cores, clock, memory, threads a core, year, the processor's name"
_LATER = (2017, 2018, 2019, 2020, 2021)

MODELS = (
    Model(
        name="full-load-watts",
        help="watts of a server at full load, from its data sheet",
        unit="W",
        tables=(TABLE,),
        measured=_MEASURED,
        predicted="watts of the whole server at full load",
        aim=Aim(median=0.10),
        examples=_full,
        fit=_fit,
        later_years=_LATER,
    ),
    Model(
        name="idle-watts",
        help="watts of a server at active idle, from its data sheet",
        unit="W",
        tables=(TABLE,),
        measured=_MEASURED,
        predicted="watts of the whole server at active idle",
        aim=Aim(median=0.14),
        examples=_idle,
        fit=_fit,
        later_years=_LATER,
    ),
)
