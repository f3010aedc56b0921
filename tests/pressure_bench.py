"""A bench whose system is a formula: throughput follows each resource by a stated elasticity, with seeded noise."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from rackscope.runs.options import Progress
from rackscope.squeezes.base import Achieved, Applied, Capacity, NotSqueezable, Squeeze, Subject
from rackscope.studies.bench.interference import Taken
from rackscope.studies.bench.session import Bench
from rackscope.workloads import PhasePlan

FREE_THROUGHPUT = 10_000.0
STAGE = PhasePlan("measure", "measure", {"read": 1.0}, {"kind": "uniform"})
BUSY_HOST = Taken(steal_ratio=0.5)


@dataclass
class World:
    """What is held, what time it is, and how the system answers. ``noise`` is the spread of the logarithm."""

    answers: Mapping[str, Callable[[float], float]]
    noise: float = 0.002
    seed: int = 1
    interval_seconds: float = 0.01
    now: float = 0.0
    held: dict[str, float] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    #: What others take during each window to come; nothing, once it is used up.
    others: list[Taken] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def reseed(self, seed: int) -> None:
        """Other noise, for where the usual one happens to decide what is on the line."""
        self._random = random.Random(seed)

    def progress(self, _step: Progress) -> None:
        """Nobody looks."""

    def phase(
        self,
        plan: PhasePlan,
        loop: Mapping[str, Any],
        seconds: float,
        number: int,
        *,
        activity: str,
        discard: Callable[[Mapping[str, Any]], str],
    ) -> dict[str, Any]:
        """A window, in no time."""
        del plan, loop, number
        self.now += seconds
        throughput = FREE_THROUGHPUT * 2.718281828 ** self._random.gauss(0, self.noise)
        for name, fraction in self.held.items():
            throughput *= self.answers[name](fraction)
        self.log.append(activity)
        row: dict[str, Any] = {
            "throughput_operations_per_second": throughput,
            "response_p99_seconds": 10 / throughput,
            "system_cpu_seconds": 0.1,
        }
        row["discarded"] = discard(row) or None
        return row

    def ramp(self, plan: Any, loop: Any, seconds: float) -> None:
        """Load of which nothing is kept."""
        assert seconds > 0

    def watch(self, beside: Callable[[], float]) -> SimpleNamespace:
        """In place of ``interference.Watch``."""
        assert beside() == 0.0
        taken = self.others.pop(0) if self.others else Taken()
        return SimpleNamespace(taken=lambda _system_seconds: taken)


class _Held(Applied):
    def __init__(self, world: World, name: str, fraction: float) -> None:
        self._world, self._name = world, name
        world.held[name] = fraction

    def release(self) -> None:
        self._world.held.pop(self._name, None)


class FakeSqueeze(Squeeze):
    """Takes away what it is asked to; ``works`` says whether it does."""

    settle_seconds = 0.0
    description = "made up"

    def __init__(
        self, world: World, name: str, resource: str, floor: float = 0.05, control: bool = False, works: bool = True
    ) -> None:
        self.world, self.name, self.floor, self.works = world, name, floor, works
        self.resource = resource  # type: ignore[assignment]
        self.control = control

    @property
    def has_control(self) -> bool:
        return self.control

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        return Capacity(1.0, "cores", "made up", self.floor)

    def apply(self, subject: Subject, fraction: float, journal: Any) -> Applied:
        assert fraction >= self.floor, "squeezed below its floor"
        assert not self.world.held, "two squeezes at once"
        return _Held(self.world, self.name, fraction)

    def apply_control(self, subject: Subject, fraction: float, journal: Any) -> Applied:
        assert not self.world.held
        return _Held(self.world, f"control:{self.name}", fraction)

    def verify(self, subject: Subject, fraction: float, journal: Any) -> Achieved:
        assert not self.world.held, "verified while something was squeezed"
        return Achieved(fraction, "made up", self.works)


class NoSqueeze(FakeSqueeze):
    """Cannot be used here."""

    def capacity(self, subject: Subject) -> Capacity | NotSqueezable:
        return NotSqueezable("this host has none", "another host")


def bench_of(world: World, *squeezes: Squeeze) -> Bench:
    """A bench over the world, its squeezes sorted into those that work and those that do not."""
    bench = Bench(cast(Any, world), cast(Subject, None), cast(Any, None))
    bench.find(squeezes)
    return bench


def elastic(elasticity: float) -> Callable[[float], float]:
    """Throughput as a power of what is left."""
    return lambda fraction: float(fraction**elasticity)


def enough_above(needed: float) -> Callable[[float], float]:
    """No loss until less than ``needed`` is left."""
    return lambda fraction: min(1.0, fraction / needed)


@contextmanager
def nothing_held(world: World) -> Iterator[None]:
    """Checks that whatever was squeezed was given back."""
    try:
        yield
    finally:
        assert not world.held
