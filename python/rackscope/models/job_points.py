"""Measured jobs (server, machines, data, seconds) out of CSV or TOML, checked row by row.

CSV has a header with ``server,data_bytes,seconds`` and, if they are known, ``machines`` and ``cores``; TOML has one
``[[job]]`` each, with the same keys or ``data = "20GiB"``. A job is one piece of work over all of its data; ``cores``
are those that it used of one machine.
"""

from __future__ import annotations

import csv
import difflib
import io
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rackscope.errors import RackscopeError, UsageError
from rackscope.units import format_bytes, parse_size_bytes

_KEYS = ("server", "machines", "cores", "data", "data_bytes", "seconds")
#: Nobody spreads less over machines: sizes below it are gigabytes that were written without their unit. Our choice.
LEAST_DATA_BYTES = 1e6
#: Bytes a second of one machine: more than DRAM gives, so that times above it are in another unit. Our choice.
_MOST_BYTES_PER_SECOND = 1e13
#: More lines than anybody measured.
_MOST_POINTS = 100_000


class JobPointsError(RackscopeError):
    """A file of measured jobs says something that cannot be; the line names the file and the place."""

    exit_status = 2


@dataclass(frozen=True)
class JobPoint:
    """One job that was measured. ``cores`` of one machine, ``None`` for all of them; ``source`` is where it is from."""

    server: str
    machines: int
    data_bytes: float
    seconds: float
    cores: int | None
    source: str


def parse_job_points(text: str, file: str) -> tuple[JobPoint, ...]:
    """All jobs in ``text``, TOML where ``file`` ends so, else CSV.

    Raises JobPointsError for what is neither, a missing or unknown column, and values that cannot be.
    """
    rows = _toml_rows(text, file) if file.endswith(".toml") else _csv_rows(text, file)
    if not rows:
        raise JobPointsError(f"{file} has no measured job", "Give one line for each job: server, machines, data.")
    if len(rows) > _MOST_POINTS:
        raise JobPointsError(f"{file} has {len(rows)} jobs", f"Give {_MOST_POINTS} at most.")
    points = tuple(_point(place, row, file) for place, row in rows)
    _check_units(points, file)
    return points


def _toml_rows(text: str, file: str) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise JobPointsError(f"{file} is not TOML: {error}", "Mend it at that place.") from error
    jobs = content.get("job")
    if set(content) != {"job"} or not isinstance(jobs, list) or not all(isinstance(one, dict) for one in jobs):
        raise JobPointsError(f"{file} is no list of jobs", "Write [[job]] and its keys below, and nothing else.")
    return [(f"job {number}", one) for number, one in enumerate(jobs, 1)]


def _csv_rows(text: str, file: str) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        reader = csv.DictReader(io.StringIO(text), strict=True, skipinitialspace=True)
        rows: list[tuple[str, Mapping[str, Any]]] = []
        for row in reader:
            if None in row or None in row.values():
                raise JobPointsError(
                    f"{file}: line {reader.line_num} has not as many cells as the header",
                    "Give one value for each column.",
                )
            filled = {str(name).strip(): str(value).strip() for name, value in row.items() if str(value).strip()}
            rows.append((f"line {reader.line_num}", filled))
        return rows
    except csv.Error as error:
        raise JobPointsError(f"{file} is not CSV: {error}", "Mend it, or write TOML (.toml).") from error


def _point(place: str, row: Mapping[str, Any], file: str) -> JobPoint:
    unknown = next((key for key in row if key not in _KEYS), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, _KEYS, n=1)
        hint = f"Did you mean {near[0]}? " if near else ""
        raise JobPointsError(
            f"{file}: {place}: {unknown[:40]} is nothing that is read", f"{hint}Read are: {', '.join(_KEYS)}."
        )
    server = row.get("server")
    if not isinstance(server, str) or not server:
        raise JobPointsError(f"{file}: {place}: server is missing", "Name it as the catalogue does.")
    if ("data" in row) == ("data_bytes" in row):
        said = "both" if "data" in row else "neither"
        raise JobPointsError(f"{file}: {place} has {said} of data and data_bytes", "Give one, such as data_bytes.")
    size = _size(place, row, file) if "data" in row else _number(place, row, "data_bytes", file)
    return JobPoint(
        server,
        _count(place, row, "machines", file) or 1,
        size,
        _number(place, row, "seconds", file),
        _count(place, row, "cores", file),
        file,
    )


def _size(place: str, row: Mapping[str, Any], file: str) -> float:
    try:
        return float(parse_size_bytes(str(row["data"])))
    except UsageError as error:
        raise JobPointsError(f"{file}: {place}: data: {error.what}", error.advice) from error


def _number(place: str, row: Mapping[str, Any], name: str, file: str) -> float:
    value = row.get(name)
    try:
        number = math.nan if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        said = "missing" if value is None else f"'{str(value)[:40]}'"
        raise JobPointsError(f"{file}: {place}: {name} is {said}", "Write a number above zero, without a unit.")
    return number


def _count(place: str, row: Mapping[str, Any], name: str, file: str) -> int | None:
    if name not in row:
        return None
    number = _number(place, row, name, file)
    if number != round(number):
        raise JobPointsError(f"{file}: {place}: {name} is {number:g}", "Write a whole number.")
    return round(number)


def _check_units(points: Sequence[JobPoint], file: str) -> None:
    for one in points:
        if one.data_bytes < LEAST_DATA_BYTES:
            raise JobPointsError(
                f"{file}: a job over {format_bytes(one.data_bytes)} of data is in another unit, or too small to scale",
                'Write bytes (data_bytes = 20e9), or the unit (data = "20GB").',
            )
        if one.data_bytes / one.seconds / one.machines > _MOST_BYTES_PER_SECOND:
            raise JobPointsError(
                f"{file}: {format_bytes(one.data_bytes)} in {one.seconds:g} s on {one.machines} is no speed of servers",
                "Write seconds, and bytes.",
            )
