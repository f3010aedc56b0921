"""Operations/s over the number of workers, aware of hardware threads that share a core, on processors never seen.

What a server's two numbers of ``scaling_curve`` are likely to be is regressed on things that are known before the
server is loaded: its size, operations/s of one worker, read bandwidths a core over that, Arm's kind or AMD's. L2
bandwidth a core tells "threads" that are whole cores; what else a second thread brings is a habit of the kind. Points
measured at other numbers of workers then correct the two numbers of that server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rackscope.errors import ModelError
from rackscope.models.trained import cloud_servers
from rackscope.models.trained.base import Columns, Examples, Floats
from rackscope.models.trained.fit import Ends, Fit, Located, calibrate_by_folds
from rackscope.models.trained.grouped_regression import GroupedRegression, fit_grouped_regression
from rackscope.models.trained.model import Aim, Described, Input, Model
from rackscope.models.trained.scaling_curve import Belief, relative_throughput, sensitivities, update

if TYPE_CHECKING:
    import polars as pl

#: By what a curve of two numbers misses measured points anyhow, as a fraction.
_FLOOR = 0.003
_COLUMNS = (
    "cores",
    "threads a core",
    "operations/s of one worker",
    "L2 bandwidth over operations/s",
    "DRAM bandwidth over operations/s",
    "arm",
    "amd",
    *cloud_servers.GENERATION_COLUMNS,
)
#: What a second thread brings is a habit of the generation; what workers lose to each other is not, and is regressed
#: without it.
_OF_SLOWDOWN = len(_COLUMNS) - len(cloud_servers.GENERATION_COLUMNS)
#: Both numbers are regressed in tenths: scales below a thousandth of a squared logarithm are not looked for, and these
#: numbers are known to a third of a percent.
_TENTHS = 10.0
#: Parts of the hardware threads at which the few points are measured.
_FEW = (0.5, 0.75)
_FOLDS = 20
_HOW = "conformal, calibrated on processors left out of the fit, apart for workers within and beyond the cores"


def _of_tables(frames: Mapping[str, pl.DataFrame], few: bool) -> Examples:
    """Every measured number of workers but one, and but those that are taken for known where there are a ``few``."""
    import polars as pl

    frame = cloud_servers.calibrated_servers(frames).filter(pl.col("vcpus") >= 2).with_row_index("index")
    servers = cloud_servers.arrays(frame, "core count", cloud_servers.TABLES)
    threads, one, cores = servers["vcpus"], servers["one"], _cores(servers)
    rows = (
        cloud_servers.scaling_points(frames)
        .join(frame.select("server", "index", "vcpus"), on="server")
        .filter((pl.col("workers") > 1) & (pl.col("workers") <= pl.col("vcpus")))
        .sort("index", "workers")
    )
    index = rows["index"].to_numpy().astype(np.intp)
    workers, rates = rows["workers"].to_numpy(), rows["ops_per_second"].to_numpy()
    slowdown = np.zeros(len(threads))
    seen_workers, seen = np.ones((len(threads), len(_FEW))), np.full((len(threads), len(_FEW)), np.nan)
    judged = np.ones(len(rows), dtype=bool)
    bounds = np.searchsorted(index, np.arange(len(threads) + 1))
    for server, (start, end) in enumerate(pairwise(bounds.tolist())):
        measured = np.concatenate([[1.0], workers[start:end]])
        relative = np.log(np.concatenate([[one[server]], rates[start:end]]) / measured / one[server])
        slowdown[server] = float(np.interp(cores[server], measured, relative))
        if few and end - start >= 2:
            for point, part in enumerate(_FEW):
                # The last point is all hardware threads: never measured, always predicted.
                at = int(np.argmin(np.abs(workers[start : end - 1] - part * threads[server])))
                if judged[start + at]:
                    judged[start + at] = False
                    seen_workers[server, point], seen[server, point] = workers[start + at], relative[1 + at]
    of_servers = {
        "slowdown": slowdown,
        "gain": np.log(servers["all"] / one / cores),
        "seen_workers": seen_workers,
        "seen": seen,
    }
    examples = _examples(servers, index, workers, rates, of_servers)
    return replace(examples, incomplete=len(frames[cloud_servers.SERVERS]) - len(threads)).take(judged)


def _cores(servers: Columns) -> Floats:
    return np.asarray(np.maximum(np.round(servers["vcpus"] / servers["threads_per_core"]), 1.0))


def _examples(
    servers: Columns, index: NDArray[np.intp], workers: Floats, rates: Floats, of_servers: Mapping[str, Floats]
) -> Examples:
    """One row for each of ``workers``, of the server whose number ``index`` has."""
    threads, one, cores = servers["vcpus"], servers["one"], _cores(servers)
    groups, arm, amd = cloud_servers.processors(servers)
    per_core = np.log(one * cores)
    features = np.column_stack(
        [
            np.log(cores),
            np.log(threads / cores),
            np.log(one),
            np.log(servers["read_bandwidth_l2_mb_s"]) - per_core,
            np.log(servers["read_bandwidth_dram_mb_s"]) - per_core,
            arm,
            amd,
            *cloud_servers.generations(servers),
        ]
    )
    return Examples(
        features=features[index],
        columns=_COLUMNS,
        anchor=one[index] * workers,
        target=rates,
        groups=groups[index],
        parts=np.full(len(index), "operations/s"),
        splits={"provider": cloud_servers.providers(servers)[index]},
        extra={
            "server": index.astype(np.float64),
            "workers": workers,
            "cores": cores[index],
            "threads": threads[index],
            **{name: values[index] for name, values in of_servers.items()},
        },
        subsets={"all hardware threads": workers == threads[index]},
    )


@dataclass(frozen=True)
class _Scaling(Fit):
    """Regressions ``slowdown`` and, if cores have threads, ``gain``; ends ``within`` and ``beyond`` the cores."""

    how = _HOW
    #: One vote a row: processors of a single server, oddities among them, would else widen the intervals of all.
    evenness: ClassVar[float] = 0.0

    def locate(self, examples: Examples) -> Located:
        """Raises ModelError where servers have threads that share cores, and the fit saw none."""
        belief, which = self._beliefs(examples)
        at = (examples.extra["workers"], examples.extra["cores"], examples.extra["threads"])
        numbers = (belief.slowdown[which], belief.gain[which])
        of_slowdown, of_gain = sensitivities(*at, *numbers)
        variance = (of_slowdown * belief.slowdown_deviation[which]) ** 2 + (of_gain * belief.gain_deviation[which]) ** 2
        return Located(
            anchor=examples.anchor,
            centre=relative_throughput(*at, *numbers),
            deviation=np.sqrt(variance + _FLOOR**2),
            names=np.where(at[0] <= at[1], "within", "beyond"),
        )

    def _beliefs(self, examples: Examples) -> tuple[Belief, NDArray[np.intp]]:
        """What is thought of each server, its measured points included; and which server each row is of."""
        first, which = _servers(examples)
        features = examples.features[first]
        cores, threads = examples.extra["cores"][first], examples.extra["threads"][first]
        shared, gain = threads > cores, self.regressions.get("gain")
        if gain is None and shared.any():
            raise ModelError(
                "the fit saw no processor with several hardware threads a core", "Fit on a table that has such servers."
            )
        slow, slow_deviation = _predicted(self.regressions["slowdown"], features[:, :_OF_SLOWDOWN])
        alone = cores < 2
        slow, slow_deviation = np.where(alone, 0.0, slow), np.where(alone, 1e-4, slow_deviation)
        both, both_deviation = slow.copy(), slow_deviation.copy()
        if gain is not None and shared.any():
            both[shared], both_deviation[shared] = _predicted(gain, features[shared])
        belief = Belief(slow, both, slow_deviation, both_deviation)
        seen_workers, seen = examples.extra["seen_workers"][first], examples.extra["seen"][first]
        return update(belief, seen_workers, seen, cores, threads), which

    @classmethod
    def fit(cls, examples: Examples, like: Fit | None = None) -> Self:
        """Fit both numbers; the scales and the ends are those of ``like``, where it is given. Raises ModelError."""
        if like is not None:
            return cls(_regressions(examples, like), like.ends)
        regressions = _regressions(examples, None)
        whole = cls(regressions, {})
        found = calibrate_by_folds(examples, lambda rest: cls.fit(rest, whole), _FOLDS, cls.evenness, cls.caution)
        within = found["within"]
        return cls(regressions, {"within": Ends(within), "beyond": Ends(found.get("beyond", within))})


def _servers(examples: Examples) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first row of each server, and which server each row is of."""
    _, first, which = np.unique(examples.extra["server"], return_index=True, return_inverse=True)
    return first, which


