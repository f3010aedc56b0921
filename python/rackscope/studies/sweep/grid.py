"""Factors, levels and cells: from ``--vary threads=1,2,4`` to the runs of a grid. Nothing is started here."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from rackscope import units
from rackscope.errors import UsageError, unknown_name
from rackscope.runs.options import RunOptions
from rackscope.systems import find_system
from rackscope.workloads import Parameter, find_workload

#: Levels of one factor, and runs of one sweep: beyond these it is a mistake rather than a plan.
MOST_LEVELS = 50
MOST_RUNS = 1000

#: What can be varied besides knobs and parameters, with its kind: fields of the run itself.
_LOAD_KINDS = {
    "system": "text",
    "workload": "text",
    "connections": "count",
    "client_threads": "count",
    "rate": "rate",
    "tuned": "flag",
    "endpoint": "text",
}
#: The unit of an axis, by the kind of what is varied.
_UNITS: Mapping[str, Literal["bytes", "count", "operations/s"]] = {
    "size": "bytes",
    "memory": "bytes",
    "count": "count",
    "integer": "count",
    "rate": "operations/s",
}
_FLAGS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
_EXAMPLE = "Write it like --vary threads=1,2,4."


@dataclass(frozen=True)
class Factor:
    """What is varied, and the levels it takes as a user writes them.

    ``values`` are the levels as numbers of ``unit``, for an axis; empty where they are words. ``names`` says under
    which name a system knows the factor, where it has another one.
    """

    name: str
    levels: tuple[str, ...]
    values: tuple[float, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    unit: Literal["", "bytes", "count", "operations/s"] = ""

    @property
    def numeric(self) -> bool:
        """Whether its levels lie on an axis."""
        return bool(self.values)

    def value(self, level: str) -> float:
        """A numeric factor's level as a number."""
        return self.values[self.levels.index(level)]


@dataclass(frozen=True)
class Cell:
    """One configuration of the grid: a level of each factor, in the factors' order."""

    levels: Mapping[str, str]

    @property
    def label(self) -> str:
        """``memcached threads=4 value_size=1k``."""
        return " ".join(level if name == "system" else f"{name}={level}" for name, level in self.levels.items())


