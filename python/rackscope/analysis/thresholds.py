"""The lines that verdicts and warnings are drawn at, read from ``thresholds.toml`` beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from rackscope.errors import RackscopeError

_PLACES = ("", "system_cores", "host_cores")


@dataclass(frozen=True)
class IntensityRule:
    """Shares of a ceiling from which a resource is near its limit, and from which it limits."""

    name: str
    near: float
    limit: float
    reason: str


@dataclass(frozen=True)
class SaturationRule:
    """A sign that work queues for a resource, and how much of it is some and how much is strong."""

    name: str
    resource: str
    quantity: str
    some: float
    strong: float
    words: str
    reason: str
    labels: Mapping[str, str] = field(default_factory=dict)
    #: What the value is divided by: ``system_cores``, ``host_cores`` or nothing.
    per: str = ""
    #: Whether a strong sign alone makes the resource the limit.
    decides: bool = False
    #: The rule is looked at only where this quantity is above the value: a ratio of very little says nothing.
    only_when: tuple[str, float] | None = None


@dataclass(frozen=True)
class Limit:
    """A single line."""

    name: str
    value: float
    reason: str


@dataclass(frozen=True)
class Thresholds:
    """All lines, by name."""

    intensity: Mapping[str, IntensityRule]
    saturation: tuple[SaturationRule, ...]
    limits: Mapping[str, Limit]

    def limit(self, name: str) -> float:
        """The value of a single line, such as ``steal.doubt``. Raises RackscopeError when there is none."""
        if name not in self.limits:
            raise RackscopeError(f"thresholds.toml has no [limit.{name}]", "Add it, with its value and reason.")
        return self.limits[name].value

    def reason(self, name: str) -> str:
        """Why a line lies where it lies, by the name that evidence carries; empty for an unknown one."""
        group, _, rest = name.partition(".")
        if group == "intensity":
            rule = self.intensity.get(rest.rpartition(".")[0])
            return rule.reason if rule else ""
        if group == "saturation":
            wanted = rest.rpartition(".")[0]
            return next((rule.reason for rule in self.saturation if rule.name == wanted), "")
        return self.limits[rest].reason if rest in self.limits else ""


@cache
def packaged_thresholds() -> Thresholds:
    """The thresholds that rackscope comes with."""
    return parse_thresholds(files("rackscope.analysis").joinpath("thresholds.toml").read_text("utf-8"))


def parse_thresholds(text: str) -> Thresholds:
    """Thresholds from TOML. Raises RackscopeError that names the table and the key at fault."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RackscopeError(
            f"thresholds.toml is not TOML: {error}", "Correct it, or install rackscope again."
        ) from error
    unknown = sorted(set(tables) - {"intensity", "saturation", "limit"})
    if unknown:
        raise _fault(unknown[0], "is not a table that is read")
    return Thresholds(
        intensity={name: _intensity(name, table) for name, table in tables.get("intensity", {}).items()},
        saturation=tuple(_saturation(number, table) for number, table in enumerate(tables.get("saturation", []), 1)),
        limits={
            f"{group}.{name}": _limit(f"{group}.{name}", table)
            for group, entries in tables.get("limit", {}).items()
            for name, table in entries.items()
        },
    )


def _intensity(name: str, table: Mapping[str, Any]) -> IntensityRule:
    where = f"intensity.{name}"
    _only(where, table, {"near", "limit", "reason"})
    rule = IntensityRule(
        name, _number(where, table, "near"), _number(where, table, "limit"), _text(where, table, "reason")
    )
    if not 0 < rule.near <= rule.limit:
        raise _fault(where, f"has near {rule.near:g} and limit {rule.limit:g}, which is not 0 < near <= limit")
    return rule


def _saturation(number: int, table: Mapping[str, Any]) -> SaturationRule:
    where = f"saturation entry {number} ({table.get('name', 'without a name')})"
    _only(
        where,
        table,
        {"name", "resource", "quantity", "labels", "per", "some", "strong", "decides", "only_when", "words", "reason"},
    )
    rule = SaturationRule(
        name=_text(where, table, "name"),
        resource=_text(where, table, "resource"),
        quantity=_text(where, table, "quantity"),
        some=_number(where, table, "some"),
        strong=_number(where, table, "strong"),
        words=_text(where, table, "words"),
        reason=_text(where, table, "reason"),
        labels={str(key): str(value) for key, value in dict(table.get("labels", {})).items()},
        per=str(table.get("per", "")),
        decides=bool(table.get("decides", False)),
        only_when=_condition(where, table.get("only_when")),
    )
    if not 0 < rule.some <= rule.strong:
        raise _fault(where, f"has some {rule.some:g} and strong {rule.strong:g}, which is not 0 < some <= strong")
    if rule.per not in _PLACES:
        raise _fault(where, f"divides per '{rule.per}', which is neither system_cores nor host_cores")
    if "{value}" not in rule.words:
        raise _fault(where, "has words without {value}")
    return rule


def _condition(where: str, table: Any) -> tuple[str, float] | None:
    if table is None:
        return None
    if not isinstance(table, dict):
        raise _fault(where, "has an only_when that is not { quantity, above }")
    _only(f"{where}, only_when", table, {"quantity", "above"})
    return _text(where, table, "quantity"), _number(where, table, "above")


def _limit(name: str, table: Mapping[str, Any]) -> Limit:
    where = f"limit.{name}"
    if not isinstance(table, dict):
        raise _fault(where, "is not a table with value and reason")
    _only(where, table, {"value", "reason"})
    return Limit(name, _number(where, table, "value"), _text(where, table, "reason"))


def _number(where: str, table: Mapping[str, Any], key: str) -> float:
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _fault(where, f"needs a number for '{key}'")
    return float(value)


def _text(where: str, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _fault(where, f"needs a text for '{key}'")
    return value


def _only(where: str, table: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise _fault(where, f"has '{unknown[0]}', which nothing reads")


def _fault(where: str, what: str) -> RackscopeError:
    return RackscopeError(f"thresholds.toml: [{where}] {what}", "Correct it, or install rackscope again.")
