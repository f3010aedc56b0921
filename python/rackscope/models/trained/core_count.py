"""Operations/s over the number of workers, aware of hardware threads that share a core, on processors never seen.

What a server's two numbers of ``scaling_curve`` are likely to be is regressed on things that are known before the
server is loaded: its size, operations/s of one worker, read bandwidths a core over that, Arm's kind or AMD's. L2
bandwidth a core tells "threads" that are whole cores; what else a second thread brings is a habit of the kind. Points
measured at other numbers of workers then correct the two numbers of that server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from rackscope.errors import ModelError
from rackscope.models.trained.base import Aim, Described, Examples, Fitted, Input, Model, Predictions
from rackscope.models.trained.cloud_servers import (
    GENERATION_COLUMNS,
    INPUTS,
    SCALING,
    SERVERS,
    described_tables,
    points,
)

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from rackscope.models.trained.conformal import Calibration
    from rackscope.models.trained.grouped_regression import GroupedRegression
    from rackscope.models.trained.scaling_curve import Belief

    Floats = NDArray[np.float64]
    Strings = NDArray[np.str_]

#: By what a curve of two numbers misses measured points anyhow, as a share.
_FLOOR = 0.003
_COLUMNS = (
    "cores",
    "threads a core",
    "operations/s of one worker",
    "L2 bandwidth over operations/s",
    "DRAM bandwidth over operations/s",
    "arm",
    "amd",
    *GENERATION_COLUMNS,
)
#: What a second thread brings is a habit of the generation; what workers lose to each other is not, and is regressed
#: without it.
_OF_SLOWDOWN = len(_COLUMNS) - len(GENERATION_COLUMNS)
#: Both numbers are regressed in tenths: scales below a thousandth of a squared logarithm are not looked for, and these
#: numbers are known to a third of a percent.
_TENTHS = 10.0
#: Parts of the hardware threads at which the few points are measured.
_FEW = (0.5, 0.75)
_FOLDS = 20
#: One vote a row: processors of a single server, oddities among them, would else widen the intervals of all.
_EVENNESS, _CAUTION = 0.0, 0.5
_HOW = "conformal, calibrated on processors left out of the fit, apart for workers within and beyond the cores"


def _examples(frames: Mapping[str, pl.DataFrame], few: bool, asked: float | None = None) -> Examples:
    """Every measured number of workers; of a described server only ``asked``, which was not measured."""
    import numpy as np
    import polars as pl

    from rackscope.models.trained.cloud_servers import (
        calibrated_servers,
        generations,
        processors,
        providers,
        scaling_points,
    )

    servers = calibrated_servers(frames, at_all=asked is None).filter(pl.col("vcpus") >= 2).with_row_index("index")
    if servers.is_empty():
        raise ModelError(
            f"no server has all that the model of core count needs in {SERVERS} and {SCALING}",
            "It needs operations/s at one worker and at all hardware threads, and read bandwidths.",
        )
    threads = servers["vcpus"].to_numpy()
    cores = np.maximum(np.round(threads / servers["threads_per_core"].to_numpy()), 1.0)
    one, every = servers["one"].to_numpy(), servers["all"].to_numpy()
    measured_points = scaling_points(frames)
    if asked is not None:
        measured_points = pl.DataFrame(
            {
                "server": servers["server"],
                "workers": [asked] * len(servers),
                "ops_per_second": [float("nan")] * len(servers),
            }
        )
    rows = (
        measured_points.join(servers.select("server", "index", "vcpus"), on="server")
        .filter((pl.col("workers") > 1) & (pl.col("workers") <= pl.col("vcpus")))
        .sort("index", "workers")
    )
    index = rows["index"].to_numpy().astype(np.intp)
    workers, rates = rows["workers"].to_numpy(), rows["ops_per_second"].to_numpy()
    slowdown, seen_workers, seen = (
        np.zeros(len(servers)),
        np.ones((len(servers), 2)),
        np.full((len(servers), 2), np.nan),
    )
    judged = np.ones(len(rows), dtype=bool)
    bounds = np.searchsorted(index, np.arange(len(servers) + 1))
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
    groups, arm, amd = processors(servers)
    per_core = np.log(one * cores)
    features = np.column_stack(
        [
            np.log(cores),
            np.log(threads / cores),
            np.log(one),
            np.log(servers["read_bandwidth_l2_mb_s"].to_numpy()) - per_core,
            np.log(servers["read_bandwidth_dram_mb_s"].to_numpy()) - per_core,
            arm,
            amd,
            *generations(servers),
        ]
    )
    examples = Examples(
        features=features[index],
        columns=_COLUMNS,
        anchor=one[index] * workers,
        target=rates,
        groups=groups[index],
        parts=np.full(len(rows), "operations/s"),
        splits={"provider": providers(servers)[index]},
        extra={
            "server": index.astype(np.float64),
            "workers": workers,
            "cores": cores[index],
            "threads": threads[index],
            "slowdown": slowdown[index],
            "gain": np.log(every / one / cores)[index],
            "seen_workers": seen_workers[index],
            "seen": seen[index],
        },
        subsets={"all hardware threads": workers == threads[index]},
        incomplete=len(frames[SERVERS]) - len(servers),
    )
    return examples.take(judged)


@dataclass(frozen=True)
class _Scaling:
    slowdown: GroupedRegression
    gain: GroupedRegression | None
    within: Calibration
    beyond: Calibration

    def predict(self, examples: Examples) -> Predictions:
        """Raises ModelError where servers have threads that share cores, and the fit saw none."""
        import numpy as np

        centre, deviation = _rows(examples, *_beliefs(examples, self.slowdown, self.gain))
        inside = examples.extra["workers"] <= examples.extra["cores"]
        below = np.where(inside, self.within.below, self.beyond.below)
        above = np.where(inside, self.within.above, self.beyond.above)
        return Predictions(
            estimate=examples.anchor * np.exp(centre),
            low=examples.anchor * np.exp(centre + below * deviation),
            high=examples.anchor * np.exp(centre + above * deviation),
            how=_HOW,
        )


def _servers(examples: Examples) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first row of each server, and which server each row is of."""
    import numpy as np

    _, first, which = np.unique(examples.extra["server"], return_index=True, return_inverse=True)
    return first, which


