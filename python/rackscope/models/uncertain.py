"""A quantity that is not known exactly, and draws of it from a seed."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

Shape = Literal["certain", "uniform", "triangular", "lognormal"]
#: Standard deviations within which 90 % of a normal lie.
NINETY_PERCENT = 1.6448536269514722


def generator(name: str, seed: int) -> np.random.Generator:
    """Random numbers of ``name``'s own, whatever else is drawn."""
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))


@dataclass(frozen=True)
class Uncertain:
    """``low`` to ``high``, ``middle`` being the value itself, the mode of a triangle, or the median of a lognormal.

    Of a lognormal, ``low`` and ``high`` are the ends between which 90 % lie; of the others nothing lies outside.
    """

    shape: Shape
    low: float
    middle: float
    high: float

    @classmethod
    def certain(cls, value: float) -> Uncertain:
        return cls("certain", value, value, value)

    @classmethod
    def uniform(cls, low: float, high: float) -> Uncertain:
        """Anything between, all equally likely."""
        return cls("uniform", low, (low + high) / 2, high)

    @classmethod
    def triangular(cls, low: float, mode: float, high: float) -> Uncertain:
        """Anything between, most likely ``mode``."""
        return cls("triangular", low, mode, high)

    @classmethod
    def lognormal(cls, median: float, factor: float) -> Uncertain:
        """90 % within ``factor`` (above one) of ``median`` (above zero), up or down."""
        return cls("lognormal", median / factor, median, median * factor)

    def draw(self, name: str, count: int, seed: int) -> Array:
        """``count`` values. Each name has numbers of its own, whatever else is drawn; the same call gives the same."""
        if self.shape == "certain":
            return np.full(count, self.middle)
        uniform = generator(name, seed).random(count)
        if self.shape == "uniform":
            return np.asarray(self.low + (self.high - self.low) * uniform)
        if self.shape == "lognormal":
            from scipy.special import ndtri

            deviation = math.log(self.high / self.middle) / NINETY_PERCENT
            # A uniform number may be zero exactly, whose normal deviate is not a number to go on with.
            return np.asarray(self.middle * np.exp(deviation * ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))))
        width, left, right = self.high - self.low, self.middle - self.low, self.high - self.middle
        rising, falling = self.low + np.sqrt(uniform * width * left), self.high - np.sqrt((1 - uniform) * width * right)
        return np.where(uniform * width < left, rising, falling)
