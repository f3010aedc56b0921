"""Redis on one server over redis on another: what a projection that is anchored on a measurement needs.

* ``by_processor``: where the table has servers with either processor, of nearly that size and as many threads a core,
  the ratio is that of what those did a hardware thread. Judged on sizes that were left out of both.
* ``by_calibration``: a regression of requests/s a hardware thread on what rackscope's calibration and the tables share:
  size, threads a core, read bandwidth of DRAM and last-level cache a thread, Arm's kind or AMD's. Judged on pairs of
  processors that were both left out.

An interval is that of the ratio: what errs on both servers alike cancels in it. Its ends are a conformal quantile of
the residuals of ratios, of processors left out (see ``conformal``), symmetric as each pair counts both ways.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rackscope.errors import ModelError
from rackscope.models.trained.base import Booleans, Floats, Strings
from rackscope.models.trained.cloud_servers import SERVERS, processors
from rackscope.models.trained.grouped_regression import GroupedRegression, fit_grouped_regression
from rackscope.models.trained.processor_names import parse_processor_name
from rackscope.models.trained.redis_throughput import PARTS
from rackscope.models.trained.refusals import FURTHEST, seen_range
from rackscope.models.trained.support_points import on_support_points

if TYPE_CHECKING:
    import polars as pl

Numbers = NDArray[np.intp]

_NEEDED = ("vcpus", "threads_per_core", "read_bandwidth_dram_mb_s")
_CACHE = "l3"
#: Servers of a processor count for less the further their number of threads: by 1/e for each of these (a logarithm).
_REACH = 0.3
#: The nearest may have so many times the hardware threads, or a part of them.
_NEAREST = 2.0
_SLACK = 0.02
CONFIDENCE = 0.9
#: By how much of a conformal quantile's allowance for one more processor (a pair has two) the intervals are widened:
#: chosen so that those of quarters of the processors that were held out hold 88 to 92 of 100.
_CAUTION_BY_PROCESSOR, _CAUTION_BY_CALIBRATION = 1.0, 1.8
_PAIRS, _FEWEST_PROCESSORS, _FOLDS = 4000, 8, 10
#: Names that hypervisors give to guests: whatever chip is behind them.
_ANONYMOUS = re.compile(r"^@|^genuine\b|^[^\d]*$")
_BYTES = re.compile(r"^\s*(\d+)")


@dataclass(frozen=True)
class Side:
    """One of the two servers, in base units; ``None`` where it is not known. ``name`` is for messages."""

    name: str
    processor: str
    threads: int
    threads_per_core: float | None
    dram_read_bytes_per_second: float | None = None
    last_level_cache_bytes: float | None = None


@dataclass(frozen=True)
class LeftOut:
    """Ratios of pairs that were left out: how many, of how many processors, and errors as shares."""

    pairs: int
    processors: int
    median_error: float
    p90_error: float


@dataclass(frozen=True)
class Ratio:
    """Throughput a hardware thread of the target over that of the source, and the ends of its interval of 90 %.

    ``stands_on`` says from which servers; ``outside`` names features outside of what was fitted.
    """

    value: float
    low: float
    high: float
    left_out: LeftOut
    basis: str
    stands_on: str
    outside: str = ""


@dataclass(frozen=True)
class Servers:
    """Rows of the table: ``threads`` and ``features`` are logarithms, and so is ``each``, requests/s a thread."""

    names: Strings
    groups: Strings
    threads: Floats
    threads_per_core: Floats
    features: Floats
    each: Mapping[str, Floats]


FEATURES = (
    "hardware threads",
    "threads a core",
    "DRAM bandwidth a thread",
    "last-level cache a thread",
    "arm",
    "amd",
)


def read_redis_servers(frames: Mapping[str, pl.DataFrame]) -> Servers:
    """Servers that have all that either way needs. Raises ModelError as ``columns`` does, and where none is left."""
    import polars as pl

    from rackscope.models.trained.columns import numbers, require

    if SERVERS not in frames:
        raise ModelError(f"there is no file {SERVERS}*.csv", "See docs/models.md for what it holds.")
    require(frames[SERVERS], SERVERS, ("server", "cpu_model", _CACHE))
    table = numbers(frames[SERVERS], SERVERS, (*_NEEDED, *PARTS.values()))
    cache = [_cache_bytes(value) for value in table[_CACHE].to_list()]
    table = table.with_columns(pl.Series("cache", cache, dtype=pl.Float64))
    table = table.drop_nulls(["server", "cpu_model", *_NEEDED, *PARTS.values()]).sort("server")
    if table.is_empty():
        raise ModelError(f"no row of {SERVERS} is complete", "See the columns and units in docs/models.md.")
    groups, arm, amd = processors({"cpu_model": table["cpu_model"].to_numpy()})

    def log(name: str) -> Floats:
        return np.asarray(np.log(table[name].to_numpy().astype(np.float64)))

    threads = log("vcpus")
    return Servers(
        names=table["server"].to_numpy().astype(np.str_),
        groups=groups,
        threads=threads,
        threads_per_core=table["threads_per_core"].to_numpy(),
        features=np.column_stack(
            [
                threads,
                log("threads_per_core"),
                log("read_bandwidth_dram_mb_s") - threads,
                log("cache") - threads,
                arm,
                amd,
            ]
        ),
        each={part: log(column) - threads for part, column in PARTS.items()},
    )


def _cache_bytes(value: object) -> float | None:
    """Bytes of a cell such as ``34603008 (1 instance)``."""
    found = _BYTES.match(str(value)) if value is not None else None
    return float(found[1]) if found and float(found[1]) > 0 else None


def log_residuals_by_size(servers: Servers, part: str) -> Floats:
    """What each server did over what others with its processor say, without those of its own size; NaN for none."""
    each, found = servers.each[part], np.full(len(servers.groups), np.nan)
    for group in np.unique(servers.groups):
        if _ANONYMOUS.search(str(group)):
            continue
        rows = np.flatnonzero(servers.groups == group)
        apart = np.abs(servers.threads[rows][:, None] - servers.threads[rows][None, :])
        alike = servers.threads_per_core[rows][:, None] == servers.threads_per_core[rows][None, :]
        usable = alike & (apart > 1e-6)
        nearest = np.where(usable, apart, np.inf).min(axis=1)
        weight = usable * np.exp(-apart / _REACH)
        kept = nearest <= np.log(_NEAREST) + 1e-9
        found[rows[kept]] = each[rows[kept]] - (weight[kept] @ each[rows]) / weight[kept].sum(axis=1)
    return found


def draw_pairs(groups: Strings, usable: Booleans, count: int, seed: int = 1) -> Numbers:
    """``count`` pairs of rows of different groups, weighed as in ``calibrate``. ModelError for too few groups."""
    rows = np.flatnonzero(usable)
    names, which, sizes = np.unique(groups[rows], return_inverse=True, return_counts=True)
    if len(names) < _FEWEST_PROCESSORS:
        raise ModelError(
            f"servers with {len(names)} processors are too few to say how far ratios between them are off",
            f"Fit on a table with at least {_FEWEST_PROCESSORS} that have redis at several sizes.",
        )
    random = np.random.default_rng(seed)
    chance = 1.0 / np.sqrt(sizes[which])
    drawn = random.choice(len(rows), (2, 3 * count), p=chance / chance.sum())
    drawn = drawn[:, which[drawn[0]] != which[drawn[1]]][:, :count]
    return np.asarray(rows[drawn].T)


def quantile_of(scores: Floats, processors: int, caution: float = _CAUTION_BY_PROCESSOR) -> float:
    """The conformal quantile of absolute ``scores`` that makes an interval of 90 %."""
    level = min(1.0, CONFIDENCE * (1.0 + caution / processors))
    return float(np.quantile(np.abs(scores), level, method="higher"))


@dataclass(frozen=True)
class Calibrated:
    """The regression of ``by_calibration``; ``quantile`` is of residuals in predicted deviations of both together."""

    regression: GroupedRegression
    quantile: float
    left_out: LeftOut


@dataclass(frozen=True)
class RedisElsewhere:
    """Fitted to a table, or read from a file, which has no ``servers``; then ``fits`` are all there.

    ``lowest`` and ``highest`` are those of ``FEATURES``. Else regressions are fitted when they are first asked for,
    which takes a second.
    """

    lowest: Floats
    highest: Floats
    servers: Servers | None = None
    fits: dict[str, Calibrated] = field(default_factory=dict, compare=False)

    def by_processor(self, part: str, source: Side, target: Side) -> Ratio:
        """From servers with the processors of both. Raises ModelError where the table does not have them."""
        if self.servers is None:
            raise ModelError(
                "the fit that rackscope carries has no servers to look processors up in",
                f"Give a folder with {SERVERS} by --fit; docs/models.md says where it is published.",
            )
        (here, few), (there, many) = (_looked_up(self.servers, part, side) for side in (source, target))
        half, left_out = self._by_processor[part]
        return _ratio(
            there - here,
            half,
            left_out,
            " with the sizes of both left out",
            f"{few} servers with the processor here and {many} with that there, in the table",
        )

    def by_calibration(self, part: str, source: Side, target: Side) -> Ratio:
        """From what both were calibrated to give. Raises ModelError where that is not known or far from the table's."""
        rows = np.vstack([_described(source), _described(target)])
        outside = self._outside(rows, (source, target))
        if part not in self.fits:
            assert self.servers is not None
            self.fits[part] = fit_calibrated(self.servers, part)
        fitted = self.fits[part]
        centre, deviation = fitted.regression.predict(rows)
        return _ratio(
            float(centre[1] - centre[0]),
            fitted.quantile * math.hypot(*deviation),
            fitted.left_out,
            ", both left out",
            "size, DRAM bandwidth, last-level cache and the kind of both processors",
            outside,
        )

    @cached_property
    def _by_processor(self) -> Mapping[str, tuple[float, LeftOut]]:
        assert self.servers is not None
        found = {}
        for part in PARTS:
            residual = log_residuals_by_size(self.servers, part)
            pairs = draw_pairs(self.servers.groups, np.isfinite(residual), _PAIRS)
            apart = residual[pairs[:, 1]] - residual[pairs[:, 0]]
            left_out = _left_out(apart, self.servers.groups[pairs])
            found[part] = quantile_of(apart, left_out.processors), left_out
        return found

    def _outside(self, rows: Floats, sides: tuple[Side, Side]) -> str:
        said = []
        for column, name in enumerate(FEATURES[:4]):
            least, most = float(self.lowest[column]), float(self.highest[column])
            for side, value in zip(sides, rows[:, column], strict=True):
                by = max(least - value, value - most)
                if by > FURTHEST:
                    shown = (f"{np.exp(one):.3g}" for one in (value, least, most))
                    unit = {2: " MB/s", 3: " bytes"}.get(column, "")
                    raise ModelError(
                        "{} of {} is {}{unit}, far outside of the {} to {}{unit} of the table".format(
                            name, side.name, *shown, unit=unit
                        ),
                        "Check the unit, or fit on servers like it.",
                    )
                if by > _SLACK:
                    said.append(f"{name} of {side.name}")
        return ", ".join(said)


