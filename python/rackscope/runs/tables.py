"""The tables of a run directory: their columns, and reading them back from damaged or foreign files without trust."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    Schema = dict[str, pl.DataType | type[pl.DataType]]

#: Tables that every run has, and those that only some have.
TABLES = ("samples", "latency", "results")
OPTIONAL_TABLES = ("stacks", "reports")
#: The name that rows have of the host that rackscope itself runs on.
LOCAL_HOST = "localhost"
#: The name of the built-in load generator as the driver of a row.
LOAD_DRIVER = "load"
#: In every table: the start of the system that the row belongs to (from 1), the host, and who asked (null: nobody).
KEYS = ("start", "host", "driver")
_INTEGER_FIELDS = ("repetition", "start_ns", "end_ns", "operations", "errors", "hits", "misses", "wrong_values",
                   "bytes_sent", "bytes_received")  # fmt: skip
_TEXT_FIELDS = ("phase", "kind", "discarded")
RESULT_FIELDS = (
    *KEYS, "phase", "kind", "repetition", "start_ns", "end_ns", "duration_seconds",
    "operations", "errors", "hits", "misses", "wrong_values",
    "throughput_operations_per_second", "offered_operations_per_second", "bytes_sent", "bytes_received",
    "response_p50_seconds", "response_p90_seconds", "response_p99_seconds", "response_p999_seconds",
    "response_max_seconds", "response_mean_seconds", "service_p50_seconds", "service_p99_seconds",
    "lag_p99_seconds", "generator_idle_ratio", "generator_cpu_seconds",
    "system_cpu_seconds", "system_resident_bytes", "discarded",
)  # fmt: skip
#: Columns without which a table says nothing.
_NEEDED = {
    "samples": ("timestamp_ns",),
    "results": ("phase", "kind"),
    "latency": ("phase", "operation", "kind", "grouping_power", "max_value_power", "index", "count"),
    "stacks": ("timestamp_ns", "frames", "count"),
    "reports": ("timestamp_ns", "name", "value"),
}
#: No counter of a host passes this (it is far beyond 64 bits); what does is damage, and sums of it overflow.
_LARGEST = 1e24


@dataclass(frozen=True)
class Table:
    """A table as far as it could be read; ``damage`` says, in a sentence, what could not."""

    frame: pl.DataFrame
    damage: str = ""
    missing: bool = False


class _UnusableError(ValueError):
    """The table is readable Parquet, but not what rackscope writes."""


def schema_of(name: str) -> Schema:
    """Columns that the table has whatever was measured, with their types."""
    import polars as pl

    keys: Schema = {"start": pl.Int64, "host": pl.String, "driver": pl.String}
    if name == "samples":
        return {"timestamp_ns": pl.Int64, **keys}
    if name == "latency":
        return {
            **keys,
            "phase": pl.String,
            "repetition": pl.Int64,
            "operation": pl.String,
            "kind": pl.String,
            "grouping_power": pl.UInt8,
            "max_value_power": pl.UInt8,
            "index": pl.List(pl.UInt32),
            "count": pl.List(pl.UInt64),
        }
    if name == "stacks":
        frames: Schema = {"frames": pl.List(pl.String), "count": pl.UInt64}
        return {**keys, "timestamp_ns": pl.Int64, "process": pl.String, "thread": pl.String, **frames}
    if name == "reports":
        return {**keys, "timestamp_ns": pl.Int64, "phase": pl.String, "name": pl.String, "value": pl.Float64}
    schema: Schema = dict.fromkeys(RESULT_FIELDS, pl.Float64)
    return schema | dict.fromkeys(_TEXT_FIELDS, pl.String) | dict.fromkeys(_INTEGER_FIELDS, pl.Int64) | keys


def results_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of ``results.parquet`` with its fixed schema; a field that a row does not have is null."""
    return _frame("results", rows)


def latency_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of ``latency.parquet`` with its fixed schema."""
    return _frame("latency", rows)


def _frame(name: str, rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    import polars as pl

    schema, defaults = schema_of(name), _default_keys(name)
    return pl.DataFrame([{column: row.get(column, defaults.get(column)) for column in schema} for row in rows], schema)


def with_keys(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with the columns of ``KEYS`` that it does not have: the first start, on this host."""
    import polars as pl

    schema = schema_of(name)
    missing = {key: value for key, value in _default_keys(name).items() if key not in frame.columns}
    return frame.with_columns(pl.lit(value, dtype=schema[key]).alias(key) for key, value in missing.items())


def _default_keys(name: str) -> dict[str, int | str | None]:
    # Format 1 had none of them: one start, one host, and our load generator, which the host's samples are not of.
    asked = LOAD_DRIVER if name in ("results", "latency") else None
    return {"start": 1, "host": LOCAL_HOST, "driver": asked}


