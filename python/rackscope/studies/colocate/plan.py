"""What ``study colocate`` runs beside what: works, their pairs, and how they are asked for on the command line."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rackscope import units
from rackscope.errors import UsageError

if TYPE_CHECKING:
    from rackscope.runs.options import RunOptions

_CONNECTIONS = 16
_MOST_WORKS = 12
_WRITE = "Write a work as SYSTEM:WORKLOAD,NAME=VALUE,...: for example memcached:ycsb-b,cpu=0.4."
#: Six works of this host that want the core in different ways: all of it, much of it, a bounded part, and now and then.
#: Any two leave their load generators room on one core: what a generator costs goes by operations, so these are long or
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
    """A work: a system under a workload, with as much of the cores as it may have (``None``: all of them).

    With a ``rate_per_second`` it is asked for so much (an open loop), and p99 is what a neighbour may spoil; without,
    as much as it can (a closed loop), and that is throughput.
    """

    name: str
    system: str
    workload: str
    settings: Mapping[str, str] = field(default_factory=dict)
    connections: int = _CONNECTIONS
    cpu_cores: float | None = None
    rate_per_second: float | None = None

    @property
    def quantity(self) -> str:
        """``throughput`` or ``p99``: what it is judged by."""
        return "throughput" if self.rate_per_second is None else "p99"

    @property
    def label(self) -> str:
        """``memcached under ycsb-b, 0.35 cores``."""
        parts = [f"{self.system} under {self.workload}"]
        parts += [f"{name}={value}" for name, value in self.settings.items()]
        if self.cpu_cores is not None:
            parts.append(f"at most {self.cpu_cores:g} cores")
        if self.rate_per_second is not None:
            parts.append(f"asked for {self.rate_per_second:,.0f} a second")
        return ", ".join(parts)


@dataclass(frozen=True)
class Plan:
    """What is measured and how long. ``levels`` are the parts of a resource that squeezes leave, mildest first."""

    works: tuple[Spec, ...]
    pairs: tuple[tuple[str, str], ...]
    levels: tuple[float, ...]
    window_seconds: float
    rounds: int
    budget_seconds: float
    bound: float
    seed: int = 42

    def work(self, name: str) -> Spec:
        """The work of that name."""
        return next(one for one in self.works if one.name == name)


def parse_works(texts: Sequence[str]) -> tuple[Spec, ...]:
    """Works with names that differ. Raises UsageError."""
    parsed = [_parse(text) for text in texts]
    if len(parsed) < 2:
        raise UsageError(
            "there is nothing to put beside one work" if parsed else "no work is named", f"Name two or more. {_WRITE}"
        )
    if len(parsed) > _MOST_WORKS:
        raise UsageError(f"{len(parsed)} works are too many", f"Choose {_MOST_WORKS} at most.")
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
        raise UsageError(f"two works are called {repeated[0]}", "Give each a name=... of its own.")
    return tuple(named)


def _parse(text: str) -> Spec:
    head, *rest = text.split(",")
    system, colon, workload = head.partition(":")
    if not system or not colon or not workload:
        raise UsageError(f"'{text}' is no work", _WRITE)
    spec = Spec(name=system, system=system, workload=workload)
    settings: dict[str, str] = {}
    for pair in rest:
        key, sign, value = pair.partition("=")
        if not sign or not key or not value:
            raise UsageError(f"'{pair}' of work {head} is no setting", _WRITE)
        if key == "name":
            if not all(character.isalnum() or character in "-_." for character in value):
                raise UsageError(f"a work cannot be called '{value}'", "Use letters, digits, '-', '_' and '.'.")
            spec = replace(spec, name=value)
        elif key == "connections":
            spec = replace(spec, connections=units.parse_count(value))
        elif key == "cpu":
            spec = replace(spec, cpu_cores=_cores(value, head))
        elif key == "rate":
            spec = replace(spec, rate_per_second=units.parse_rate_per_second(value))
        elif key in settings:
            raise UsageError(f"{key} of work {head} is given twice", "Give it once.")
        else:
            settings[key] = value
    return replace(spec, settings=settings)


def _cores(text: str, head: str) -> float:
    try:
        cores = float(text)
    except ValueError:
        cores = math.nan
    if not 0.05 <= cores <= 1024:
        raise UsageError(f"cpu={text} of work {head} is no number of cores", "For example cpu=0.5.")
    return cores


def parse_pairs(text: str | None, works: Sequence[Spec]) -> tuple[tuple[str, str], ...]:
    """``compute+redis,redis+cache``; all pairs without any. Raises UsageError."""
    names = [spec.name for spec in works]
    if text is None:
        return tuple(itertools.combinations(names, 2))
    from rackscope.systems.names import unknown_name

    pairs: list[tuple[str, str]] = []
    for part in text.split(","):
        first, plus, second = part.strip().partition("+")
        if not plus:
            raise UsageError(f"--pairs: '{part}' is no pair", "Write pairs as A+B,C+D.")
        for name in (first, second):
            if name not in names:
                raise unknown_name("--pairs: there is no work", name, "There are", names)
        if first == second:
            raise UsageError(f"--pairs: {first} beside itself is no pair", "Name the work twice, with two names.")
        if (first, second) not in pairs and (second, first) not in pairs:
            pairs.append((first, second))
    return tuple(pairs)


def run_options(base: RunOptions, spec: Spec) -> RunOptions:
    """A run of the work on the cores that all share."""
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
