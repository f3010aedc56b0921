"""The run directory: files are written under another name and renamed, tables grow as parts and are joined."""

from __future__ import annotations

import io
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.errors import RunDirectoryError
from rackscope.runs.files import cannot_make, cannot_write, write_atomically, write_record
from rackscope.runs.redaction import redact_text
from rackscope.runs.tables import OPTIONAL_TABLES, TABLES, Table, read_parts, read_table, with_keys

if TYPE_CHECKING:
    import polars as pl

    from rackscope.runs.manifest import Manifest

MANIFEST = "manifest.json"
REPORT = "report.html"
LOGS = "logs"
#: A manifest is small; anything larger than this is not one.
MANIFEST_LIMIT_BYTES = 16 * 1024 * 1024
#: Larger logs are not looked through for secrets.
LOG_LIMIT_BYTES = 64 * 1024 * 1024


class RunWriter:
    """Writes one run directory. Not thread-safe: one thread owns it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._next_part = dict.fromkeys((*TABLES, *OPTIONAL_TABLES), 0)

    @classmethod
    def create(cls, path: Path) -> RunWriter:
        """Make the directory, which must not hold a run yet. Raises RunDirectoryError."""
        try:
            if (path / MANIFEST).exists():
                raise RunDirectoryError(f"{path} already holds a run", "Choose another folder with --out.")
            (path / LOGS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_make(path, error) from error
        return cls(path)

    @property
    def logs(self) -> Path:
        """Where what the system printed goes."""
        return self.path / LOGS

    def write_manifest(self, manifest: Manifest) -> None:
        write_record(self.path / MANIFEST, manifest)

    def redact_logs(self) -> None:
        """Take secrets out of what the system printed, once it has ended. Raises RunDirectoryError."""
        for log in self.logs.iterdir():
            if log.is_symlink() or not log.is_file() or log.stat().st_size > LOG_LIMIT_BYTES:
                continue
            text = log.read_bytes().decode(errors="surrogateescape")
            redacted = "".join(redact_text(line) for line in text.splitlines(keepends=True))
            if redacted != text:
                write_atomically(log, redacted.encode(errors="surrogateescape"))

    def append(self, table: str, frame: pl.DataFrame) -> None:
        """Add a part to a table, such as ``samples``; on disk when this returns."""
        if frame.is_empty():
            return
        folder = self.path / f"{table}.parts"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        part = folder / f"{self._next_part[table]:06d}.arrow"
        write_atomically(part, _arrow(with_keys(table, frame)), sync=False)
        self._next_part[table] += 1

    def join_parts(self) -> None:
        """Make each table one file. Until the new file is in place the parts stay."""
        for table in self._next_part:
            folder = self.path / f"{table}.parts"
            if not folder.is_dir():
                continue
            frame, lost = read_parts(folder, table)
            if frame is not None:
                write_atomically(self.path / f"{table}.parquet", _parquet(frame))
            if not lost:
                shutil.rmtree(folder, ignore_errors=True)


def _arrow(frame: pl.DataFrame) -> bytes:
    # A part is written while the load generator may want the same core: this takes a twentieth of what Parquet does.
    buffer = io.BytesIO()
    frame.write_ipc_stream(buffer, compression="uncompressed")
    return buffer.getvalue()


def _parquet(frame: pl.DataFrame) -> bytes:
    # In memory first: writing to a file, polars reports a full disk as damage.
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=False)
    return buffer.getvalue()


@dataclass(frozen=True)
class RunDirectory:
    """A run directory opened for reading.

    ``remarks`` says how the run ended and what is not shown, for people; ``damage`` is the part of it that is not as
    rackscope left it: whatever could be read is there all the same.
    """

    path: Path
    manifest: Manifest
    remarks: tuple[str, ...]
    damage: tuple[str, ...]
    _tables: Mapping[str, Table]

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Read everything and settle what became of the run. Raises RunDirectoryError when that is not known."""
        manifest = _read_manifest(path)
        remarks = []
        if manifest.status == "running":
            if manifest.is_still_conducted():
                remarks.append("This run is still going on; what follows is what it has measured so far.")
            else:
                manifest.status = "interrupted"
                manifest.status_reason = "rackscope was killed before the run ended"
        if manifest.status == "interrupted":
            remarks.append(f"This run did not finish: {manifest.status_reason or 'it was interrupted'}.")
        elif manifest.status == "failed":
            remarks.append(f"This run failed: {manifest.status_reason or 'it is not known why'}.")
        tables = {name: read_table(path, name) for name in (*TABLES, *OPTIONAL_TABLES)}
        damage = []
        for name, table in tables.items():
            if table.damage:
                damage.append(table.damage)
                remarks.append(f"{table.damage}: {'the rest' if table.frame.height else 'nothing'} of it is shown.")
            elif table.missing and name in TABLES:
                # A run that was cut short may not have come that far.
                if manifest.status == "complete":
                    damage.append(f"{name}.parquet is missing")
                remarks.append(f"{name}.parquet is missing: nothing of it is shown.")
        return cls(path, manifest, tuple(remarks), tuple(damage), tables)

    def samples(self) -> pl.DataFrame:
        """Time series, sorted by ``timestamp_ns``; empty (with that column) when there are none."""
        return self._tables["samples"].frame

    def latency(self) -> pl.DataFrame:
        """Histograms: one row per phase, repetition, operation and kind."""
        return self._tables["latency"].frame

    def results(self) -> pl.DataFrame:
        """One row per phase and repetition."""
        return self._tables["results"].frame

    def stacks(self) -> pl.DataFrame:
        """Sampled stacks, innermost frame first; empty when none were taken."""
        return self._tables["stacks"].frame

    def reports(self) -> pl.DataFrame:
        """What a job reported of itself (progress, counters); empty when it reported nothing."""
        return self._tables["reports"].frame


def _read_manifest(path: Path) -> Manifest:
    from rackscope.runs.kept import read_kept
    from rackscope.runs.manifest import FORMAT_VERSION, Manifest

    file = path / MANIFEST
    try:
        if not path.is_dir():
            raise RunDirectoryError(f"{path} is not a folder", "Name a run directory, such as one under runs/.")
        if file.exists() and not file.is_file():
            raise RunDirectoryError(f"{file} is not a file", "Name another run directory.")
        return read_kept(
            file,
            Manifest,
            what="manifest",
            limit_bytes=MANIFEST_LIMIT_BYTES,
            format_version=FORMAT_VERSION,
            again="It was not written whole; run the workload again.",
            another="Name a run directory that 'rackscope run' made.",
        )
    except FileNotFoundError:
        raise RunDirectoryError(
            f"{path} is not a run directory (it has no {MANIFEST})", "Name one that 'rackscope run' made."
        ) from None
    except OSError as error:
        raise RunDirectoryError(f"cannot read {file}: {error.strerror}", "Check its permissions.") from error
