"""Throughput over cores by the Universal Scalability Law (Gunther 1993): contention and coherence.

X(N) = single x N / (1 + contention (N - 1) + coherence N (N - 1)). As N / X is a sum of known terms it is fitted by
non-negative least squares. Where coherence is above zero there is a knee, after which cores cost throughput.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.models.estimates import Prediction, require_points, require_positive
from rackscope.models.gates import Gate, ProjectionRefused, elasticity_gate, require
from rackscope.models.non_negative import BASIS, NonNegativeFit, fit_non_negative

_FEWEST_COUNTS = 4
#: Cores beyond this many times those measured are on other sockets and caches than what was seen.
_FURTHEST = 2.0
#: How far off the law is beyond the measured cores, for each unit of ln(cores / most measured). With it 90 % of the
#: intervals hold for CPU-bound work on 900 cloud servers (stress-ng, SpareCores), fitted on half and on 70 % of their
#: physical cores; without it two thirds do, as clocks, caches and neighbours change with the cores. It was chosen with
#: all of their CPU models in view: how it holds for others is not known yet.
_FORM_ERROR = 0.06
_FORM_BASIS = "; widened by how far off the law was beyond the measured cores of public servers"
_NAMES = ("single", "contention", "coherence")


@dataclass(frozen=True)
class CoreScalingModel:
    """The law's numbers; ``knee_cores`` is its peak or infinite, ``knee_low_cores`` its least (95 %)."""

    contention: float
    coherence: float
    knee_cores: float
    knee_low_cores: float
    fewest_cores: int
    most_cores: int
    physical_cores: int | None
    gates: tuple[Gate, ...]
    fit: NonNegativeFit

    def predict(self, cores: int) -> Prediction:
        """Operations per second on ``cores``.

        Raises ProjectionRefused beyond the measured range and the knee, and where hardware threads of one core would
        have to be told from cores.
        """
        require_positive([cores], "the number of cores")
        if cores > self.most_cores:
            self._refuse_beyond(cores)
        extrapolated = not self.fewest_cores <= cores <= self.most_cores
        beyond = max(cores / self.most_cores, self.fewest_cores / cores, 1.0)
        value, low, high = self.fit.interval(_terms(cores), form_error=_FORM_ERROR * math.log(beyond))
        basis = BASIS + _FORM_BASIS if extrapolated else BASIS
        return Prediction(cores / value, cores / high, cores / low, "operations/s", basis, extrapolated)

    def _refuse_beyond(self, cores: int) -> None:
        if self.most_cores >= self.knee_cores:
            raise ProjectionRefused(
                f"throughput peaks at {self.knee_cores:.1f} cores, within what was measured: {cores} cores are past "
                "the knee",
                f"Ask for at most {self.most_cores}; more cores cost throughput.",
            )
        if cores > self.knee_low_cores:
            peak = "may peak" if cores <= self.knee_cores else "peaks"
            at = self.knee_low_cores if cores <= self.knee_cores else self.knee_cores
            raise ProjectionRefused(
                f"throughput {peak} at {at:.1f} cores: no projection to {cores}, past the knee",
                "Measure with more cores to place the knee.",
            )
        if cores > self.most_cores * _FURTHEST:
            raise ProjectionRefused(
                f"{cores} cores are more than {_FURTHEST:g} times the {self.most_cores} that were measured",
                "Measure with more cores.",
            )
        if self.physical_cores is not None and self.most_cores <= self.physical_cores < cores:
            raise ProjectionRefused(
                f"{cores} are more than the {self.physical_cores} physical cores, and no hardware threads that share "
                "one were measured",
                "Measure with both threads of some cores.",
            )


def fit_core_scaling(
    cores: Sequence[int], throughput: Sequence[float], *, physical_cores: int | None = None
) -> CoreScalingModel:
    """Fit from throughput (operations per second) at four numbers of cores or more of one host.

    Raises RackscopeError for less or for values that are not above zero, ProjectionRefused where throughput grows
    faster than cores.
    """
    require_points(_FEWEST_COUNTS, "numbers of cores", number_of_cores=cores, throughput=throughput)
    rising = _before_peak(cores, throughput)
    gates = require(elasticity_gate([one for one, _ in rising], [one for _, one in rising], "cores"))
    each = [count / rate for count, rate in zip(cores, throughput, strict=True)]
    fit = fit_non_negative([_terms(one) for one in cores], each, _NAMES)
    if "contention" in fit.negative and "coherence" not in fit.negative and fit.coefficients[2] == 0:
        raise ProjectionRefused(
            "no projection over cores: throughput grows faster than the cores",
            "Look for what each core adds besides itself (cache, memory channels, clients).",
        )
    if fit.coefficients[0] <= 0:
        raise ProjectionRefused(
            "no projection over cores: the measurements leave nothing for what one core does",
            "Measure with one core and with two.",
        )
    single, contention, coherence = fit.coefficients
    contention, coherence = contention / single, coherence / single
    return CoreScalingModel(
        contention,
        coherence,
        _knee(contention, coherence),
        _knee(contention, fit.highest[2] / single),
        min(cores),
        max(cores),
        physical_cores,
        gates,
        fit,
    )


def _before_peak(cores: Sequence[int], throughput: Sequence[float]) -> list[tuple[int, float]]:
    """Points up to the peak: beyond it a negative elasticity is the law's own."""
    points = sorted(zip(cores, throughput, strict=True))
    peak = max(points, key=lambda one: one[1])[0]
    return [one for one in points if one[0] <= peak]


def _knee(contention: float, coherence: float) -> float:
    if coherence <= 0:
        return math.inf
    return math.sqrt(max(0.0, 1 - contention) / coherence) if contention < 1 else 1.0


def _terms(cores: float) -> tuple[float, float, float]:
    return 1.0, cores - 1.0, cores * (cores - 1.0)
