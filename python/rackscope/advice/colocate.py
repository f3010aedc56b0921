"""Which of several measured workloads fit on the same cores, with the predicted slowdown of each side.

Directories of ``study colocate`` bring workloads and measured pairs, those of ``study pressure`` workloads that were
squeezed, those of runs only what a workload uses: how it suffers itself is then not known, and its pairs are refused.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from rackscope.advice.cost import Advice
from rackscope.analysis.intervals import mean_error
from rackscope.analysis.wording import listing, percent
from rackscope.errors import RackscopeError, RunDirectoryError
from rackscope.models.colocation import ColocationModel, Demand, ResponsePoint, Side, Slowdown, Workload, sensitivity
from rackscope.models.colocation_record import MalformedWorkloadError, sides_from_list, workload_from_dict
from rackscope.models.colocation_validation import fitted_or_textbook
from rackscope.runs.directory import RunDirectory
from rackscope.runs.study import MEMBERS, STUDY, StudyRecord, is_study_or_run, read_study

_STUDIES = ("colocate", "pressure")
_NAME = "Name directories that 'rackscope study colocate', 'rackscope study pressure' or 'rackscope run' left."
#: Squeezes whose resource's use a run counts in the same unit.
_COUNTED = {"cpu_share": "cpu"}
#: An interval of 95 % is so many standard errors wide, to either side; from few blocks it is more, so this is cautious.
_ERRORS_IN_INTERVAL = 1.96
#: The least CPU time that a neighbour is worth being held to, and how finely that is sought.
_LEAST_CORES = 0.01
_STEPS = 200


@dataclass(frozen=True)
class Source:
    """What a directory says. ``remarks`` are what a reader must know of it."""

    path: Path
    host: str
    cores: int
    workloads: tuple[Workload, ...]
    sides: tuple[Side, ...] = ()
    capacities: Mapping[str, float] | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pair:
    """Two workloads on the same cores. ``measured`` are the shares lost where the pair was measured itself."""

    first: Slowdown
    second: Slowdown
    fits: bool
    measured: tuple[float | None, float | None]
    advice: Advice


@dataclass(frozen=True)
class Colocation:
    """The pairs, those that fit first. ``refused`` says of others why nothing can be said."""

    cores: int
    bound: float
    pairs: tuple[Pair, ...]
    refused: tuple[str, ...]
    remarks: tuple[str, ...]


def advise_colocation(paths: Sequence[Path], bound: float = 0.05) -> Colocation:
    """Say of every pair of workloads in the directories whether both lose less than ``bound``.

    Raises RunDirectoryError for a directory that says nothing of workloads, and RackscopeError where those of several
    hosts or core counts are mixed, fewer than two workloads are there, or nothing can be said of any pair.
    """
    sources = [read_source(path) for path in dict.fromkeys(paths)]
    cores = _the_same(sources)
    workloads = _named(sources)
    if len(workloads) < 2:
        raise RackscopeError(
            f"there is no second workload beside {listing([workload.name for workload, _ in workloads]) or 'nothing'}",
            "Name directories of two workloads or more.",
        )
    capacities: dict[str, float] = {"cpu": float(cores)}
    for source in sources:
        capacities |= dict(source.capacities or {})
    by_name = {workload.name: workload for workload, _ in workloads}
    # A workload that is in two studies goes by another name there; its pairs teach all the same.
    sides = [side for source in sources for side in source.sides if side.workload.sensitivities]
    models = {
        quantity: fitted_or_textbook([side for side in sides if side.workload.quantity == quantity], capacities)
        for quantity in ("throughput", "p99")
    }
    measured = {(side.workload.name, side.neighbour.name): -math.expm1(side.log_kept) for side in sides}
    where = {workload.name: source for workload, source in workloads}
    pairs, refused = [], []
    for first, second in itertools.combinations(by_name, 2):
        try:
            pairs.append(_pair(models, by_name[first], by_name[second], bound, where, measured))
        except RackscopeError as error:
            refused.append(f"{first} and {second}: {error.what}")
    if not pairs:
        raise RackscopeError(
            f"no pair can be compared: {refused[0]}",
            "Squeeze both: 'rackscope study pressure' of each, or 'rackscope study colocate' of all.",
        )
    pairs.sort(key=lambda pair: (not pair.fits, max(pair.first.value, pair.second.value)))
    remarks = [remark for source in sources for remark in source.remarks]
    return Colocation(cores, bound, tuple(pairs), tuple(refused), tuple(remarks))


def read_source(path: Path) -> Source:
    """What a directory says of workloads. Raises RunDirectoryError."""
    if not is_study_or_run(path, _NAME):
        return _of_run(path)
    record = read_study(path)
    if record.kind not in _STUDIES:
        raise RunDirectoryError(f"{path} is a study of another kind ({record.kind})", _NAME)
    try:
        source = _of_colocate(path, record) if record.kind == "colocate" else _of_pressure(path, record)
    except MalformedWorkloadError as error:
        raise RunDirectoryError(f"{path / STUDY} is damaged: {error.what}", "Run the study again.") from error
    if record.status == "complete":
        return source
    reason = record.status_reason or record.status
    return replace(source, remarks=(*source.remarks, f"{path}: the study did not finish ({reason})"))


def _of_colocate(path: Path, record: StudyRecord) -> Source:
    result = record.result
    workloads = [
        workload_from_dict(one, f"result.workloads.{at}")
        for at, one in enumerate(result.get("workloads") or result.get("works") or [])
    ]
    if not workloads:
        raise RunDirectoryError(
            f"{path} measured no workload: {record.status_reason or 'it ended too early'}", "Run the study again."
        )
    told = [one for one in result.get("sides") or [] if not (isinstance(one, Mapping) and one.get("crowded"))]
    capacities = result.get("capacities")
    if not isinstance(capacities, Mapping) or not all(isinstance(one, int | float) for one in capacities.values()):
        raise MalformedWorkloadError("result.capacities are not numbers above zero", "Measure it again.")
    return Source(
        path,
        str(record.host.get("identity")),
        _whole(result.get("cores")),
        tuple(workloads),
        tuple(sides_from_list(told, workloads)),
        {str(name): float(one) for name, one in capacities.items()},
    )


def _of_pressure(path: Path, record: StudyRecord) -> Source:
    result = record.result
    phases = [phase for phase in result.get("phases") or [] if isinstance(phase, Mapping)]
    if not phases or not record.members:
        raise RunDirectoryError(
            f"{path} has no elasticities: {record.status_reason or 'no phase was measured'}",
            "Run 'rackscope study pressure' again.",
        )
    run = RunDirectory.open(path / MEMBERS / record.members[0].folder)
    workloads = []
    for phase in phases:
        workload = _measured(run, str(phase.get("phase")), several=len(phases) > 1)
        workloads.append(
            replace(workload, sensitivities=_responses(phase, result, run, workload), unknown=_refusals(phase))
        )
    return Source(path, str(record.host.get("identity")), len(run.manifest.system.cores), tuple(workloads))


def _responses(
    phase: Mapping[str, Any], result: Mapping[str, Any], run: RunDirectory, workload: Workload
) -> dict[str, Any]:
    responses = {}
    for found in phase.get("resources") or []:
        squeeze = found.get("squeeze") if isinstance(found, Mapping) else None
        resource = _COUNTED.get(str(squeeze))
        if resource is None or not found.get("levels"):
            continue
        capacity = _capacity(result, str(squeeze), len(run.manifest.system.cores))
        demand = workload.demands.get(resource)
        try:
            responses[resource] = sensitivity(
                resource,
                capacity,
                [point for level in found["levels"] if (point := _point(level)) is not None],
                None if demand is None else demand.amount / capacity,
            )
        except RackscopeError:
            continue
    return responses


def _point(level: Any) -> ResponsePoint | None:
    """A level of a squeeze, whose interval tells the error."""
    if not isinstance(level, Mapping) or not isinstance(level.get("throughput_ratio"), Mapping):
        return None
    left, ratio = level.get("left_fraction"), level["throughput_ratio"]
    ends = [ratio.get(name) for name in ("estimate", "low", "high")]
    if not isinstance(left, int | float) or not all(isinstance(end, int | float) and end > 0 for end in ends):
        return None
    estimate, low, high = (math.log(end) for end in ends)
    return ResponsePoint(float(left), estimate, (high - low) / 2 / _ERRORS_IN_INTERVAL)


def _capacity(result: Mapping[str, Any], squeeze: str, cores: int) -> float:
    """What fractions of the squeeze are of; from before it was kept, the limit of the study or the cores."""
    kept = (result.get("capacities") or {}).get(squeeze)
    if isinstance(kept, Mapping) and isinstance(kept.get("value"), int | float):
        return float(kept["value"])
    limit = (result.get("limits") or {}).get("cpu_cores")
    return min(float(cores), float(limit)) if isinstance(limit, int | float) else float(cores)


def _refusals(phase: Mapping[str, Any]) -> dict[str, str]:
    return {
        str(found.get("resource")): str(found.get("sentence") or "it could not be squeezed")
        for found in phase.get("resources") or []
        if isinstance(found, Mapping) and found.get("status") == "not_squeezable"
    }


def _of_run(path: Path) -> Source:
    run = RunDirectory.open(path)
    names = list(dict.fromkeys(part.name for part in run.manifest.phases if part.kind == "measure"))
    if not names:
        raise RunDirectoryError(f"{path} measured nothing", "Name a run whose measured phase was completed.")
    workloads = tuple(_measured(run, name, several=len(names) > 1) for name in names)
    remarks = tuple(f"{path}: {remark}" for remark in run.remarks)
    return Source(
        path, str(run.manifest.host.get("identity")), len(run.manifest.system.cores), workloads, remarks=remarks
    )


def _measured(run: RunDirectory, phase: str, *, several: bool) -> Workload:
    """A phase of a run as a workload: what it used while it was measured, and nothing of how it suffers."""
    manifest = run.manifest
    name = f"{manifest.system.name} under {manifest.workload.name}" + (f", {phase}" if several else "")
    results = run.results()
    demands: dict[str, Demand] = {}
    if results.height:
        rows = results.filter(
            (pl.col("phase") == phase) & (pl.col("kind") == "measure") & pl.col("discarded").is_null()
        )
        used = (rows["system_cpu_seconds"] / rows["duration_seconds"]).drop_nulls().to_list() if rows.height else []
        if used:
            demands["cpu"] = Demand(fmean(used), mean_error(used) if len(used) > 1 else 0.0)
    return Workload(name, {}, demands)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise MalformedWorkloadError("result.cores is not a number of cores", "Measure it again.")
    return value


def _the_same(sources: Sequence[Source]) -> int:
    """The cores that all were measured on. Raises RackscopeError where hosts or numbers of cores differ."""
    first = sources[0]
    for other in sources[1:]:
        if other.host != first.host:
            raise RackscopeError(
                f"{first.path} and {other.path} were measured on different hosts",
                "Measure both on the host that they will share.",
            )
        if other.cores != first.cores:
            raise RackscopeError(
                f"{first.path} was measured on {first.cores} cores, {other.path} on {other.cores}",
                "Measure both on the cores that they will share: --cores.",
            )
    return first.cores


def _named(sources: Sequence[Source]) -> list[tuple[Workload, Source]]:
    """All workloads, with their folder where names repeat."""
    counts = Counter(workload.name for source in sources for workload in source.workloads)
    return [
        (
            replace(workload, name=f"{workload.name} ({source.path.name})") if counts[workload.name] > 1 else workload,
            source,
        )
        for source in sources
        for workload in source.workloads
    ]


def _pair(
    models: Mapping[str, ColocationModel],
    one: Workload,
    other: Workload,
    bound: float,
    where: Mapping[str, Source],
    measured: Mapping[tuple[str, str], float],
) -> Pair:
    slowdowns = (models[one.quantity].predict(one, other), models[other.quantity].predict(other, one))
    lost = (measured.get((one.name, other.name)), measured.get((other.name, one.name)))
    predicted = all(slowdown.is_safe(bound) for slowdown in slowdowns)
    # What the pair was measured to lose goes before what a model of all pairs says of it.
    refuted = predicted and any(seen is not None and seen >= bound for seen in lost)
    fits = predicted and not refuted
    words = " and ".join(
        _loss(slowdown, workload, seen) for slowdown, workload, seen in zip(slowdowns, (one, other), lost, strict=True)
    )
    verdict = "fit" if fits else "do not fit" if any(s.low >= bound for s in slowdowns) else "are not shown to fit"
    names = list(dict.fromkeys(str(where[workload.name].path) for workload in (one, other)))
    unknown = list(dict.fromkeys(name.replace("_", " ") for s in slowdowns for name in s.unknown))
    stands_on = f"{listing(names)}; {slowdowns[0].kept.basis}"
    if slowdowns[1].kept.basis != slowdowns[0].kept.basis:
        stands_on += f"; of {other.name}: {slowdowns[1].kept.basis}"
    if unknown:
        stands_on += f"; not known: {listing(unknown)}"
    advice = Advice(
        f"{one.name} and {other.name} {verdict} on the same cores: {words}.",
        stands_on,
        "It was measured to lose more than the model says: another measurement may show which is right."
        if refuted
        else _changes(models, one, other, bound, fits=fits),
    )
    return Pair(*slowdowns, fits, lost, advice)


def _loss(slowdown: Slowdown, workload: Workload, measured: float | None) -> str:
    seen = "" if measured is None else f", measured {_signed(_told(workload, measured))}"
    value, low, high = (_signed(_told(workload, one)) for one in (slowdown.value, slowdown.low, slowdown.high))
    verb = f"{workload.name} loses {value} of its throughput"
    if workload.quantity == "p99":
        verb = f"the p99 of {workload.name} rises by {value}"
    return f"{verb} (90 %: {low} to {high}{seen})"


def _told(workload: Workload, lost: float) -> float:
    """A loss as it is told: that of p99 is how much it rises."""
    return lost if workload.quantity == "throughput" else 1 / max(1 - lost, 1e-9) - 1


def _signed(share: float) -> str:
    return percent(share) if abs(share) >= 0.0005 else "0 %"


def _changes(models: Mapping[str, ColocationModel], one: Workload, other: Workload, bound: float, *, fits: bool) -> str:
    """What it takes of the neighbour's CPU time for the response to be another."""
    held, hopeless = [], []
    for workload, neighbour in ((one, other), (other, one)):
        model = models[workload.quantity]
        demand = neighbour.demands.get("cpu")
        if demand is None or "cpu" not in workload.sensitivities:
            continue
        if model.predict(workload, neighbour).is_safe(bound) != fits:
            continue
        edge = _edge(model, workload, neighbour, bound)
        if fits and edge is not None and edge > demand.amount:
            held.append(f"{neighbour.name} uses more than {edge:.2f} cores (now {demand.amount:.2f})")
        elif not fits and edge is not None and edge >= _LEAST_CORES:
            held.append(f"{neighbour.name} is held to {edge:.2f} cores (now {demand.amount:.2f})")
        elif not fits:
            hopeless.append(workload.name)
    if fits:
        return f"It changes if {' or '.join(held)}." if held else "More CPU time of either alone does not change it."
    if hopeless or not held:
        whose = f"of {listing(hopeless)} " if hopeless else ""
        return (
            f"The interval {whose}is too wide for any limit of CPU time to help: measure more pairs, on a quiet host."
        )
    return f"It would fit if {listing(held)}."


def _edge(model: ColocationModel, workload: Workload, neighbour: Workload, bound: float) -> float | None:
    """The most CPU time of the neighbour beside which the workload is safe; ``None`` where it is whatever that is."""
    capacity = model.capacities["cpu"]
    edge = 0.0
    for step in range(1, _STEPS + 1):
        cores = capacity * step / _STEPS
        demands = {**neighbour.demands, "cpu": Demand(cores, 0.0)}
        if not model.predict(workload, replace(neighbour, demands=demands)).is_safe(bound):
            return edge
        edge = cores
    return None
