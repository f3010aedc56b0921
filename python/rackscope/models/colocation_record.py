"""Workloads and measured pairs as plain objects, for files that programs read, and back; checked by pydantic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rackscope.errors import RackscopeError
from rackscope.models.colocation import RULES, Side, Work


class MalformedWorkError(RackscopeError):
    """It is not what ``work_to_dict`` or ``side_to_dict`` write; the message names the place."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _checked(kind: Any, content: Any, place: str) -> Any:
    try:
        return _adapter(kind).validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, (place, *first["loc"])))
        raise MalformedWorkError(f"{where}: {first['msg']}", "Measure it again.") from error


def work_to_dict(work: Work) -> dict[str, Any]:
    """``{"name", "quantity", "sensitivities": {RESOURCE: {"capacity", "use", "points": [{"left", "log_kept",
    "error"}]}}, "demands": {RESOURCE: {"amount", "error"}}, "unknown": {RESOURCE: reason}}``, in base units."""
    content: dict[str, Any] = _adapter(Work).dump_python(work, mode="json")
    for one in content["sensitivities"].values():
        del one["resource"]
    return content


def work_from_dict(content: Any, place: str = "work") -> Work:
    """The workload again. Raises MalformedWorkError."""
    holder = _checked(dict[str, Any], content, place)
    found = _checked(dict[str, dict[str, Any]], holder.get("sensitivities"), f"{place}.sensitivities")
    named = {name: {**one, "resource": name} for name, one in found.items()}
    work: Work = _checked(Work, {**holder, "sensitivities": named}, place)
    for name, one in work.sensitivities.items():
        if (
            not one.points
            or not all(0 < point.left < 1 for point in one.points)
            or one.capacity <= 0
            or name not in RULES
        ):
            where = f"{place}.sensitivities.{name}"
            raise MalformedWorkError(f"{where} is not a response to squeezes", "Measure it again.")
    if not work.name:
        raise MalformedWorkError(f"{place} has no name", "Measure it again.")
    return work


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
    """The sides again. Raises MalformedWorkError, also for workloads that are not among ``works``."""
    by_name = {work.name: work for work in works}
    sides = []
    for at, one in enumerate(_checked(list[Mapping[str, Any]], content, place)):
        where = f"{place}.{at}"
        if not {one.get("work"), one.get("neighbour")} <= by_name.keys():
            raise MalformedWorkError(f"{where} names a workload that there is not", "Measure it again.")
        named = {"work": by_name[one["work"]], "neighbour": by_name[one["neighbour"]]}
        sides.append(_checked(Side, {**one, **named}, where))
    return sides