def _ratio(logarithm: float, half: float, left_out: LeftOut, how: str, stands_on: str, outside: str = "") -> Ratio:
    """From the ratio's ``logarithm`` and half the width of its interval there."""
    value, reach = math.exp(logarithm), math.exp(half)
    basis = f"to the other processor: conformal, from {left_out.pairs} pairs of {left_out.processors} processors{how}"
    return Ratio(value, value / reach, value * reach, left_out, basis, stands_on, outside)


def _looked_up(servers: Servers, part: str, side: Side) -> tuple[float, int]:
    name = parse_processor_name(side.processor).model
    if not side.processor or _ANONYMOUS.search(name):
        raise ModelError(
            f"'{side.processor}' of {side.name} names no one processor", "Write its name as /proc/cpuinfo has it."
        )
    rows = np.flatnonzero(servers.groups == name)
    if not len(rows):
        raise ModelError(f"the table has no server with '{side.processor}', as {side.name} has", "Add one.")
    alike = rows[np.isclose(servers.threads_per_core[rows], _threads_per_core(side), rtol=0.05)]
    apart = np.abs(servers.threads[alike] - np.log(side.threads))
    if not len(alike) or apart.min() > np.log(_NEAREST) + 1e-9:
        sizes = sorted({round(float(np.exp(one))) for one in servers.threads[alike]})
        has = f"of {', '.join(map(str, sizes))} hardware threads" if sizes else "of another number a core"
        raise ModelError(
            f"the table has '{side.processor}' {has}, and {side.name} has {side.threads}",
            f"It is asked up to {_NEAREST:g} times as many or half of them.",
        )
    weight = np.exp(-apart / _REACH)
    return float(weight @ servers.each[part][alike] / weight.sum()), len(alike)


