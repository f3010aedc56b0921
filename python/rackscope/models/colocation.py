"""Slowdown of two workloads on one server, from how sensitive each is and how much the other takes.

Sensitivity is a workload's response to squeezes: the logarithm of the throughput it keeps over the part of a resource
that is left. Pressure is what a neighbour uses of the same resource. That the first of one workload meets the second of
the other is the idea of Bubble-Up (Mars et al. 2011), and that the products add up over resources that of SMiTe (Zhang
et al. 2014, equation 3); Awasthi 2015 (section 6) asks for it from pressure points.

What a neighbour leaves is by the textbook: CPU time is shared evenly, and what one does not want the other gets;
bandwidth, disks, links and caches are shared in proportion to what each asks for once both ask for more than there is;
memory that is used is gone. Two costs have no squeeze: what a workload's CPU time is worth less when another ran on the
core in between, and how long one that hardly needs CPU waits for it. These, and how far the textbook is off, are fitted
to measured pairs where there are any, with priors: three pairs move little and twenty much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import scipy

from rackscope.analysis.intervals import student_quantile
from rackscope.errors import RackscopeError
from rackscope.models.estimates import EXTRAPOLATED, LEVEL, Prediction
from rackscope.models.uncertain import Array

Rule = Literal["even", "proportional", "reserved"]
#: How a resource is shared, by the textbook.
RULES: Mapping[str, Rule] = {
    "cpu": "even",
    "dram_bandwidth": "proportional",
    "last_level_cache": "proportional",
    "disk": "proportional",
    "network": "proportional",
    "dram_capacity": "reserved",
}
#: What can be left at least: a logarithm needs something.
_LEAST_LEFT = 0.02
#: A loss this small (logarithm) above what a workload uses is noise, or its use is not as even as it looks.
_SMALL_LOSS = 0.03
#: What is known before any pair: the textbook is right within 20 %, a neighbour on the core all the time costs up to
#: about a tenth, and waiting for it about as much. Our choice; pairs overrule it.
_TAKEN_DEVIATION = 0.2
_CORE_DEVIATION = 0.1
_WAITING_DEVIATION = 0.1
#: Scatter of single pairs around the form, as a standard deviation of the logarithm, while no pair is known.
_FORM_DEVIATION, _FORM_DEGREES = 0.06, 4.0
#: What a fit starts from, and what that is worth in measured sides: they soon know better.
_FITTED_DEVIATION, _FITTED_DEGREES = 0.04, 1.0
#: The form errs less where a neighbour takes little: its scatter is this much of the whole with none to speak of, and
#: all of it where half of a resource is taken. Our choice.
_LEAST_SCATTER = 0.3
_ROUNDS = 12
#: Of the fit's squares and coefficients: far below what noise leaves of them.
_TOLERANCE = 1e-5
#: The slope of a response is taken over this part of what is left.
_STEP = 0.02
#: Pairs of workloads that a fit needs at least.
FEWEST_PAIRS = 3


@dataclass(frozen=True)
class ResponsePoint:
    """``left`` of a resource (0 to 1) and the logarithm of what is kept then, with its standard error."""

    left: float
    log_kept: float
    error: float


@dataclass(frozen=True)
class Sensitivity:
    """How a workload responds when part of a resource is taken. ``capacity`` is what the parts are of, in base units.

    ``points`` lie apart, the mildest first, and never rise as less is left; nothing is lost where all is left.
    ``use`` is the part of the capacity that the workload uses when it has all: more than that cannot be missed.
    """

    resource: str
    capacity: float
    points: tuple[ResponsePoint, ...]
    use: float | None = None

    def log_kept(self, left: float) -> float:
        """The logarithm of what is kept. Below the deepest squeeze the last slope goes on."""
        knots = self._knots
        place = math.log(min(max(left, _LEAST_LEFT), 1.0))
        for (x1, y1), (x2, y2) in pairwise(knots):
            if place >= x2:
                return y1 + (y2 - y1) * (x1 - place) / (x1 - x2)
        (x1, y1), (x2, y2) = knots[-2:]
        return y2 + (y2 - y1) / (x1 - x2) * (x2 - place)

    def error(self, left: float) -> float:
        """Standard error of ``log_kept``, in proportion to the loss's share beyond the points."""
        if left >= 1 or not self.points:
            return 0.0
        deepest = self.points[-1]
        place, end = math.log(max(left, _LEAST_LEFT)), math.log(deepest.left)
        worst = max(point.error for point in self.points)
        return worst * max(1.0, place / end) if self.log_kept(left) < 0 else 0.0

    def elasticity(self, left: float) -> float:
        """d ln(kept) / d ln(left) right below ``left``, from 0 to 1."""
        less = left * (1 - _STEP)
        slope = (self.log_kept(left) - self.log_kept(less)) / -math.log1p(-_STEP)
        return min(max(slope, 0.0), 1.0)

    def is_beyond(self, left: float) -> bool:
        """Whether so little was never left when it was squeezed, and it matters."""
        return left < self.points[-1].left * 0.98 and self.log_kept(left) < 0

    @cached_property
    def _knots(self) -> list[tuple[float, float]]:
        knots = [(0.0, 0.0)]
        known = [(math.log(point.left), point.log_kept) for point in self.points]
        if self.use is not None and 0 < self.use < 1:
            enough = math.log(max(self.use, _LEAST_LEFT))
            # What a workload does not use it cannot miss, unless the squeezes showed that it does.
            if not any(x >= enough and y < -_SMALL_LOSS for x, y in known):
                known = [(x, y) for x, y in known if x < enough - 1e-9]
                knots.append((enough, 0.0))
                if not known:
                    # Never squeezed below its use: what is missing then is missing, by definition of a limit.
                    known = [(enough - 1.0, -1.0)]
        return knots + known


