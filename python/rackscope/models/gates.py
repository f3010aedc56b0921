"""What must hold before a projection may be made; a gate that cannot look neither passes nor fails, and says so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from rackscope.analysis.intervals import student_quantile
from rackscope.analysis.latency_curve import CurvePoint, check_little
from rackscope.errors import RackscopeError

#: What an elasticity may be beyond 0 to 1 before it is refused: two clocks of one host are measured to about 1 %, and
#: neighbouring points a fifth apart make 5 % of that. Our choice.
_ELASTICITY_SLACK = 0.05
#: Instructions per operation may change this much over the points: below it, a projection errs by less than its
#: interval usually is wide. Our choice.
_DRIFT = 0.05
#: Level at which a drift or an elasticity must be told from chance: two-sided.
_LEVEL = 0.95


class ProjectionRefused(RackscopeError):  # noqa: N818 - what happened is a refusal, no error
    """What a projection assumes does not hold for what was measured."""


@dataclass(frozen=True)
class Gate:
    """``passed`` is ``None`` where it could not be looked at; ``sentence`` says what was seen."""

    name: str
    passed: bool | None
    sentence: str


def require(*gates: Gate) -> tuple[Gate, ...]:
    """The gates, when none failed. Raises ProjectionRefused naming every one that did."""
    failed = [gate.sentence for gate in gates if gate.passed is False]
    if failed:
        raise ProjectionRefused(
            f"no projection: {'; '.join(failed)}", "Measure again, or at points where what the model assumes holds."
        )
    return gates


def little_gate(points: Sequence[CurvePoint]) -> Gate:
    """Requests in the system = throughput x mean response time (Little 1961), at every point where both are known."""
    checks = [check_little(point) for point in points]
    known = [check for check in checks if check.agrees is not None]
    if not known:
        return Gate("little", None, "Little's law was not checked: requests in the system were not counted")
    broken = [check for check in known if not check.agrees]
    if broken:
        return Gate("little", False, f"Little's law fails at {len(broken)} of {len(known)} points: {broken[0].reason}")
    return Gate("little", True, f"Little's law holds at all {len(known)} points")


def elasticity_gate(resource: Sequence[float], throughput: Sequence[float], name: str) -> Gate:
    """d ln(throughput) / d ln(resource) lies in 0 to 1, as far as the points tell.

    Above 1, more than the resource changed; below 0, something else got worse with it. It fails where the 95 % interval
    of the slope through all points is outside, and, with two points, where the slope is.
    """
    slope = log_slope(resource, throughput)
    if slope is None:
        return Gate("elasticity", None, f"elasticity to {name} was not checked: it takes two values above zero of each")
    estimate, low, high = slope
    shown = f"throughput changes by {estimate:.2f} % for 1 % of {name}"
    if low > 1 + _ELASTICITY_SLACK:
        return Gate("elasticity", False, f"{shown}, more than {name} alone can do: something else changed with it")
    if high < -_ELASTICITY_SLACK:
        return Gate("elasticity", False, f"{shown}: something else got worse with it")
    return Gate("elasticity", True, shown)


def instruction_drift_gate(
    factor: Sequence[float], instructions_per_operation: Sequence[float | None], name: str
) -> Gate:
    """Instructions per operation stay the same over ``factor`` (frequency, cores, load): the same work is projected.

    It fails where their change over the points is above 5 % and its 95 % interval excludes none.
    """
    pairs = [
        (one, count)
        for one, count in zip(factor, instructions_per_operation, strict=True)
        if count is not None and 0 < count < math.inf and one > 0
    ]
    if len(pairs) < 3:
        return Gate(
            "instructions", None, f"instructions per operation were not checked: counted at {len(pairs)} points"
        )
    slope = log_slope([one for one, _ in pairs], [count for _, count in pairs])
    if slope is None:
        return Gate("instructions", None, f"instructions per operation were not checked: all at one {name}")
    estimate, low, high = slope
    factors = [one for one, _ in pairs]
    change = math.exp(estimate * math.log(max(factors) / min(factors))) - 1
    shown = f"instructions per operation change by {100 * change:+.1f} % over {name}"
    if abs(change) > _DRIFT and (low > 0 or high < 0):
        return Gate("instructions", False, f"{shown}: the workload differs from point to point")
    return Gate("instructions", True, shown)


def log_slope(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float] | None:
    """Slope of ln(y) over ln(x) with its 95 % interval (as narrow as a point when there are two places only)."""
    usable = [(one, two) for one, two in zip(x, y, strict=True) if 0 < one < math.inf and 0 < two < math.inf]
    if len(usable) < 2:
        return None
    across, up = np.log(np.array(usable)).T
    if len(across) * float(np.var(across)) < 1e-8:
        return None
    line = scipy.stats.linregress(across, up)
    slope, degrees = float(line.slope), len(usable) - 2
    reach = student_quantile(degrees, _LEVEL) * float(line.stderr) if degrees else 0.0
    return slope, slope - reach, slope + reach
