"""The lines that verdicts and warnings are drawn at, read from ``thresholds.toml`` beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from rackscope.errors import RackscopeError

_ADVICE = "Correct it, or install rackscope again."
_NUMBERS = ("near", "limit", "some", "strong")
_Rule = TypeVar("_Rule")


@dataclass(frozen=True)
class IntensityRule:
    """Shares of a ceiling from which a resource is near its limit, and from which it limits."""

    near: float
    limit: float

    def __post_init__(self) -> None:
        _rising(near=self.near, limit=self.limit)


@dataclass(frozen=True)
class SaturationRule:
    """A sign that work queues for a resource, and how much of it is some and how much is strong."""

    name: str
    resource: str
    quantity: str
    some: float
    strong: float
    words: str
    labels: Mapping[str, str] = field(default_factory=dict)
    #: What the value is divided by: ``system_cores``, ``host_cores`` or nothing.
    per: str = ""
    #: Whether a strong sign alone makes the resource the limit.
    decides: bool = False
    #: The rule is looked at only where this ``quantity`` is ``above``: a ratio of very little says nothing.
    only_when: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        _rising(some=self.some, strong=self.strong)
        if self.per not in ("", "system_cores", "host_cores"):
            raise ValueError(f"divides per '{self.per}', which is neither system_cores nor host_cores")
        if "{value}" not in self.words:
            raise ValueError("has words without {value}")


@dataclass(frozen=True)
class Thresholds:
    """All lines, by name."""

    intensity: Mapping[str, IntensityRule]
    saturation: tuple[SaturationRule, ...]
    limits: Mapping[str, float]

    def limit(self, name: str) -> float:
        """The value of a single line, such as ``steal.doubt``. Raises RackscopeError when there is none."""
        if name not in self.limits:
            raise RackscopeError(f"thresholds.toml has no [limit] {name}", "Add it below the reason for its value.")
        return self.limits[name]

    def line(self, name: str) -> float:
        """The value of a line by the name that evidence carries: ``limit.steal.doubt``, ``intensity.disk.limit``."""
        group, _, rest = name.partition(".")
        if group == "limit":
            return self.limit(rest)
        name, _, level = rest.rpartition(".")
        rules: Mapping[str, IntensityRule | SaturationRule] = self.intensity
        if group == "saturation":
            rules = {rule.name: rule for rule in self.saturation}
        return float(getattr(rules[name], level))


@cache
def packaged_thresholds() -> Thresholds:
    """The thresholds that rackscope comes with."""
    return parse_thresholds(files("rackscope.analysis").joinpath("thresholds.toml").read_text("utf-8"))


def parse_thresholds(text: str) -> Thresholds:
    """Thresholds from TOML. Raises RackscopeError that names the table at fault."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RackscopeError(f"thresholds.toml is not TOML: {error}", _ADVICE) from error
    unknown = sorted(set(tables) - {"intensity", "saturation", "limit"})
    if unknown:
        raise RackscopeError(f"thresholds.toml: [{unknown[0]}] is not a table that is read", _ADVICE)
    return Thresholds(
        intensity={
            name: _made(IntensityRule, f"intensity.{name}", table) for name, table in tables["intensity"].items()
        },
        saturation=tuple(
            _made(SaturationRule, f"saturation entry {number} ({table.get('name', 'without a name')})", table)
            for number, table in enumerate(tables["saturation"], 1)
        ),
        limits={
            f"{group}.{name}": float(value)
            for group, values in tables["limit"].items()
            for name, value in values.items()
        },
    )


def _made(kind: Callable[..., _Rule], where: str, table: Mapping[str, Any]) -> _Rule:
    """A rule from its table, whose keys are the rule's fields."""
    try:
        wrong = [key for key in _NUMBERS if not isinstance(table.get(key, 0), int | float)]
        if wrong:
            raise ValueError(f"needs a number for '{wrong[0]}'")
        return kind(**table)
    except (TypeError, ValueError) as error:
        raise RackscopeError(f"thresholds.toml: [{where}] {error}", _ADVICE) from error


def _rising(**values: float) -> None:
    (first, low), (second, high) = values.items()
    if not 0 < low <= high:
        raise ValueError(f"has {first} {low:g} and {second} {high:g}, which is not 0 < {first} <= {second}")