def _described(side: Side) -> Floats:
    for what in ("dram_read_bytes_per_second", "last_level_cache_bytes"):
        if getattr(side, what) is None:
            raise ModelError(f"{what} of {side.name} is not known", "Run 'rackscope calibrate' there.")
    name = parse_processor_name(side.processor)
    per_core = _threads_per_core(side)
    assert side.dram_read_bytes_per_second is not None and side.last_level_cache_bytes is not None
    return np.array(
        [
            np.log(side.threads),
            np.log(per_core),
            np.log(side.dram_read_bytes_per_second / 1e6 / side.threads),
            np.log(side.last_level_cache_bytes / side.threads),
            float(name.arm),
            float(name.amd),
        ]
    )


def fit_calibrated(servers: Servers, part: str, rows: Booleans | None = None, *, with_rows: bool = True) -> Calibrated:
    """The regression of ``by_calibration`` on ``rows`` (all that are complete), and what it left out.

    Without rows it is on support points (``support_points``), and so is what is left out.
    """
    complete = np.isfinite(servers.features).all(axis=1)
    kept = complete if rows is None else np.asarray(rows & complete)
    features, each, groups = servers.features[kept], servers.each[part][kept], servers.groups[kept]
    regression = fit_grouped_regression(features, each, groups)
    if with_rows:
        left = regression.leave_out(features, each, groups)
        residual, deviation = left.residual, left.deviation
    else:
        residual, deviation = np.empty(len(each)), np.empty(len(each))
        names = np.random.default_rng(0).permutation(np.unique(groups))
        for fold in range(_FOLDS):
            out = np.isin(groups, names[fold::_FOLDS])
            rest = fit_grouped_regression(features[~out], each[~out], groups[~out], scales=regression.scales)
            estimate, deviation[out] = on_support_points(rest).predict(features[out])
            residual[out] = each[out] - estimate
        regression = on_support_points(regression)
    pairs = draw_pairs(groups, np.ones(len(groups), dtype=bool), _PAIRS)
    apart = residual[pairs[:, 1]] - residual[pairs[:, 0]]
    left_out = _left_out(apart, groups[pairs])
    scores = apart / np.hypot(deviation[pairs[:, 0]], deviation[pairs[:, 1]])
    return Calibrated(regression, quantile_of(scores, left_out.processors, _CAUTION_BY_CALIBRATION), left_out)


def _threads_per_core(side: Side) -> float:
    if side.threads_per_core is None:
        raise ModelError(
            f"how many hardware threads a core of {side.name} has is not known", "Write both cores and threads."
        )
    return side.threads_per_core


def _left_out(apart: Floats, groups: Strings) -> LeftOut:
    # Each pair both ways: an error of the ratio and of its inverse are not the same share.
    error = np.abs(np.expm1(np.concatenate([apart, -apart])))
    return LeftOut(len(apart), len(np.unique(groups)), float(np.median(error)), float(np.quantile(error, 0.9)))


def fit_redis_elsewhere(frames: Mapping[str, pl.DataFrame]) -> RedisElsewhere:
    """From tables by the starts of their names. Raises ModelError for columns that are missing or not in their unit."""
    servers = read_redis_servers(frames)
    return RedisElsewhere(*seen_range(servers.features), servers)
