"""Workloads and measured pairs as plain objects, for files that programs read, and back; checked by pydantic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rackscope.errors import RackscopeError
from rackscope.models.colocation import RULES, Side, Workload


class MalformedWorkloadError(RackscopeError):
    """It is not what ``workload_to_dict`` or ``side_to_dict`` write; the message names the place."""


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _checked(kind: Any, content: Any, place: str) -> Any:
    try:
        return _adapter(kind).validate_python(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, (place, *first["loc"])))
        raise MalformedWorkloadError(f"{where}: {first['msg']}", "Measure it again.") from error


def workload_to_dict(workload: Workload) -> dict[str, Any]:
    """WORKLOAD of docs/reference/study-results.md."""
    content: dict[str, Any] = _adapter(Workload).dump_python(workload, mode="json")
    for one in content["sensitivities"].values():
        del one["resource"]
    return content


def workload_from_dict(content: Any, place: str = "workload") -> Workload:
    """The workload again. Raises MalformedWorkloadError."""
    holder = _checked(dict[str, Any], content, place)
    found = _checked(dict[str, dict[str, Any]], holder.get("sensitivities"), f"{place}.sensitivities")
    named = {name: {**one, "resource": name} for name, one in found.items()}
    workload: Workload = _checked(Workload, {**holder, "sensitivities": named}, place)
    for name, one in workload.sensitivities.items():
        if (
            not one.points
            or not all(0 < point.left < 1 for point in one.points)
            or one.capacity <= 0
            or name not in RULES
        ):
            where = f"{place}.sensitivities.{name}"
            raise MalformedWorkloadError(f"{where} is not a response to squeezes", "Measure it again.")
    if not workload.name:
        raise MalformedWorkloadError(f"{place} has no name", "Measure it again.")
    return workload


def side_to_dict(side: Side) -> dict[str, Any]:
    """SIDE of docs/reference/study-results.md."""
    return {
        "workload": side.workload.name,
        "neighbour": side.neighbour.name,
        "quantity": side.workload.quantity,
        "log_kept": side.log_kept,
        "error": side.error,
    }


def sides_from_list(content: Any, workloads: Sequence[Workload], place: str = "sides") -> list[Side]:
    """The sides again. Raises MalformedWorkloadError, also for workloads that are not among ``workloads``."""
    by_name = {workload.name: workload for workload in workloads}
    sides = []
    for at, one in enumerate(_checked(list[Mapping[str, Any]], content, place)):
        where = f"{place}.{at}"
        # Studies of earlier versions call it work.
        name = one.get("workload", one.get("work"))
        if not {name, one.get("neighbour")} <= by_name.keys():
            raise MalformedWorkloadError(f"{where} names a workload that there is not", "Measure it again.")
        named = {"workload": by_name[name], "neighbour": by_name[one["neighbour"]]}
        sides.append(_checked(Side, {**one, **named}, where))
    return sides
