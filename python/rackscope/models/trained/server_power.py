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
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rackscope.errors import ModelError
from rackscope.models.trained.base import Aim, Described, Examples, Fitted, Input, Model, Predictions

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rackscope.models.trained.regressed import Regressed

    Floats = NDArray[np.float64]

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


def _examples(frames: Mapping[str, pl.DataFrame], asked: str, described: bool = False) -> Examples:
    """``asked`` are the watts of which the ``target`` is; of a server that is ``described`` they are not known."""
    import numpy as np
    import polars as pl

    from rackscope.models.trained.columns import numbers, require
    from rackscope.models.trained.processor_names import parse_processor_name
    from rackscope.models.trained.thermal_design_power import thermal_design_watts

    table = frames[TABLE]
    require(table, TABLE, ("CPU Description", "Published"))
    other = IDLE if asked == FULL else FULL
    frame = numbers(table, TABLE, _NUMBERS if described else (*_NUMBERS, asked))
    frame = frame.with_columns(
        pl.lit(None).alias(name) for name in (*_OPTIONAL, asked, other) if name not in frame.columns
    )
    if not described:
        memory_column = pl.col("Total Memory (GB)")
        cut_off = (memory_column < _LEAST_MEMORY * pl.col("# Cores")) & (memory_column == memory_column.floor())
        frame = frame.with_columns(
            pl.when(cut_off).then((memory_column + _HALF_CUT_OFF) * _THOUSAND).otherwise(memory_column)
        )
    when = pl.col("Published").cast(pl.String)
    frame = frame.with_columns(
        when.str.extract(r"((?:19|20)\d\d)").cast(pl.Float64).alias("year"),
        when.str.extract("(" + "|".join(_MONTHS) + ")")
        .replace_strict({name: number / 12 for number, name in enumerate(_MONTHS)}, default=0.5)
        .cast(pl.Float64)
        .alias("month"),
        pl.col("# Threads Per Core").cast(pl.Float64, strict=False).fill_null(2.0).clip(1.0, 8.0).alias("threads"),
        pl.col(_RATED).cast(pl.Float64, strict=False).alias("stated"),
        pl.coalesce(pl.col("System").cast(pl.String), pl.col("CPU Description").cast(pl.String)).alias("system"),
        pl.col("Power Supply Details").cast(pl.String).str.contains(_SHARED_SUPPLY).fill_null(False).alias("shared"),
        (pl.col("Hardware Vendor").cast(pl.String).fill_null("").str.to_lowercase() + " ").alias("builder"),
    )
    complete = frame.drop_nulls([*_NUMBERS, *(() if described else (asked,)), "year", "CPU Description"])
    if complete.is_empty():
        raise ModelError(f"no row of {TABLE} is complete", "See the columns and units in docs/models.md.")
    idle, full = (complete[name].cast(pl.Float64, strict=False) for name in (IDLE, FULL))
    if int((idle > full).fill_null(False).sum()) > 0.5 * len(complete):
        raise ModelError(f"'{IDLE}' is above '{FULL}' in most rows of {TABLE}", "Swap the two columns.")
    descriptions = [str(text) for text in complete["CPU Description"]]
    names = [parse_processor_name(text) for text in descriptions]
    listed = np.array([thermal_design_watts(text) or np.nan for text in descriptions])
    stated = complete["stated"].to_numpy().astype(np.float64)
    rated = np.where(np.isfinite(stated) & (stated > 0), stated, listed)
    chips, memory = complete["Chips"].to_numpy(), complete["Total Memory (GB)"].to_numpy()
    years = (complete["year"] + complete["month"]).to_numpy()
    builders = complete["builder"].to_list()
    columns = [
        years,
        np.log(chips),
        np.log(complete["# Cores"].to_numpy() / chips),
        np.log(complete["Processor MHz"].to_numpy()),
        np.log(memory / chips),
        np.log(complete["threads"].to_numpy()),
        complete["shared"].to_numpy().astype(np.float64),
        *(np.array([getattr(name, kind) for name in names], dtype=np.float64) for kind in _KINDS),
        *(np.array([any(word in who for word in words) for who in builders], float) for words in _BUILDERS.values()),
        np.log(rated),
    ]
    known = np.isfinite(rated)
    return Examples(
        features=np.column_stack(columns),
        columns=_COLUMNS,
        anchor=_anchor(asked, chips, memory, np.where(known, rated, _RATED_UNKNOWN)),
        target=complete[asked].cast(pl.Float64, strict=False).to_numpy(),
        groups=np.array([name.model for name in names]),
        parts=np.full(len(names), asked),
        splits={"server": np.array([" ".join(text.lower().split()) for text in complete["system"].fill_null("?")])},
        years=years,
        subsets={} if known.all() else {"thermal design power not known": ~known},
        incomplete=len(frame) - len(complete),
    )


