"""What ``study colocate`` runs: workloads, their pairs, and how they are written on the command line."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from rackscope import units
from rackscope.errors import UsageError, unknown_name
from rackscope.runs.options import RunOptions

_CONNECTIONS = 16
_MOST_WORKLOADS = 12
_WRITE = "For example: memcached:ycsb-b,cpu=0.4."
#: Six workloads that use the core in different ways: all of it, much of it, a bounded part, and now and then. Any two
#: leave time for their load generators on one core: a generator costs by the operation, so operations are long or
#: bounded.
EXAMPLES = (
    "synthetic:synthetic-read,name=compute,on_read=cpu:400",
    "synthetic:synthetic-read,name=stream,on_read=memory-stream:1m,cpu=0.6",
    "synthetic:synthetic-read,name=waiting,on_read=sleep:1000+cpu:150,connections=2",
    "memcached:ycsb-b,name=memcached,cpu=0.3",
    "redis:ycsb-b,name=redis,cpu=0.45",
    "cache:ycsb-b,name=cache,cpu=0.4",
)


@dataclass(frozen=True)
class Spec:
    """A system under a workload, with as much of the cores as it may use (``None``: all of them).

    With a ``rate_per_second`` the load is an open loop and it is judged by p99; without, a closed loop and throughput.
    """

    name: str
    system: str
    workload: str
    settings: Mapping[str, str] = field(default_factory=dict)
    connections: int = _CONNECTIONS
    cpu_cores: float | None = None
    rate_per_second: float | None = None

    @property
    def quantity(self) -> Literal["throughput", "p99"]:
        """What it is judged by."""
        return "throughput" if self.rate_per_second is None else "p99"

    @property
    def label(self) -> str:
        """``memcached under ycsb-b, 0.35 cores``."""
        parts = [f"{self.system} under {self.workload}"]
        parts += [f"{name}={value}" for name, value in self.settings.items()]
        if self.cpu_cores is not None:
            parts.append(f"at most {self.cpu_cores:g} cores")
        if self.rate_per_second is not None:
            parts.append(f"at {self.rate_per_second:,.0f} operations/s")
        return ", ".join(parts)


@dataclass(frozen=True)
class Plan:
    """What is measured and how long. ``levels`` are the parts of a resource that squeezes leave, mildest first."""

    workloads: tuple[Spec, ...]
    pairs: tuple[tuple[str, str], ...]
    levels: tuple[float, ...]
    window_seconds: float
    repetitions: int
    budget_seconds: float
    bound: float
    seed: int = 42

    def workload(self, name: str) -> Spec:
        return next(one for one in self.workloads if one.name == name)


def parse_workloads(texts: Sequence[str]) -> tuple[Spec, ...]:
    """Workloads with names that differ. Raises UsageError."""
    parsed = [_parse(text) for text in texts]
    if len(parsed) < 2:
        raise UsageError(
            "there is only one workload" if parsed else "there is no workload", f"Name two or more. {_WRITE}"
        )
    if len(parsed) > _MOST_WORKLOADS:
        raise UsageError(f"{len(parsed)} workloads are too many", f"Choose {_MOST_WORKLOADS} at most.")
    given = [spec.name for spec in parsed]
    counts = Counter(given)
    seen: Counter[str] = Counter()
    named = []
    for spec in parsed:
        seen[spec.name] += 1
        name = spec.name if counts[spec.name] == 1 else f"{spec.name}-{seen[spec.name]}"
        named.append(replace(spec, name=name))
    repeated = [name for name, count in Counter(spec.name for spec in named).items() if count > 1]
    if repeated:
        raise UsageError(f"two workloads are called {repeated[0]}", "Give each a name=... of its own.")
    return tuple(named)


def _parse(text: str) -> Spec:
    head, *rest = text.split(",")
    system, colon, workload = head.partition(":")
    if not system or not colon or not workload:
        raise UsageError(f"expected SYSTEM:WORKLOAD,NAME=VALUE,..., got '{text}'", _WRITE)
    spec = Spec(name=system, system=system, workload=workload)
    settings: dict[str, str] = {}
    for pair in rest:
        key, sign, value = pair.partition("=")
        if not sign or not key or not value:
            raise UsageError(f"invalid setting of {head}: expected NAME=VALUE, got '{pair}'", _WRITE)
        if key == "name":
            if not all(character.isalnum() or character in "-_." for character in value):
                raise UsageError(f"invalid name '{value}' of {head}", "Use letters, digits, '-', '_' and '.'.")
            spec = replace(spec, name=value)
        elif key == "connections":
            spec = replace(spec, connections=units.parse_count(value))
        elif key == "cpu":
            spec = replace(spec, cpu_cores=_cores(value, head))
        elif key == "rate":
            spec = replace(spec, rate_per_second=units.parse_rate_per_second(value))
        elif key in settings:
            raise UsageError(f"{key} of {head} is given twice", "Give it once.")
        else:
            settings[key] = value
    return replace(spec, settings=settings)


def _cores(text: str, head: str) -> float:
    try:
        cores = float(text)
    except ValueError:
        cores = math.nan
    if not 0.05 <= cores <= 1024:
        raise UsageError(f"invalid cpu={text} of {head}: expected a number of cores", "For example cpu=0.5.")
    return cores


def parse_pairs(text: str | None, workloads: Sequence[Spec]) -> tuple[tuple[str, str], ...]:
    """``compute+redis,redis+cache``; all pairs without any. Raises UsageError."""
    names = [spec.name for spec in workloads]
    if text is None:
        return tuple(itertools.combinations(names, 2))

    pairs: list[tuple[str, str]] = []
    for part in text.split(","):
        first, plus, second = part.strip().partition("+")
        if not plus:
            raise UsageError(f"invalid --pairs: expected A+B, got '{part}'", "Write pairs as A+B,C+D.")
        for name in (first, second):
            if name not in names:
                raise unknown_name("--pairs: there is no workload", name, "There are", names)
        if first == second:
            raise UsageError(f"invalid --pairs: {first} beside itself", "List the workload twice, with two names.")
        if (first, second) not in pairs and (second, first) not in pairs:
            pairs.append((first, second))
    return tuple(pairs)


def run_options(base: RunOptions, spec: Spec) -> RunOptions:
    """A run of the workload on the cores that all share."""
    return replace(
        base,
        system=spec.system,
        workload=spec.workload,
        settings=dict(spec.settings),
        connections=spec.connections,
        rate_per_second=spec.rate_per_second,
        # It stores nothing that could be checked.
        verify=not spec.workload.startswith("synthetic"),
        warm_up_seconds=0.5,
        # As often as windows end with a sample: each waits for one.
        sample_interval_seconds=0.1,
        repetitions=1,
    )
