"""From declared knobs, ``--tuned`` and ``--set`` to one checked value for every knob, with why it has it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rackscope.errors import UsageError, unknown_name
from rackscope.mounts import read_memberships
from rackscope.units import format_bytes, parse_count, parse_size_bytes

if TYPE_CHECKING:
    from rackscope.systems.base import Knob, System

KnobSource = Literal["default", "tuned", "set"]

#: The most of the available memory that a default or tuned value takes: the client and the kernel live there too.
MEMORY_SHARE_LIMIT = 0.9

_FLAGS = {"yes": "yes", "on": "yes", "true": "yes", "1": "yes", "no": "no", "off": "no", "false": "no", "0": "no"}
_PERCENT = re.compile(r"\s*(\d{1,3}(?:\.\d+)?)\s*%\s*")
_LONGEST_TEXT = 200


@dataclass(frozen=True)
class KnobContext:
    """What values may depend on: how many cores the system was given, and the memory that it could fill."""

    cores: int
    memory_available_bytes: int
    memory_total_bytes: int

    @classmethod
    def of_this_host(cls, cores: int, root: Path = Path("/")) -> KnobContext:
        """Read /proc/meminfo and the limit of this process's memory cgroup. Raises UsageError when unreadable."""
        try:
            text = (root / "proc/meminfo").read_text(encoding="ascii", errors="replace")
            kibibytes = {match[1]: int(match[2]) for match in re.finditer(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
            total, available = kibibytes["MemTotal"] * 1024, kibibytes["MemAvailable"] * 1024
        except (OSError, KeyError) as error:
            raise UsageError(
                f"the memory of this host cannot be read from /proc/meminfo ({error})", "Is /proc mounted?"
            ) from error
        limit = _cgroup_memory_limit_bytes(root)
        return cls(cores, min(available, limit or available), min(total, limit or total))


@dataclass(frozen=True)
class ResolvedKnobs:
    """For every knob its value in one form (digits, ``yes``, ``no``), its default, and where the value comes from."""

    values: Mapping[str, str]
    defaults: Mapping[str, str]
    sources: Mapping[str, KnobSource]
    #: What a user should hear about the values, one sentence each.
    notes: tuple[str, ...] = ()


def resolve_knobs(
    system: System,
    settings: Mapping[str, str],
    *,
    tuned: bool,
    cores: Sequence[int],
    context: KnobContext | None = None,
) -> ResolvedKnobs:
    """Settle every knob of ``system``: ``settings`` win over tuned values, these over defaults. Raises UsageError."""
    known = {knob.name: knob for knob in system.knobs}
    for name in settings:
        if name not in known:
            raise unknown_name(f"{system.name} has no knob", name, "Knobs", known)
    context = context or KnobContext.of_this_host(len(cores))
    values: dict[str, str] = {}
    defaults: dict[str, str] = {}
    sources: dict[str, KnobSource] = {}
    notes: list[str] = []
    for name, knob in known.items():
        defaults[name], note = _declared(knob, knob.default, context)
        if name in settings:
            values[name], note = _checked(system.name, knob, settings[name], context), None
            sources[name] = "set"
        elif tuned and knob.tuned is not None:
            values[name], note = _declared(knob, knob.tuned, context)
            sources[name] = "tuned"
        else:
            values[name], sources[name] = defaults[name], "default"
        if note:
            notes.append(note)
    return ResolvedKnobs(values, defaults, sources, tuple(notes))


def _declared(knob: Knob, text: str, context: KnobContext) -> tuple[str, str | None]:
    """A value that the system declares. It suits every host, so it gives way where a user's would be refused."""
    value = _canonical(knob, text, context)
    if knob.kind not in ("integer", "size", "memory"):
        return value, None
    number, note = int(value), None
    if knob.kind == "memory":
        most = int(context.memory_available_bytes * MEMORY_SHARE_LIMIT)
        if number > most:
            number = most
            note = f"{knob.name} is {format_bytes(most)} instead of {text}: no more memory is available"
    if knob.maximum is not None:
        number = min(number, knob.maximum)
    if knob.minimum is not None:
        number = max(number, knob.minimum)
    return str(number), note


def _checked(system: str, knob: Knob, text: str, context: KnobContext) -> str:
    """A value that a user set."""
    try:
        value = _canonical(knob, text, context)
    except UsageError as error:
        if knob.name in error.what:
            raise
        raise UsageError(f"knob {knob.name} of {system}: {error.what}", error.advice) from None
    if knob.kind not in ("integer", "size", "memory"):
        return value
    number = int(value)
    show = str if knob.kind == "integer" else format_bytes
    if knob.minimum is not None and number < knob.minimum:
        raise UsageError(
            f"{system}: invalid {knob.name}: the minimum is {show(knob.minimum)}, got '{text}'", _help(knob)
        )
    if knob.maximum is not None and number > knob.maximum:
        raise UsageError(
            f"{system}: invalid {knob.name}: the maximum is {show(knob.maximum)}, got '{text}'", _help(knob)
        )
    if knob.kind == "memory" and number > context.memory_total_bytes:
        total = format_bytes(context.memory_total_bytes)
        raise UsageError(f"{knob.name}={text} is more memory than the {total} there is", f"Try {knob.name}=50%.")
    return value


def _canonical(knob: Knob, text: str, context: KnobContext) -> str:
    match knob.kind:
        case "integer":
            if text.strip() == "cores":
                return str(context.cores)
            return str(parse_count(text))
        case "memory" if percent := _PERCENT.fullmatch(text):
            return str(int(context.memory_available_bytes * float(percent[1]) / 100))
        case "memory" | "size":
            return str(parse_size_bytes(text))
        case "flag":
            if text.strip().lower() not in _FLAGS:
                raise UsageError(f"invalid {knob.name}: expected yes or no, got '{text}'", _help(knob))
            return _FLAGS[text.strip().lower()]
        case "choice":
            if text not in knob.choices:
                raise unknown_name(f"invalid {knob.name}:", text, "Expected one of", knob.choices)
            return text
        case "text":
            if len(text) > _LONGEST_TEXT or not text.isprintable():
                raise UsageError(f"{knob.name} expects a short printable text", _help(knob))
            return text


def _help(knob: Knob) -> str:
    return f"{knob.name}: {knob.help}."


def _cgroup_memory_limit_bytes(root: Path) -> int | None:
    """The tightest memory limit on the way from this process's cgroup to the root, v2 or v1; ``None`` without one."""
    limits: list[int] = []
    try:
        memberships = read_memberships((root / "proc/self/cgroup").read_text(encoding="utf-8"))
    except OSError:
        return None
    for controller, top, name in (
        ("", root / "sys/fs/cgroup", "memory.max"),
        ("memory", root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"),
    ):
        if controller not in memberships:
            continue
        folder = top / memberships[controller].lstrip("/")
        for level in (folder, *folder.parents):
            if level.is_relative_to(top):
                with suppress(OSError, UnicodeDecodeError, ValueError):
                    limits.append(int((level / name).read_text(encoding="ascii")))
    return min(limits, default=None)
