"""The resource wall: the data size past which time per byte breaks away (Sevilla et al. 2013), and what broke there.

Time per byte over data size, both as logarithms, is one line while nothing runs out. The wall is a hinge, a second
line that starts at some size and is steeper, or a leap to a higher line. It is believed where the Bayesian information
criterion (Schwarz 1978) prefers it strongly to one line. Its interval is a bootstrap over measured points (Efron
1987), each point one run.

What a job takes before it touches its data (start-up) lies on small sizes most, and bends the line as a wall does.
Where it explains times better than a slope does, they are taken without it; and time per byte that only falls has no
wall.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rackscope.analysis import wording
from rackscope.analysis.intervals import Interval
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.units import format_bytes

Array = NDArray[np.float64]

#: Sizes at which a hinge is tried, evenly apart in logarithms.
_PLACES = 128
#: Start-ups that are tried, as the size of data that takes as long.
_START_UPS = 32
#: A line and a break take four parameters; fewer sizes than this cannot show both.
_FEWEST_SIZES = 5


@dataclass(frozen=True)
class SizePoint:
    """One run at one size. ``resources`` are rates or levels during it (refaults, swap, disk busy, ...) by name."""

    data_bytes: float
    seconds_per_byte: float
    resources: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Departure:
    """A resource that leaves its line at the wall.

    ``at_bytes`` is where it does, ``before`` and ``after`` are its means below and above, ``explained`` the share of
    its variance that the break explains beyond a line (0 to 1).
    """

    resource: str
    at_bytes: float
    before: float
    after: float
    explained: float


@dataclass(frozen=True)
class Wall:
    """What was found. ``at_bytes`` is ``None`` where there is no wall; ``slowdown`` is the time per byte of the largest
    size over what the first line leads one to expect; ``broke`` the resources that depart there, clearest first.
    """

    at_bytes: Interval | None
    slowdown: float | None
    broke: tuple[Departure, ...]
    reason: str


def find_wall(points: Sequence[SizePoint], *, resamples: int = 400) -> Wall:
    """The wall in time per byte over size. Points that are not above zero are left out; at least five sizes."""
    usable = [one for one in points if 0 < one.data_bytes < math.inf and 0 < one.seconds_per_byte < math.inf]
    sizes = np.log([one.data_bytes for one in usable])
    times = np.log([one.seconds_per_byte for one in usable])
    if len(set(sizes)) < _FEWEST_SIZES:
        return Wall(None, None, (), f"{len(set(sizes))} of at least {_FEWEST_SIZES} sizes were measured")
    limit = packaged_thresholds().limit
    lowest = min(float(times[sizes == size].mean()) for size in set(sizes))
    grown = math.exp(float(times[sizes == sizes.max()].mean()) - lowest)
    times, started, fit = _without_start_up(sizes, times)
    if fit is None or fit.gain < limit("wall.evidence"):
        return Wall(None, None, (), "one line describes time per byte over all sizes: no wall up to the largest")
    slowdown = math.exp(fit.rise)
    if slowdown < limit("wall.slowdown"):
        reason = (
            f"time per byte bends at {format_bytes(math.exp(fit.place))} but grows by {wording.percent(slowdown - 1)}"
        )
        return Wall(None, slowdown, (), f"{reason} only: no wall up to the largest size")
    if grown < limit("wall.slowdown"):
        return Wall(None, None, (), "time per byte does not grow over the sizes: no wall up to the largest")
    at = _place_interval(sizes, times, fit.place, resamples, sloped=not started)
    broke = _departures(usable, sizes, at)
    what = f"; {wording.listing([one.resource for one in broke])} changed there" if broke else ""
    reason = f"from {format_bytes(at.estimate)} on, time per byte grows to {slowdown:.1f} times its line{what}"
    return Wall(at, slowdown, broke, reason)


@dataclass(frozen=True)
class _Break:
    """Where the second line starts, how far above the first it ends, how much better than one line (in BIC)."""

    place: float
    rise: float
    gain: float
    explained: float


def _without_start_up(sizes: Array, times: Array) -> tuple[Array, bool, _Break | None]:
    """Times per byte without the start-up that explains them best, whether there is one, and the break in them.

    The line below the wall is straight in logarithms, or constant but for a start-up: two parameters either way, as
    both together would imitate any wall. The break's gain is over the best line of either kind: what a start-up
    explains is no wall.
    """
    count = len(sizes)
    floor = count * (1e-6 * max(float(np.std(times)), 1e-300)) ** 2
    best_line, chosen, started, best = math.inf, times, False, None
    for start_up in (0.0, *np.exp(np.linspace(sizes.min() - 3, sizes.max() + 1, _START_UPS))):
        left = times - np.log1p(start_up / np.exp(sizes))
        basis = _line(sizes, sloped=start_up == 0)
        residual = left - basis @ (basis.T @ left)
        line = count * math.log(max(float(residual @ residual), floor))
        best_line = min(best_line, line)
        fit = _fit(sizes, left, sloped=start_up == 0)
        if fit is not None and (best is None or line - fit.gain < best[0]):
            chosen, started, best = left, start_up > 0, (line - fit.gain, fit)
    return chosen, started, None if best is None else replace(best[1], gain=best_line - best[0])


def _line(sizes: Array, *, sloped: bool) -> Array:
    """An orthonormal basis of lines over sizes, or of constants."""
    columns = [np.ones_like(sizes), sizes - sizes.mean()]
    basis, _ = np.linalg.qr(np.stack(columns[: 1 + sloped], axis=1))
    return np.asarray(basis, dtype=np.float64)


def _fit(sizes: Array, values: Array, *, sloped: bool = True) -> _Break | None:
    """The best break upwards, a hinge or a leap; ``None`` where there is none."""
    distinct = np.unique(sizes)
    # Two sizes on either side, so that no line rests on one of them alone.
    bends = np.linspace(distinct[1], distinct[-2], _PLACES)
    leaps = (distinct[1:-2] + distinct[2:-1]) / 2
    places = np.concatenate([bends, leaps])
    shapes = np.vstack(
        [np.maximum(0.0, sizes[None, :] - bends[:, None]), (sizes[None, :] > leaps[:, None]).astype(np.float64)]
    )
    # The part of each shape that a line does not explain: its regression gives the height and the residual of the
    # full fit.
    basis = _line(sizes, sloped=sloped)
    parts = shapes - (shapes @ basis) @ basis.T
    norms = np.sum(parts**2, axis=1)
    left_over = values - basis @ (basis.T @ values)
    straight = float(np.sum(left_over**2))
    heights = np.divide(parts @ left_over, norms, out=np.zeros(len(places)), where=norms > 1e-12)
    gains = np.where(heights > 0, heights**2 * norms, 0.0)
    best = int(np.argmax(gains))
    if gains[best] <= 0:
        return None
    count = len(sizes)
    # Points that lie on their lines exactly would make any difference infinite.
    floor = count * (1e-6 * max(float(np.std(values)), 1e-300)) ** 2
    bent = max(straight - float(gains[best]), floor)
    gain = count * math.log(max(straight, floor) / bent) - 2 * math.log(count)
    total = float(np.sum((values - values.mean()) ** 2))
    explained = float(gains[best]) / total if total > 0 else 0.0
    return _Break(float(places[best]), float(heights[best] * shapes[best].max()), gain, explained)


def _place_interval(sizes: Array, times: Array, place: float, resamples: int, *, sloped: bool) -> Interval:
    """Interval of the wall's size, never narrower than the sizes that were measured around it."""
    generator = np.random.default_rng(1)
    places = []
    for _ in range(resamples):
        drawn = generator.integers(0, len(sizes), size=len(sizes))
        if len(np.unique(sizes[drawn])) < _FEWEST_SIZES - 1:
            continue
        fit = _fit(sizes[drawn], times[drawn], sloped=sloped)
        if fit is not None:
            places.append(fit.place)
    low, high = np.quantile(places, [0.025, 0.975]) if places else (place, place)
    distinct = np.unique(sizes)
    below, above = distinct[distinct <= place].max(), distinct[distinct >= place].min()
    low, high = min(float(low), float(below)), max(float(high), float(above))
    return Interval(place, low, high, 0.95, len(sizes)).mapped(math.exp)


def _departures(points: Sequence[SizePoint], sizes: Array, at: Interval) -> tuple[Departure, ...]:
    if at.low is None or at.high is None:
        return ()
    evidence = packaged_thresholds().limit("wall.evidence")
    # A resource may break one size before time shows it, or one after.
    distinct = np.unique(sizes)
    step = float(np.max(np.diff(distinct)))
    low, high = math.log(at.low) - step, math.log(at.high) + step
    found = []
    for name in dict.fromkeys(name for point in points for name in point.resources):
        values = np.array([point.resources.get(name) for point in points], dtype=np.float64)
        known = np.isfinite(values)
        if len(np.unique(sizes[known])) < _FEWEST_SIZES:
            continue
        fit = _fit(sizes[known], values[known])
        if fit is None or fit.gain < evidence or not low <= fit.place <= high:
            continue
        after = sizes[known] > fit.place
        means = float(values[known][~after].mean()), float(values[known][after].mean())
        found.append(Departure(name, math.exp(fit.place), *means, fit.explained))
    return tuple(sorted(found, key=lambda one: -one.explained))
