"""Works and measured pairs as plain objects, for files that programs read, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rackscope.errors import RackscopeError
from rackscope.models.colocation import RULES, Demand, ResponsePoint, Sensitivity, Side, Work


class MalformedWorkError(RackscopeError):
    """It is not what ``work_to_dict`` or ``side_to_dict`` write; the message names the place."""


def work_to_dict(work: Work) -> dict[str, Any]:
    """``{"name", "quantity", "sensitivities": {RESOURCE: {"capacity", "use", "points": [{"left", "log_kept",
    "error"}]}}, "demands": {RESOURCE: {"amount", "error"}}, "unknown": {RESOURCE: reason}}``, in base units."""
    return {
        "name": work.name,
        "quantity": work.quantity,
        "sensitivities": {
            name: {
                "capacity": one.capacity,
                "use": one.use,
                "points": [
                    {"left": point.left, "log_kept": point.log_kept, "error": point.error} for point in one.points
                ],
            }
            for name, one in work.sensitivities.items()
        },
        "demands": {name: {"amount": one.amount, "error": one.error} for name, one in work.demands.items()},
        "unknown": dict(work.unknown),
    }


def work_from_dict(content: Any, place: str = "work") -> Work:
    """The work again. Raises MalformedWorkError."""
    holder = _mapping(content, place)
    quantity = holder.get("quantity", "throughput")
    if quantity not in ("throughput", "p99"):
        raise MalformedWorkError(f"{place}.quantity is {quantity!r}", "Measure it again.")
    sensitivities = {}
    for name, one in _mapping(holder.get("sensitivities"), f"{place}.sensitivities").items():
        where = f"{place}.sensitivities.{name}"
        found = _mapping(one, where)
        points = tuple(
            ResponsePoint(*(_number(point, key, f"{where}.points.{at}") for key in ("left", "log_kept", "error")))
            for at, point in enumerate(_list(found.get("points"), f"{where}.points"))
        )
        capacity = _number(found, "capacity", where)
        if not points or not all(0 < point.left < 1 for point in points) or capacity <= 0 or name not in RULES:
            raise MalformedWorkError(f"{where} is no response to squeezes", "Measure it again.")
        use = None if found.get("use") is None else _number(found, "use", where)
        sensitivities[name] = Sensitivity(name, capacity, points, use)
    demands = {
        name: Demand(
            _number(one, "amount", f"{place}.demands.{name}"), _number(one, "error", f"{place}.demands.{name}")
        )
        for name, one in _mapping(holder.get("demands"), f"{place}.demands").items()
    }
    unknown = {str(key): str(value) for key, value in _mapping(holder.get("unknown", {}), f"{place}.unknown").items()}
    own = holder.get("name")
    if not isinstance(own, str) or not own:
        raise MalformedWorkError(f"{place} has no name", "Measure it again.")
    return Work(own, sensitivities, demands, quantity, unknown)


def side_to_dict(side: Side) -> dict[str, Any]:
    """``{"work", "neighbour", "quantity", "log_kept", "error"}``."""
    return {
        "work": side.work.name,
        "neighbour": side.neighbour.name,
        "quantity": side.work.quantity,
        "log_kept": side.log_kept,
        "error": side.error,
    }


def sides_from_list(content: Any, works: Sequence[Work], place: str = "sides") -> list[Side]:
    """The sides again. Raises MalformedWorkError, also for works that are not among ``works``."""
    by_name = {work.name: work for work in works}
    sides = []
    for at, one in enumerate(_list(content, place)):
        where = f"{place}.{at}"
        holder = _mapping(one, where)
        names = [holder.get("work"), holder.get("neighbour")]
        if not all(isinstance(name, str) and name in by_name for name in names):
            raise MalformedWorkError(f"{where} names a work that there is not", "Measure it again.")
        first, second = (by_name[str(name)] for name in names)
        sides.append(Side(first, second, _number(holder, "log_kept", where), _number(holder, "error", where)))
    return sides


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise MalformedWorkError(f"{place} is no object", "Measure it again.")
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise MalformedWorkError(f"{place} is no list", "Measure it again.")
    return value


def _number(holder: Any, key: str, place: str) -> float:
    value = holder.get(key) if isinstance(holder, Mapping) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise MalformedWorkError(f"{place}.{key} is no number", "Measure it again.")
    return float(value)
