"""Equations 1 to 6 of Issa 2012, as the paper states them.

J. Issa and S. Figueira, Hadoop and memcached: Performance and power characterization and analysis, Journal of Cloud
Computing 1:10, 2012. Every function raises RackscopeError where an argument makes the equation meaningless; none of
them says how far its result may be off, as the paper gives nothing to tell it from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rackscope.errors import RackscopeError
from rackscope.papers.issa2012.printed import BLOCK_BYTES, Processor


@dataclass(frozen=True)
class CpiLine:
    """1/CPI = ``intercept`` + ``slope_megahertz`` / MHz: the paper's regression for memcached (figure 13)."""

    intercept: float
    slope_megahertz: float

    def cpi(self, frequency_megahertz: float) -> float:
        """Cycles per instruction. Raises RackscopeError at or below the frequency where the line reaches zero."""
        _positive(frequency_megahertz, "a frequency")
        instructions_per_cycle = self.intercept + self.slope_megahertz / frequency_megahertz
        if instructions_per_cycle <= 0:
            raise RackscopeError(
                f"the CPI line of Issa 2012 has no value at {frequency_megahertz:g} MHz",
                f"It reaches zero instructions per cycle at {self.lowest_megahertz:.0f} MHz; ask above that.",
            )
        return 1 / instructions_per_cycle

    @property
    def limit_cpi(self) -> float:
        """The CPI that the line tends to as frequency grows without end; the paper calls it the lower bound."""
        return 1 / self.intercept

    @property
    def lowest_megahertz(self) -> float:
        """Where the line reaches zero instructions per cycle: at and below it, it means nothing."""
        return max(0.0, -self.slope_megahertz / self.intercept)

    def throughput_elasticity(self, frequency_megahertz: float) -> float:
        """d ln(frequency/CPI) / d ln(frequency): above 1, more speed than the clock gained."""
        _positive(frequency_megahertz, "a frequency")
        return self.intercept * self.cpi(frequency_megahertz)


def cpi_line_through(first_megahertz: float, first_cpi: float, second_megahertz: float, second_cpi: float) -> CpiLine:
    """The line through two measured points, which is how the paper fits. Raises RackscopeError for one frequency."""
    for value in (first_megahertz, second_megahertz):
        _positive(value, "a frequency")
    for value in (first_cpi, second_cpi):
        _positive(value, "a CPI")
    if first_megahertz == second_megahertz:
        raise RackscopeError("two points at one frequency have no line", "Give two frequencies.")
    slope = (1 / first_cpi - 1 / second_cpi) / (1 / first_megahertz - 1 / second_megahertz)
    return CpiLine(1 / first_cpi - slope / first_megahertz, slope)


@dataclass(frozen=True)
class PathLength:
    """Equation 3: instructions per byte of data = ``a`` ln(cores) + ``b``."""

    a: float
    b: float

    def instructions_per_byte(self, cores: int) -> float:
        """At ``cores`` cores. Raises RackscopeError where the equation is at or below zero."""
        if cores < 1:
            raise RackscopeError(f"{cores} cores have no path length", "Give one or more.")
        instructions = self.at(cores)
        if instructions <= 0:
            raise RackscopeError(
                f"the path length of Issa 2012 is {instructions:.0f} instructions at {cores} cores",
                f"It crosses zero at {self.zero_cores:.2f} cores and means nothing beyond.",
            )
        return instructions

    def at(self, cores: float) -> float:
        """What the equation gives, be it negative."""
        return self.a * math.log(cores) + self.b

    @property
    def zero_cores(self) -> float:
        """Cores at which the equation gives zero; infinite for a constant."""
        return math.exp(-self.b / self.a) if self.a else math.inf


def path_length_through(first_cores: int, first: float, second_cores: int, second: float) -> PathLength:
    """The equation through two points of instructions per byte. Raises RackscopeError for one number of cores."""
    if first_cores == second_cores or min(first_cores, second_cores) < 1:
        raise RackscopeError("two points at one number of cores have no line", "Give two numbers of cores.")
    a = (second - first) / math.log(second_cores / first_cores)
    return PathLength(a, first - a * math.log(first_cores))


def performance_per_watt(speedup: float, power_ratio: float) -> float:
    """Equation 1: speedup over power ratio, both of one system against another."""
    _positive(power_ratio, "a power ratio")
    return speedup / power_ratio


def execution_seconds(
    processor: Processor, cpi: float, instructions_per_byte: float, data_bytes: float = BLOCK_BYTES
) -> float:
    """Equation 2, with an efficiency of 1: the paper never says its value, and 1 gives what it prints."""
    _positive(cpi, "a CPI")
    _positive(instructions_per_byte, "a path length")
    return data_bytes * cpi * instructions_per_byte / processor.hertz / processor.cores


def other_factor(processor: Processor, seconds: float, factor: float, data_bytes: float = BLOCK_BYTES) -> float:
    """Equation 2 solved for one factor: the CPI where ``factor`` is the path length, and the other way round."""
    return seconds * processor.hertz * processor.cores / (data_bytes * factor)


@dataclass(frozen=True)
class PowerForm:
    """P0 + (P1 - P0) (f / f1)^n, with P0 = ``fixed_watts`` and P1 = ``watts`` at f1 = ``hertz``.

    With n = -1 these are equations 5 and 6 as printed, which is the form for time. With voltage in proportion to
    frequency, as the paper assumes, equation 4 has n = 3; at a fixed voltage n = 1: power that rises with frequency.
    """

    fixed_watts: float
    watts: float
    hertz: float
    exponent: float

    def at(self, hertz: float) -> float:
        _positive(hertz, "a frequency")
        return self.fixed_watts + (self.watts - self.fixed_watts) * math.pow(hertz / self.hertz, self.exponent)


def power_through(watts: float, hertz: float, second_watts: float, second_hertz: float, exponent: float) -> PowerForm:
    """The form through two points. Raises RackscopeError for one frequency."""
    if hertz == second_hertz:
        raise RackscopeError("two points at one frequency have no fixed part", "Give two frequencies.")
    growth = math.pow(second_hertz / hertz, exponent)
    return PowerForm((second_watts - watts * growth) / (1 - growth), watts, hertz, exponent)


def _positive(value: float, what: str) -> None:
    if not 0 < value < math.inf:
        raise RackscopeError(f"{what} must be above zero, not {value:g}", "Give it in base units.")
