"""Getting a system ready to be measured: its data in, all of it, and warm."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rackscope.errors import LoadError, UsageError
from rackscope.runs.options import RunOptions
from rackscope.runs.placement import place
from rackscope.runs.session import Session
from rackscope.runs.tables import read_table

#: Writes that may fail while the data set is put in before what follows is no measurement of it.
_REFUSED_FRACTION = 0.001
_SHORTEST_SECONDS = 0.05


def make_ready(session: Session) -> None:
    """Put the data in and warm up. Raises LoadError where writes are refused."""
    session.preload()
    refuse_partial_load(session)
    session.warm_up(session.prepared.options.loop)


def measured_stages(session: Session) -> list[dict[str, Any]]:
    """Measure every stage once; their rows."""
    options = session.prepared.options
    return [session.phase(stage, options.loop, options.duration_seconds, 1) for stage in session.prepared.plan.stages]


def refuse_errors(row: Mapping[str, Any], tolerance: float = 0.0) -> None:
    """Raises LoadError for a row with more failed operations than this share of the others."""
    errors, operations = row.get("errors") or 0, row["operations"] or 0
    if errors > tolerance * max(operations, 1):
        raise LoadError(f"{errors:,} of {operations + errors:,} operations failed: the system replied with an error")


def refuse_partial_load(session: Session) -> None:
    """Raises LoadError when the system would not take the data set: what follows would be measured without it."""
    rows = [row for row in read_table(session.writer.path, "results").frame.to_dicts() if row["kind"] == "load"]
    operations = sum(row["operations"] or 0 for row in rows)
    errors = sum(row["errors"] or 0 for row in rows)
    if errors > _REFUSED_FRACTION * (operations + errors):
        said = next((part.first_error for part in session.manifest.phases if part.first_error), "")
        raise LoadError(
            f"{session.prepared.system.name} refused {errors:,} of {operations + errors:,} values"
            + (f" ({said.strip()})" if said else ""),
            "Make values smaller, or allow larger ones.",
        )


def on_one_core(run: RunOptions) -> RunOptions:
    """The run with one core for systems, unless more were asked for: some of those compared have a single thread."""
    usable = sorted(os.sched_getaffinity(0))
    kept = [core for core in usable if core not in (run.client_cores or ())]
    placement = place(usable, run.cores or tuple(kept[:1] or usable[:1]), run.client_cores)
    return replace(run, cores=placement.system, client_cores=placement.client)


def check_window(seconds: float, usual: str, shortest: float = _SHORTEST_SECONDS) -> None:
    """Raises UsageError for a window that is too short to measure in."""
    if not seconds >= shortest:
        raise UsageError(f"a window must last at least {1000 * shortest:.0f} ms", f"Choose --window {usual}.")


def check_count(count: int, what: str, least: int = 1, most: int = 1000) -> None:
    """Raises UsageError for a number that is out of bounds."""
    if not least <= count <= most:
        raise UsageError(f"{count:,} {what} are out of bounds", f"Choose between {least:,} and {most:,}.")


def check_budget(seconds: float, least: float, purpose: str) -> None:
    """Raises UsageError for a time that nothing can be found in."""
    if seconds < least:
        raise UsageError(f"{seconds:g} s is too short for {purpose}", f"Choose a --budget of {least:g}s or more.")


def parse_loads(text: str) -> tuple[float, ...]:
    """``25,50,75,90`` in percent, as fractions; nothing for ``none``. Raises UsageError."""
    if text == "none":
        return ()
    try:
        loads = sorted({float(part.strip().removesuffix("%")) / 100 for part in text.split(",")})
    except ValueError:
        raise UsageError(
            f"invalid --loads {text}: expected numbers", "Write it like --loads 25,50,75,90, or none."
        ) from None
    if not all(0.01 <= load <= 2 for load in loads):
        raise UsageError(f"--loads {text} are out of bounds", "Choose between 1 and 200 percent.")
    return tuple(loads)