def _predicted(number: GroupedRegression, features: Floats) -> tuple[Floats, Floats]:
    estimate, deviation = number.predict(features)
    return estimate / _TENTHS, deviation / _TENTHS


def _regressions(examples: Examples, like: Fit | None) -> dict[str, GroupedRegression]:
    """Fit both numbers, with the scales of ``like`` where it is given."""
    first, _ = _servers(examples)
    cores = examples.extra["cores"][first]
    # Rows of a processor are thinned evenly over its servers, from the smallest to the greatest.
    first, cores = first[np.argsort(cores, kind="stable")], np.sort(cores)
    shared = first[examples.extra["threads"][first] > cores]
    found = {}
    for name, rows, columns in (
        ("slowdown", first[cores >= 2], _OF_SLOWDOWN),
        ("gain", shared, len(_COLUMNS)),
    ):
        if name == "gain" and (len(shared) < 20 if like is None else name not in like.regressions):
            continue
        found[name] = fit_grouped_regression(
            examples.features[rows, :columns],
            examples.extra[name][rows] * _TENTHS,
            examples.groups[rows],
            scales=None if like is None else like.regressions[name].scales,
        )
    return found


def _described(server: Described, few: bool) -> Examples:
    """The described server at ``workers``. Raises ModelError."""
    threads, workers = float(str(server["hardware_threads"])), float(str(server["workers"]))
    if not 1 < workers <= threads or workers != int(workers):
        raise ModelError(
            f"{workers:g} workers are not between 2 and the {threads:g} hardware threads",
            "Beyond the hardware threads nothing was fitted.",
        )
    columns = cloud_servers.described_columns(server, at_all=False)
    rates = cloud_servers.points(server, "operations_per_second")
    seen_workers, seen = np.ones((1, len(_FEW))), np.full((1, len(_FEW)), np.nan)
    left = sorted(n for n in rates if 1 < n < threads) if few else []
    for point, part in enumerate(_FEW[: len(left)]):
        at = min(left, key=lambda workers: abs(workers - part * threads))
        left.remove(at)
        seen_workers[0, point], seen[0, point] = at, np.log(rates[at] / at / rates[1.0])
    unknown = np.array([np.nan])
    of_server = {"slowdown": unknown, "gain": unknown, "seen_workers": seen_workers, "seen": seen}
    return _examples(columns, np.array([0]), np.array([workers]), unknown, of_server)


