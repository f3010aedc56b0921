"""Measured jobs (server, machines, data, seconds) out of CSV or TOML, checked row by row.

CSV has a header with ``server,data_bytes,seconds`` and, if they are known, ``machines`` and ``cores``; TOML has one
``[[job]]`` each, with the same keys or ``data = "20GiB"``. A job is one piece of work over all of its data; ``cores``
are those that it used of one machine.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, PlainValidator, TypeAdapter

from rackscope.errors import RackscopeError, UsageError
from rackscope.models.checked import STRICT, Checker, fault
from rackscope.units import format_bytes, parse_size_bytes

#: Nobody spreads less over machines: sizes below it are gigabytes that were written without their unit. Our choice.
LEAST_DATA_BYTES = 1e6
#: Bytes a second of one machine: more than DRAM gives, so that times above it are in another unit. Our choice.
_MOST_BYTES_PER_SECOND = 1e13
#: More lines than anybody measured.
_MOST_POINTS = 100_000


class JobPointsError(RackscopeError):
    """A file of measured jobs says something that is out of range; the line names the file and the row."""

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


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise fault("is missing", "Name it as the catalogue does.")
    return value


def _number(value: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        raise fault(f"is '{str(value)[:40]}'", "Write a number above zero, without a unit.")
    return number


def _count(value: Any) -> int:
    number = _number(value)
    if number != round(number):
        raise fault(f"is {number:g}", "Write a whole number.")
    return round(number)


def _size(value: Any) -> float:
    try:
        return float(parse_size_bytes(str(value)))
    except UsageError as error:
        raise fault(f"is invalid: {error.what}", error.advice) from error


_Count = Annotated[int, PlainValidator(_count)]
_Number = Annotated[float, PlainValidator(_number)]


@dataclass(frozen=True)
class _Fields:
    """A row as files have it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    server: Annotated[str, PlainValidator(_name)]
    seconds: _Number
    machines: _Count = 1
    cores: _Count | None = None
    data: Annotated[float | None, PlainValidator(_size)] = None
    data_bytes: _Number | None = None

    def point(self, file: str) -> JobPoint:
        """The job; ``file`` is where it is from."""
        return JobPoint(self.server, self.machines, self._bytes, self.seconds, self.cores, file)

    @property
    def _bytes(self) -> float:
        return self.data or self.data_bytes or 0.0


def _in_range(row: _Fields) -> _Fields:
    if (row.data is None) == (row.data_bytes is None):
        said = "neither" if row.data is None else "both"
        raise fault(f"has {said} of data and data_bytes", "Give one, such as data_bytes.")
    size = format_bytes(row._bytes)
    if row._bytes < LEAST_DATA_BYTES:
        raise fault(
            f"has {size} of data: another unit is meant, or it is too small to scale",
            'Write bytes (data_bytes = 20e9), or the unit (data = "20GB").',
        )
    if row._bytes / row.seconds / row.machines > _MOST_BYTES_PER_SECOND:
        raise fault(
            f"is faster than servers are: {size} in {row.seconds:g} s on {row.machines}", "Write seconds, and bytes."
        )
    return row


_Row = Annotated[_Fields, AfterValidator(_in_range)]
_CHECKER = Checker(
    JobPointsError, {"": tuple(one.name for one in fields(_Fields))}, {"server": "Name it as the catalogue does."}
)


def parse_job_points(text: str, file: str) -> tuple[JobPoint, ...]:
    """All jobs in ``text``: TOML where ``file`` ends so, else CSV. Raises JobPointsError with the row."""
    rows = _toml_rows(text, file) if file.endswith(".toml") else _csv_rows(text, file)
    if not rows:
        raise JobPointsError(f"{file} has no measured job", "Give one line for each job: server, machines, data.")
    if len(rows) > _MOST_POINTS:
        raise JobPointsError(f"{file} has {len(rows)} jobs", f"Give {_MOST_POINTS} at most.")
    adapter = TypeAdapter(_Row)
    return tuple(_CHECKER.check(adapter, row, f"{file}: {place}").point(file) for place, row in rows)


def _toml_rows(text: str, file: str) -> list[tuple[str, Any]]:
    content = _CHECKER.toml(text, file)
    jobs = content.get("job")
    if set(content) != {"job"} or not isinstance(jobs, list):
        raise JobPointsError(f"{file} is not a list of jobs", "Write [[job]] and its keys below, and nothing else.")
    return [(f"job {number}", one) for number, one in enumerate(jobs, 1)]


def _csv_rows(text: str, file: str) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    try:
        reader = csv.DictReader(io.StringIO(text), strict=True, skipinitialspace=True)
        for row in reader:
            if None in row or None in row.values():
                raise JobPointsError(
                    f"{file}: line {reader.line_num} has not as many cells as the header",
                    "Give one value for each column.",
                )
            filled = {str(name).strip(): str(value).strip() for name, value in row.items() if str(value).strip()}
            rows.append((f"line {reader.line_num}", filled))
    except csv.Error as error:
        raise JobPointsError(f"{file} is not CSV: {error}", "Fix the line, or write TOML (.toml).") from error
    return rows
