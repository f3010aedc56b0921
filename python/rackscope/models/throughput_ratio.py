"""Throughput on another server, from elasticities: what was squeezed here, and how much of it there is there.

An elasticity e = d ln(throughput) / d ln(resource) says what a small change of a resource is worth, so that
ln(X' / X) = sum of e_r ln(R'_r / R_r), with R' / R the ratio of what both servers were calibrated to give. Throughput
that waits for rates only is homogeneous of the first degree, so elasticities add up to 1 at most (Euler's theorem).

For less of a resource the elasticity is read between the levels of the squeeze. For more of it nothing was measured,
and what limits may change: the form is then

    X' / X = (sum of s_r (R'_r / R_r)^p + rest)^(1/p)

(constant elasticity of substitution: Arrow, Chenery, Minhas and Solow 1961). p towards 0 is the sum above, an upper
end; -1 is work done one part after the other (Amdahl's law); below that parts overlap and the slowest decides. p is
drawn from -2 to 0, and the shares s_r are those that make, with this p, the throughput which the squeeze kept.

A quota of CPU time takes away time in which cores compute and time in which they wait for memory alike: an unknown
``memory_share`` of it waits for memory. More cores make up for both, a faster core for the rest only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from rackscope.errors import RackscopeError
from rackscope.models.estimates import LEVEL, Prediction, from_draws
from rackscope.models.gates import ProjectionRefused
from rackscope.models.uncertain import NINETY_PERCENT, Array, Uncertain

#: Whether the server is the host that was measured, one with such a processor, or one with another.
Likeness = Literal["itself", "same processor", "other processor"]
#: The least p that is drawn.
_STRICTEST = 2.0
#: What a server is compared by: the ratio of target over source, more being better (latency is turned around).
RESOURCES = ("cores", "core_speed", "dram_latency", "dram_bandwidth", "last_level_cache", "disk", "network")
#: Squeezed as such; what cores wait for in their own time is the rest.
SQUEEZED = ("cpu", "dram_bandwidth", "last_level_cache", "disk", "network")
#: How far a ratio may leave what was squeezed: upwards, where elasticities fall, and downwards, where they rise. Ours.
FURTHEST_ABOVE, FURTHEST_BELOW = 2.0, 1.1
#: A resource that was never squeezed may differ by this factor only, unless there is more of it. Ours.
_UNSQUEEZED = 1.1
#: DRAM bandwidth is a part of what cores wait for, whose share is drawn: down to this it is covered by that. Ours.
_LEAST_BANDWIDTH = 0.5
#: Beyond ``FURTHEST_ABOVE`` a resource may only grow if the growth is worth less than this: it was shown not to matter.
_NEGLIGIBLE_GAIN = 0.10
#: What an elasticity may be beyond 0 to 1, as in the gates.
_SLACK = 0.05
#: An elasticity whose 95 % interval is wider than this is taken from a deeper level, where there is one. Ours.
_TOLD = 0.5
#: Standard deviations in half of an interval.
_NINETY_FIVE_PERCENT = 1.959964
#: A calibration loop is not the workload: about 90 % lie within these factors of what the model says of them, for other
#: processors where requests come many a message, and one by one, which is work for the kernel; and for one processor.
#: Chosen with pairs of 1,450 public cloud servers of 84 CPU models in view (redis, SpareCores): of either half of those
#: models, 85 to 99 % of the intervals hold. How it is for other systems is not known yet.
OTHER_PROCESSOR, OTHER_PROCESSOR_ONE_BY_ONE, SAME_PROCESSOR = 1.8, 2.4, 1.2

#: What makes the ratio uncertain: the elasticities measured here; what the servers were calibrated to give; the form
#: of the law; how much of the cores' time waits for memory; that calibration loops are not the workload.
DOUBTS = ("elasticities", "calibration", "form", "memory share", "processor")

BASIS = (
    "drawn from the elasticities' intervals, from forms around Amdahl's law, from how much of "
    "the cores' time may be waiting for memory, and from how far public servers lie from what their calibrations say"
)


@dataclass(frozen=True)
class SqueezedTo:
    """``left`` of a resource (0 to 1) kept ``ratio`` of the throughput; ``low`` and ``high`` end its 95 % interval."""

    left: float
    ratio: float
    low: float
    high: float

    def elasticity(self) -> tuple[float, float, float]:
        """Estimate and the ends of its 95 % interval."""
        divisor = math.log(self.left)
        return math.log(self.ratio) / divisor, math.log(self.high) / divisor, math.log(self.low) / divisor


@dataclass(frozen=True)
class Squeezed:
    """What squeezing one resource showed; ``levels`` mildest first, at least one."""

    resource: str
    squeeze: str
    levels: tuple[SqueezedTo, ...]

    @property
    def deepest(self) -> float:
        """The least that was left of it."""
        return self.levels[-1].left

    @property
    def told(self) -> tuple[SqueezedTo, ...]:
        """Levels whose elasticity stands out of the noise; the best of them, where none does."""
        widths = [level.elasticity()[2] - level.elasticity()[1] for level in self.levels]
        told = tuple(level for level, width in zip(self.levels, widths, strict=True) if width <= _TOLD)
        return told or (self.levels[widths.index(min(widths))],)

    @property
    def is_told(self) -> bool:
        """Whether the elasticity is known at all: not where its interval holds all of 0 to 1."""
        _, low, high = self.elasticity()
        return low > 0 or high < 1

    def elasticity(self, ratio: float = 1.0) -> tuple[float, float, float]:
        """For a change to ``ratio``: estimate and the ends of its 95 % interval; between levels interpolated.

        A mild level tells best what a small change is worth, but little where it hardly stands out of the noise: such
        levels do not count.
        """
        told = self.told
        places = [math.log(level.left) for level in reversed(told)]
        each = [level.elasticity() for level in reversed(told)]
        at = math.log(min(max(ratio, told[-1].left), told[0].left))
        estimate, low, high = (float(np.interp(at, places, [one[k] for one in each])) for k in range(3))
        return estimate, low, high


@dataclass(frozen=True)
class ThroughputRatioModel:
    """``squeezed`` by resource; ``memory_share`` is the part of the cores' own time that may wait for memory.

    ``pipelined``: requests come many a message.
    """

    squeezed: Mapping[str, Squeezed]
    memory_share: tuple[float, float]
    pipelined: bool = False

    def predict(
        self, ratios: Mapping[str, Uncertain], *, likeness: Likeness, draws: int = 20_000, seed: int = 1
    ) -> Prediction:
        """Throughput there over throughput here. Raises as ``draw``."""
        drawn = self.draw(ratios, likeness=likeness, draws=draws, seed=seed)
        beyond = any(abs(math.log(one.middle)) > 1e-6 for one in ratios.values())
        return from_draws(drawn, "ratio (modelled)", BASIS, beyond)

    def doubts(
        self, ratios: Mapping[str, Uncertain], *, likeness: Likeness, draws: int = 4_000, seed: int = 1
    ) -> dict[str, float]:
        """How far each of ``DOUBTS`` alone moves the ratio: half of the logarithm of the ends of its 90 %."""
        found = {}
        for name in DOUBTS:
            drawn = self.draw(ratios, likeness=likeness, draws=draws, seed=seed, only=name)
            low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
            found[name] = float(np.log(high / low)) / 2
        return found

    def draw(
        self,
        ratios: Mapping[str, Uncertain],
        *,
        likeness: Likeness,
        draws: int = 20_000,
        seed: int = 1,
        only: str | None = None,
    ) -> Array:
        """Draws of throughput there over throughput here; a resource that is not in ``ratios`` is taken to be the same.

        With ``only`` one of ``DOUBTS`` varies and everything else is at its middle. Raises ProjectionRefused where a
        ratio is too far from what was squeezed, RackscopeError for an unknown one.
        """
        for name, ratio in ratios.items():
            if name not in RESOURCES:
                raise RackscopeError(f"'{name}' is not a known resource", f"Known: {', '.join(RESOURCES)}.")
            if not 0 < ratio.low <= ratio.high < math.inf:
                raise RackscopeError(f"a ratio of {name} of {ratio.low:g} cannot be", "Give what both servers have.")
        self._check(ratios)
        chance = _Chance(draws, seed, only)
        logs = {
            name: np.log(chance.of(ratios[name], "calibration", name)) if name in ratios else np.zeros(draws)
            for name in RESOURCES
        }
        # Nothing is divided by zero: a form this close to the product of powers is that product.
        power = np.minimum(-_STRICTEST * chance.uniform("form"), -1e-3)
        shares = self._shares(ratios, power, chance)
        total = np.zeros(draws)
        rising = np.zeros(draws)
        rest = np.ones(draws)
        for part, share in shares.items():
            log = sum(logs[name] for name in part)
            up = log > 0
            total += np.where(up, 0.0, share * log)
            rising += np.where(up, share * np.exp(power * log), 0.0)
            rest -= np.where(up, share, 0.0)
        total += np.log(rising + rest) / power
        if likeness != "itself":
            other = OTHER_PROCESSOR if self.pipelined else OTHER_PROCESSOR_ONE_BY_ONE
            factor = SAME_PROCESSOR if likeness == "same processor" else other
            total += math.log(factor) / NINETY_PERCENT * chance.normal("processor")
        return np.asarray(np.exp(total))

    def _shares(self, ratios: Mapping[str, Uncertain], power: Array, chance: _Chance) -> dict[tuple[str, ...], Array]:
        """Elasticities by what they answer to, which add up to 1 at most."""

        def drawn(name: str, ratio: float) -> Array:
            found = self.squeezed.get(name)
            if found is None:
                return np.zeros(chance.draws)
            estimate, low, high = found.elasticity(ratio)
            kept = chance.within(estimate, (high - low) / 2 / _NINETY_FIVE_PERCENT, "elasticities", name)
            if ratio < 1:
                return kept
            # The share that, in this form, makes the throughput which the mildest level kept.
            left = found.told[0].left
            return np.asarray((left ** (kept * power) - 1) / (left**power - 1))

        def ratio_of(*names: str) -> float:
            return math.exp(sum(math.log(ratios[name].middle) for name in names if name in ratios))

        # Never squeezed: all that cores do may follow them, or nothing.
        core_time = drawn("cpu", ratio_of("cores", "core_speed")) if "cpu" in self.squeezed else None
        if core_time is None:
            core_time = chance.uniform("elasticities", "core time")
        others = {name: drawn(name, ratio_of(name)) for name in ("disk", "network")}
        bandwidth, cache = (drawn(name, ratio_of(name)) for name in ("dram_bandwidth", "last_level_cache"))
        in_total = np.maximum(core_time, bandwidth + cache) + sum(others.values())
        scale = 1 / np.maximum(in_total, 1.0)
        core_time, bandwidth, cache = core_time * scale, bandwidth * scale, cache * scale
        own = np.maximum(core_time - bandwidth - cache, 0.0)
        low, high = self.memory_share
        waits = own * (low + (high - low) * chance.uniform("memory share"))
        # What waits for memory waits for its latency, unless bandwidth was never squeezed and may be a part of it.
        split = np.zeros(chance.draws)
        if "dram_bandwidth" not in self.squeezed and "dram_bandwidth" in ratios:
            split = chance.uniform("memory share", "bandwidth")
        return {
            ("cores", "core_speed"): own - waits,
            ("cores", "dram_latency"): waits * (1 - split),
            ("dram_bandwidth",): bandwidth + waits * split,
            ("last_level_cache",): cache,
            ("disk",): others["disk"] * scale,
            ("network",): others["network"] * scale,
        }

    def _check(self, ratios: Mapping[str, Uncertain]) -> None:
        """Raises ProjectionRefused where a ratio is beyond what was squeezed."""
        combined = {
            "cpu": math.prod(ratios[name].middle for name in ("cores", "core_speed") if name in ratios),
            **{name: ratios[name].middle for name in SQUEEZED[1:] if name in ratios},
        }
        for name, ratio in combined.items():
            found = self.squeezed.get(name)
            words = _WORDS[name]
            if found is None or not found.is_told:
                self._check_unsqueezed(name, ratio)
            elif ratio < found.deepest / FURTHEST_BELOW:
                raise ProjectionRefused(
                    f"no projection: it has {_times(ratio)} {words}, and it was squeezed to {found.deepest:.2f} only",
                    f"Squeeze further ('rackscope study pressure --levels 0.8,{max(0.05, 0.9 * ratio):.2f}'), or "
                    "name a server that has more.",
                )
            elif ratio > FURTHEST_ABOVE:
                _, _, high = found.elasticity()
                gain = max(high, 0.0) * math.log(ratio / FURTHEST_ABOVE)
                if gain > math.log1p(_NEGLIGIBLE_GAIN):
                    raise ProjectionRefused(
                        f"no projection: it has {_times(ratio)} {words}, which limits here, and what limits next is "
                        f"not known: at most {FURTHEST_ABOVE:g} times is projected",
                        "Measure at more core counts, or on a server that is nearer to it.",
                    )

    def _check_unsqueezed(self, name: str, ratio: float) -> None:
        words = _WORDS[name]
        least = _LEAST_BANDWIDTH if name == "dram_bandwidth" else 1 / _UNSQUEEZED
        if ratio < least or (name == "cpu" and ratio > _UNSQUEEZED):
            if name in self.squeezed:
                _, low, high = self.squeezed[name].elasticity()
                raise ProjectionRefused(
                    f"no projection: it has {_times(ratio)} {words}, and what that is worth was not told: its "
                    f"elasticity may be anything from {low:.2f} to {high:.2f}",
                    "Study it for longer, on a quiet host: 'rackscope study pressure --budget 5m'.",
                )
            raise ProjectionRefused(
                f"no projection: it has {_times(ratio)} {words}, which was never squeezed here, so nothing tells what "
                "that is worth",
                "Give the directory of a 'rackscope study pressure' of the same workload, too.",
            )


_WORDS = {
    "cpu": "of the cores' speed",
    "dram_bandwidth": "of the DRAM bandwidth",
    "last_level_cache": "of the last-level cache",
    "disk": "of the disk",
    "network": "of the network",
}


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:.0f} times"


def fit_throughput_ratio(
    squeezed: Sequence[Squeezed], *, memory_share: tuple[float, float] = (0.0, 1.0), pipelined: bool = False
) -> ThroughputRatioModel:
    """From what each squeeze showed; of several squeezes of one resource the first counts whose elasticity is told.

    Raises RackscopeError for levels that cannot be, ProjectionRefused where an elasticity is outside of 0 to 1 by more
    than chance (95 %): then more changed than the resource.
    """
    found: dict[str, Squeezed] = {}
    for one in squeezed:
        if one.resource not in SQUEEZED:
            continue
        levels = tuple(sorted(one.levels, key=lambda level: -level.left))
        for level in levels:
            if not (0 < level.left < 1 and 0 < level.low <= level.ratio <= level.high < math.inf):
                raise RackscopeError(
                    f"the squeeze {one.squeeze} has a level that left {level.left:g} and kept {level.ratio:g}",
                    "Leave it out.",
                )
        if levels:
            kept, new = found.get(one.resource), Squeezed(one.resource, one.squeeze, levels)
            if kept is None or (new.is_told and not kept.is_told):
                found[one.resource] = new
    for one in found.values():
        estimate, low, high = one.elasticity()
        if low > 1 + _SLACK or high < -_SLACK:
            raise ProjectionRefused(
                f"no projection: throughput changes by {estimate:.2f} % for 1 % of {one.squeeze}, which "
                "that resource alone cannot cause: something else changed with it",
                "Measure again on a quiet host.",
            )
    low, high = memory_share
    if not 0 <= low <= high <= 1:
        raise RackscopeError(f"a memory share of {low:g} to {high:g} is invalid", "Give two fractions between 0 and 1.")
    return ThroughputRatioModel(found, memory_share, pipelined)


class _Chance:
    """Seeded draws, each doubt and name with numbers of its own; with ``only``, all other doubts at their middle."""

    def __init__(self, draws: int, seed: int, only: str | None) -> None:
        self.draws = draws
        self._seed = seed
        self._only = only

    def uniform(self, doubt: str, name: str = "") -> Array:
        return self.of(Uncertain.uniform(0.0, 1.0), doubt, name)

    def normal(self, doubt: str, name: str = "") -> Array:
        return np.asarray(scipy.special.ndtri(np.clip(self.uniform(doubt, name), 1e-12, 1 - 1e-12)))

    def within(self, mean: float, deviation: float, doubt: str, name: str) -> Array:
        """Normal, of which only what lies in 0 to 1 can be."""
        if deviation < 1e-9:
            return np.full(self.draws, min(max(mean, 0.0), 1.0))
        low, high = float(scipy.special.ndtr(-mean / deviation)), float(scipy.special.ndtr((1 - mean) / deviation))
        if high - low < 1e-9:
            return np.full(self.draws, 0.0 if mean < 0 else 1.0)
        drawn = scipy.special.ndtri(low + (high - low) * np.clip(self.uniform(doubt, name), 1e-9, 1 - 1e-9))
        return np.clip(mean + deviation * drawn, 0.0, 1.0)

    def of(self, amount: Uncertain, doubt: str, name: str) -> Array:
        if self._only is not None and self._only != doubt:
            return np.full(self.draws, amount.middle)
        return amount.draw(f"{doubt} {name}", self.draws, self._seed)
