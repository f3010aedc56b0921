"""One size of a wall study: a fresh start under a memory limit that ends in a measurement, never in a kill.

In a control group of version 1 the group's killer is switched off: a system that finds no memory waits, the group says
``under_oom``, and it is stopped by rackscope (cgroup-v1/memory.rst, 10). In version 2 the limit is ``memory.high``,
which reclaims and slows but never kills (cgroup-v2.rst); memory has run out when what cannot be reclaimed fills it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from rackscope.errors import LoadError, RackscopeError, SqueezeError
from rackscope.runs.directory import RunDirectory
from rackscope.runs.options import Progress, ProgressCallback, RunOptions
from rackscope.runs.prepare import prepare
from rackscope.runs.session import Session
from rackscope.runs.tables import read_table
from rackscope.squeezes.base import Applied, Isolation, NotSqueezable
from rackscope.squeezes.groups import Group, group_of
from rackscope.squeezes.held import Change, hold, read_integer, read_text
from rackscope.squeezes.isolation import make_isolation
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.memory_use import limit_text, read_memory_use
from rackscope.studies.bench.loading import refuse_partial_load
from rackscope.studies.sweep.measure import figures_of, measured_stages
from rackscope.studies.wall.growth import Point, RanOut

#: Of the limit, by what cannot be taken back, when memory has run out in version 2: pages are charged in batches.
_FULL = 0.97
#: The generator tells four times a second how far it came.
_TOLD_SECONDS = 0.6
#: Resources by the counter whose rate is looked at, summed over what matches its start. Bytes a second, or times.
_RATES = {
    "refaults per second": "cgroup_refaults_total",
    "swap reads (bytes/s)": "swap_in_bytes_total",
    "swap writes (bytes/s)": "swap_out_bytes_total",
    "major page faults per second": 'process_page_faults_major_total{process="system"',
    "disk reads (bytes/s)": 'process_read_bytes_total{process="system"',
}


class MemoryRanOutError(RackscopeError):
    """The group is full and nothing in it can be given up."""


class MemoryWatch:
    """Looks at the system's group whenever progress is told, and stops the run when memory has run out.

    It waits until the generator has told how far it came, as nothing more gets in by then. The limit is lifted before
    the run is stopped, so that what waits for memory can be ended in the ordinary way.
    """

    def __init__(
        self,
        group: Group,
        lift: Callable[[], None],
        progress: ProgressCallback,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._group = group
        self._lift = lift
        self._progress = progress
        self._clock = clock
        self._full_since: float | None = None
        self._stopped = False
        self.limited = False
        #: Of the data set, what was in when the generator told last.
        self.loaded_share: float | None = None
        self.loading = True

    def __call__(self, progress: Progress) -> None:
        self._progress(progress)
        if not self.limited or self._stopped:
            return
        if self.loading and progress.fraction is not None:
            self.loaded_share = progress.fraction
        how, now = how_memory_ran_out(self._group), self._clock()
        if not how:
            self._full_since = None
            return
        if self._full_since is None:
            self._full_since = now
        if now - self._full_since >= _TOLD_SECONDS:
            self._stopped = True
            self._lift()
            raise MemoryRanOutError(how)


def how_memory_ran_out(group: Group) -> str:
    """In words; empty while there is memory."""
    if group.version == 1:
        lines = (read_text(group.folder / "memory.oom_control") or "").splitlines()
        return "the control group was full and had nothing to give up" if "under_oom 1" in lines else ""
    limit = read_integer(group.folder / "memory.high")
    use = read_memory_use(group)
    if limit is None or use is None or use.fixed_bytes < _FULL * limit:
        return ""
    return "what cannot be given up filled the control group"


def limit_group(group: Group, limit_bytes: int) -> list[Change]:
    """The changes that limit a group without letting anything be killed. Raises SqueezeError where that cannot be."""
    if group.version == 2:
        return [Change(group.folder / "memory.high", str(limit_bytes), limit_text(group, "memory.high"))]
    killer = group.folder / "memory.oom_control"
    state = read_text(killer)
    if state is None:
        raise SqueezeError(f"{killer} cannot be read, so the kernel would kill the system", "Use --by knob.")
    disabled = "1" if "oom_kill_disable 1" in state else "0"
    name = "memory.limit_in_bytes"
    return [
        # Before the limit, and given back after it.
        Change(killer, "1", disabled),
        Change(group.folder / name, str(limit_bytes), limit_text(group, name)),
    ]


def why_no_group() -> str:
    """Why the system's memory cannot be limited by a control group here; empty where it can be."""
    try:
        with Journal() as journal, make_isolation("wall", journal, network=False) as isolation:
            group = group_of(isolation, "memory")
            if isinstance(group, NotSqueezable):
                return group.reason
            held = hold("the memory limit", limit_group(group, 1 << 30), journal)
            held.release()
    except SqueezeError as error:
        return error.what
    return ""


