"""Throughput over workers on cores of several hardware threads, by two numbers.

Up to one worker a core, each worker is slowed a little by the clock that falls and by what cores share; beyond, workers
take turns on a core's units, and throughput goes in a straight line to that of all hardware threads:

    T(n) = T(1) n exp(s (n - 1) / (c - 1))                  for n <= c cores
    T(n) = T(1) c (exp(s) + (exp(g) - exp(s)) (n - c) / (v - c))    for c < n <= v hardware threads

``slowdown`` s is the logarithm of what a worker keeps at one worker a core, ``gain`` g that of what a *core* gives with
all its threads busy, both over one worker alone. g - s near 0 is a core that gains nothing from its second thread, 0.28
one that gains a third, and 0.69 one whose "threads" are cores. The curve is never asked beyond v.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rackscope.models.trained.base import Floats

#: What two measurements of one point differ by, as a share, and by what the two numbers miss the curve.
_NOISE = 0.01
_STEPS = 4


@dataclass(frozen=True)
class Belief:
    """What is thought of a server's two numbers: means and standard deviations, one a server."""

    slowdown: Floats
    gain: Floats
    slowdown_deviation: Floats
    gain_deviation: Floats


def relative_throughput(workers: Floats, cores: Floats, threads: Floats, slowdown: Floats, gain: Floats) -> Floats:
    """The logarithm of T(n) / (n T(1)); all arguments of one shape, or to be broadcast."""
    per_core = np.exp(slowdown)
    within = slowdown * (workers - 1.0) / np.maximum(cores - 1.0, 1.0)
    share = (workers - cores) / np.maximum(threads - cores, 1.0)
    beyond = np.log(np.maximum(cores * (per_core + (np.exp(gain) - per_core) * share) / workers, 1e-6))
    return np.asarray(np.where(workers <= cores, within, beyond))


def sensitivities(
    workers: Floats, cores: Floats, threads: Floats, slowdown: Floats, gain: Floats
) -> tuple[Floats, Floats]:
    """By how much the logarithm changes with each of the two numbers."""
    share = (workers - cores) / np.maximum(threads - cores, 1.0)
    first, second = np.exp(slowdown) * (1.0 - share), np.exp(gain) * share
    whole = np.maximum(first + second, 1e-6)
    inside = workers <= cores
    within = (workers - 1.0) / np.maximum(cores - 1.0, 1.0)
    return np.where(inside, within, first / whole), np.where(inside, 0.0, second / whole)


def update(belief: Belief, workers: Floats, relative: Floats, cores: Floats, threads: Floats) -> Belief:
    """The belief after points were measured: servers times points of ``workers`` and log T(n) / (n T(1)).

    A point that was not measured is NaN in ``relative``. Bayes with normal beliefs, the curve made linear at the
    estimate (iterated extended Kalman update: Jazwinski 1970, chapter 8.3).
    """
    known = np.isfinite(relative)
    seen = np.where(known, relative, 0.0)
    wide_cores, wide_threads = cores[:, None], threads[:, None]
    prior = np.stack([belief.slowdown, belief.gain], axis=1)
    precision = np.zeros((len(prior), 2, 2))
    precision[:, 0, 0], precision[:, 1, 1] = belief.slowdown_deviation**-2.0, belief.gain_deviation**-2.0
    at, total = prior.copy(), precision
    for _ in range(_STEPS):
        arguments = (workers, wide_cores, wide_threads, at[:, :1], at[:, 1:])
        slope = np.stack(sensitivities(*arguments), axis=2) * known[:, :, None] / _NOISE
        missed = (seen - relative_throughput(*arguments)) * known / _NOISE
        total = precision + np.einsum("ski,skj->sij", slope, slope)
        wanted = np.einsum("sij,sj->si", precision, prior - at) + np.einsum("ski,sk->si", slope, missed)
        at = at + np.clip(np.linalg.solve(total, wanted[:, :, None])[:, :, 0], -1.0, 1.0)
    spread = np.linalg.inv(total)
    return Belief(at[:, 0], at[:, 1], np.sqrt(spread[:, 0, 0]), np.sqrt(spread[:, 1, 1]))
