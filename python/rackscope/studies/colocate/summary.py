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
    Work,
    sensitivity,
    textbook,
)
from rackscope.models.colocation_validation import ColocationValidation, fitted_or_textbook, validate_colocation
from rackscope.studies.colocate.measure import Figures, Outcome, Round, Squeezed
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

    works: Mapping[str, Work]
    capacities: Mapping[str, float]
    measured: tuple[Measured, ...]
    models: Mapping[str, ColocationModel]
    validations: Mapping[str, ColocationValidation]
    plain: Mapping[str, tuple[float, ...]]


def summarise(plan: Plan, outcome: Outcome, *, cores: int) -> Summary:
    """``cores`` are those that all workloads share."""
    capacities = {"cpu": float(cores)}
    for one in outcome.squeezed.values():
        if "disk_bandwidth" in one.capacities:
            capacities["disk"] = max(capacities.get("disk", 0.0), one.capacities["disk_bandwidth"][0])
    works = {
        name: work_of(
            plan.workload(name),
            figures,
            outcome.squeezed.get(name),
            capacities,
            use_is_known=name not in outcome.hindered,
        )
        for name, figures in outcome.alone.items()
        if figures
    }
    measured = _measured(outcome.rounds, works, outcome.client_cores)
    models: dict[str, ColocationModel] = {}
    validations: dict[str, ColocationValidation] = {}
    plain: dict[str, tuple[float, ...]] = {}
    for quantity in ("throughput", "p99"):
        sides = [
            one.side
            for one in measured
            if one.side.work.quantity == quantity and not one.crowded and one.side.work.sensitivities
        ]
        if not sides:
            continue
        models[quantity] = fitted_or_textbook(sides, capacities)
        validations[quantity] = validate_colocation(sides, capacities, plan.bound)
        plain[quantity] = _errors(textbook(capacities), sides)
    return Summary(works, capacities, measured, models, validations, plain)


def _errors(model: ColocationModel, sides: Sequence[Side]) -> tuple[float, ...]:
    errors = []
    for side in sides:
        try:
            kept = model.predict(side.work, side.neighbour).kept.value
        except RackscopeError:
            continue
        errors.append(abs(kept / math.exp(side.log_kept) - 1))
    return tuple(errors)


def work_of(
    spec: Spec,
    alone: Sequence[Figures],
    squeezed: Squeezed | None,
    capacities: Mapping[str, float],
    *,
    use_is_known: bool = True,
) -> Work:
    """A workload from its windows alone and its squeezes.

    Without ``use_is_known`` it might use more if it could: what it can do without is then left to the squeezes.
    """
    demands = {}
    for resource, values in (
        ("cpu", [one.cores for one in alone]),
        ("disk", [one.disk_bytes_per_second for one in alone]),
    ):
        known = [value for value in values if value is not None]
        if known and resource in capacities:
            error = statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else 0.0
            demands[resource] = Demand(statistics.fmean(known), error)
    sensitivities: dict[str, Sensitivity] = {}
    unknown = dict(_UNSEEN)
    for resource, squeeze in _SQUEEZES.items():
        if squeezed is None:
            unknown.setdefault(resource, "it was not squeezed")
            continue
        if squeeze in squeezed.refused:
            unknown[resource] = squeezed.refused[squeeze][0]
            continue
        if squeeze not in squeezed.capacities:
            # Not squeezed, as the workload hardly uses it.
            continue
        levels = [one for one in squeezed.estimates if one.squeeze == squeeze]
        capacity = squeezed.capacities[squeeze][0]
        use = demands[resource].amount / capacity if resource in demands and use_is_known else None
        try:
            sensitivities[resource] = sensitivity(
                resource,
                capacity,
                [point for one in levels if (point := _point(one, spec.quantity, use))],
                use,
            )
        except RackscopeError as error:
            unknown[resource] = error.what
    return Work(
        spec.name,
        sensitivities,
        demands,
        "throughput" if spec.quantity == "throughput" else "p99",
        {name: why for name, why in unknown.items() if name not in sensitivities},
    )


def _point(level: LevelEstimate, quantity: str, use: float | None) -> ResponsePoint | None:
    """``use`` is the part that the work uses when it has all. Throughput cannot lose more than is missing of that."""
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
    rounds: Mapping[tuple[str, str], Sequence[Round]], works: Mapping[str, Work], client_cores: int | None
) -> tuple[Measured, ...]:
    found: list[tuple[Work, Work, tuple[float, ...], bool]] = []
    for (first, second), all_of_pair in rounds.items():
        crowded = _crowded(all_of_pair, client_cores)
        for name, other, side in ((first, second, 0), (second, first, 1)):
            work = works[name]
            values = tuple(
                value for one in all_of_pair if (value := _log_kept(work.quantity, *_of(one, side))) is not None
            )
            if values:
                found.append((work, works[other], values, crowded))
    pooled = _pooled_variance([values for _, _, values, _ in found])
    return tuple(
        Measured(
            Side(work, neighbour, statistics.fmean(values), math.sqrt(_variance(values, pooled) / len(values))),
            values,
            crowded,
        )
        for work, neighbour, values, crowded in found
    )


def _of(one: Round, side: int) -> tuple[Figures, Figures]:
    return (one.first_alone, one.first) if side == 0 else (one.second_alone, one.second)


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
