"""Time over core frequency: a part that the clock drives and a part that it does not, t = cycles / f + fixed.

The memory part takes its nanoseconds whatever the core's clock (leading loads: Eyerman and Eeckhout 2010; Amdahl's law
in frequency). This is what equations 2 and 5 of Issa 2012 are about, with CPI = core CPI + memory seconds x f, which
rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rackscope.models.estimates import (
    EXTRAPOLATED,
    Prediction,
    require_points,
    require_positive,
    require_same_length,
)
from rackscope.models.gates import Gate, ProjectionRefused, elasticity_gate, instruction_drift_gate, require
from rackscope.models.non_negative import BASIS, NonNegativeFit, fit_non_negative

_FEWEST_FREQUENCIES = 3
#: Beyond this many times the measured range on either side, turbo, voltage and uncore clocks are others.
_FURTHEST = 1.5
_NAMES = ("core cycles", "memory time")


@dataclass(frozen=True)
class ExecutionTimeModel:
    """``core_cycles`` are driven by the clock, ``memory_seconds`` are not. Frequencies in hertz, of one host."""

    core_cycles: float
    memory_seconds: float
    lowest_hertz: float
    highest_hertz: float
    gates: tuple[Gate, ...]
    fit: NonNegativeFit

    def predict(self, frequency_hertz: float) -> Prediction:
        """Seconds at ``frequency_hertz``. Raises ProjectionRefused far from what was measured."""
        require_near(frequency_hertz, self.lowest_hertz, self.highest_hertz)
        value, low, high = self.fit.interval(_terms(frequency_hertz))
        extrapolated = not self.lowest_hertz <= frequency_hertz <= self.highest_hertz
        return Prediction(value, low, high, "seconds", BASIS + EXTRAPOLATED * extrapolated, extrapolated)

    def memory_share(self, frequency_hertz: float) -> float:
        """Share of the time at ``frequency_hertz`` that the clock does not change; 1 - elasticity of throughput."""
        return self.memory_seconds / self.fit.value(_terms(frequency_hertz))


def fit_execution_time(
    frequencies_hertz: Sequence[float],
    seconds: Sequence[float],
    *,
    instructions: Sequence[float | None] | None = None,
) -> ExecutionTimeModel:
    """Fit from times at three frequencies or more of one host, the same work each time.

    With ``instructions`` (retired in each, where counted) it is checked that the work was the same. Raises
    RackscopeError for less or for values that are not above zero, ProjectionRefused where time falls faster than the
    clock rises, or rises with it.
    """
    require_points(_FEWEST_FREQUENCIES, "frequencies", frequency=frequencies_hertz, time=seconds)
    counted = [None] * len(seconds) if instructions is None else instructions
    require_same_length(times=seconds, instruction_counts=counted)
    gates = require(
        elasticity_gate(frequencies_hertz, [1 / one for one in seconds], "frequency"),
        instruction_drift_gate(frequencies_hertz, counted, "frequency"),
    )
    fit = fit_non_negative([_terms(one) for one in frequencies_hertz], seconds, _NAMES)
    if fit.negative:
        raise ProjectionRefused(
            f"no projection over frequency: the {fit.negative[0]} would be negative, so more than the clock changed",
            "Hold everything else still (turbo, uncore clock, neighbours) and measure again.",
        )
    core_cycles, memory_seconds = fit.coefficients
    return ExecutionTimeModel(core_cycles, memory_seconds, min(frequencies_hertz), max(frequencies_hertz), gates, fit)


def require_near(hertz: float, lowest: float, highest: float) -> None:
    """Raises ProjectionRefused for a frequency too far from ``lowest`` to ``highest``, which were measured."""
    require_positive([hertz], "the frequency")
    if not lowest / _FURTHEST <= hertz <= highest * _FURTHEST:
        raise ProjectionRefused(
            f"{hertz / 1e9:.2f} GHz is too far from the {lowest / 1e9:.2f} to {highest / 1e9:.2f} GHz that were "
            "measured",
            "Measure nearer to it.",
        )


def _terms(frequency_hertz: float) -> tuple[float, float]:
    return 1 / frequency_hertz, 1.0
