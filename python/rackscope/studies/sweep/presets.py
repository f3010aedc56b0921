"""Grids that redo figures and tables of papers, scaled to this host. ``presets.toml`` says what is in one."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

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
    cores: int | None
    least: int
    names: Mapping[str, str]
    absent: Mapping[str, str]

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
    settings: Mapping[str, str]
    connections: int | None
    stand_in: tuple[str, ...]
    factors: tuple[PresetFactor, ...]
    claims: tuple[Claim, ...]

    def scale_notes(self, system_cores: int) -> list[str]:
        """What was left out for this host, sentence by sentence."""
        notes = []
        for factor in self.factors:
            kept = factor.scaled(system_cores)
            dropped = [value for value in factor.values if value not in kept]
            if dropped:
                cores = f"{system_cores} core{'s' if system_cores != 1 else ''}"
                notes.append(
                    f"{factor.name}={','.join(dropped)} is left out: the paper's server had {factor.cores} hardware "
                    f"threads, and the system has {cores} here."
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


def _preset(name: str, content: Mapping[str, Any]) -> Preset:
    return Preset(
        name=name,
        **{key: content[key] for key in ("source", "asks", "host", "workload")},
        settings=content.get("settings", {}),
        connections=content.get("connections"),
        stand_in=tuple(content.get("stand_in", ())),
        factors=tuple(
            PresetFactor(
                **{"cores": None, "least": 1, "names": {}, "absent": {}, **one, "values": tuple(one["values"])}
            )
            for one in content["factors"]
        ),
        claims=tuple(
            Claim(one["factor"], one["quantity"], one["from"], one["to"], one["direction"], one["said"])
            for one in content["claims"]
        ),
    )
