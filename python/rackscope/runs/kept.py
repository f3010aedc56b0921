"""What ``manifest.json`` and ``study.json`` have in common: who writes them, and how they are read without trust."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rackscope.errors import RunDirectoryError
from rackscope.process_identity import boot_id, process_start_ticks
from rackscope.runs.tables import first_line


class Part(BaseModel):
    """A part of a kept file."""

    # A newer rackscope of the same format may add fields: they are kept out of the way, not an error.
    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


class Conducted(Part):
    """A file that a rackscope writes for as long as it is at work, with which process that is."""

    rackscope_pid: int | None = None
    rackscope_pid_start_ticks: int | None = None
    boot_id: str | None = None

    def stamp(self) -> None:
        """Write down that it is this process."""
        self.rackscope_pid = os.getpid()
        self.rackscope_pid_start_ticks = process_start_ticks(os.getpid())
        self.boot_id = boot_id()

    def is_still_conducted(self) -> bool:
        """Whether that process still runs."""
        if self.rackscope_pid is None or self.boot_id is None or self.boot_id != boot_id():
            return False
        started = process_start_ticks(self.rackscope_pid)
        return started is not None and started == self.rackscope_pid_start_ticks


_Model = TypeVar("_Model", bound=BaseModel)


def read_kept(
    file: Path,
    model: type[_Model],
    *,
    what: str,
    limit_bytes: int,
    format_version: int,
    again: str,
    another: str,
    upgrade: Callable[[Any], Any] | None = None,
) -> _Model:
    """A file of ours as its model, ``upgrade``d if older. FileNotFoundError, else RunDirectoryError with the advice."""
    try:
        if file.stat().st_size > limit_bytes:
            raise RunDirectoryError(f"{file} is too large to be a {what}", another)
        content = json.loads(file.read_bytes(), parse_constant=_refuse, parse_float=_finite)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunDirectoryError(f"cannot read {file}: {error.strerror}", "Check its permissions.") from error
    except (ValueError, RecursionError) as error:
        raise RunDirectoryError(f"{file} is damaged ({first_line(error)})", again) from error
    version = content.get("format_version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > format_version:
        raise RunDirectoryError(
            f"{file.parent} has format {version}, and this rackscope reads up to {format_version}",
            "Open it with a newer rackscope.",
        )
    if upgrade is not None and isinstance(version, int) and version < format_version:
        content = {**upgrade(content), "format_version": format_version}
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise RunDirectoryError(
            f"{file} is not a {what} that rackscope understands ({place}: {first['msg']})", another
        ) from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number that JSON knows")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is beyond all numbers")
    return value
