"""How much load a system takes under a bound of latency: the procedure, for any ``Load``.

A closed loop finds where the top is; a search brackets the rate (``analysis.slo_search``); then come blocks, each of
a few rates around the estimate and some of the curve's, shuffled, until the interval over blocks is narrow or the
budget is spent; at last the lower end of the interval is asked for again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from rackscope.analysis.crossing import FEWEST_BLOCKS, Seen, block_rates, estimate_crossing, excess
from rackscope.analysis.intervals import Interval, relative_half_width
from rackscope.analysis.slo_search import Observation, SloSearch, confirmed
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.errors import StudyError
from rackscope.studies.bench.bounds import Bound
from rackscope.studies.bench.windows import Load, Window

#: The outcome: a rate was found; the bound is missed at the lowest rate; it is met up to the top.
Outcome = Literal["found", "never met", "met at the top", "not found"]
_PROBES = 3
_WINDOW_SECONDS = 1.0
#: The longest window, as a share of the budget.
_LONGEST_SHARE = 0.05
#: Rates that are looked at, as shares of the closed loop's throughput.
_LOWEST, _HIGHEST = 1 / 64, 1.5
_CURVE_LOWEST, _CURVE_HIGHEST, _CURVE_POINTS, _CURVE_REPEATS = 1 / 16, 1.1, 10, 2
_MOST_SEARCH = 24
#: Observations near the crossing at which the search hands over to the blocks.
_ENOUGH_NEAR = 4
_FEWEST_CONFIRMATIONS, _MOST_CONFIRMATIONS = 5, 8
#: Share of the budget for the blocks and everything before.
_BLOCKS_UNTIL = 0.86
#: Interference comes in bursts of seconds to a minute. After one there is a pause, longer each time.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 2.0
#: Times that the lowest rate must miss the bound before no rate is said to meet it.
_MISSES_AT_LOWEST = 3


@dataclass(frozen=True)
class Measured:
    """A window with what it was for (``probe``, ``search``, ``near``, ``curve``, ``confirm``) and its block."""

    window: Window
    purpose: str
    block: int = 0
    #: Interference, in words; empty when there was none.
    interference: str = ""


@dataclass
class Capacity:
    """Everything that was measured, and what follows."""

    bound: Bound
    measured: list[Measured] = field(default_factory=list)
    discarded: list[Measured] = field(default_factory=list)
    top: float = 0.0
    outcome: Outcome = "not found"
    rate: Interval | None = None
    sustained: float | None = None
    confirmations: int = 0
    attempts: int = 0
    blocks: int = 0
    #: What discarded windows, and pauses after them, took.
    waited_seconds: float = 0.0

    @property
    def kept_disturbed(self) -> int:
        """Windows that count in spite of interference, as there are too few without."""
        return sum(bool(one.interference) for one in self.measured)

    @property
    def mostly_disturbed(self) -> bool:
        """Whether most of what counts was measured under interference."""
        return 2 * self.kept_disturbed > len(self.measured)

    def windows(self) -> list[Window]:
        """All that count."""
        return [one.window for one in self.measured]

    def value(self, window: Window) -> float | None:
        """The bounded quantile."""
        return window.response_seconds[self.bound.quantile]

    def excess(self, window: Window) -> float:
        """log(latency / bound), clipped."""
        return excess(self.value(window), self.bound.seconds, kept_up=window.offered_met)

    def met(self, window: Window) -> bool:
        """Whether the bound was met at the rate."""
        return self.excess(window) <= 0


@dataclass
class CapacityStudy:
    """One study under way; ``found`` holds what is known, whatever ends it.

    Windows with interference are discarded, and do not count for the budget, until they have taken as much time as the
    budget.
    """

    load: Load
    bound: Bound
    budget_seconds: float
    seed: int = 1
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    on_change: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.found = Capacity(self.bound)
        self.start = self.clock()

    def run(self) -> Capacity:
        """Everything. Raises StudyError when no request completes."""
        self._probe()
        middle = self._search()
        self._blocks(middle)
        clean = {one.window.offered_per_second for one in self.found.measured if not one.interference}
        self._discard(lambda one: one.purpose == "curve" and one.window.offered_per_second in clean)
        if self.found.outcome == "found":
            self._confirm()
        return self.found

    def _left(self, until: float = 1.0) -> float:
        return self.budget_seconds * until - (self.clock() - self.start - self.found.waited_seconds)

    def _seconds(self, rate: float) -> float:
        """Long enough for the quantile to be known, where the budget allows."""
        longest = max(_WINDOW_SECONDS, self.budget_seconds * _LONGEST_SHARE)
        shortest = min(_WINDOW_SECONDS, self.budget_seconds / 50)
        return min(max(self.found.bound.wanted_operations / rate, shortest), longest)

    def _probe(self) -> None:
        seconds = min(_WINDOW_SECONDS, self.budget_seconds / 50)
        for _ in range(_PROBES):
            window = self.load.closed(seconds, "looking for the top")
            self.found.measured.append(Measured(window, "probe"))
        self.found.top = max(one.window.achieved_per_second for one in self.found.measured)
        if not self.found.top > 0:
            raise StudyError("no request completed in a closed loop", "Make 'rackscope run' of it work first.")

    def _open(self, rate: float, purpose: str, block: int = 0) -> Window:
        """One window. One with interference is measured again, after a pause, until patience is spent.

        So is the first one after it: caches are still cold.
        """
        pause_seconds = _FIRST_PAUSE_SECONDS
        before = ""
        while True:
            begun = self.clock()
            window = self.load.open(rate, self._seconds(rate), _ACTIVITIES[purpose])
            interference = window.interference(self.found.bound.beyond)
            one = Measured(window, purpose, block, interference or (before and _BEFORE))
            if not one.interference or self.found.waited_seconds >= self.budget_seconds:
                break
            self.found.discarded.append(one)
            if interference:
                self.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
            before = interference
            self.found.waited_seconds += self.clock() - begun
        self.found.measured.append(one)
        self.on_change()
        return window

    def _discard(self, which: Callable[[Measured], bool]) -> None:
        """Leave out windows with interference where enough without it stand for them."""
        out = [one for one in self.found.measured if one.interference and which(one)]
        self.found.discarded += out
        self.found.measured = [one for one in self.found.measured if one not in out]

    def _search(self) -> float:
        """A rate near the crossing; the outcome is settled where there is no crossing."""
        search = _search_below(self.found.top, self.found.bound)
        seen = 0
        while seen < _MOST_SEARCH and self._left(_BLOCKS_UNTIL / 2) > 0:
            rate = search.next_rate()
            if rate is None:
                break
            window = self._open(rate, "search")
            seen += 1
            search.observe(_observation(self.found.bound, rate, window))
            crossing = search.crossing()
            if crossing is not None and len(search.near()) >= _ENOUGH_NEAR:
                self.found.outcome = "found"
                return crossing
        met = [one for one in search.observations if search.met(one)]
        if not met:
            return self._at_the_lowest(search.lowest_rate)
        if len(met) == len(search.observations):
            self.found.outcome = "met at the top"
            return search.highest_rate
        self.found.outcome = "found"
        return search.crossing() or max(one.rate for one in met)

    def _at_the_lowest(self, rate: float) -> float:
        """Ask for the lowest rate again: a single miss may have been anything."""
        missed = 0
        while missed < _MISSES_AT_LOWEST and self._left(_BLOCKS_UNTIL / 2) > 0:
            if self.found.met(self._open(rate, "search")):
                self.found.outcome = "found"
                return rate
            missed += 1
        # A budget that ended before shows nothing.
        self.found.outcome = "never met" if missed == _MISSES_AT_LOWEST else "not found"
        return rate

    def _blocks(self, middle: float) -> None:
        found = self.found
        curve = curve_rates(found.top, middle if found.outcome == "found" else found.top)
        waiting = [
            float(rate) for _ in range(_CURVE_REPEATS) for rate in np.random.default_rng(self.seed).permutation(curve)
        ]
        longest = 0.0
        while True:
            enough = found.blocks >= FEWEST_BLOCKS or found.outcome != "found"
            if enough and not waiting and (found.outcome != "found" or self._is_narrow()):
                break
            # Whatever was found, there is something of the curve to show it by.
            if found.blocks and (enough or self._left() < 0) and self._left(_BLOCKS_UNTIL) < longest:
                break
            begun = self._left()
            found.blocks += 1
            plan = [(rate, "curve") for rate in waiting[:_CURVE_IN_BLOCK]]
            del waiting[:_CURVE_IN_BLOCK]
            if found.outcome == "found":
                plan += [(rate, "near") for rate in block_rates(middle, found.blocks, self.seed)]
            for index in np.random.default_rng([self.seed, found.blocks, 1]).permutation(len(plan)):
                rate, purpose = plan[index]
                self._open(rate, purpose, found.blocks)
            longest = max(longest, begun - self._left())
            if found.outcome == "found":
                middle = self._estimate(middle)

    def _estimate(self, middle: float) -> float:
        """Take in what blocks say of the crossing; the middle for the next one."""
        whole = {one.block for one in self.found.measured if one.purpose == "near" and not one.interference}
        if len(whole) >= FEWEST_BLOCKS:
            self._discard(lambda one: one.purpose == "near")
        near = [
            Seen(one.window.offered_per_second or 0.0, self.found.excess(one.window), one.block)
            for one in self.found.measured
            if one.purpose == "near"
        ]
        crossing = estimate_crossing(near, middle)
        if crossing is None:
            return middle
        self.found.rate = crossing
        # The next block follows, but not all the way after a single one with interference.
        return min(max(crossing.estimate, middle * 0.9), middle * 1.1)

    def _is_narrow(self) -> bool:
        width = relative_half_width(self.found.rate) if self.found.rate is not None else None
        return width is not None and width <= packaged_thresholds().limit("slo.half_width")

    def _confirm(self) -> None:
        found = self.found
        if found.rate is None:
            return
        rate = found.rate.low if found.rate.low is not None else found.rate.estimate * 0.97
        while found.attempts < _MOST_CONFIRMATIONS and not confirmed(found.confirmations, found.attempts):
            if found.attempts >= _FEWEST_CONFIRMATIONS and self._left() < 2 * self._seconds(rate):
                break
            window = self._open(rate, "confirm")
            found.attempts += 1
            found.confirmations += found.met(window)
        if confirmed(found.confirmations, found.attempts):
            found.sustained = rate


_CURVE_IN_BLOCK = 3
_BEFORE = "interference in the window before"
_ACTIVITIES = {
    "search": "searching the rate",
    "near": "measuring around the rate",
    "curve": "measuring the curve",
    "confirm": "confirming the rate",
}


def curve_rates(top: float, crossing: float) -> list[float]:
    """Rates of the curve, evenly apart in their logarithm, from far below the top to past the knee."""
    low = min(_CURVE_LOWEST * top, crossing / 2)
    high = _CURVE_HIGHEST * top
    ratio = (high / low) ** (1 / (_CURVE_POINTS - 1))
    return [low * ratio**step for step in range(_CURVE_POINTS)]


def quick_rate(load: Load, bound: Bound, seconds: float) -> float:
    """The rate at which the bound is crossed, roughly, in about ``seconds``; 0 where it is never met.

    For comparing configurations with each other, many times; ``CapacityStudy`` is for saying what a rate is.
    """
    window_seconds = seconds / 14
    top = load.closed(window_seconds, "looking for the top").achieved_per_second
    if not top > 0:
        return 0.0
    search = _search_below(top, bound)
    for _ in range(12):
        rate = search.next_rate()
        if rate is None:
            break
        search.observe(_observation(bound, rate, load.open(rate, window_seconds, _ACTIVITIES["search"])))
    met = [one.rate for one in search.observations if search.met(one)]
    return (search.crossing() or max(met)) if met else 0.0


def _search_below(top: float, bound: Bound) -> SloSearch:
    return SloSearch(bound.seconds, top / 2, top * _LOWEST, top * _HIGHEST)


def _observation(bound: Bound, rate: float, window: Window) -> Observation:
    # Lag is not handed on: a request that waits for a free connection is late by the system's doing, and its response
    # time counts from its intended start anyway. Whose doing it was is said in the findings.
    achieved = None if window.offered_met else window.achieved_per_second
    return Observation(rate, window.response_seconds[bound.quantile], achieved)