@dataclass(frozen=True)
class Demand:
    """What a workload uses of a resource when it is alone, in the resource's base units, with its standard error."""

    amount: float
    error: float = 0.0


@dataclass(frozen=True)
class Workload:
    """One side of a pair. ``quantity`` is what its neighbour may spoil.

    ``unknown`` says of resources why nothing is known of the workload's sensitivity to them, or of its use.
    """

    name: str
    sensitivities: Mapping[str, Sensitivity]
    demands: Mapping[str, Demand]
    quantity: Literal["throughput", "p99"] = "throughput"
    unknown: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Share:
    """What a neighbour leaves of one resource, and what it takes; parts of the host's."""

    resource: str
    left: float
    taken: float
    log_kept: float
    elasticity: float


@dataclass(frozen=True)
class Side:
    """A measured side of a pair: the logarithm of what ``workload`` kept beside ``neighbour``, with its error."""

    workload: Workload
    neighbour: Workload
    log_kept: float
    error: float

    @property
    def pair(self) -> str:
        """The same for both sides."""
        return " + ".join(sorted((self.workload.name, self.neighbour.name)))


@dataclass(frozen=True)
class Slowdown:
    """What ``workload`` is predicted to lose beside ``neighbour``: a share from 0 to 1, with its 90 % interval.

    ``kept`` is the same the other way round, the throughput beside the neighbour over that alone (for p99: p99 alone
    over that beside it), and how it was obtained. ``shares`` are what it stands on.
    """

    workload: str
    neighbour: str
    kept: Prediction
    shares: tuple[Share, ...]
    unknown: Mapping[str, str]

    @property
    def value(self) -> float:
        """Lost share; below zero for a gain."""
        return 1 - self.kept.value

    @property
    def low(self) -> float:
        return 1 - self.kept.high

    @property
    def high(self) -> float:
        """Upper end: 95 % of measurements should be below."""
        return 1 - self.kept.low

    def is_safe(self, bound: float) -> bool:
        return self.high < bound