def _anchor(asked: str, chips: Floats, memory: Floats, rated: Floats | float) -> Floats:
    """Roughly the watts of servers with as many ``chips``, GB of ``memory`` and watts ``rated`` a chip."""
    if asked == IDLE:
        return chips * _IDLE_OF_CHIP + memory * _IDLE_OF_MEMORY + _IDLE_OF_BOARD
    return chips * (_OF_RATED * rated + _OF_CHIP) + memory * _OF_MEMORY + _OF_BOARD


def _full(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _examples(frames, FULL)


def _idle(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _examples(frames, IDLE)


@dataclass(frozen=True)
class _Power:
    rated: Regressed | None
    unrated: Regressed

    def predict(self, examples: Examples) -> Predictions:
        import numpy as np

        known = np.isfinite(examples.features[:, _RATED_COLUMN])
        if self.rated is None:
            known = np.zeros(len(examples), dtype=bool)
        estimate, low, high = (np.empty(len(examples)) for _ in range(3))
        how = ""
        for rows, regressed in ((known, self.rated), (~known, self.unrated)):
            if rows.any() and regressed is not None:
                part = examples.take(rows)
                some = regressed.predict(_with_rating(part) if regressed is self.rated else _without_rating(part))
                estimate[rows], low[rows], high[rows], how = some.estimate, some.low, some.high, some.how
        return Predictions(estimate, low, high, how)


def _with_rating(examples: Examples) -> Examples:
    """Without what the letters of the names say of power: the rating says it better."""
    import numpy as np

    kept = [name not in _LETTERS for name in _COLUMNS]
    columns = tuple(name for name, keep in zip(_COLUMNS, kept, strict=True) if keep)
    return replace(examples, features=examples.features[:, np.array(kept)], columns=columns)


def _without_rating(examples: Examples) -> Examples:
    """The same rows for those who do not know the thermal design power of any."""
    import numpy as np

    anchor = examples.anchor
    if not (examples.parts == IDLE).all():
        chips = np.exp(examples.features[:, _COLUMNS.index("chips")])
        memory = np.exp(examples.features[:, _COLUMNS.index("GB a chip")]) * chips
        anchor = _anchor(FULL, chips, memory, _RATED_UNKNOWN)
    return replace(examples, features=examples.features[:, :_RATED_COLUMN], columns=_COLUMNS[:-1], anchor=anchor)


def _fit(examples: Examples, like: Fitted | None = None) -> Fitted:
    import numpy as np

    from rackscope.models.trained.regressed import fit_regressed

    before = like if isinstance(like, _Power) else None
    # Idle watts of the two makers went their own ways, as what a chip has beside its cores is theirs; at full load the
    # thermal design power says it, and a walk of each maker's own made later years worse.
    apart = _AMD if (examples.parts == IDLE).all() else None
    unrated = fit_regressed(_without_rating(examples), before and before.unrated, drifting=_YEAR, apart=apart)
    known = examples.take(np.isfinite(examples.features[:, _RATED_COLUMN]))
    try:
        rated = fit_regressed(_with_rating(known), before and before.rated, drifting=_YEAR, apart=apart)
    except ModelError:
        rated = None
    return _Power(rated, unrated)


_INPUTS = (
    Input("processor", "its name, as a data sheet has it"),
    Input("chips", "processors in the server"),
    Input("cores", "of the whole server"),
    Input("mhz", "nominal clock in MHz"),
    Input("memory_gb", "of the whole server"),
    Input("year", "of publication"),
    Input("threads_per_core", "hardware threads a core (2)", optional=True),
    Input("thermal_design_watts", "of one chip (looked up by the processor's name)", optional=True),
    Input("vendor", "who built the server", optional=True),
    Input("shared_power_supply", "1 for a blade or a node of a chassis (0)", optional=True),
)


def _describe(asked: str, server: Described) -> Examples:
    import polars as pl

    row = {
        "CPU Description": server["processor"],
        "Chips": server["chips"],
        "# Cores": server["cores"],
        "Processor MHz": server["mhz"],
        "Total Memory (GB)": server["memory_gb"],
        "Published": f"{server['year']:.0f}",
        "# Threads Per Core": server.get("threads_per_core", 2),
        _RATED: server.get("thermal_design_watts"),
        "Hardware Vendor": server.get("vendor"),
        "Power Supply Details": "Shared" if server.get("shared_power_supply") else None,
    }
    return _examples({TABLE: pl.DataFrame({name: [value] for name, value in row.items()})}, asked, described=True)


_MEASURED = "nothing: the data sheet's chips, cores, clock, memory, year, processor, builder"
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
        inputs=_INPUTS,
        describe=partial(_describe, FULL),
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
        inputs=_INPUTS,
        describe=partial(_describe, IDLE),
        later_years=_LATER,
    ),
)
