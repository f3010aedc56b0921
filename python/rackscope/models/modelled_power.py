"""Watts of a host that has no meter, from how busy its CPU was: modelled, never measured, and called so everywhere.

The form between idle and full is that of ``rated_power``. Nothing is fitted on the host: what is not known about it is
drawn, and the interval is of 90 % of the draws; where only the class of the server is known, its watts idle and full
are drawn as well (``class_watts``).

SPEC's load is a share of the highest throughput; of processors with hardware threads, the CPU's use is below it.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rackscope.analysis.context import Run
from rackscope.analysis.findings import plain
from rackscope.errors import RackscopeError
from rackscope.models.catalogue import CatalogueError, read_watts
from rackscope.models.estimates import Prediction, from_draws
from rackscope.models.rated_power import EXPONENT, WORK
from rackscope.models.uncertain import Array, Uncertain

_DRAWS, _SEED = 4_000, 1
#: More bins of time than this say nothing more of a mean.
_MOST_BINS = 200
BASIS = "drawn from what is not known of the server's watts, of the form between idle and full, and of the workload"

#: Watts of a whole server at full load by processors and cores of each: median, and the factor that 90 % lie within, of
#: 647 SPECpower_ssj2008 results published until 2022; that of the largest is wider, as newer ones took up to 970 W.
_CLASSES: Sequence[tuple[int, int, float, float]] = (
    (1, 8, 95.0, 2.0),
    (1, 32, 235.0, 1.5),
    (1, 1024, 245.0, 1.6),
    (2, 8, 245.0, 1.5),
    (2, 16, 290.0, 1.4),
    (2, 32, 385.0, 1.55),
    (2, 1024, 560.0, 1.75),
    (4, 8, 460.0, 1.9),
    (4, 16, 580.0, 1.4),
    (4, 32, 900.0, 1.5),
    (4, 1024, 1150.0, 1.5),
)
#: Idle as a share of full, by the same results: processors of up to four cores are from before 2012, as a rule.
_OLD_CORES, _OLD_IDLE, _IDLE = 4, (0.45, 1.9), (0.22, 2.1)


class PowerNotModelledError(RackscopeError):
    """Watts cannot be modelled of this host, with the reason and what would make it possible."""

    exit_status = 2


@dataclass(frozen=True)
class ServerWatts:
    """What a server takes when idle and at full load, in watts, and which share of it (0 to 1) the host is."""

    name: str
    source: str
    idle: Uncertain
    full: Uncertain
    share: float = 1.0
    #: Whether only its class is known, and not the server.
    is_class: bool = False

    @property
    def sentence(self) -> str:
        """What the model stands on."""
        share = "" if self.share == 1 else f"{100 * self.share:.3g} % of "
        ends = f"idle {_range(self.idle)}, full {_range(self.full)}"
        return f"{share}{self.name} ({ends}; {self.source})"

    def of_share(self, share: float) -> ServerWatts:
        """The same server, of which the host is a share above 0 and at most 1. Raises RackscopeError."""
        if not 0 < share <= 1:
            raise PowerNotModelledError(
                f"a share of {share:g} is not a fraction of a server", "Write it like 8/64 or 0.125."
            )
        return ServerWatts(self.name, self.source, self.idle, self.full, share, self.is_class)


def _range(watts: Uncertain) -> str:
    return f"{watts.middle:.0f} W" if watts.shape == "certain" else f"{watts.low:.0f} to {watts.high:.0f} W"


def class_watts(sockets: int, cores: int) -> ServerWatts:
    """What servers with ``sockets`` processors and ``cores`` cores in all were published to take; wide intervals.

    SPEC's servers are lean: little memory, one disk, one power supply. Raises PowerNotModelledError for another class.
    """
    each = cores / sockets if sockets > 0 else math.nan
    for processors, most, median, factor in _CLASSES:
        if sockets == processors and 0 < each <= most:
            share, spread = _OLD_IDLE if each <= _OLD_CORES else _IDLE
            return ServerWatts(
                f"a server of {sockets} processor{'s' if sockets > 1 else ''} of {each:.0f} cores",
                "SPECpower results of its class, published until 2022",
                Uncertain.lognormal(median * share, spread * math.sqrt(factor)),
                Uncertain.lognormal(median, factor),
                is_class=True,
            )
    raise PowerNotModelledError(
        f"there are no published watts of servers with {sockets} processors of {each:.0f} cores",
        "Give the server's watts with --server FILE.",
    )


def parse_server_watts(text: str, file: str, name: str | None = None) -> ServerWatts:
    """A server out of TOML: a table ``[server]`` with ``idle_watts`` and ``full_watts``, or a ``[[server]]`` of a
    catalogue, by its name or its only one. Amounts are as in catalogues; keys that are for others are left to them.

    Raises CatalogueError with the file and the key.
    """
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise CatalogueError(f"{file} is not TOML: {error}", "Fix the syntax there.") from error
    table = content.get("server")
    entries = [table] if isinstance(table, dict) else table
    if not isinstance(entries, list) or not entries or not all(isinstance(one, dict) for one in entries):
        raise CatalogueError(f"{file} has no [server]", "Write [server] and below it idle_watts and full_watts.")
    names = [str(one.get("name", "the server")) for one in entries]
    if name is None and len(entries) > 1:
        raise CatalogueError(
            f"{file} has {len(entries)} servers", f"Say which: --server FILE:NAME, of {_listed(names)}."
        )
    if name is not None and name not in names:
        raise CatalogueError(f"{file} has no server '{name}'", f"It has: {_listed(names)}.")
    place = 0 if name is None else names.index(name)
    entry = entries[place]
    idle, full = (read_watts(file, names[place], entry, key) for key in ("idle_watts", "full_watts"))
    if idle.middle > full.middle:
        raise CatalogueError(
            f"{file}: idle_watts of {names[place]} is above full_watts ({idle.middle:g} > {full.middle:g})",
            "Exchange them?",
        )
    return ServerWatts(names[place], str(entry.get("source") or file), idle, full)


def host_watts(host: Mapping[str, Any], given: ServerWatts | None = None, share: float | None = None) -> ServerWatts:
    """What is known of the inventory ``host``: as ``given``, else by class. Raises PowerNotModelledError."""
    virtualisation = _part(host, "virtualisation")
    guest = virtualisation.get("guest")
    if guest is True and (given is None or share is None):
        by = virtualisation.get("hypervisor")
        raise PowerNotModelledError(
            f"this host is a guest{f' of {by}' if by else ''}: what its server takes cannot be modelled from within",
            "Give the server's watts with --server FILE and the guest's part of it with --share, such as 8/64.",
        )
    if given is not None:
        return given if share is None else given.of_share(share)
    if guest is not False:
        raise PowerNotModelledError(
            "it is not known whether this host is a guest", "Give the server's watts with --server FILE."
        )
    processor = _part(host, "processor")
    sockets, cores = processor.get("sockets"), processor.get("physical_cores")
    if not isinstance(sockets, int) or not isinstance(cores, int):
        raise PowerNotModelledError(
            "the inventory does not say how many processors and cores this host has",
            "Give the server's watts with --server FILE.",
        )
    known = class_watts(sockets, cores)
    return known if share is None else known.of_share(share)


def _part(host: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = host.get(name)
    return value if isinstance(value, dict) else {}


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


@dataclass(frozen=True)
class ModelledPower:
    """Watts over the CPU's use. Modelled."""

    server: ServerWatts

    def predict(self, use: Sequence[float]) -> Prediction:
        """Modelled mean watts over equal windows of CPU use (0 to 1) each. Raises RackscopeError for no share."""
        found = np.asarray(use, dtype=np.float64)
        if len(found) == 0 or not np.all((found >= 0) & (found <= 1.0001)):
            raise RackscopeError("the CPU's use is not a fraction between 0 and 1", "Give it as a fraction, not in %.")
        if len(found) > _MOST_BINS:
            found = np.array([part.mean() for part in np.array_split(found, _MOST_BINS)])
        return from_draws(self._draw(np.clip(found, 0.0, 1.0)), "watts (modelled)", BASIS)

    def middle(self, use: Array) -> Array:
        """Modelled watts at each use, every unknown at its middle: for a line over time."""
        idle, full = self.server.idle.middle, self.server.full.middle
        watts = idle + max(full - idle, 0.0) * np.clip(use, 0.0, 1.0) ** EXPONENT.middle
        return np.asarray(self.server.share * watts, dtype=np.float64)

    def _draw(self, use: Array) -> Array:
        def draw(name: str, what: Uncertain) -> Array:
            return what.draw(name, _DRAWS, _SEED)

        idle, full = draw("idle_watts", self.server.idle), draw("full_watts", self.server.full)
        exponent, work = draw("exponent", EXPONENT), draw("work", WORK)
        shape = np.mean(use[None, :] ** exponent[:, None], axis=1)
        return np.asarray(self.server.share * (idle + np.maximum(full - idle, 0.0) * work * shape), dtype=np.float64)