@dataclass(frozen=True)
class ColocationModel:
    """``capacities`` are what the host has of each resource for both together, in base units.

    ``taken`` multiplies what a neighbour takes by the textbook (1), by resource; ``core_cost`` is the logarithm that
    CPU time loses in worth with a neighbour on the core all the time, ``waiting_cost`` what a workload that is not
    bound by CPU loses. ``covariance`` is of these in this order. ``form_deviation`` is the scatter of single pairs
    beyond noise, with its ``degrees`` of freedom; ``pairs`` how many it was fitted to.
    """

    capacities: Mapping[str, float]
    taken: Mapping[str, float]
    core_cost: float
    waiting_cost: float
    covariance: Array
    form_deviation: float
    degrees: float
    pairs: int = 0

    @property
    def basis(self) -> str:
        """How its intervals are obtained."""
        if not self.pairs:
            return (
                "modelled: elasticities and uses with textbook sharing; the interval is that of the elasticities and "
                f"an assumed error of the form of {100 * self.form_deviation:.0f} %"
            )
        return (
            f"modelled: elasticities and uses with sharing fitted to {self.pairs} measured pairs; Student's t from "
            "what these are off by, the errors of the coefficients and of the elasticities"
        )

    def predict(self, workload: Workload, neighbour: Workload) -> Slowdown:
        """Slowdown of ``workload``. Raises RackscopeError where it was not squeezed at all."""
        if not workload.sensitivities:
            raise RackscopeError(
                f"the sensitivity of {workload.name} is not known: no resource of it was squeezed",
                "Run 'rackscope study pressure' of it, or 'rackscope study colocate'.",
            )
        if not set(neighbour.demands) & set(self.capacities):
            raise RackscopeError(
                f"what {neighbour.name} uses is not known: its resource use was not measured",
                "Run 'rackscope run' of it, or 'rackscope study colocate'.",
            )
        value, shares = _log_kept(self, workload, neighbour)

        def moved(coefficients: Array) -> float:
            return _log_kept(_with(self, coefficients), workload, neighbour)[0]

        here = np.array([*self.taken.values(), self.core_cost, self.waiting_cost])
        slopes = scipy.optimize.approx_fprime(here, moved, 1e-3)
        deviation = math.hypot(
            self.form_deviation * _exposure(shares),
            _known_error(self, workload, neighbour),
            math.sqrt(max(0.0, float(slopes @ self.covariance @ slopes))),
        )
        reach = student_quantile(self.degrees, LEVEL) * deviation
        if not any(share.taken > 0 for share in shares):
            # Nobody is there: nothing can be off.
            reach = 0.0
        beyond = any(
            workload.sensitivities[share.resource].is_beyond(share.left)
            for share in shares
            if share.resource in workload.sensitivities
        )
        likely, low, high = (math.exp(value + by) for by in (0.0, -reach, reach))
        kept = Prediction(likely, low, high, "ratio", self.basis + EXTRAPOLATED * beyond, beyond)
        unknown = {
            **{name: why for name, why in workload.unknown.items() if name not in workload.sensitivities},
            **{name: why for name, why in neighbour.unknown.items() if name not in neighbour.demands},
        }
        return Slowdown(workload.name, neighbour.name, kept, shares, unknown)


def textbook(capacities: Mapping[str, float]) -> ColocationModel:
    """Sharing by the textbook, before any pair was measured."""
    names = [name for name in RULES if name in capacities]
    return ColocationModel(
        capacities=dict(capacities),
        taken=dict.fromkeys(names, 1.0),
        core_cost=0.0,
        waiting_cost=0.0,
        # What the costs may be is in the error of the form: they can only be losses, which it has room for.
        covariance=np.diag([_TAKEN_DEVIATION**2] * len(names) + [0.0, 0.0]),
        form_deviation=_FORM_DEVIATION,
        degrees=_FORM_DEGREES,
    )