_INPUTS = (
    *cloud_servers.INPUTS[:-1],
    Input("workers", "how many are asked about, 2 to all hardware threads", column="workers"),
)
_RATES = "operations_per_second"
_KNOWN = "hardware threads, threads a core, read bandwidth of DRAM and L2"
_FROM_ONE = Model(
    name="core-count",
    help="operations/s over workers, from one worker",
    unit="operations/s",
    tables=cloud_servers.TABLES,
    measured=f"operations/s at 1 worker; {_KNOWN}",
    predicted="operations/s at every other number of workers up to all hardware threads",
    aim=Aim(median=0.03, p90=0.10),
    examples=partial(_of_tables, few=False),
    fit=_Scaling.fit,
    inputs=(*_INPUTS, Input(_RATES, "of stress-ng by number of workers: at 1")),
    describe=partial(_described, few=False),
    form=_Scaling,
)
MODELS = (
    _FROM_ONE,
    replace(
        _FROM_ONE,
        name="core-count-few-points",
        help="operations/s over workers, from at most three numbers of workers",
        measured=f"operations/s at 1 worker and where measured nearest to half and 3/4 of all threads; {_KNOWN}",
        examples=partial(_of_tables, few=True),
        inputs=(
            *_INPUTS,
            Input(_RATES, "of stress-ng by number of workers: at 1, and near half and 3/4 of all threads"),
        ),
        describe=partial(_described, few=True),
    ),
)
