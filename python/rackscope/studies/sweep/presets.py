"""Grids that redo figures and tables of papers, scaled to this host. ``presets.toml`` says what is in one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from rackscope.studies.kit import counted

Quantity = Literal["throughput", "mean", "p99"]
Direction = Literal["rises", "falls", "flat"]


@dataclass(frozen=True)
class Claim:
    """What a paper found: how ``quantity`` goes when ``factor`` goes from one level to another."""

    factor: str
    quantity: Quantity
    start: str
    end: str
    direction: Direction
    said: str


@dataclass(frozen=True)
class PresetFactor:
    """A factor as the paper had it; see ``presets.toml``."""

    name: str
    values: tuple[str, ...]
    cores: int | None = None
    least: int = 1
    names: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)

    def scaled(self, system_cores: int) -> tuple[str, ...]:
        """The values that make sense on this host: as far beyond its cores as the paper went beyond its own."""
        if self.cores is None:
            return self.values
        most = max(self.least, max(int(value) for value in self.values) * system_cores // self.cores)
        return tuple(value for value in self.values if int(value) <= most)


@dataclass(frozen=True)
class Preset:
    """One figure or table."""

    name: str
    source: str
    asks: str
    host: str
    workload: str
    factors: tuple[PresetFactor, ...]
    claims: tuple[Claim, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    connections: int | None = None
    stand_in: tuple[str, ...] = ()

    def scale_notes(self, system_cores: int) -> list[str]:
        """What was left out for this host, sentence by sentence."""
        notes = []
        for factor in self.factors:
            kept = factor.scaled(system_cores)
            dropped = [value for value in factor.values if value not in kept]
            if dropped:
                notes.append(
                    f"{factor.name}={','.join(dropped)} is left out: the paper's server had {factor.cores} hardware "
                    f"threads, and the system has {counted(system_cores, 'core')} here."
                )
        return notes

    def absent(self, system: str) -> str:
        """Why a system has nothing like what is varied; empty when it has."""
        return next((factor.absent[system] for factor in self.factors if system in factor.absent), "")


@cache
def load_presets() -> Mapping[str, Preset]:
    """All presets by name."""
    text = resources.files("rackscope.studies.sweep").joinpath("presets.toml").read_text(encoding="utf-8")
    return {name: _preset(name, content) for name, content in tomllib.loads(text).items()}


def nearest_level(levels: Sequence[str], wanted: str) -> str | None:
    """``wanted``, or the largest level below it where this host had to stop earlier."""
    if wanted in levels:
        return wanted
    below = [level for level in levels if level.isdigit() and wanted.isdigit() and int(level) <= int(wanted)]
    return max(below, key=int, default=None)


def _preset(name: str, content: dict[str, Any]) -> Preset:
    factors = tuple(PresetFactor(**{**one, "values": tuple(one["values"])}) for one in content.pop("factors"))
    claims = tuple(Claim(**one) for one in content.pop("claims"))
    stand_in = tuple(content.pop("stand_in", ()))
    return Preset(name=name, factors=factors, claims=claims, stand_in=stand_in, **content)
