"""How far ratios of redis between two servers are off, by each way of knowing them, on servers that no fit saw.

A quarter of the processors is held out, again and again: pairs of servers with two of these are predicted by what the
rest says. ``by_processor`` needs both in its table: there the sizes of both servers are left out. ``throughput_ratio``
is given stress-ng for ``instructions_per_second``, and a squeeze that says the cores' speed is all that counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rackscope.errors import ModelError, RackscopeError
from rackscope.models.trained.base import Booleans, Floats
from rackscope.models.trained.cloud_servers import SCALING, calibrated_servers
from rackscope.models.trained.redis_elsewhere import (
    Numbers,
    Servers,
    draw_pairs,
    fit_calibrated,
    log_residuals_by_size,
    quantile_of,
    read_redis_servers,
)
from rackscope.models.trained.redis_throughput import PARTS
from rackscope.models.uncertain import Uncertain

if TYPE_CHECKING:
    import polars as pl

WAYS = ("by processor", "by calibration", "throughput_ratio")
_ANSWERED = "those that throughput_ratio answers"
_PAIRS, _PAIRS_TO_FIT, _DRAWS = 400, 4000, 400


@dataclass(frozen=True)
class PairScore:
    """Errors are |predicted / measured - 1| of ratios, as shares; ``answered`` is the share that was not refused.

    ``of`` says which pairs: all, or only those that ``throughput_ratio`` answers.

    ``coverage`` is the share of outcomes within intervals of 90 %, ``interval_ratio`` the median of their ends.
    """

    way: str
    part: str
    of: str
    pairs: int
    answered: float
    median_error: float
    p90_error: float
    coverage: float
    interval_ratio: float


#: Rows of logarithms: predicted less measured, and half of the interval below and above; NaN where refused.
_Judged = Floats


def validate_pairs(
    frames: Mapping[str, pl.DataFrame], times: int = 10, progress: Callable[[str], None] = lambda _: None
) -> list[PairScore]:
    """Each way on the same pairs, of ``times`` held-out quarters. Raises ModelError where there is too little."""
    servers = read_redis_servers(frames)
    speeds = _stress_ng(frames)
    names = np.unique(servers.groups)
    found: list[PairScore] = []
    for part in PARTS:
        residual = log_residuals_by_size(servers, part)
        judged: dict[str, list[_Judged]] = {way: [] for way in WAYS}
        for turn in range(times):
            progress(f"{part}: a quarter of the processors held out, {turn + 1} of {times}")
            out = np.isin(servers.groups, np.random.default_rng(turn + 100).permutation(names)[: len(names) // 4])
            complete = out & np.isfinite(servers.features).all(axis=1)
            pairs = draw_pairs(servers.groups, complete, _PAIRS, seed=turn)
            judged["by processor"].append(_by_processor(servers, residual, out, pairs))
            judged["by calibration"].append(_by_calibration(servers, part, out, pairs))
            if speeds is not None:
                judged["throughput_ratio"].append(_by_ratio(servers, part, speeds, pairs))
        joined = {way: np.concatenate(some, axis=1) for way, some in judged.items() if some}
        found += [_score(way, part, "all", one) for way, one in joined.items() if way != "throughput_ratio"]
        if "throughput_ratio" in joined:
            answered = np.isfinite(joined["throughput_ratio"][0])
            if not answered.any():
                raise ModelError(
                    "throughput_ratio answers for none of the pairs of servers",
                    f"Give {SCALING} of the servers in the other table, or leave it out.",
                )
            found += [_score(way, part, _ANSWERED, one[:, answered]) for way, one in joined.items()]
    return found


def _stress_ng(frames: Mapping[str, pl.DataFrame]) -> Mapping[str, tuple[float, float]] | None:
    """By server: operations/s at all hardware threads and MB/s of DRAM; None without the tables."""
    if SCALING not in frames:
        return None
    rows = calibrated_servers(frames)
    return {
        name: (every, memory)
        for name, every, memory in rows.select("server", "all", "read_bandwidth_dram_mb_s").iter_rows()
    }


def _by_processor(servers: Servers, residual: Floats, out: Booleans, pairs: Numbers) -> _Judged:
    seen = draw_pairs(servers.groups, np.isfinite(residual) & ~out, _PAIRS_TO_FIT)
    half = quantile_of(residual[seen[:, 1]] - residual[seen[:, 0]], len(np.unique(servers.groups[seen])))
    missed = residual[pairs[:, 0]] - residual[pairs[:, 1]]
    ends = np.full(len(pairs), half)
    return np.stack([missed, ends, ends])


def _by_calibration(servers: Servers, part: str, out: Booleans, pairs: Numbers) -> _Judged:
    fitted = fit_calibrated(servers, part, ~out)
    centre, deviation = fitted.regression.predict(servers.features)
    each = servers.each[part]
    missed = (centre - each)[pairs[:, 1]] - (centre - each)[pairs[:, 0]]
    ends = fitted.quantile * np.hypot(deviation[pairs[:, 0]], deviation[pairs[:, 1]])
    return np.stack([missed, ends, ends])


def _by_ratio(servers: Servers, part: str, speeds: Mapping[str, tuple[float, float]], pairs: Numbers) -> _Judged:
    from rackscope.models.throughput_ratio import Squeezed, SqueezedTo, fit_throughput_ratio

    levels = tuple(SqueezedTo(left, left, left**1.02, left**0.98) for left in (0.8, 0.4))
    model = fit_throughput_ratio([Squeezed("cpu", "cpu_share", levels)], pipelined=part == "pipelined, best")
    judged = np.full((3, len(pairs)), np.nan)
    for place, (here, there) in enumerate(pairs.tolist()):
        one, other = (speeds.get(str(servers.names[row])) for row in (here, there))
        if one is None or other is None:
            continue
        ratios = {
            "core_speed": Uncertain.certain(other[0] / one[0]),
            "dram_bandwidth": Uncertain.certain(other[1] / one[1]),
        }
        try:
            found = model.predict(ratios, likeness="other processor", draws=_DRAWS)
        except RackscopeError:
            continue
        total = servers.each[part] + servers.threads
        missed = math.log(found.value) - (total[there] - total[here])
        judged[:, place] = missed, math.log(found.value / found.low), math.log(found.high / found.value)
    return judged


def _score(way: str, part: str, of: str, judged: _Judged) -> PairScore:
    known = np.isfinite(judged[0])
    if not known.any():
        raise ModelError(f"no pair of servers could be predicted {way}", "Fit on a table with more servers.")
    missed, below, above = judged[:, known]
    error = np.abs(np.expm1(missed))
    held = (missed <= below) & (-missed <= above)
    return PairScore(
        way,
        part,
        of,
        len(known),
        float(known.mean()),
        float(np.median(error)),
        float(np.quantile(error, 0.9)),
        float(held.mean()),
        float(np.median(np.exp(below + above))),
    )