def fit_colocation(sides: Sequence[Side], capacities: Mapping[str, float]) -> ColocationModel:
    """Fit the few coefficients to measured pairs. Raises RackscopeError for fewer than three pairs.

    Gauss and Newton's method on squares that are weighted by each side's own noise and the scatter of the form, with
    priors as further squares; the scatter follows by the moments of what is left over (as in DerSimonian and Laird
    1986), drawn to its prior.
    """
    count = len({side.pair for side in sides})
    if count < FEWEST_PAIRS:
        raise RackscopeError(
            f"{count} measured pairs of at least {FEWEST_PAIRS} are too few to predict other pairs",
            "Measure more pairs: 'rackscope study colocate' with three workloads or more.",
        )
    model = textbook(capacities)
    resources = len(model.taken)
    prior_means = np.array([1.0] * resources + [0.0, 0.0])
    prior_deviations = np.array([_TAKEN_DEVIATION] * resources + [_CORE_DEVIATION, _WAITING_DEVIATION])
    known = np.array([math.hypot(side.error, _known_error(model, side.workload, side.neighbour)) for side in sides])
    measured = np.array([side.log_kept for side in sides])
    exposure = np.array([_exposure(_shares(model, side.workload, side.neighbour)) for side in sides])
    scatter = _FITTED_DEVIATION

    def predicted(coefficients: Array) -> Array:
        with_them = _with(model, coefficients)
        return np.array([_log_kept(with_them, side.workload, side.neighbour)[0] for side in sides])

    coefficients = prior_means
    for _ in range(_ROUNDS):
        weights = 1 / np.hypot(scatter * exposure, known)

        def residuals(at: Array, weights: Array = weights) -> Array:
            return np.concatenate([(measured - predicted(at)) * weights, (at - prior_means) / prior_deviations])

        solved = scipy.optimize.least_squares(
            residuals,
            np.maximum(coefficients, 1e-6),
            bounds=(0.0, [2.5] * resources + [1.0, 1.0]),
            ftol=_TOLERANCE,
            xtol=_TOLERANCE,
            gtol=_TOLERANCE,
        )
        coefficients = solved.x
        rest = measured - predicted(coefficients)
        jacobian = np.asarray(solved.jac)
        covariance = np.linalg.pinv(jacobian.T @ jacobian)
        # Degrees of freedom that the coefficients take of the data's: the trace of the hat matrix of these rows.
        rows = jacobian[: len(sides)]
        spent = max(0.0, float(np.trace(rows @ covariance @ rows.T)))
        degrees = _FITTED_DEGREES + max(len(sides) - spent, 1.0)
        excess = float(np.sum((rest**2 - known**2 * max(0.0, 1 - spent / len(sides))) / exposure**2))
        before = scatter
        scatter = math.sqrt((_FITTED_DEGREES * _FITTED_DEVIATION**2 + max(excess, 0.0)) / degrees)
        if abs(scatter - before) < 1e-3 * before:
            break
    fitted = _with(model, coefficients)
    return replace(fitted, covariance=covariance, form_deviation=scatter, degrees=degrees, pairs=count)


def sensitivity(
    resource: str, capacity: float, levels: Sequence[ResponsePoint], use: float | None = None
) -> Sensitivity:
    """A response from measured levels, weighed by error, never rising as less is left. RackscopeError without any."""
    usable = [one for one in levels if 0 < one.left < 1 and math.isfinite(one.log_kept) and math.isfinite(one.error)]
    if not usable or not 0 < capacity < math.inf:
        raise RackscopeError(f"no squeeze of {resource} took effect", "Squeeze it: 'rackscope study pressure'.")
    return Sensitivity(resource, capacity, _falling(usable), use)


