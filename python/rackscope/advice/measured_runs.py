"""What run and study directories measured, in the form in which a projection wants to be told it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from rackscope.analysis.columns import split_column
from rackscope.analysis.context import Run
from rackscope.analysis.quantities import CACHE_LINE_BYTES
from rackscope.analysis.rates import Windows
from rackscope.errors import RunDirectoryError, UsageError
from rackscope.models.throughput_ratio import Squeezed, SqueezedTo
from rackscope.runs.directory import RunDirectory
from rackscope.runs.energy import mean_frequency, results_with_energy
from rackscope.runs.facts import analysed_run, comparison_settings
from rackscope.runs.manifest import Manifest
from rackscope.runs.study import MEMBERS, StudyRecord, is_below, is_study_or_run, read_study

#: Below this a rate that was offered was not served, so the point is no load but the most there is.
_SERVED = 0.97
#: Offered rates within this of each other are one load.
_ALIKE = 0.02
#: A load generator with less time to spare than this is itself the limit.
_BUSY_GENERATOR = 0.01
#: Knobs whose default follows the cores.
_FOLLOW_CORES = frozenset({"threads", "io_threads"})


@dataclass(frozen=True)
class Point:
    """One configuration at one load: of each repetition the throughput, and the medians of the rest.

    ``rate_per_second`` is what was offered, ``None`` in a closed loop of ``outstanding`` requests. ``cores`` are those
    the system could use, ``watts`` the host's, where they were metered, and ``scope`` what of it those cover.
    """

    run: str
    cores: int
    rate_per_second: float | None
    outstanding: int
    throughputs: tuple[float, ...]
    mean_seconds: float | None
    p99_seconds: float | None
    frequency_hertz: float | None = None
    instructions_per_operation: float | None = None
    memory_share_high: float | None = None
    resident_bytes: float | None = None
    watts: float | None = None
    scope: str = ""
    generator_idle: float | None = None
    #: Free windows between squeezed ones, in a place of its own: second to a plain run.
    between_squeezes: bool = False
    #: Requests come many a message.
    pipelined: bool = False

    @property
    def throughput(self) -> float:
        """Mean over the repetitions."""
        return math.fsum(self.throughputs) / len(self.throughputs)


@dataclass(frozen=True)
class Source:
    """The host that was measured; ceilings are those that calibration trusts, ``cores`` all that are online."""

    identity: str
    processor: str
    cores: int
    physical_cores: int | None
    memory_bytes: float | None
    last_level_cache_bytes: float | None
    ceilings: Mapping[str, float]
    calibrated_at: str | None


@dataclass(frozen=True)
class Measurements:
    """All that was measured of one system under one workload on one host. ``names`` are the directories as given."""

    system: str
    workload: str
    phase: str
    source: Source
    points: tuple[Point, ...]
    squeezed: tuple[Squeezed, ...]
    names: tuple[str, ...]
    remarks: tuple[str, ...]
    host: Mapping[str, Any] = field(default_factory=dict)

    @property
    def closed(self) -> tuple[Point, ...]:
        """Points at the most that the system did: closed loops."""
        return tuple(one for one in self.points if one.rate_per_second is None)

    @property
    def loads(self) -> tuple[Point, ...]:
        """Points at a rate that was offered and served."""
        return tuple(
            one
            for one in self.points
            if one.rate_per_second is not None and one.throughput >= _SERVED * one.rate_per_second
        )


def read_measurements(paths: Sequence[Path], phase: str | None = None) -> Measurements:
    """Read directories that ``rackscope run`` and ``rackscope study`` left; ``phase`` where they have several.

    Raises RunDirectoryError for one that is neither or holds nothing that counts, UsageError where they are not of one
    system, workload and host, and where a phase must be named.
    """
    runs: list[tuple[str, Path]] = []
    studies: list[tuple[str, StudyRecord]] = []
    remarks: list[str] = []
    for path in paths:
        if not is_study_or_run(path, "Name directories that 'rackscope run' or 'rackscope study' left."):
            runs.append((str(path), path))
            continue
        record = read_study(path)
        if record.status != "complete":
            remarks.append(f"{path}: the study did not finish ({record.status_reason or record.status})")
        if record.kind == "pressure":
            studies.append((str(path), record))
        members = [one for one in record.members if not one.discarded and is_below(one.folder)]
        runs += [(str(path), path / MEMBERS / one.folder) for one in members]
        if not members:
            raise RunDirectoryError(f"{path} has no run that counts", "Do the study again.")
    once: dict[Path, tuple[str, Path]] = {}
    for name, path in runs:
        # Twice the same repetitions would be half as far from the truth as they are.
        if path.resolve() in once:
            remarks.append(f"{path} is named twice, and counts once")
        once.setdefault(path.resolve(), (name, path))
    runs = list(once.values())
    opened = [(name, RunDirectory.open(path)) for name, path in runs]
    for name, run in opened:
        # Of the tables, histograms are not what is read here.
        remarks += [f"{name}: {remark}" for remark in run.remarks if not remark.startswith("latency.p")]
        remarks += [f"{name}: {one.text}" for one in run.manifest.warnings if one.severity == "serious"]
    first = opened[0][1].manifest
    for name, run in opened[1:]:
        _require_same(opened[0][0], first, name, run.manifest)
    phases = _phases(run for _, run in opened)
    chosen = _choose_phase(phases, phase)
    points = [point for name, run in opened for point in _points(name, run, chosen)]
    remarks += [
        f"{one.run}: the load generator itself was the limit (idle {100 * (one.generator_idle or 0):.0f} %), so the "
        "system may do more than was measured"
        for one in points
        if one.generator_idle is not None and one.generator_idle < _BUSY_GENERATOR
    ]
    squeezed = _squeezed(studies, chosen)
    if not points:
        raise RunDirectoryError(f"{runs[0][1]} has no repetition of '{chosen}' that counts", "Run it again to the end.")
    return Measurements(
        first.system.name,
        first.workload.name,
        chosen,
        _source(first),
        tuple(points),
        squeezed,
        tuple(str(path) for path in paths),
        tuple(dict.fromkeys(remarks)),
        first.host,
    )


def _require_same(name: str, first: Manifest, other: str, second: Manifest) -> None:
    """Raises UsageError where two runs differ in what no model here goes over."""
    one, two = _identity(first), _identity(second)
    for key in sorted(one.keys() | two.keys()):
        if one.get(key) != two.get(key):
            raise UsageError(
                f"{name} and {other} differ in {key} ({one.get(key)} and {two.get(key)})",
                "A projection is of one system under one workload, measured on one host: name such runs.",
            )


def _identity(manifest: Manifest) -> dict[str, Any]:
    known = comparison_settings(manifest)
    left = ("system cores", "client cores", "loop", "rate", "seed", "kernel", "rackscope version", "connections")
    kept = {key: value for key, value in known.items() if key not in left and not key.startswith("knob ")}
    knobs = {
        f"knob {name}": knob.value
        for name, knob in manifest.system.knobs.items()
        if knob.source != "default" and name not in _FOLLOW_CORES
    }
    return kept | knobs


def _phases(runs: Iterable[RunDirectory]) -> list[str]:
    found: dict[str, None] = {}
    for run in runs:
        for part in run.manifest.phases:
            if part.kind == "measure":
                found[part.name] = None
            elif part.kind == "squeezed":
                found[part.name.partition(" under ")[0]] = None
    return list(found)


def _choose_phase(phases: Sequence[str], wanted: str | None) -> str:
    if not phases:
        raise RunDirectoryError("the runs have no measured phase", "Run the workload to the end.")
    if wanted is None:
        if len(phases) > 1:
            raise UsageError(f"the runs have several phases: {', '.join(phases)}", "Choose one with --phase.")
        return phases[0]
    if wanted not in phases:
        raise UsageError(f"the runs have no phase '{wanted}'", f"They have: {', '.join(phases)}.")
    return wanted


def _points(name: str, run: RunDirectory, phase: str) -> list[Point]:
    """One a load: repetitions at the same offered rate are together."""
    analysed = analysed_run(run)
    results, scope = results_with_energy(run)
    rows = [
        row
        for row in results.to_dicts()
        if row["kind"] == "measure"
        and row["phase"] == phase
        and row["discarded"] is None
        and (row["throughput_operations_per_second"] or 0) > 0
    ]
    groups: list[list[dict[str, Any]]] = []
    for row in sorted(rows, key=lambda one: one["offered_operations_per_second"] or 0.0):
        rate = row["offered_operations_per_second"] or 0.0
        last = (groups[-1][0]["offered_operations_per_second"] or 0.0) if groups else None
        if last is not None and abs(rate - last) <= _ALIKE * last:
            groups[-1].append(row)
        else:
            groups.append([row])
    return [_point(name, run.manifest, analysed, group, scope or "") for group in groups]


def _point(name: str, manifest: Manifest, run: Run, rows: Sequence[Mapping[str, Any]], scope: str) -> Point:
    squeezed = any(part.kind == "squeezed" for part in manifest.phases)
    origin = run.samples.origin_ns
    edges = [(row["start_ns"], row["end_ns"]) for row in rows if row["start_ns"] and row["end_ns"]]
    windows = tuple(((start - origin) / 1e9, (end - origin) / 1e9) for start, end in sorted(edges))
    operations = sum(row["operations"] or 0 for row in rows)
    offered = [row["offered_operations_per_second"] for row in rows if row["offered_operations_per_second"]]
    instructions = _growth(run, "instructions_per_second", windows)
    filled_bytes = _growth(run, "dram_read_bytes_per_second", windows)
    busy = _sum([row["system_cpu_seconds"] for row in rows])
    latency = manifest.ceilings.values.get("dram_latency_seconds")
    joules, seconds = _sum([row.get("energy_joules") for row in rows]), _sum([row["duration_seconds"] for row in rows])
    return Point(
        name,
        _usable_cores(manifest),
        math.fsum(offered) / len(offered) if offered else None,
        manifest.client.connections * manifest.client.pipeline,
        tuple(row["throughput_operations_per_second"] for row in rows),
        _median([row["response_mean_seconds"] for row in rows]),
        _median([row["response_p99_seconds"] for row in rows]),
        mean_frequency(run, windows) if windows else None,
        instructions / operations if instructions and operations else None,
        # If nothing overlaps, the cores wait a whole latency for each line; less is what overlaps.
        min(1.0, filled_bytes / CACHE_LINE_BYTES * latency / busy)
        if filled_bytes is not None and latency and busy
        else None,
        _median([row["system_resident_bytes"] for row in rows]),
        joules / seconds if joules and seconds else None,
        scope,
        min((one for row in rows if (one := row["generator_idle_ratio"]) is not None), default=None),
        squeezed,
        manifest.client.pipeline * manifest.client.multiget > 1,
    )


def _usable_cores(manifest: Manifest) -> int:
    cores = max(len(manifest.system.cores), 1)
    threads = manifest.system.knobs.get("threads")
    if threads is not None and threads.value.isdigit() and int(threads.value) > 0:
        return min(cores, int(threads.value))
    return cores


def _growth(run: Run, quantity: str, windows: Windows) -> float | None:
    """How far the system's own counter rose (the host's would count the client, too); ``None`` where it is not known
    or not to be trusted.
    """
    series = run.samples.find(quantity, scope="system")
    if series is None or not windows or run.distrust(*(split_column(column)[0] for column in series.columns)):
        return None
    return series.growth(windows)


def _median(values: Iterable[float | None]) -> float | None:
    known = [one for one in values if one is not None and one > 0]
    return median(known) if known else None


def _sum(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if any(one is None for one in known) else math.fsum(one for one in known if one is not None)


def _source(manifest: Manifest) -> Source:
    host = manifest.host
    processor = host.get("processor") if isinstance(host.get("processor"), dict) else {}
    assert isinstance(processor, dict)
    physical = processor.get("physical_cores")
    return Source(
        str(host.get("identity") or "unknown"),
        str(host.get("cpu_model") or ""),
        int(_plausible(host.get("online_cores")) or max(len(manifest.system.cores), 1)),
        physical if isinstance(physical, int) and physical > 0 else None,
        _plausible(host.get("memory_total_bytes")),
        _last_level_cache(processor.get("caches")),
        {
            name: value
            for name, value in manifest.ceilings.values.items()
            if name not in manifest.ceilings.untrusted and 0 < value < math.inf
        },
        manifest.ceilings.measured_at,
    )


def _plausible(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 < value < 1e24 else None


def _last_level_cache(caches: Any) -> float | None:
    """Bytes of all instances of the outermost data cache together."""
    data = [
        one
        for one in (caches if isinstance(caches, list) else ())
        if isinstance(one, dict) and one.get("kind") != "instruction" and _plausible(one.get("size_bytes"))
    ]
    outermost = max(data, key=lambda one: one.get("level") or 0, default=None)
    if outermost is None:
        return None
    return float(outermost["size_bytes"]) * (_plausible(outermost.get("instances")) or 1)


def _squeezed(studies: Sequence[tuple[str, StudyRecord]], phase: str) -> tuple[Squeezed, ...]:
    """The squeezes of the first pressure study that has the phase."""
    for name, record in studies:
        if record.result.get("limits"):
            raise UsageError(
                f"{name} was squeezed on a server made smaller by --limit", "Do the study without --limit."
            )
        try:
            phases = record.result.get("phases", [])
            found = next((one for one in phases if isinstance(one, dict) and one.get("phase") == phase), None)
            if found is not None:
                return tuple(one for part in found["resources"] if (one := _squeeze(part)) is not None)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RunDirectoryError(
                f"{name}/study.json is damaged: its result is not one of a pressure study ({error})",
                "Run 'rackscope study pressure' again.",
            ) from error
    return ()


def _squeeze(part: Mapping[str, Any]) -> Squeezed | None:
    """A squeeze with levels whose throughput is known; ``None`` of one that could not be made."""
    levels = []
    for level in part.get("levels") or []:
        left, ratio = level["left_fraction"], level["throughput_ratio"]
        values = [ratio.get(end) for end in ("estimate", "low", "high")]
        if left is None or not 0 < left < 0.98 or any(one is None or not 0 < one < math.inf for one in values):
            continue
        levels.append(SqueezedTo(float(left), *(float(one) for one in values)))
    if not levels:
        return None
    levels.sort(key=lambda level: -level.left)
    return Squeezed(str(part["resource"]), str(part["squeeze"]), tuple(levels))
