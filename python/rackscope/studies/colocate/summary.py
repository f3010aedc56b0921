"""From windows to workloads, measured sides of pairs, and predictions of each pair from the others."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackscope.analysis.elasticity import LevelEstimate
from rackscope.errors import RackscopeError
from rackscope.models.colocation import (
    ColocationModel,
    Demand,
    ResponsePoint,
    Sensitivity,
    Side,
    Workload,
    sensitivity,
    textbook,
)
from rackscope.models.colocation_validation import ColocationValidation, fitted_or_textbook, validate_colocation
from rackscope.studies.bench.figures import Figures, known_of
from rackscope.studies.colocate.measure import Outcome, Round, Squeezed
from rackscope.studies.colocate.plan import Plan, Spec

#: Which squeeze tells of a resource in which unit its use is counted.
_SQUEEZES = {
    "cpu": "cpu_share",
    "disk": "disk_bandwidth",
    "dram_bandwidth": "dram_bandwidth",
    "last_level_cache": "last_level_cache",
}
#: Uses that windows do not show.
_UNSEEN = {
    "dram_bandwidth": "how much of it a workload uses is not measured",
    "last_level_cache": "how much of it a workload fills is not measured",
}
#: A load generator that had less than this of its time left may have been the limit.
_LEAST_IDLE = 0.05
#: So may generators that together took more than this of their cores: rackscope itself needs some of these, too.
_MOST_CLIENTS = 0.85
#: What all sides together say of the noise of one window counts as so many values of each.
_BORROWED = 4
#: Spread of a logarithm of a ratio from a single round, while no other is known.
_UNKNOWN_SPREAD = 0.1


@dataclass(frozen=True)
class Measured:
    """A side of a pair as it was measured: logarithms of what was kept, one a round."""

    side: Side
    values: tuple[float, ...]
    #: The load generators had no time left: what was kept says nothing of the workloads.
    crowded: bool


@dataclass(frozen=True)
class Summary:
    """``models`` are fitted to all measured pairs, ``validations`` leave one out at a time, by quantity.

    ``plain`` are validations of the textbook alone. ``capacities`` are what there is for both of a pair.
    """

    workloads: Mapping[str, Workload]
    capacities: Mapping[str, float]
    measured: tuple[Measured, ...]
    models: dict[str, ColocationModel]
    validations: dict[str, ColocationValidation]
    plain: dict[str, tuple[float, ...]]


def summarise(plan: Plan, outcome: Outcome, *, cores: int) -> Summary:
    """``cores`` are those that all workloads share."""
    capacities = {"cpu": float(cores)}
    if disks := [
        one.capacities["disk_bandwidth"] for one in outcome.squeezed.values() if "disk_bandwidth" in one.capacities
    ]:
        capacities["disk"] = max(disks)
    workloads = {
        name: workload_of(
            plan.workload(name),
            figures,
            outcome.squeezed.get(name),
            capacities,
            use_is_known=name not in outcome.hindered,
        )
        for name, figures in outcome.alone.items()
        if figures
    }
    measured = _measured(outcome.rounds, workloads, outcome.client_cores)
    summary = Summary(workloads, capacities, measured, {}, {}, {})
    for quantity in ("throughput", "p99"):
        usable = [one.side for one in measured if not one.crowded and one.side.workload.sensitivities]
        sides = [side for side in usable if side.workload.quantity == quantity]
        if sides:
            summary.models[quantity] = fitted_or_textbook(sides, capacities)
            summary.validations[quantity] = validate_colocation(sides, capacities, plan.bound)
            summary.plain[quantity] = _errors(textbook(capacities), sides)
    return summary


def _errors(model: ColocationModel, sides: Sequence[Side]) -> tuple[float, ...]:
    errors = []
    for side in sides:
        try:
            kept = model.predict(side.workload, side.neighbour).kept.value
        except RackscopeError:
            continue
        errors.append(abs(kept / math.exp(side.log_kept) - 1))
    return tuple(errors)


def workload_of(
    spec: Spec,
    alone: Sequence[Figures],
    squeezed: Squeezed | None,
    capacities: Mapping[str, float],
    *,
    use_is_known: bool = True,
) -> Workload:
    """A workload from its windows alone and its squeezes.

    Without ``use_is_known`` it might use more if it could: what it can do without is then left to the squeezes.
    """
    demands = {}
    for resource, name in (("cpu", "cores"), ("disk", "disk_bytes_per_second")):
        known = known_of(alone, name)
        if known and resource in capacities:
            error = statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else 0.0
            demands[resource] = Demand(statistics.fmean(known), error)
    sensitivities: dict[str, Sensitivity] = {}
    unknown = dict(_UNSEEN)
    for resource, squeeze in _SQUEEZES.items():
        if squeezed is None:
            unknown.setdefault(resource, "it was not squeezed")
        elif squeeze in squeezed.refused:
            unknown[resource] = squeezed.refused[squeeze]
        elif squeeze in squeezed.capacities:
            # Otherwise it was not squeezed, as the workload hardly uses it.
            capacity = squeezed.capacities[squeeze]
            use = demands[resource].amount / capacity if resource in demands and use_is_known else None
            levels = [_point(one, spec.quantity, use) for one in squeezed.estimates if one.squeeze == squeeze]
            try:
                points = [point for point in levels if point is not None]
                sensitivities[resource] = sensitivity(resource, capacity, points, use)
            except RackscopeError as error:
                unknown[resource] = error.what
    unknown = {name: why for name, why in unknown.items() if name not in sensitivities}
    return Workload(spec.name, sensitivities, demands, spec.quantity, unknown)


def _point(level: LevelEstimate, quantity: str, use: float | None) -> ResponsePoint | None:
    """``use`` is the part that it uses when it has all. Throughput cannot lose more than is missing of that."""
    left = level.achieved_fraction
    if left is None or not 0 < left < 1:
        return None
    if quantity == "throughput":
        if not level.values:
            return None
        error = level.standard_error if level.standard_error is not None else _UNKNOWN_SPREAD
        missing = math.log(min(1.0, left / min(use or 1.0, 1.0)))
        return ResponsePoint(left, max(level.log_ratio.estimate, missing), error)
    if not level.p99_values:
        return None
    count = len(level.p99_values)
    spread = statistics.stdev(level.p99_values) if count > 1 else _UNKNOWN_SPREAD
    return ResponsePoint(left, -statistics.fmean(level.p99_values), spread / math.sqrt(count))


def _measured(
    rounds: Mapping[tuple[str, str], Sequence[Round]], workloads: Mapping[str, Workload], client_cores: int | None
) -> tuple[Measured, ...]:
    found: list[tuple[Workload, Workload, tuple[float, ...], bool]] = []
    for (first, second), all_of_pair in rounds.items():
        crowded = _crowded(all_of_pair, client_cores)
        sides = {
            (first, second): [(one.first_alone, one.first) for one in all_of_pair],
            (second, first): [(one.second_alone, one.second) for one in all_of_pair],
        }
        for (name, other), windows in sides.items():
            quantity = workloads[name].quantity
            kept = tuple(value for both in windows if (value := _log_kept(quantity, *both)) is not None)
            if kept:
                found.append((workloads[name], workloads[other], kept, crowded))
    pooled = _pooled_variance([values for _, _, values, _ in found])
    return tuple(
        Measured(
            Side(workload, neighbour, statistics.fmean(values), math.sqrt(_variance(values, pooled) / len(values))),
            values,
            crowded,
        )
        for workload, neighbour, values, crowded in found
    )


def _log_kept(quantity: str, alone: Figures, beside: Figures) -> float | None:
    if quantity == "throughput":
        return math.log(beside.rate / alone.rate) if beside.rate > 0 and alone.rate > 0 else None
    if not alone.p99_seconds or not beside.p99_seconds:
        return None
    return math.log(alone.p99_seconds / beside.p99_seconds)


def _crowded(rounds: Sequence[Round], client_cores: int | None) -> bool:
    """Whether the load generators may have been what limited: one without a pause, or no core left for both."""
    idle = [one.idle_ratio for each in rounds for one in (each.first, each.second) if one.idle_ratio is not None]
    if idle and statistics.median(idle) < _LEAST_IDLE:
        return True
    if not client_cores:
        return False
    taken = [
        each.first.client_cores + each.second.client_cores
        for each in rounds
        if each.first.client_cores is not None and each.second.client_cores is not None
    ]
    return bool(taken) and statistics.median(taken) > _MOST_CLIENTS * client_cores


def _pooled_variance(groups: Sequence[Sequence[float]]) -> float:
    squares = sum(statistics.variance(values) * (len(values) - 1) for values in groups if len(values) > 1)
    degrees = sum(len(values) - 1 for values in groups)
    return squares / degrees if degrees and squares > 0 else _UNKNOWN_SPREAD**2


def _variance(values: Sequence[float], pooled: float) -> float:
    own = len(values) - 1
    squares = statistics.variance(values) * own if own else 0.0
    return (squares + _BORROWED * pooled) / (own + _BORROWED)