def _beliefs(
    examples: Examples, slowdown: GroupedRegression, gain: GroupedRegression | None
) -> tuple[Belief, NDArray[np.intp]]:
    """What is thought of each server, its measured points included; and which server each row is of."""
    import numpy as np

    from rackscope.models.trained.scaling_curve import Belief, update

    first, which = _servers(examples)
    features = examples.features[first]
    cores, threads = examples.extra["cores"][first], examples.extra["threads"][first]
    shared = threads > cores
    if gain is None and shared.any():
        raise ModelError(
            "the fit saw no processor with several hardware threads a core", "Fit on a table that has such servers."
        )
    slow, slow_deviation = _predicted(slowdown, features[:, :_OF_SLOWDOWN])
    alone = cores < 2
    slow, slow_deviation = np.where(alone, 0.0, slow), np.where(alone, 1e-4, slow_deviation)
    both, both_deviation = slow.copy(), slow_deviation.copy()
    if gain is not None and shared.any():
        both[shared], both_deviation[shared] = _predicted(gain, features[shared])
    belief = Belief(slow, both, slow_deviation, both_deviation)
    seen_workers, seen = examples.extra["seen_workers"][first], examples.extra["seen"][first]
    return update(belief, seen_workers, seen, cores, threads), which


def _predicted(number: GroupedRegression, features: Floats) -> tuple[Floats, Floats]:
    estimate, deviation = number.predict(features)
    return estimate / _TENTHS, deviation / _TENTHS