def _falling(points: Sequence[ResponsePoint]) -> tuple[ResponsePoint, ...]:
    """Isotonic regression (Barlow 1972), each point weighed by its error; losses below zero are none."""
    ordered = sorted(points, key=lambda point: -point.left)
    weights = [1 / max(point.error, 1e-4) ** 2 for point in ordered]
    kept = [point.log_kept for point in ordered]
    fitted = scipy.optimize.isotonic_regression(kept, weights=weights, increasing=False).x
    return tuple(
        ResponsePoint(point.left, min(float(value), 0.0), point.error)
        for point, value in zip(ordered, fitted, strict=True)
    )


def _shares(model: ColocationModel, workload: Workload, neighbour: Workload) -> list[Share]:
    shares = []
    for name, capacity in model.capacities.items():
        demand = neighbour.demands.get(name)
        if demand is None or capacity <= 0:
            continue
        own = workload.demands.get(name)
        taken = model.taken.get(name, 1.0) * _taken(RULES[name], capacity, own.amount if own else None, demand.amount)
        response = workload.sensitivities.get(name)
        left = 1.0 if response is None else min(1.0, max(capacity - taken, _LEAST_LEFT * capacity) / response.capacity)
        shares.append(
            Share(
                name,
                left,
                taken / capacity,
                0.0 if response is None else response.log_kept(left),
                0.0 if response is None else response.elasticity(left),
            )
        )
    return shares


def _taken(rule: Rule, capacity: float, own: float | None, neighbour: float) -> float:
    """What a neighbour that wants so much has of a resource by the textbook, when the workload wants all it can get."""
    neighbour = min(neighbour, capacity)
    if rule == "even":
        return min(neighbour, capacity / 2)
    if rule == "reserved":
        return neighbour
    wanted = (capacity if own is None else own) + neighbour
    return neighbour if wanted <= capacity else capacity * neighbour / wanted


def _log_kept(model: ColocationModel, workload: Workload, neighbour: Workload) -> tuple[float, tuple[Share, ...]]:
    shares = _shares(model, workload, neighbour)
    total = sum(share.log_kept for share in shares)
    for share in shares:
        if share.resource == "cpu" and "cpu" in workload.sensitivities:
            # The neighbour has what the workload leaves it; both run on the same cores in turns.
            own = workload.demands.get("cpu")
            capacity = model.capacities["cpu"]
            there = min(
                neighbour.demands["cpu"].amount,
                max(capacity / 2, capacity - (own.amount if own is not None else capacity)),
            )
            meets = there / capacity
            total -= meets * (share.elasticity * model.core_cost + (1 - share.elasticity) * model.waiting_cost)
    return total, tuple(shares)


def _known_error(model: ColocationModel, workload: Workload, neighbour: Workload) -> float:
    """What the errors of the response and of the neighbour's use make of the logarithm."""
    squares = 0.0
    for share in _shares(model, workload, neighbour):
        response = workload.sensitivities.get(share.resource)
        if response is None:
            continue
        squares += response.error(share.left) ** 2
        demand = neighbour.demands[share.resource]
        if demand.error > 0:
            more = replace(
                neighbour,
                demands={**neighbour.demands, share.resource: Demand(demand.amount + demand.error, 0.0)},
            )
            moved = _log_kept(model, workload, more)[0] - _log_kept(model, workload, neighbour)[0]
            squares += moved**2
    return math.sqrt(squares)


def _exposure(shares: Sequence[Share]) -> float:
    """How much of the form's scatter there is, by what the neighbour takes of what matters most."""
    taken = max((share.taken for share in shares), default=0.0)
    return _LEAST_SCATTER + (1 - _LEAST_SCATTER) * min(1.0, 2 * taken)


def _with(model: ColocationModel, coefficients: Array) -> ColocationModel:
    *taken, core_cost, waiting_cost = coefficients.tolist()
    return replace(
        model, taken=dict(zip(model.taken, taken, strict=True)), core_cost=core_cost, waiting_cost=waiting_cost
    )