def parse_vary(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """``name=a,b,c`` texts by name. Raises UsageError for what makes no sense whatever the names mean."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, sign, listed = text.partition("=")
        name = name.strip()
        if not sign or not name:
            raise UsageError(f"--vary '{text}' names nothing to vary", _EXAMPLE)
        levels = tuple(part.strip() for part in listed.split(","))
        if not all(levels):
            raise UsageError(f"--vary '{text}' has an empty value", _EXAMPLE)
        if name in found:
            raise UsageError(f"--vary {name} is given twice", f"List all its values once: --vary {name}=A,B,C.")
        if len(levels) > MOST_LEVELS:
            raise UsageError(f"--vary {name} lists {len(levels)} values", f"A factor has at most {MOST_LEVELS}.")
        found[name] = levels
    return found


def make_factors(
    varied: Mapping[str, tuple[str, ...]],
    systems: Sequence[str],
    workloads: Sequence[str],
    names: Mapping[str, Mapping[str, str]] | None = None,
) -> tuple[Factor, ...]:
    """Factors with their levels understood, ``system`` first. Raises UsageError for names and values without meaning.

    ``names`` are other names of a factor by system. A value out of bounds is not refused: its cells will say so.
    """
    factors = []
    for name in sorted(varied, key=lambda one: one != "system"):
        setting = _Setting(name, systems, workloads, dict((names or {}).get(name, {})))
        values = [setting.value(level) for level in varied[name]]
        for index, value in enumerate(values):
            if value in values[:index]:
                twice = varied[name][values.index(value)]
                same = f"'{twice}' twice" if twice == varied[name][index] else f"{twice} and {varied[name][index]}"
                raise UsageError(f"--vary {name} lists {same}, which is one value", "List each value once.")
        numbers = tuple(float(value) for value in values if isinstance(value, float))
        numeric = numbers if len(numbers) == len(values) else ()
        factors.append(Factor(name, varied[name], numeric, setting.names, _UNITS.get(setting.kind, "")))
    return tuple(factors)


def make_cells(factors: Sequence[Factor]) -> tuple[Cell, ...]:
    """Every combination of levels; the last factor changes fastest."""
    names = [factor.name for factor in factors]
    return tuple(
        Cell(dict(zip(names, levels, strict=True))) for levels in itertools.product(*(one.levels for one in factors))
    )


def check_size(cells: int, repetitions: int, seconds_per_run: float) -> None:
    """Raises UsageError for more runs than anyone waits for."""
    runs = cells * repetitions
    if runs > MOST_RUNS:
        raise UsageError(
            f"{cells} cells x {repetitions} repetitions are {runs} runs, about "
            f"{duration_words(runs * seconds_per_run)}, and a sweep has at most {MOST_RUNS}",
            "Vary fewer values, or ask for a smaller --repeat.",
        )


def cell_options(base: RunOptions, factors: Sequence[Factor], cell: Cell, usable_cores: Sequence[int]) -> RunOptions:
    """The run of a cell. Raises UsageError when no run can be like that."""
    settings = dict(base.settings)
    changes: dict[str, Any] = {}
    system = cell.levels.get("system", base.system)
    for factor in factors:
        level = cell.levels[factor.name]
        match factor.name:
            case "system" | "workload":
                changes[factor.name] = level
            case "endpoint":
                if level not in ("tcp", "unix"):
                    raise UsageError(f"there is no endpoint '{level}'", "Endpoints: tcp, unix.")
                changes["endpoint_kind"] = level
            case "connections":
                changes["connections"] = units.parse_count(level)
            case "rate":
                changes["rate_per_second"] = units.parse_rate_per_second(level)
            case "tuned":
                changes["tuned"] = _FLAGS[level.lower()]
            case "client_threads":
                changes |= _client_cores(base, factor, level, usable_cores)
            case name:
                own = factor.names.get(system, name)
                if not own:
                    raise UsageError(f"{system} has nothing like {name}", "")
                settings[own] = level
    return replace(base, settings=settings, **changes)


def _client_cores(
    base: RunOptions, factor: Factor, level: str, usable_cores: Sequence[int]
) -> dict[str, tuple[int, ...]]:
    """The client's last cores; the system's are the same in every cell, so that one thing alone varies."""
    cores = sorted(usable_cores)
    own = set(base.cores or ())
    beside = [core for core in cores if core not in own]
    most = len(beside) if own else len(beside) - 1
    wanted = int(factor.value(level))
    if not 1 <= wanted <= most:
        raise UsageError(
            f"client_threads={level} takes as many cores beside the system's, and there "
            f"{'is' if most == 1 else 'are'} {most}",
            "",
        )
    if own:
        return {"client_cores": tuple(beside[-wanted:])}
    largest = max(int(value) for value in factor.values if value <= most)
    return {"cores": tuple(beside[:-largest]), "client_cores": tuple(beside[-wanted:])}


@dataclass(frozen=True)
class _Setting:
    """What is varied, among the systems and workloads that may have it; ``names`` are its other names by system."""

    name: str
    systems: Sequence[str]
    workloads: Sequence[str]
    names: Mapping[str, str]

    @property
    def kind(self) -> str:
        """Of the run's own fields, else of the first workload or system that has it. Raises UsageError without any."""
        kinds = [_LOAD_KINDS.get(self.name), *(one.kind for one in self._parameters()), *self._knob_kinds()]
        known = next((kind for kind in kinds if kind is not None), None)
        if known is None:
            names = {one.name for workload in self.workloads for one in find_workload(workload).parameters}
            names |= {knob.name for system in self.systems for knob in find_system(system).knobs}
            raise unknown_name("--vary: nothing has a setting", self.name, "There are", names | set(_LOAD_KINDS))
        return known

    def value(self, level: str) -> float | str | bool:
        """A level in one form. Raises UsageError for a value that is none of its kind."""
        try:
            match self.kind:
                case "count" | "integer":
                    return float(units.parse_count(level))
                case "size" | "memory":
                    return float(units.parse_size_bytes(level))
                case "rate":
                    return units.parse_rate_per_second(level)
                case "number":
                    number = float(level)
                    if not math.isfinite(number):
                        raise ValueError(level)
                    return number
                case "flag":
                    if level.lower() not in _FLAGS:
                        raise UsageError(
                            f"'{level}' is neither yes nor no", f"Write it like --vary {self.name}=no,yes."
                        )
                    return _FLAGS[level.lower()]
        except UsageError as error:
            if not self._is_word(level):
                raise UsageError(f"--vary {self.name}: {error.what}", error.advice) from None
        except ValueError:
            raise UsageError(f"--vary {self.name}: '{level}' is not a number", _EXAMPLE) from None
        return level

    def _is_word(self, level: str) -> bool:
        """Whether a setting of quantities takes the word too: ``threads=cores``, ``value_size=etc``, ``memory=47%``."""
        if any(level in one.choices for one in self._parameters()):
            return True
        kinds = {_LOAD_KINDS.get(self.name), *self._knob_kinds()}
        return (level == "cores" and "integer" in kinds) or (level.endswith("%") and "memory" in kinds)

    def _parameters(self) -> list[Parameter]:
        return [one for name in self.workloads for one in find_workload(name).parameters if one.name == self.name]

    def _knob_kinds(self) -> list[str]:
        return [
            knob.kind
            for system in self.systems
            for knob in find_system(system).knobs
            if knob.name == self.names.get(system, self.name)
        ]


def duration_words(seconds: float) -> str:
    """``40 s``, ``12 min`` or ``3.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"
