"""The run directory: written so that a kill at any moment leaves something readable, and read back with patience.

Every file is written under a temporary name and renamed. Tables grow as numbered parts and are joined at the end.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rackscope.errors import RunDirectoryError

if TYPE_CHECKING:
    import polars as pl

    from rackscope.runs.manifest import Manifest

TABLES = ("samples", "latency", "results")
MANIFEST = "manifest.json"
REPORT = "report.html"
LOGS = "logs"
#: A manifest is small; anything larger than this is not one.
MANIFEST_LIMIT_BYTES = 16 * 1024 * 1024


def write_atomically(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Write ``content`` so that ``path`` holds either the old bytes or all the new ones. Raises RunDirectoryError.

    Without ``sync`` that holds for a killed process, but not for a host that loses power.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> RunDirectoryError:
    return RunDirectoryError(
        f"cannot write {path}: {error.strerror or error}",
        "What was measured before is kept. Free some space or choose another folder with --out.",
    )


class RunWriter:
    """Writes one run directory. Not thread-safe: one thread owns it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._next_part = dict.fromkeys(TABLES, 0)

    @classmethod
    def create(cls, path: Path) -> RunWriter:
        """Make the directory, which must not hold a run yet. Raises RunDirectoryError."""
        if (path / MANIFEST).exists():
            raise RunDirectoryError(f"{path} already holds a run", "Choose another folder with --out.")
        try:
            (path / LOGS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_write(path, error) from error
        return cls(path)

    @property
    def logs(self) -> Path:
        """Where what the system printed goes."""
        return self.path / LOGS

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace ``manifest.json``."""
        write_atomically(self.path / MANIFEST, manifest.model_dump_json(indent=2).encode())

    def append(self, table: str, frame: pl.DataFrame) -> None:
        """Add a part to ``samples``, ``latency`` or ``results``; on disk when this returns."""
        if frame.is_empty():
            return
        folder = self.path / f"{table}.parts"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _cannot_write(folder, error) from error
        part = folder / f"{self._next_part[table]:06d}.parquet"
        write_atomically(part, _parquet(frame), sync=False)
        self._next_part[table] += 1

    def join_parts(self) -> None:
        """Make each table one file. Until the new file is in place the parts stay."""
        for table in TABLES:
            folder = self.path / f"{table}.parts"
            if not folder.is_dir():
                continue
            frame, _ = _read_parts(folder)
            if frame is not None:
                if table == "samples":
                    frame = frame.sort("timestamp_ns")
                write_atomically(self.path / f"{table}.parquet", _parquet(frame))
            shutil.rmtree(folder, ignore_errors=True)


def _parquet(frame: pl.DataFrame) -> bytes:
    # In memory first: writing to a file, polars reports a full disk as damage.
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", statistics=False)
    return buffer.getvalue()


@dataclass(frozen=True)
class RunDirectory:
    """A run directory opened for reading; ``remarks`` says what was missing or had to be put together."""

    path: Path
    manifest: Manifest
    remarks: tuple[str, ...]

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """Read the manifest and settle what became of the run. Raises RunDirectoryError."""
        manifest = _read_manifest(path)
        remarks = []
        if manifest.status == "running":
            if _is_still_running(manifest):
                remarks.append("This run is still going on; what follows is what it has measured so far.")
            else:
                manifest.status = "interrupted"
                manifest.status_reason = "rackscope was killed before the run ended"
        if manifest.status == "interrupted":
            remarks.append(f"This run did not finish: {manifest.status_reason or 'it was interrupted'}.")
        elif manifest.status == "failed":
            remarks.append(f"This run failed: {manifest.status_reason}.")
        for table in TABLES:
            if not (path / f"{table}.parquet").is_file():
                parts = path / f"{table}.parts"
                kept = len(list(parts.glob("*.parquet"))) if parts.is_dir() else 0
                if kept == 0:
                    remarks.append(f"{table}.parquet is missing: nothing of it is shown.")
        return cls(path, manifest, tuple(remarks))

    def samples(self) -> pl.DataFrame:
        """Time series, sorted by ``timestamp_ns``; empty (with that column) when there are none."""
        import polars as pl

        frame = self._table("samples")
        if "timestamp_ns" not in frame.columns:
            return pl.DataFrame(schema={"timestamp_ns": pl.Int64})
        return frame.sort("timestamp_ns")

    def latency(self) -> pl.DataFrame:
        """Histograms: one row per phase, repetition, operation and kind."""
        return self._table("latency")

    def results(self) -> pl.DataFrame:
        """One row per phase and repetition."""
        return self._table("results")

    def _table(self, table: str) -> pl.DataFrame:
        import polars as pl

        whole = self.path / f"{table}.parquet"
        if whole.is_file():
            try:
                return pl.read_parquet(whole)
            except (pl.exceptions.PolarsError, OSError) as error:
                raise RunDirectoryError(
                    f"{whole} is damaged ({_first_line(error)})",
                    "It cannot be read back; run the workload again.",
                ) from error
        folder = self.path / f"{table}.parts"
        frame = _read_parts(folder)[0] if folder.is_dir() else None
        return frame if frame is not None else pl.DataFrame()


def _read_parts(folder: Path) -> tuple[pl.DataFrame | None, int]:
    """Join the readable parts; the count of those that could not be read (a kill can cut only the last)."""
    import polars as pl

    frames, damaged = [], 0
    for part in sorted(folder.glob("*.parquet")):
        try:
            frames.append(pl.read_parquet(part))
        except (pl.exceptions.PolarsError, OSError):
            damaged += 1
    return (pl.concat(frames, how="diagonal_relaxed") if frames else None), damaged


def _read_manifest(path: Path) -> Manifest:
    from pydantic import ValidationError

    from rackscope.runs.manifest import FORMAT_VERSION, Manifest

    if not path.is_dir():
        raise RunDirectoryError(f"{path} is not a folder", "Name a run directory, such as one under runs/.")
    file = path / MANIFEST
    try:
        if file.stat().st_size > MANIFEST_LIMIT_BYTES:
            raise RunDirectoryError(f"{file} is too large to be a manifest", "Name another run directory.")
        content = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise RunDirectoryError(
            f"{path} is not a run directory (it has no {MANIFEST})", "Name one that 'rackscope run' made."
        ) from None
    except OSError as error:
        raise RunDirectoryError(f"cannot read {file}: {error.strerror}", "Check its permissions.") from error
    except ValueError as error:
        raise RunDirectoryError(
            f"{file} is damaged ({_first_line(error)})", "It was not written whole; run the workload again."
        ) from error
    version = content.get("format_version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise RunDirectoryError(
            f"{path} has format {version}, and this rackscope reads up to {FORMAT_VERSION}",
            "Open it with a newer rackscope.",
        )
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise RunDirectoryError(
            f"{file} is not a manifest that rackscope understands ({place}: {first['msg']})",
            "Name a run directory that 'rackscope run' made.",
        ) from error


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


def process_start_ticks(pid: int) -> int | None:
    """Field 22 of ``/proc/PID/stat``: with the pid it names a process for good (pids are used again)."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def boot_id() -> str | None:
    """This boot of this host."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _is_still_running(manifest: Manifest) -> bool:
    if manifest.rackscope_pid is None or manifest.boot_id is None or manifest.boot_id != boot_id():
        return False
    started = process_start_ticks(manifest.rackscope_pid)
    return started is not None and started == manifest.rackscope_pid_start_ticks


_TEXT_FIELDS = frozenset({"phase", "kind", "discarded"})
_INTEGER_FIELDS = frozenset(
    {
        "repetition",
        "start_ns",
        "end_ns",
        "operations",
        "errors",
        "hits",
        "misses",
        "wrong_values",
        "bytes_sent",
        "bytes_received",
    }
)
RESULT_FIELDS = (
    "phase",
    "kind",
    "repetition",
    "start_ns",
    "end_ns",
    "duration_seconds",
    "operations",
    "errors",
    "hits",
    "misses",
    "wrong_values",
    "throughput_operations_per_second",
    "offered_operations_per_second",
    "bytes_sent",
    "bytes_received",
    "response_p50_seconds",
    "response_p90_seconds",
    "response_p99_seconds",
    "response_p999_seconds",
    "response_max_seconds",
    "response_mean_seconds",
    "service_p50_seconds",
    "service_p99_seconds",
    "lag_p99_seconds",
    "generator_idle_ratio",
    "generator_cpu_seconds",
    "system_cpu_seconds",
    "system_resident_bytes",
    "discarded",
)


def results_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of ``results.parquet`` with its fixed schema; a field that a row lacks is null."""
    import polars as pl

    schema: dict[str, type[pl.DataType]] = dict.fromkeys(RESULT_FIELDS, pl.Float64)
    schema |= dict.fromkeys(_TEXT_FIELDS, pl.String)
    schema |= dict.fromkeys(_INTEGER_FIELDS, pl.Int64)
    return pl.DataFrame([{name: row.get(name) for name in RESULT_FIELDS} for row in rows], schema=schema)


def latency_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows of ``latency.parquet`` with its fixed schema."""
    import polars as pl

    schema: dict[str, pl.DataType | type[pl.DataType]] = {
        "phase": pl.String,
        "repetition": pl.Int64,
        "operation": pl.String,
        "kind": pl.String,
        "grouping_power": pl.UInt8,
        "max_value_power": pl.UInt8,
        "index": pl.List(pl.UInt32),
        "count": pl.List(pl.UInt64),
    }
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)