def _rows(examples: Examples, belief: Belief, which: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Logarithm of throughput over perfect scaling, and its deviation, row by row."""
    import numpy as np

    from rackscope.models.trained.scaling_curve import relative_throughput, sensitivities

    at = (examples.extra["workers"], examples.extra["cores"], examples.extra["threads"])
    numbers = (belief.slowdown[which], belief.gain[which])
    of_slowdown, of_gain = sensitivities(*at, *numbers)
    variance = (of_slowdown * belief.slowdown_deviation[which]) ** 2 + (of_gain * belief.gain_deviation[which]) ** 2
    return relative_throughput(*at, *numbers), np.sqrt(variance + _FLOOR**2)


def _fit(examples: Examples, like: Fitted | None = None) -> Fitted:
    import numpy as np

    from rackscope.models.trained.conformal import calibrate

    if isinstance(like, _Scaling):
        return _Scaling(*_regressions(examples, like.slowdown, like.gain), like.within, like.beyond)
    slowdown, gain = _regressions(examples, None, None)
    names = np.unique(examples.groups)
    np.random.default_rng(0).shuffle(names)
    fold = {str(name): number % _FOLDS for number, name in enumerate(names)}
    folds = np.array([fold[str(name)] for name in examples.groups])
    scores = np.empty(len(examples))
    for number in range(_FOLDS):
        left = folds == number
        rest = _regressions(examples.take(~left), slowdown, gain)
        out = examples.take(left)
        centre, deviation = _rows(out, *_beliefs(out, *rest))
        scores[left] = (np.log(out.target / out.anchor) - centre) / deviation
    inside = examples.extra["workers"] <= examples.extra["cores"]
    within = calibrate(scores[inside], examples.groups[inside], evenness=_EVENNESS, caution=_CAUTION)
    beyond = (
        calibrate(scores[~inside], examples.groups[~inside], evenness=_EVENNESS, caution=_CAUTION)
        if (~inside).sum() >= 20
        else within
    )
    return _Scaling(slowdown, gain, within, beyond)


def _regressions(
    examples: Examples, slowdown: GroupedRegression | None, gain: GroupedRegression | None
) -> tuple[GroupedRegression, GroupedRegression | None]:
    """Fit both numbers, with the scales of those that are given."""
    import numpy as np

    from rackscope.models.trained.grouped_regression import fit_grouped_regression

    first, _ = _servers(examples)
    servers = examples.extra["cores"][first]
    # Rows of a processor are thinned evenly over its servers, from the smallest to the greatest.
    first, servers = first[np.argsort(servers, kind="stable")], np.sort(servers)
    several = first[servers >= 2]
    shared = first[examples.extra["threads"][first] > servers]
    found = fit_grouped_regression(
        examples.features[several, :_OF_SLOWDOWN],
        examples.extra["slowdown"][several] * _TENTHS,
        examples.groups[several],
        scales=None if slowdown is None else slowdown.scales,
    )
    if slowdown is None and len(shared) < 20:
        return found, None
    if slowdown is not None and gain is None:
        return found, None
    return found, fit_grouped_regression(
        examples.features[shared],
        examples.extra["gain"][shared] * _TENTHS,
        examples.groups[shared],
        scales=None if gain is None else gain.scales,
    )


def _from_one(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _examples(frames, few=False)


def _from_few(frames: Mapping[str, pl.DataFrame]) -> Examples:
    return _examples(frames, few=True)


def _describe(server: Described) -> Examples:
    """The described server at ``workers``, from one worker alone. Raises ModelError."""
    threads, workers = float(str(server["hardware_threads"])), float(str(server["workers"]))
    rates = points(server, "operations_per_second")
    if 1.0 not in rates:
        raise ModelError("'operations_per_second' lacks one worker", "Give it like {1: 1500.0}.")
    if not 1 < workers <= threads or workers != int(workers):
        raise ModelError(
            f"{workers:g} workers are not between 2 and the {threads:g} hardware threads",
            "Beyond the hardware threads nothing was fitted.",
        )
    tables = described_tables({**server, "operations_per_second": {1.0: rates[1.0]}}, at_all=False)
    return _examples(tables, few=False, asked=workers)


def _describe_few(server: Described) -> Examples:
    import numpy as np

    examples = _describe(server)
    if not len(examples):
        return examples
    rates = points(server, "operations_per_second")
    threads = float(str(server["hardware_threads"]))
    left = sorted(n for n in rates if 1 < n < threads)
    seen_workers, seen = np.ones((1, len(_FEW))), np.full((1, len(_FEW)), np.nan)
    for point, part in enumerate(_FEW[: len(left)]):
        at = min(left, key=lambda workers: abs(workers - part * threads))
        left.remove(at)
        seen_workers[0, point], seen[0, point] = at, np.log(rates[at] / at / rates[1.0])
    return replace(examples, extra={**examples.extra, "seen_workers": seen_workers, "seen": seen})


_INPUTS = (*INPUTS[:-1], Input("workers", "how many are asked about, 2 to all hardware threads"))
_ONE = Input("operations_per_second", "of stress-ng by number of workers: at 1")
_POINTS = Input(
    "operations_per_second", "of stress-ng by number of workers: at 1, and near half and 3/4 of all threads"
)
_KNOWN = "hardware threads, threads a core, read bandwidth of DRAM and L2"
_PREDICTED = "operations/s at every other number of workers up to all hardware threads"

MODELS = (
    Model(
        name="core-count",
        help="operations/s over workers, from one worker",
        unit="operations/s",
        tables=(SERVERS, SCALING),
        measured=f"operations/s at 1 worker; {_KNOWN}",
        predicted=_PREDICTED,
        aim=Aim(median=0.03, p90=0.10),
        examples=_from_one,
        fit=_fit,
        inputs=(*_INPUTS, _ONE),
        describe=_describe,
    ),
    Model(
        name="core-count-few-points",
        help="operations/s over workers, from at most three numbers of workers",
        unit="operations/s",
        tables=(SERVERS, SCALING),
        measured=f"operations/s at 1 worker and where measured nearest to half and 3/4 of all threads; {_KNOWN}",
        predicted=_PREDICTED,
        aim=Aim(median=0.03, p90=0.10),
        examples=_from_few,
        fit=_fit,
        inputs=(*_INPUTS, _POINTS),
        describe=_describe_few,
    ),
)
