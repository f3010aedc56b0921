"""One bigger server or a cluster of small ones: draws of time and money of each way, and where they change places.

Errors are drawn in two parts. What is not known of a model's coefficients is the same for every job and every size of
data (``draw_means``), and decides which way is faster or cheaper over a year; what one job scatters is on top
(``draw_jobs``), and decides whether it meets a deadline. Ways that share a fit share its draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rackscope.errors import RackscopeError
from rackscope.models.cost import SECONDS_PER_YEAR, CostDraws
from rackscope.models.estimates import ends_of
from rackscope.models.job_time import Way
from rackscope.models.uncertain import Array, generator

SECONDS_PER_DAY = 86_400.0
#: The share of draws in which a deadline, or a day's jobs, must be met to count on it.
SURE = 0.95
#: Logarithms beyond which nothing is known, and the arithmetic should survive it.
_FURTHEST = 20.0


def draw_means(way: Way, sizes: Sequence[float], draws: int, seed: int) -> Array:
    """Mean seconds of ``way`` for each of ``sizes`` (bytes): ``draws`` rows, a column a size.

    Student's t of the coefficients together, whose errors make up for each other; what it makes of the time is a share,
    on logarithms as in ``NonNegativeFit.interval``. Ways of one family have the same errors in the same draw.
    """
    fit = way.fit
    terms = np.array([way.terms(size) for size in sizes])
    values = np.array([fit.value(row) for row in terms])
    if np.any(values <= 0):
        raise RackscopeError("the fitted model is zero there", "Measure at points that show all of its terms.")
    chance = generator(f"coefficients {way.family}", seed)
    # As correlations: a second a byte beside a second a machine would be lost in the arithmetic.
    scale = np.sqrt(np.diag(fit.covariance))
    divisor = np.where(scale > 0, scale, 1.0)
    parts, vectors = np.linalg.eigh(fit.covariance / np.outer(divisor, divisor))
    root = scale[:, None] * vectors * np.sqrt(np.maximum(parts, 0.0))
    normal = chance.standard_normal((draws, len(fit.coefficients))) @ root.T
    heavier = np.sqrt(fit.degrees_of_freedom / chance.chisquare(fit.degrees_of_freedom, draws))
    shares = fit.relative_deviation * heavier[:, None] * (normal @ terms.T) / values
    factor = way.factor.draw(f"factor {way.server}", draws, seed)
    return np.asarray(values * np.exp(np.clip(shares, -_FURTHEST, _FURTHEST)) * factor[:, None])


def draw_jobs(way: Way, data_bytes: float, draws: int, seed: int) -> Array:
    """Seconds of one job of ``data_bytes`` each."""
    chance = generator(f"job {way.server} {way.machines}", seed)
    scatter = way.fit.relative_deviation * chance.standard_t(way.fit.degrees_of_freedom, draws)
    # Residuals are a share of the time; on logarithms, as the models have it.
    return draw_means(way, [data_bytes], draws, seed)[:, 0] * np.exp(np.clip(scatter, -_FURTHEST, _FURTHEST))


@dataclass(frozen=True)
class MachineYear:
    """Draws of what a year of one machine costs, without power, and of its power at work and without any."""

    standing: Array
    power_busy: Array
    power_idle: Array


def machine_year(busy: CostDraws, idle: CostDraws) -> MachineYear:
    """From the draws of one server at its watts at work, and at its idle ones."""
    return MachineYear(busy.capital + busy.network + busy.upkeep, busy.power, idle.power)


def chosen_curve(
    ways: Sequence[Way],
    sizes: Sequence[float],
    score: Callable[[Way, float], float],
    amount: Callable[[Way, Array], Array],
    draws: int,
    seed: int,
) -> Array:
    """Draws by sizes of ``amount`` (of a way's mean seconds), at each size of the way with the least ``score``.

    The way is chosen at each size before anything is drawn, as a person would who cannot look ahead; NaN where no way
    is known to do a size.
    """
    columns = np.full((draws, len(sizes)), np.nan)
    chosen: dict[int, list[int]] = {}
    for place, size in enumerate(sizes):
        able = [(score(way, size), number) for number, way in enumerate(ways) if size <= way.largest_bytes * (1 + 1e-9)]
        if able:
            chosen.setdefault(min(able)[1], []).append(place)
    for number, places in chosen.items():
        way = ways[number]
        columns[:, places] = amount(way, draw_means(way, [sizes[place] for place in places], draws, seed))
    return columns


def cost_of_job(year: MachineYear, machines: int, seconds: Array) -> Array:
    """What one job takes of machines that other such jobs keep busy: currency, draw by draw."""
    each = year.standing + year.power_busy
    return machines * (each if seconds.ndim == 1 else each[:, None]) * seconds / SECONDS_PER_YEAR


def groups_for(seconds: Array, jobs_per_day: float) -> Array:
    """How many groups of machines do ``jobs_per_day`` in 95 % of the draws (along the first axis)."""
    return np.maximum(1.0, np.ceil(np.quantile(seconds, SURE, axis=0) * jobs_per_day / SECONDS_PER_DAY - 1e-12))


def cost_of_year(year: MachineYear, machines: int, seconds: Array, jobs_per_day: float) -> Array:
    """A year of machines that are there for ``jobs_per_day`` jobs only: currency, draw by draw."""
    groups = groups_for(seconds, jobs_per_day)
    standing, busy, idle = year.standing, year.power_busy, year.power_idle
    if seconds.ndim == 2:
        standing, busy, idle = standing[:, None], busy[:, None], idle[:, None]
    at_work = np.minimum(seconds * jobs_per_day / SECONDS_PER_DAY / groups, 1.0)
    return np.asarray(groups * machines * (standing + idle + (busy - idle) * at_work))


@dataclass(frozen=True)
class Crossing:
    """Where two ways change places: median and 90 % of those draws in which they do, which are ``share`` of all."""

    value: float
    low: float
    high: float
    share: float


def crossing(sizes: Sequence[float], first: Array, second: Array, near: float) -> Crossing | None:
    """Where ``first`` and ``second`` (draws by sizes, above zero) are equal, of several places the nearest to ``near``.

    On logarithms, between sizes that are neighbours. ``None`` where no draw has such a place.
    Raises RackscopeError for less than two sizes, or for sizes that do not rise.
    """
    points = np.log(np.asarray(sizes, dtype=np.float64))
    if len(points) < 2 or np.any(np.diff(points) <= 0) or not np.all(np.isfinite(points)):
        raise RackscopeError("a crossing needs two sizes or more, ascending", "Give a wider range of data.")
    gap = np.log(first) - np.log(second)
    before, after = gap[:, :-1], gap[:, 1:]
    changes = (before < 0) != (after < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(changes, np.clip(before / (before - after), 0.0, 1.0), np.nan)
    places = points[:-1] + part * np.diff(points)
    some = changes.any(axis=1)
    if not some.any():
        return None
    distance = np.where(changes, np.abs(places - math.log(near)), np.inf)
    found = np.exp(places[np.arange(len(places)), distance.argmin(axis=1)][some])
    low, middle, high = ends_of(found)
    return Crossing(middle, low, high, float(some.mean()))
