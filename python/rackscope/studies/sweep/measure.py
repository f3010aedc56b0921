"""One run of a sweep: a fresh start of a system under one configuration, and the figures that are kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rackscope.errors import LoadError, RackscopeError

if TYPE_CHECKING:
    from rackscope.runs.options import ProgressCallback, RunOptions
    from rackscope.runs.session import Session

#: Writes that may fail while the data set is put in before what follows is no measurement of it.
_REFUSED_SHARE = 0.001


@dataclass(frozen=True)
class Figures:
    """What a run gave, over all its measured stages; latencies are those of the slowest stage.

    ``hit_ratio`` is of reads; ``None`` where there were none. ``generator_idle_ratio`` is that of the busiest stage.
    """

    throughput_operations_per_second: float
    response_mean_seconds: float | None = None
    response_p50_seconds: float | None = None
    response_p99_seconds: float | None = None
    hit_ratio: float | None = None
    generator_idle_ratio: float | None = None
    failed_ratio: float = 0.0
    seconds: float = 0.0


class Bench(Protocol):
    """What measures; tests put another in its place."""

    def check(self, options: RunOptions) -> str:
        """Raises RackscopeError for a run that cannot be; says which version of the system would be measured."""

    def measure(self, options: RunOptions, folder: Path, progress: ProgressCallback) -> Figures:
        """Do the run. Raises RackscopeError."""

    def recall(self, folder: Path) -> Figures | None:
        """What a run gave that was done before; ``None`` when it was not finished."""


class RealBench:
    """Starts systems."""

    def check(self, options: RunOptions) -> str:
        from rackscope.runs.prepare import prepare

        acquired = prepare(options, lambda _: None).acquired
        return f"{acquired.name} {acquired.version}"

    def measure(self, options: RunOptions, folder: Path, progress: ProgressCallback) -> Figures:
        from rackscope.runs.prepare import prepare
        from rackscope.runs.session import Session

        session = Session(prepare(options, progress), progress, folder)
        rows: list[dict[str, Any]] = []
        session.run(lambda one: rows.extend(measure_stages(one)))
        return figures_of(rows)

    def recall(self, folder: Path) -> Figures | None:
        from rackscope.runs.directory import RunDirectory

        try:
            run = RunDirectory.open(folder)
        except RackscopeError:
            return None
        rows = [row for row in run.results().to_dicts() if row["kind"] == "measure" and row["discarded"] is None]
        if run.manifest.status != "complete" or not rows:
            return None
        return figures_of(rows)


def measure_stages(session: Session) -> list[dict[str, Any]]:
    """Put the data in, warm up, and measure every stage once; their rows. Raises LoadError where writes are refused."""
    from rackscope.runs.client import loop_of

    options = session.prepared.options
    loop = loop_of(options)
    session.preload()
    refuse_partial_load(session)
    session.warm_up(loop)
    return [session.phase(stage, loop, options.duration_seconds, 1) for stage in session.prepared.plan.stages]


def refuse_partial_load(session: Session) -> None:
    """Raises LoadError when the system would not take the data set: what follows would be measured without it."""
    results = _load_rows(session)
    operations = sum(row["operations"] or 0 for row in results)
    errors = sum(row["errors"] or 0 for row in results)
    if errors > _REFUSED_SHARE * (operations + errors):
        said = next((part.first_error for part in session.manifest.phases if part.first_error), "")
        raise LoadError(
            f"{session.prepared.system.name} refused {errors:,} of {operations + errors:,} values"
            + (f" ({said.strip()})" if said else ""),
            "Make values smaller, or allow larger ones.",
        )


def _load_rows(session: Session) -> list[dict[str, Any]]:
    from rackscope.runs.tables import read_table

    frame = read_table(session.writer.path, "results").frame
    return [row for row in frame.to_dicts() if row["kind"] == "load"]


def figures_of(rows: Sequence[dict[str, Any]]) -> Figures:
    """Rows of ``results.parquet`` of one run as one set of figures. Raises LoadError when nothing was done."""
    operations = sum(row["operations"] or 0 for row in rows)
    errors = sum(row["errors"] or 0 for row in rows)
    seconds = sum(row["duration_seconds"] or 0.0 for row in rows)
    if not operations or seconds <= 0:
        raise LoadError("no operation succeeded")
    hits, misses = (sum(row[name] or 0 for row in rows) for name in ("hits", "misses"))
    idle = [row["generator_idle_ratio"] for row in rows if row.get("generator_idle_ratio") is not None]
    return Figures(
        throughput_operations_per_second=operations / seconds,
        response_mean_seconds=_worst(rows, "response_mean_seconds"),
        response_p50_seconds=_worst(rows, "response_p50_seconds"),
        response_p99_seconds=_worst(rows, "response_p99_seconds"),
        hit_ratio=hits / (hits + misses) if hits + misses else None,
        generator_idle_ratio=min(idle, default=None),
        failed_ratio=errors / (operations + errors),
        seconds=seconds,
    )


def _worst(rows: Sequence[dict[str, Any]], name: str) -> float | None:
    return max((row[name] for row in rows if row.get(name) is not None), default=None)
