"""What a model asks of the tables it reads: the columns, and values that can be what they are said to be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rackscope.errors import ModelError

if TYPE_CHECKING:
    import polars as pl

#: Column: the unit, and between what the median of any honest table of servers lies.
UNITS: Mapping[str, tuple[str, float, float]] = {
    "vcpus": ("hardware threads", 1, 4096),
    "workers": ("processes", 1, 4096),
    "threads_per_core": ("threads", 1, 8),
    "ops_per_second": ("operations/s", 1, 1e8),
    "read_bandwidth_dram_mb_s": ("MB/s", 500, 2e7),
    "read_bandwidth_l2_mb_s": ("MB/s", 1_000, 5e8),
    "redis_rps_pipeline1": ("requests/s", 500, 1e9),
    "redis_rps_best": ("requests/s", 500, 1e10),
    "requests_per_second": ("requests/s", 10, 1e9),
    "server_threads": ("threads", 1, 1e5),
    "connections": ("connections", 1, 1e7),
    "Processor MHz": ("MHz", 200, 20_000),
    "Total Memory (GB)": ("GB", 0.5, 100_000),
    "# Cores": ("cores", 1, 100_000),
    "Chips": ("chips", 1, 10_000),
    "thermal": ("W", 1, 10_000),
    "year": ("years", 1900, 2200),
    "avg. watts @ 100%": ("W", 10, 20_000),
    "avg. watts @ active idle": ("W", 2, 10_000),
}


def numbers(frame: pl.DataFrame, table: str, names: tuple[str, ...]) -> pl.DataFrame:
    """``frame`` with the columns ``names`` as Float64, null where a cell is not a number above zero.

    Raises ModelError where a column is missing, holds nothing, or has values that its unit rules out.
    """
    import polars as pl

    require(frame, table, names)
    converted = frame.with_columns(pl.col(name).cast(pl.Float64, strict=False) for name in names)
    converted = converted.with_columns(
        pl.when(pl.col(name).is_finite() & (pl.col(name) > 0)).then(pl.col(name)) for name in names
    )
    for name in names:
        unit, least, most = UNITS[name]
        median = converted[name].median()
        if not isinstance(median, float):
            raise ModelError(f"column '{name}' of {table} holds no number above zero", f"It is to be in {unit}.")
        if not least <= median <= most:
            raise ModelError(
                f"column '{name}' of {table} has a median of {median:g}, which cannot be {unit}",
                f"Give it in {unit}.",
            )
    return converted


def require(frame: pl.DataFrame, table: str, names: tuple[str, ...]) -> None:
    """Raise ModelError where a column of ``names`` is missing from ``frame``, or it has no rows."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing)
        raise ModelError(f"{table} lacks the column{'s' * (len(missing) > 1)} {listed}", "Add them, with these names.")
    if frame.is_empty():
        raise ModelError(f"{table} has no rows", "Give a table with servers in it.")