class SizeBench:
    """Measures sizes of one system under one workload; ``by_group`` says who holds the limit."""

    def __init__(
        self,
        options: RunOptions,
        limit_bytes: int,
        item_bytes: int,
        by_group: bool,
        member: Callable[[str, str], Path],
        progress: ProgressCallback,
        discard: Callable[[str], None],
    ) -> None:
        self._options = options
        self._limit_bytes = limit_bytes
        self._item_bytes = item_bytes
        self._by_group = by_group
        self._member = member
        self._progress = progress
        self._discard = discard
        self._runs = 0

    def measure(self, keys: int, label: str) -> Point | RanOut:
        """See ``Grower``."""
        self._runs += 1
        options = replace(self._options, settings={**self._options.settings, "keys": str(keys)})
        folder = self._member(f"{self._runs:02d}-{keys}-keys", label)

        def labelled(progress: Progress) -> None:
            self._progress(replace(progress, activity=label))

        prepared = prepare(options, labelled)
        with ExitStack() as stack:
            if not self._by_group:
                return self._run(prepared, folder, keys, None, labelled, Isolation(), stack)
            journal = stack.enter_context(Journal())
            isolation = stack.enter_context(make_isolation("wall", journal, network=False))
            group = group_of(isolation, "memory")
            if isinstance(group, NotSqueezable):
                raise SqueezeError(f"memory cannot be limited: {group.reason}", "Use --by knob.")
            return self._run(prepared, folder, keys, (group, journal), labelled, isolation, stack)

    def _run(
        self,
        prepared: Any,
        folder: Path,
        keys: int,
        limited: tuple[Group, Journal] | None,
        progress: ProgressCallback,
        isolation: Isolation,
        stack: ExitStack,
    ) -> Point | RanOut:
        held: list[Applied] = []

        def lift() -> None:
            while held:
                held.pop().release()

        watch = MemoryWatch(limited[0], lift, progress) if limited else None
        session = Session(prepared, watch or progress, folder, isolation)
        rows: list[dict[str, Any]] = []
        evictions: list[float] = []

        def work(one: Session) -> None:
            if limited and watch:
                group, journal = limited
                held.append(hold("the memory limit", limit_group(group, self._limit_bytes), journal))
                watch.limited = True
            rows.extend(_measure(one, watch))
            evicted = _evictions(one.system.statistics())
            if evicted is not None:
                evictions.append(evicted)
            if watch:
                watch.limited = False

        stack.callback(lift)
        try:
            session.run(work)
        except (MemoryRanOutError, LoadError) as error:
            loaded = _loaded_keys(folder)
            if isinstance(error, MemoryRanOutError):
                # After the limit was lifted some more got in.
                if watch and watch.loaded_share is not None:
                    loaded = min(loaded, round(watch.loaded_share * keys))
            elif not 0 < loaded < keys:
                raise
            self._discard(error.what)
            return RanOut(keys, keys * self._item_bytes, loaded * self._item_bytes, error.what)
        return _point(folder, keys, self._item_bytes, rows, evictions)


def _measure(session: Session, watch: MemoryWatch | None) -> list[dict[str, Any]]:
    session.preload()
    if watch:
        watch.loading = False
        watch.loaded_share = 1.0
    refuse_partial_load(session)
    session.warm_up(session.prepared.options.loop)
    return measured_stages(session)


def _loaded_keys(folder: Path) -> int:
    rows = read_table(folder, "results").frame.to_dicts()
    return sum(int(row["operations"] or 0) for row in rows if row["kind"] == "load")


def _evictions(statistics: Any) -> float | None:
    for name in ("evictions", "evicted_keys"):
        if name in statistics:
            try:
                return float(statistics[name])
            except ValueError:
                return None
    return None


def _point(folder: Path, keys: int, item_bytes: int, rows: list[dict[str, Any]], evictions: list[float]) -> Point:
    figures = figures_of(rows)
    hits, misses = (sum(row[name] or 0 for row in rows) for name in ("hits", "misses"))
    found = sum(row["operations"] or 0 for row in rows) - misses
    if found <= 0:
        raise LoadError(f"nothing was found of {keys} keys", "Choose a larger --memory.")
    start, end = rows[0]["start_ns"], rows[-1]["end_ns"]
    resources: dict[str, float | None] = {"misses per read": misses / (hits + misses) if hits + misses else None}
    resources["evictions per key"] = evictions[0] / keys if evictions else None
    resources |= _rates(RunDirectory.open(folder).samples(), start, end)
    resident = [row["system_resident_bytes"] for row in rows if row["system_resident_bytes"] is not None]
    return Point(
        keys=keys,
        data_bytes=float(keys * item_bytes),
        seconds_per_byte=figures.seconds / (found * item_bytes),
        throughput_operations_per_second=figures.throughput_operations_per_second,
        hit_ratio=figures.hit_ratio,
        resources=resources,
        resident_bytes=resident[-1] if resident else None,
    )


def _rates(samples: pl.DataFrame, start_ns: int, end_ns: int) -> dict[str, float | None]:
    """Rates of the counters over the measured time; ``None`` where one was not read."""

    within = samples.filter((pl.col("timestamp_ns") >= start_ns) & (pl.col("timestamp_ns") <= end_ns))
    rates: dict[str, float | None] = {}
    for name, prefix in _RATES.items():
        total: float | None = None
        for column in (one for one in within.columns if one.startswith(prefix)):
            known = within.select("timestamp_ns", column).drop_nulls()
            if known.height < 2:
                continue
            seconds = (known["timestamp_ns"][-1] - known["timestamp_ns"][0]) / 1e9
            grown = float(known[column][-1]) - float(known[column][0])
            total = (total or 0.0) + (max(grown, 0.0) / seconds if seconds > 0 else 0.0)
        rates[name] = total
    return rates