def read_table(folder: Path, name: str) -> Table:
    """A table of the run directory ``folder``: the joined file, or else its parts. Never raises."""
    whole, parts = folder / f"{name}.parquet", folder / f"{name}.parts"
    damage = ""
    if whole.is_file():
        try:
            return Table(_read(whole, name))
        except _failures() as error:
            damage = f"{whole.name} is damaged ({first_line(error)})"
    elif whole.is_symlink() or whole.exists():
        damage = f"{whole.name} is not a file"
    kept, lost = read_parts(parts, name) if parts.is_dir() else (None, 0)
    if kept is not None:
        unread = f"{lost} of the parts of {name} could not be read" if lost else ""
        return Table(kept, unread)
    if lost:
        damage = damage or f"no part of {name} could be read"
    import polars as pl

    return Table(pl.DataFrame(schema=schema_of(name)), damage, missing=not damage)


def read_parts(folder: Path, name: str) -> tuple[pl.DataFrame | None, int]:
    """Join the readable parts; the count of those that could not be read."""
    import polars as pl

    parts, damaged = [], 0
    for part in sorted(folder.glob("*.arrow")):
        try:
            parts.append(pl.read_ipc_stream(io.BytesIO(part.read_bytes())))
        except _failures():
            damaged += 1
    if not parts:
        return None, damaged
    try:
        # All at once: a study has hundreds of parts, and looking at each column of each takes most of a minute.
        joined = _conform(pl.concat(parts, how="diagonal_relaxed"), name)
    except _failures():
        kept = []
        for frame in parts:
            try:
                kept.append(_conform(frame, name))
            except _failures():
                damaged += 1
        if not kept:
            return None, damaged
        joined = pl.concat(kept, how="diagonal_relaxed")
    return (joined.sort("timestamp_ns") if name == "samples" else joined), damaged


def first_line(error: BaseException) -> str:
    """What an error says, short enough for a sentence."""
    return str(error).splitlines()[0][:200].rstrip(". ") if str(error).strip() else type(error).__name__


def _read(file: Path, name: str) -> pl.DataFrame:
    import polars as pl

    # As bytes: given a path, polars takes brackets in it for a pattern, and maps a file that could be cut meanwhile.
    frame = _conform(pl.read_parquet(io.BytesIO(file.read_bytes())), name)
    return frame.sort("timestamp_ns") if name == "samples" else frame


def _failures() -> tuple[type[BaseException], ...]:
    import polars as pl

    # A reader that meets bytes it did not expect may also panic; that is damage too.
    return (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, _UnusableError)


def _conform(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """The columns with the types that readers count on; what was not recorded is null. Raises _UnusableError."""
    import polars as pl

    frame = with_keys(name, frame)
    for needed in _NEEDED[name]:
        if needed not in frame.columns:
            raise _UnusableError(f"it has no column {needed}")
        if frame[needed].null_count():
            raise _UnusableError(f"column {needed} has gaps")
    schema = schema_of(name)
    others = [column for column in frame.columns if column not in schema] if name == "samples" else []
    columns = [_column(frame[column], pl.Float64) for column in others]
    for column, dtype in schema.items():
        if column in frame.columns:
            columns.append(_column(frame[column], dtype))
        else:
            columns.append(pl.Series(column, [None] * frame.height, dtype=dtype))
    return pl.DataFrame(columns)


def _column(series: pl.Series, wanted: pl.DataType | type[pl.DataType]) -> pl.Series:
    import polars as pl

    found = series.dtype
    if found in (wanted, pl.Null):
        fits = True
    elif isinstance(wanted, pl.List):
        integers = isinstance(found, pl.List) and isinstance(found.inner, pl.DataType) and found.inner.is_integer()
        fits = integers and wanted.inner != pl.String
    elif wanted == pl.String:
        fits = False
    else:
        fits = found.is_numeric() if wanted == pl.Float64 else found.is_integer()
    if not fits:
        raise _UnusableError(f"column {series.name} holds {found}, not {wanted}")
    series = series.cast(wanted)
    if wanted == pl.Float64:
        series = series.fill_nan(None)
        largest = series.abs().max()
        if isinstance(largest, float) and not (math.isfinite(largest) and largest <= _LARGEST):
            raise _UnusableError(f"column {series.name} holds {largest:g}")
    if wanted == pl.Int64 and series.name.endswith("_ns"):
        earliest = series.min()
        if isinstance(earliest, int) and earliest < 0:
            raise _UnusableError(f"column {series.name} holds {earliest}")
    return series