@dataclass(frozen=True)
class ModelledPhase:
    """One phase, all repetitions that count together. All watts and joules are modelled."""

    phase: str
    kind: str
    cpu_use_ratio: float
    modelled_mean_watts: Prediction
    modelled_energy_joules_per_operation: Prediction | None
    modelled_operations_per_joule: Prediction | None


@dataclass(frozen=True)
class ModelledEnergy:
    """A run's power as it is modelled."""

    model: ModelledPower
    modelled_idle_watts: Prediction
    phases: tuple[ModelledPhase, ...]

    @property
    def sentence(self) -> str:
        """What it stands on and what it is worth."""
        return (
            f"Power is modelled, not metered, from the CPU's use and {self.model.server.sentence}. Its intervals hold "
            "90 % of what is not known about such a server; differences between repetitions are not in them."
        )

    def phase(self, name: str, kind: str = "measure") -> ModelledPhase | None:
        return next((one for one in self.phases if (one.phase, one.kind) == (name, kind)), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, strings and numbers; every name of a number of watts or joules says modelled."""
        content = {
            "source": "modelled",
            "sentence": self.sentence,
            "server": asdict(self.model.server),
            "modelled_idle_watts": asdict(self.modelled_idle_watts),
            "phases": [asdict(phase) for phase in self.phases],
        }
        shown: dict[str, Any] = plain(content)
        return shown


def model_energy(run: Run, server: ServerWatts) -> ModelledEnergy:
    """Modelled watts and joules of the phases of a run. Raises PowerNotModelledError where CPU use was not sampled."""
    model = ModelledPower(server)
    busy = run.samples.find("cpu_busy_ratio")
    phases = []
    for phase in run.phases() if busy is not None else ():
        assert busy is not None
        use = [value for *_, value in busy.bins(phase.windows, 1.0)]
        if not use:
            continue
        watts = model.predict(use)
        operations = phase.total("operations")
        joules = rate = None
        if operations:
            joules = _scaled(watts, phase.seconds / operations, "joules (modelled)")
            rate = Prediction(
                1 / joules.value, 1 / joules.high, 1 / joules.low, "operations/joule (modelled)", BASIS, False
            )
        phases.append(ModelledPhase(phase.name, phase.kind, sum(use) / len(use), watts, joules, rate))
    if not phases:
        raise PowerNotModelledError("the CPU's use was not sampled in this run", "Run it again.")
    return ModelledEnergy(model, model.predict([0.0]), tuple(phases))


def _scaled(prediction: Prediction, factor: float, unit: str) -> Prediction:
    value, low, high = (factor * one for one in (prediction.value, prediction.low, prediction.high))
    return Prediction(value, low, high, unit, prediction.basis, prediction.extrapolated)
