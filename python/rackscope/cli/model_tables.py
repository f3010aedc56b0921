"""Reads the tables that models are fitted on: files of a folder, by the start of their names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from rackscope.errors import ModelError, UsageError
from rackscope.models.trained.model import Model

_ENDINGS = (".csv", ".csv.gz", ".parquet")
_DEFAULT = Path("..") / "shared" / "data"


@dataclass(frozen=True)
class Tables:
    folder: Path
    frames: Mapping[str, pl.DataFrame]
    files: Mapping[str, Sequence[Path]]

    def of(self, model: Model) -> dict[str, pl.DataFrame]:
        """Those that ``model`` reads. Raises ModelError where one is not there."""
        missing = [table for table in model.tables if table not in self.frames]
        if missing:
            raise ModelError(
                f"{self.folder} has no file {missing[0]}*.csv", f"Its endings may be {', '.join(_ENDINGS)}."
            )
        return {table: self.frames[table] for table in model.tables}


def chosen_folder() -> Path | None:
    named = os.environ.get("RACKSCOPE_DATA")
    return Path(named) if named else None


def default_folder() -> Path:
    """Where tables are looked for: what RACKSCOPE_DATA names, else ../shared/data."""
    return chosen_folder() or _DEFAULT


def read_tables(folder: Path, wanted: tuple[str, ...]) -> Tables:
    """Tables in ``folder``, files of one put together. Raises UsageError for no folder, ModelError for no table."""
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is no folder",
            "Name one with tables such as sparecores-servers.csv.gz; docs/models.md says where they are published.",
        )
    frames: dict[str, pl.DataFrame] = {}
    read: dict[str, list[Path]] = {}
    for table in wanted:
        read[table] = sorted(
            path
            for path in folder.iterdir()
            if path.name.startswith(table) and path.name.endswith(_ENDINGS) and not path.is_dir()
        )
        if read[table]:
            frames[table] = pl.concat([_read(path) for path in read[table]], how="diagonal_relaxed")
    if not frames:
        raise UsageError(
            f"{folder} holds {'no table' if len(wanted) == 1 else 'none of the tables'} {', '.join(wanted)}",
            f"Files are named so and end in {', '.join(_ENDINGS)}.",
        )
    return Tables(folder, frames, read)


def _read(path: Path) -> pl.DataFrame:
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        # The types of all rows, not of the first: a column may be empty for long.
        return pl.read_csv(path, infer_schema_length=None, null_values=["", "NA", "null"])
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise ModelError(
            f"cannot read {path}: {str(error).splitlines()[0]}", "It is to be a table with a line of names."
        ) from None
