"""Time of a data-parallel job over machines and data, after Ernest (Venkataraman et al., NSDI 2016, equation 1).

t = fixed + parallel x data / machines + tree x ln(machines) + coordination x machines, all at least zero: what no
machine takes away, what all share, what is aggregated in a tree, and what each machine adds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.models.estimates import EXTRAPOLATED, Prediction, require_points, require_positive
from rackscope.models.gates import ProjectionRefused
from rackscope.models.non_negative import BASIS, NonNegativeFit, fit_non_negative

#: Ernest was shown to hold from samples on a few machines to several times as many.
_MOST_TIMES_MACHINES = 4.0
#: Data for each machine beyond what was measured may be past its wall, which no sample below it shows.
_MOST_DATA_A_MACHINE = 1.0
_NAMES = ("fixed time", "data per machine", "logarithm of machines", "machines")


@dataclass(frozen=True)
class ClusterSizeModel:
    """Machines of one kind. ``data`` is in the unit that it was fitted in, bytes or a share of the whole."""

    fit: NonNegativeFit
    most_machines: int
    fewest_machines: int
    most_data_a_machine: float

    def predict(self, machines: int, data: float) -> Prediction:
        """Seconds for ``data`` on ``machines``.

        Raises ProjectionRefused on many more machines than measured, and where a machine would have more data than any
        had.
        """
        require_positive([machines], "the number of machines")
        require_positive([data], "the size of data")
        if machines > self.most_machines * _MOST_TIMES_MACHINES:
            raise ProjectionRefused(
                f"{machines} machines are more than {_MOST_TIMES_MACHINES:g} times the {self.most_machines} that were "
                "measured",
                "Measure on more machines.",
            )
        if data / machines > self.most_data_a_machine * _MOST_DATA_A_MACHINE * (1 + 1e-9):
            raise ProjectionRefused(
                f"each of {machines} machines would have {data / machines / self.most_data_a_machine:.1f} times the "
                "data that one was measured with, and may be past its wall",
                "Measure one machine with as much data.",
            )
        value, low, high = self.fit.interval(_terms(machines, data))
        extrapolated = not self.fewest_machines <= machines <= self.most_machines
        return Prediction(value, low, high, "seconds", BASIS + EXTRAPOLATED * extrapolated, extrapolated)


def fit_cluster_size(machines: Sequence[int], data: Sequence[float], seconds: Sequence[float]) -> ClusterSizeModel:
    """Fit from five jobs on three numbers of machines or more. RackscopeError for less, or what varies together."""
    require_points(3, "numbers of machines", number_of_machines=machines, size_of_data=data, time=seconds)
    fit = fit_non_negative([_terms(*one) for one in zip(machines, data, strict=True)], seconds, _NAMES)
    most = max(size / count for size, count in zip(data, machines, strict=True))
    return ClusterSizeModel(fit, max(machines), min(machines), most)


def _terms(machines: int, data: float) -> tuple[float, float, float, float]:
    return 1.0, data / machines, math.log(machines), float(machines)
