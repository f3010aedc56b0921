"""Watts of a server at full load and at idle, from what its data sheet says: modelled, never measured.

Fitted on published SPECpower_ssj2008 results. The logarithm of watts over a rough sum of what draws them (the chips'
thermal design power, memory, board), regressed on chips, cores a chip, clock, memory, threads a core, thermal design
power, whether power supplies are shared (blades), who built the server, and what the processor's name says of its kind;
how each of these counts drifts with the years. A processor whose thermal design power is not known is predicted by a
second regression without it, on all rows. The published score is not used, as it was divided by the watts that are
asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from rackscope.errors import ModelError
from rackscope.models.trained.base import Columns, Examples, Floats
from rackscope.models.trained.fit import Fit, Located, fit_part
from rackscope.models.trained.model import Aim, Described, Input, Model
from rackscope.models.trained.processor_names import parse_processor_name
from rackscope.models.trained.thermal_design_power import thermal_design_watts

if TYPE_CHECKING:
    import polars as pl

TABLE = "specpower-servers"
FULL, IDLE = "avg. watts @ 100%", "avg. watts @ active idle"
_RATED = "Thermal Design Power (W)"
_NUMBERS = ("# Cores", "Chips", "Processor MHz", "Total Memory (GB)")
_OPTIONAL = ("# Threads Per Core", "System", "Hardware Vendor", "Power Supply Details", _RATED)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
#: Said by letters in the processor's name.
_LETTERS = ("server_line", "low_power", "high_power")
_KINDS = ("amd", "arm", *_LETTERS)
#: Builders whose servers are told apart, by words in their names; all others are one kind.
_BUILDERS = {
    "hpe": ("hewlett", "hpe", "hp "),
    "fujitsu": ("fujitsu",),
    "dell": ("dell",),
    "lenovo": ("lenovo", "ibm"),
    "acer": ("acer", "gateway"),
    "huawei": ("huawei", "xfusion"),
    "hitachi": ("hitachi",),
    "supermicro": ("supermicro", "super micro"),
    "nec": ("nec ", "nec corporation"),
    "inspur": ("inspur", "ieit"),
}
_SHARED_SUPPLY = r"(?i)\bshared\b|\bblade\b|\bchassis\b|\benclosure\b"
_COLUMNS = (
    "year",
    "chips",
    "cores a chip",
    "MHz",
    "GB a chip",
    "threads a core",
    "shared power supply",
    *_KINDS,
    *_BUILDERS,
    "thermal design W",
)
_YEAR, _AMD, _RATED_COLUMN = 0, _COLUMNS.index("amd"), len(_COLUMNS) - 1
#: What draws power, roughly: a part of the thermal design power, W a GB, W a chip, W a server.
_OF_RATED, _OF_MEMORY, _OF_CHIP, _OF_BOARD = 0.9, 0.3, 10.0, 30.0
_RATED_UNKNOWN = 110.0
#: What draws power at idle, roughly: W a chip, W a GB, W a server. Not a part of the thermal design power: that rose
#: from 95 W to 360 W, what an idle chip draws did not.
_IDLE_OF_CHIP, _IDLE_OF_MEMORY, _IDLE_OF_BOARD = 30.0, 0.1, 20.0
#: Less memory than this, in GB a core, no server has: published tables cut "1,536" off at the comma. All that is known
#: are then the thousands.
_LEAST_MEMORY, _THOUSAND, _HALF_CUT_OFF = 0.1, 1000.0, 0.4


def _of_tables(asked: str, frames: Mapping[str, pl.DataFrame]) -> Examples:
    """``asked`` is the column with the watts of which the ``target`` is."""
    import polars as pl

    from rackscope.models.trained.columns import numbers, require

    table = frames[TABLE]
    require(table, TABLE, ("CPU Description", "Published"))
    frame = numbers(table, TABLE, (*_NUMBERS, asked))
    frame = frame.with_columns(pl.lit(None).alias(name) for name in (*_OPTIONAL, FULL, IDLE) if name not in frame)
    memory = pl.col("Total Memory (GB)")
    cut_off = (memory < _LEAST_MEMORY * pl.col("# Cores")) & (memory == memory.floor())
    when = pl.col("Published").cast(pl.String)
    frame = frame.with_columns(
        pl.when(cut_off).then((memory + _HALF_CUT_OFF) * _THOUSAND).otherwise(memory),
        when.str.extract(r"((?:19|20)\d\d)").cast(pl.Float64).alias("year"),
        when.str.extract("(" + "|".join(_MONTHS) + ")")
        .replace_strict({name: number / 12 for number, name in enumerate(_MONTHS)}, default=0.5)
        .cast(pl.Float64)
        .alias("month"),
        pl.col("# Threads Per Core").cast(pl.Float64, strict=False).fill_null(2.0).clip(1.0, 8.0),
        pl.col(_RATED, FULL, IDLE).cast(pl.Float64, strict=False),
        pl.coalesce(pl.col("System").cast(pl.String), pl.col("CPU Description").cast(pl.String)).alias("System"),
        pl.col("Power Supply Details").cast(pl.String).str.contains(_SHARED_SUPPLY).fill_null(False).alias("shared"),
        pl.col("Hardware Vendor").cast(pl.String).fill_null(""),
    )
    complete = frame.drop_nulls([*_NUMBERS, asked, "year", "CPU Description"])
    if complete.is_empty():
        raise ModelError(f"no row of {TABLE} is complete", "See the columns and units in docs/models.md.")
    if int((complete[IDLE] > complete[FULL]).fill_null(False).sum()) > 0.5 * len(complete):
        raise ModelError(f"'{IDLE}' is above '{FULL}' in most rows of {TABLE}", "Swap the two columns.")
    complete = complete.with_columns(pl.col("year") + pl.col("month"), pl.col("System").fill_null("?"))
    examples = _examples(asked, {name: complete[name].to_numpy() for name in complete.columns})
    return replace(examples, incomplete=len(frame) - len(complete))


def _examples(asked: str, servers: Columns) -> Examples:
    descriptions = [str(text) for text in servers["CPU Description"]]
    names = [parse_processor_name(text) for text in descriptions]
    listed = np.array([thermal_design_watts(text) or np.nan for text in descriptions])
    stated = servers[_RATED].astype(np.float64)
    rated = np.where(np.isfinite(stated) & (stated > 0), stated, listed)
    chips, memory, years = servers["Chips"], servers["Total Memory (GB)"], servers["year"]
    builders = [f"{who} ".lower() for who in servers["Hardware Vendor"]]
    columns = [
        years,
        np.log(chips),
        np.log(servers["# Cores"] / chips),
        np.log(servers["Processor MHz"]),
        np.log(memory / chips),
        np.log(servers["# Threads Per Core"]),
        servers["shared"].astype(np.float64),
        *(np.array([getattr(name, kind) for name in names], dtype=np.float64) for kind in _KINDS),
        *(np.array([any(word in who for word in words) for who in builders], float) for words in _BUILDERS.values()),
        np.log(rated),
    ]
    known = np.isfinite(rated)
    return Examples(
        features=np.column_stack(columns),
        columns=_COLUMNS,
        anchor=_anchor(asked, chips, memory, np.where(known, rated, _RATED_UNKNOWN)),
        target=servers[asked],
        groups=np.array([name.model for name in names]),
        parts=np.full(len(names), asked),
        splits={"server": np.array([" ".join(str(text).lower().split()) for text in servers["System"]])},
        years=years,
        subsets={} if known.all() else {"thermal design power not known": ~known},
    )


def _anchor(asked: str, chips: Floats, memory: Floats, rated: Floats | float) -> Floats:
    """Roughly the watts of servers with as many ``chips``, GB of ``memory`` and watts ``rated`` a chip."""
    if asked == IDLE:
        return chips * _IDLE_OF_CHIP + memory * _IDLE_OF_MEMORY + _IDLE_OF_BOARD
    return chips * (_OF_RATED * rated + _OF_CHIP) + memory * _OF_MEMORY + _OF_BOARD


@dataclass(frozen=True)
class _Power(Fit):
    """Regressions ``rated``, of rows whose thermal design power is known, and ``unrated``; their ends are called so."""

    def locate(self, examples: Examples) -> Located:
        known = np.isfinite(examples.features[:, _RATED_COLUMN]) & ("rated" in self.regressions)
        anchor, centre, deviation = (np.empty(len(examples)) for _ in range(3))
        for rows, name, seen_by in ((known, "rated", _with_rating), (~known, "unrated", _without_rating)):
            if rows.any():
                part = seen_by(examples.take(rows))
                anchor[rows] = part.anchor
                centre[rows], deviation[rows] = self.regressions[name].predict(part.features)
        return Located(anchor, centre, deviation, np.where(known, "rated", "unrated"))

    @classmethod
    def fit(cls, examples: Examples, like: Fit | None = None) -> Self:
        """Raises ModelError where there are too few rows."""
        # Idle watts of the two makers went their own ways, as what a chip has beside its cores is theirs; at full load
        # the thermal design power says it, and a walk of each maker's own made later years worse.
        apart = _AMD if (examples.parts == IDLE).all() else None
        known = examples.take(np.isfinite(examples.features[:, _RATED_COLUMN]))
        found = {"unrated": fit_part(_without_rating(examples), "unrated", like, drifting=_YEAR, apart=apart)}
        with suppress(ModelError):
            found["rated"] = fit_part(_with_rating(known), "rated", like, drifting=_YEAR, apart=apart)
        return cls({name: one for name, (one, _) in found.items()}, {name: ends for name, (_, ends) in found.items()})


def _with_rating(examples: Examples) -> Examples:
    """Without what the letters of the names say of power: the rating says it better."""
    kept = [name not in _LETTERS for name in _COLUMNS]
    columns = tuple(name for name, keep in zip(_COLUMNS, kept, strict=True) if keep)
    return replace(examples, features=examples.features[:, np.array(kept)], columns=columns)


def _without_rating(examples: Examples) -> Examples:
    """The same rows for those who do not know the thermal design power of any."""
    anchor = examples.anchor
    if not (examples.parts == IDLE).all():
        chips = np.exp(examples.features[:, _COLUMNS.index("chips")])
        memory = np.exp(examples.features[:, _COLUMNS.index("GB a chip")]) * chips
        anchor = _anchor(FULL, chips, memory, _RATED_UNKNOWN)
    return replace(examples, features=examples.features[:, :_RATED_COLUMN], columns=_COLUMNS[:-1], anchor=anchor)


_INPUTS = (
    Input("processor", "its name, as a data sheet has it"),
    Input("chips", "processors in the server", column="Chips"),
    Input("cores", "of the whole server", column="# Cores"),
    Input("mhz", "nominal clock in MHz", column="Processor MHz"),
    Input("memory_gb", "of the whole server", column="Total Memory (GB)"),
    Input("year", "of publication", column="year"),
    Input("threads_per_core", "hardware threads a core (2)", optional=True, column="threads_per_core"),
    Input("thermal_design_watts", "of one chip (looked up by the processor's name)", optional=True, column="thermal"),
    Input("vendor", "who built the server", optional=True),
    Input("shared_power_supply", "1 for a blade or a node of a chassis (0)", optional=True),
)


def _describe(asked: str, server: Described) -> Examples:
    row = {
        "CPU Description": server["processor"],
        "System": "described",
        "Hardware Vendor": server.get("vendor", ""),
        "shared": bool(server.get("shared_power_supply")),
        asked: np.nan,
        # Years are published as such: the middle of one.
        "year": float(str(server["year"])) + 0.5,
        **{one.column: server[one.name] for one in _INPUTS if one.column in _NUMBERS},
        "# Threads Per Core": max(1.0, float(str(server.get("threads_per_core", 2)))),
        _RATED: server.get("thermal_design_watts", np.nan),
    }
    return _examples(asked, {name: np.array([value]) for name, value in row.items()})


_FULL = Model(
    name="full-load-watts",
    help="watts of a server at full load, from its data sheet",
    unit="W",
    tables=(TABLE,),
    measured="nothing: the data sheet's chips, cores, clock, memory, year, processor, builder",
    predicted="watts of the whole server at full load",
    aim=Aim(median=0.10),
    examples=partial(_of_tables, FULL),
    fit=_Power.fit,
    inputs=_INPUTS,
    form=_Power,
    describe=partial(_describe, FULL),
    later_years=(2017, 2018, 2019, 2020, 2021),
)
MODELS = (
    _FULL,
    replace(
        _FULL,
        name="idle-watts",
        help="watts of a server at active idle, from its data sheet",
        predicted="watts of the whole server at active idle",
        aim=Aim(median=0.14),
        examples=partial(_of_tables, IDLE),
        describe=partial(_describe, IDLE),
    ),
)
