"""One size of a wall study: a fresh start under a memory limit that ends in a measurement, never in a kill.

In a control group of version 1 the group's killer is switched off: a system that finds no memory waits, the group says
``under_oom``, and it is stopped by rackscope (cgroup-v1/memory.rst, 10). In version 2 the limit is ``memory.high``,
which reclaims and slows but never kills (cgroup-v2.rst); memory has run out when what cannot be reclaimed fills it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
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
from rackscope.studies.base import Conduct
from rackscope.studies.bench.figures import figures_of
from rackscope.studies.bench.loading import measured_stages, refuse_partial_load
from rackscope.studies.wall.growth import Point, RanOut, Setting

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


@dataclass
class MemoryWatch:
    """Holds the limit; looks at the group whenever progress is told, and stops the run when memory has run out.

    It waits until the generator has told how far it came, as nothing more gets in by then. The limit is lifted before
    the run is stopped, so that what waits for memory can be ended in the ordinary way.
    """

    group: Group
    limit_bytes: int
    journal: Journal
    progress: ProgressCallback
    clock: Callable[[], float] = time.monotonic
    #: Of the data set, what was in when the generator told last.
    loaded_share: float | None = None
    loading: bool = True
    held: Applied | None = None
    full_since: float | None = None
    limited: bool = False

    @contextmanager
    def limiting(self) -> Iterator[None]:
        """Within, the group is limited and watched; the limit itself stays until it is lifted."""
        self.held = hold("the memory limit", limit_group(self.group, self.limit_bytes), self.journal)
        self.limited = True
        yield
        self.limited = False

    def lift(self) -> None:
        """Give the limit back. Idempotent."""
        held, self.held = self.held, None
        if held is not None:
            held.release()

    def __call__(self, progress: Progress) -> None:
        self.progress(progress)
        if not self.limited:
            return
        if self.loading and progress.fraction is not None:
            self.loaded_share = progress.fraction
        how, now = how_memory_ran_out(self.group), self.clock()
        if not how:
            self.full_since = None
            return
        if self.full_since is None:
            self.full_since = now
        if now - self.full_since >= _TOLD_SECONDS:
            self.limited = False
            self.lift()
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


@dataclass
class SizeBench:
    """Measures sizes of one system under one workload."""

    options: RunOptions
    setting: Setting
    conduct: Conduct
    runs: int = 0

    def measure(self, keys: int, label: str) -> Point | RanOut:
        """Start the system with so many keys, load them and measure. Raises RackscopeError."""
        self.runs += 1
        options = replace(self.options, settings={**self.options.settings, "keys": str(keys)})
        folder = self.conduct.member(f"{self.runs:02d}-{keys}-keys", label)

        def labelled(progress: Progress) -> None:
            self.conduct.progress(replace(progress, activity=label))

        prepared = prepare(options, labelled)
        with ExitStack() as stack:
            isolation, watch = Isolation(), None
            if self.setting.by_group:
                journal = stack.enter_context(Journal())
                isolation = stack.enter_context(make_isolation("wall", journal, network=False))
                watch = MemoryWatch(_memory_group(isolation), self.setting.limit_bytes, journal, labelled)
                stack.callback(watch.lift)
            return self._run(Session(prepared, watch or labelled, folder, isolation), folder, keys, watch)

    def _run(self, session: Session, folder: Path, keys: int, watch: MemoryWatch | None) -> Point | RanOut:
        item_bytes = self.setting.item_bytes
        rows: list[dict[str, Any]] = []
        evictions: list[float | None] = []

        def work(session: Session) -> None:
            with watch.limiting() if watch else nullcontext():
                session.preload()
                if watch:
                    watch.loaded_share, watch.loading = 1.0, False
                refuse_partial_load(session)
                session.warm_up(session.prepared.options.loop)
                rows.extend(measured_stages(session))
                evictions.append(_evictions(session.system.statistics()))

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
            self.conduct.record.members[-1].discarded = error.what
            return RanOut(keys, keys * item_bytes, loaded * item_bytes, error.what)
        return _point(folder, keys, item_bytes, rows, evictions[0])


def _memory_group(isolation: Isolation) -> Group:
    group = group_of(isolation, "memory")
    if isinstance(group, NotSqueezable):
        raise SqueezeError(f"memory cannot be limited: {group.reason}", "Use --by knob.")
    return group


def _loaded_keys(folder: Path) -> int:
    rows = read_table(folder, "results").frame.to_dicts()
    return sum(int(row["operations"] or 0) for row in rows if row["kind"] == "load")


def _evictions(statistics: Mapping[str, Any]) -> float | None:
    told = next((statistics[name] for name in ("evictions", "evicted_keys") if name in statistics), None)
    try:
        return None if told is None else float(told)
    except ValueError:
        return None


def _point(folder: Path, keys: int, item_bytes: int, rows: list[dict[str, Any]], evictions: float | None) -> Point:
    figures = figures_of(rows)
    found = sum((row["operations"] or 0) - (row["misses"] or 0) for row in rows)
    if found <= 0:
        raise LoadError(f"nothing was found of {keys} keys", "Choose a larger --memory.")
    resident = [row["system_resident_bytes"] for row in rows if row["system_resident_bytes"] is not None]
    return Point(
        keys=keys,
        data_bytes=float(keys * item_bytes),
        seconds_per_byte=figures.seconds / (found * item_bytes),
        throughput_operations_per_second=figures.rate,
        hit_ratio=figures.hit_ratio,
        resources={
            "misses per read": None if figures.hit_ratio is None else 1 - figures.hit_ratio,
            "evictions per key": None if evictions is None else evictions / keys,
            **_rates(RunDirectory.open(folder).samples(), rows[0]["start_ns"], rows[-1]["end_ns"]),
        },
        resident_bytes=resident[-1] if resident else None,
    )


def _rates(samples: pl.DataFrame, start_ns: int, end_ns: int) -> dict[str, float | None]:
    """Rates of the counters over the measured time; ``None`` where one was not read."""
    within = samples.filter(pl.col("timestamp_ns").is_between(start_ns, end_ns))
    rates: dict[str, float | None] = {}
    for name, prefix in _RATES.items():
        series = [
            within.select("timestamp_ns", one).drop_nulls().rows() for one in within.columns if one.startswith(prefix)
        ]
        ends = [(rows[0], rows[-1]) for rows in series if len(rows) > 1]
        grown = [max(late - early, 0.0) / (end - start) * 1e9 for (start, early), (end, late) in ends if end > start]
        rates[name] = sum(grown) if ends else None
    return rates
