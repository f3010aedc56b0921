"""Ceilings: the most that each resource of this host was measured to give, kept in one file a host."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from rackscope.errors import RackscopeError
from rackscope.units import now_text

FORMAT_VERSION = 1
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class CalibrationError(RackscopeError):
    """A ceiling could not be measured, kept or read back."""


@dataclass(frozen=True)
class Ceiling:
    """One ceiling in base units.

    ``value`` is the best repetition: others disturb a measurement, nothing makes it faster than the hardware is.
    ``median``, ``minimum`` and ``maximum`` tell how far the repetitions lie apart. ``distrust`` is why it should not
    be believed, or ``None``.
    """

    name: str
    value: _Positive
    unit: str
    median: _Positive
    minimum: _Positive
    maximum: _Positive
    repetitions: int
    measured_at: str
    method: str
    distrust: str | None = None
    #: What lies beside the value, such as the figures at every queue depth.
    detail: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        name: str,
        samples: Iterable[float],
        unit: str,
        *,
        method: str,
        measured_at: str | None = None,
        lower_is_better: bool = False,
        distrust: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> Ceiling:
        """The ceiling that repetitions show, by default measured now. Raises CalibrationError for none above zero."""
        values = [value for value in samples if math.isfinite(value) and value > 0]
        if not values:
            raise CalibrationError(f"measuring {name} gave no value", "Run 'rackscope calibrate' again.")
        return cls(
            name=name,
            value=min(values) if lower_is_better else max(values),
            unit=unit,
            median=median(values),
            minimum=min(values),
            maximum=max(values),
            repetitions=len(values),
            measured_at=measured_at or now_text(),
            method=method,
            distrust=distrust,
            detail=dict(detail or {}),
        )

    @property
    def trusted(self) -> bool:
        """Whether a use may be judged against it."""
        return self.distrust is None


@dataclass(frozen=True)
class CounterCheck:
    """Whether a counter is to be believed, and how far off (a share) it was where a kernel did a known amount."""

    column: str
    status: Literal["trusted", "untrusted", "missing"]
    reason: str
    error: float | None
    checked_at: str


@dataclass(frozen=True)
class Ceilings:
    """What was measured on one host, and what could not be, with the reason."""

    identity: str
    measured_at: str
    quick: bool
    ceilings: tuple[Ceiling, ...] = ()
    counters: tuple[CounterCheck, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def get(self, name: str) -> Ceiling | None:
        """The ceiling of that name, with its labels as in ``values``."""
        return next((ceiling for ceiling in self.ceilings if ceiling.name == name), None)

    def values(self) -> dict[str, float]:
        """Value by name, such as ``disk_sequential_read_bytes_per_second{device="vda"}``; untrusted ones too."""
        return {ceiling.name: ceiling.value for ceiling in self.ceilings}

    def untrusted(self) -> dict[str, str]:
        """Why, by name, of those that no use should be judged against."""
        return {ceiling.name: ceiling.distrust for ceiling in self.ceilings if ceiling.distrust is not None}

    def merged_over(self, earlier: Ceilings | None) -> Ceilings:
        """These, and those of an earlier calibration that were not measured this time."""
        if earlier is None or earlier.identity != self.identity:
            return self
        measured = {ceiling.name for ceiling in self.ceilings}
        kept = tuple(ceiling for ceiling in earlier.ceilings if ceiling.name not in measured)
        names = measured | {ceiling.name for ceiling in kept}
        missing = {name: why for name, why in {**earlier.missing, **self.missing}.items() if name not in names}
        checked = {check.column for check in self.counters}
        return replace(
            self,
            ceilings=self.ceilings + kept,
            counters=self.counters + tuple(check for check in earlier.counters if check.column not in checked),
            missing=missing,
        )


def ceilings_path(identity: str) -> Path:
    """Where the ceilings of a host are kept: below ``$XDG_DATA_HOME``, by default ``~/.local/share``."""
    base = os.environ.get("XDG_DATA_HOME", "")
    # The XDG Base Directory Specification has relative paths ignored.
    folder = Path(base) if base.startswith("/") else Path("~/.local/share").expanduser()
    return folder / "rackscope" / "hosts" / identity / "ceilings.json"


def save_ceilings(ceilings: Ceilings) -> Path:
    """Keep them: a temporary name, fsync, rename. Raises CalibrationError when the file cannot be written."""
    path = ceilings_path(ceilings.identity)
    text = json.dumps({"format_version": FORMAT_VERSION, **asdict(ceilings)}, indent=1, allow_nan=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".ceilings-")
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise
    except OSError as error:
        raise CalibrationError(
            f"the ceilings could not be kept in {path}: {error.strerror or error}",
            "Free some space there, or set XDG_DATA_HOME to a folder that can be written.",
        ) from error
    return path


def load_ceilings(identity: str) -> Ceilings | None:
    """What was measured on this host, or ``None``. Raises CalibrationError when the file cannot be read or believed."""
    path = ceilings_path(identity)
    again = "Run 'rackscope calibrate' to measure again; it replaces the file."
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CalibrationError(f"the ceilings in {path} cannot be read: {error}", again) from error
    try:
        content = json.loads(text)
        version = content["format_version"]
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise CalibrationError(
                f"the ceilings in {path} have format {version}, which is newer than this rackscope knows", again
            )
        if content["identity"] != identity:
            raise ValueError(f"they are of host {content['identity']}, not {identity}")
        absent = [one.name for one in fields(Ceilings) if one.name not in content]
        if absent:
            raise KeyError(absent[0])
        return TypeAdapter(Ceilings).validate_json(text, strict=True)
    except (ValueError, KeyError, TypeError) as error:
        raise CalibrationError(f"the ceilings in {path} are damaged ({_what(error)})", again) from error


def _what(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}, not {first['input']!r:.80}"
    return f"no {error}" if isinstance(error, KeyError) else str(error)
