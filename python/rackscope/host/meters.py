"""Power meters that the user names (``--meter``), as text and as ``rackscope._native`` takes them.

``KIND:WHAT,option=value,...``: a power strip (``snmp:192.0.2.7,preset=apc,outlet=4``), a file that holds a number
(``file:/run/watts,unit=watts``), a command that prints one a line (``command:meter --once,unit=watts``). ``none``
leaves out the meters that this host has itself, which are found without being asked for.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from rackscope.errors import UsageError, did_you_mean
from rackscope.units import parse_duration_seconds

NONE = "none"

#: What a number may be: watts or joules, and how many of them one is.
UNITS: Mapping[str, tuple[str, float]] = MappingProxyType(
    {
        "watts": ("watts", 1.0),
        "milliwatts": ("watts", 1e-3),
        "kilowatts": ("watts", 1e3),
        "joules": ("joules", 1.0),
        "millijoules": ("joules", 1e-3),
        "microjoules": ("joules", 1e-6),
        "kilojoules": ("joules", 1e3),
        "watt_hours": ("joules", 3.6e3),
        "kilowatt_hours": ("joules", 3.6e6),
    }
)


@dataclass(frozen=True)
class Preset:
    """Where a maker's power strips have their watts.

    ``outlet`` holds ``{index}``; an outlet that is given by one number has the index ``number`` makes of it. ``scale``
    is the watts of one, of an outlet and of the whole strip.
    """

    outlet: str
    number: str
    strip: str
    scale: tuple[float, float] = (1.0, 1.0)


#: PowerNet-MIB (rPDU2OutletMeteredStatusPower, rPDU2DeviceStatusPower in hundredths of a kilowatt), PDU2-MIB
#: (measurementsOutletSensorValue and measurementsInletSensorValue of activePower), Sentry4-MIB (st4OutletActivePower,
#: st4InputCordActivePower), Sentry3-MIB (outletPower, infeedPower), EATON-EPDU-MIB (outletWatts, inputTotalWatts).
PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "apc": Preset(
            "1.3.6.1.4.1.318.1.1.26.9.4.3.1.7.{index}", "{number}", "1.3.6.1.4.1.318.1.1.26.4.3.1.5.1", (1.0, 10.0)
        ),
        "raritan": Preset(
            "1.3.6.1.4.1.13742.6.5.4.3.1.4.{index}.5", "1.{number}", "1.3.6.1.4.1.13742.6.5.2.3.1.4.1.1.5"
        ),
        "servertech": Preset(
            "1.3.6.1.4.1.1718.4.1.8.3.1.7.{index}", "1.1.{number}", "1.3.6.1.4.1.1718.4.1.3.3.1.3.1.1"
        ),
        "servertech3": Preset("1.3.6.1.4.1.1718.3.2.3.1.14.{index}", "1.1.{number}", "1.3.6.1.4.1.1718.3.2.2.1.12.1.1"),
        "eaton": Preset("1.3.6.1.4.1.534.6.6.7.6.5.1.3.{index}", "0.{number}", "1.3.6.1.4.1.534.6.6.7.3.5.1.4.0.1"),
    }
)

_EXAMPLES = MappingProxyType(
    {
        "snmp": "snmp:192.0.2.7,preset=apc,outlet=4",
        "file": "file:/run/watts,unit=watts",
        "command": "command:wattmeter --watch,unit=watts",
    }
)
_MOST_OUTLETS = 16


def _duration(least: float, most: float) -> Any:
    return Annotated[float, BeforeValidator(parse_duration_seconds), Field(ge=least, le=most)]


class _File(BaseModel):
    """Options of every kind of meter."""

    model_config = ConfigDict(extra="forbid")

    unit: Literal[tuple(UNITS)] | None = None  # type: ignore[valid-type]
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    domain: Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f,]{1,64}$")] | None = None
    interval: _duration(0.05, 3600.0) = 1.0  # type: ignore[valid-type]

    def measured(self) -> dict[str, Any]:
        """What the numbers are of."""
        if self.unit is None:
            raise ValueError("unit=watts or unit=joules is missing")
        quantity, one = UNITS[self.unit]
        return {"domain": self.domain or "server", "quantity": quantity, "scale": one * self.scale}


class _Command(_File):
    timeout: _duration(0.01, 60.0) = 1.0  # type: ignore[valid-type]


class _Strip(_Command):
    preset: Literal[tuple(PRESETS)] | None = None  # type: ignore[valid-type]
    outlet: str | None = Field(default=None, pattern=r"^\d{1,9}(\.\d{1,9}){0,5}(\+\d{1,9}(\.\d{1,9}){0,5})*$")
    oid: str | None = Field(default=None, pattern=r"^\.?[012](\.\d{1,10}){1,127}$")
    community: str | None = None
    community_file: Path | None = None

    def password(self) -> str:
        """The community, which may be in a file."""
        if self.community_file is None:
            return self.community or "public"
        if self.community is not None:
            raise ValueError("give community or community_file, not both")
        try:
            return self.community_file.read_text(encoding="utf-8")[:256].splitlines()[0].strip()
        except (OSError, UnicodeDecodeError, IndexError) as error:
            raise ValueError(f"no first line can be read from {self.community_file} ({type(error).__name__})") from None

    def readings(self) -> list[dict[str, Any]]:
        """What to ask the strip for: an object of its own, or what a preset knows of its outlets or the whole."""
        if self.oid is not None:
            if self.preset or self.outlet:
                raise ValueError("give oid and unit, or preset and outlet")
            return [{"oid": self.oid, "measured": self.measured()}]
        if self.preset is None:
            raise ValueError(f"the maker is missing: add preset={'|'.join(PRESETS)}, or oid=... and unit=...")
        if self.unit is not None:
            raise ValueError("a preset knows its unit: leave out unit")
        preset = PRESETS[self.preset]

        def reading(oid: str, domain: str, scale: float) -> dict[str, Any]:
            measured = {"domain": self.domain or domain, "quantity": "watts", "scale": scale * self.scale}
            return {"oid": oid, "measured": measured}

        if self.outlet is None:
            return [reading(preset.strip, "strip", preset.scale[1])]
        outlets = self.outlet.split("+")
        if len(outlets) > _MOST_OUTLETS or len(set(outlets)) < len(outlets):
            raise ValueError(f"outlet takes up to {_MOST_OUTLETS} different outlets, like outlet=4+5")
        if self.domain is not None and len(outlets) > 1:
            raise ValueError("one domain cannot be that of several outlets")
        indices = {one: one if "." in one else preset.number.format(number=one) for one in outlets}
        return [
            reading(preset.outlet.format(index=index), f"outlet-{one}", preset.scale[0])
            for one, index in indices.items()
        ]


_KINDS: Mapping[str, type[_File]] = MappingProxyType({"snmp": _Strip, "file": _File, "command": _Command})


@dataclass(frozen=True)
class Meters:
    """The meters of a run: whether those that the host has itself are read, and those that the user names."""

    local: bool = True
    named: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> str:
        """The named ones as ``rackscope._native.Sampler`` takes them."""
        return json.dumps([dict(meter) for meter in self.named])


def parse_meters(texts: Sequence[str]) -> Meters:
    """What ``--meter`` gave, each time once. Raises UsageError."""
    named = [meter for meter in map(parse_meter, texts) if meter is not None]
    return Meters(local=NONE not in texts, named=tuple(named))


def parse_meter(text: str) -> Mapping[str, Any] | None:
    """One meter; ``None`` for ``none``. Raises UsageError."""
    if text == NONE:
        return None
    kind, colon, rest = text.partition(":")
    if kind not in _KINDS or not colon:
        kinds = ", ".join(f"{kind}:..." for kind in _KINDS)
        raise UsageError(
            f"invalid power meter: expected {kinds} or none, got '{text}'", f"Write it like {_EXAMPLES['snmp']}."
        )
    what, given = _split(kind, rest)
    try:
        return _meter(kind, what, _KINDS[kind].model_validate(given))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        reason = f"{name}={given[name]}: {first['msg'][0].lower()}{first['msg'][1:]}"
    except ValueError as error:
        reason = str(error)
    raise UsageError(f"invalid power meter '{kind}:{what}': {reason}", f"Write it like {_EXAMPLES[kind]}.")


def _meter(kind: str, what: str, options: _File) -> dict[str, Any]:
    """As the sampler takes it. Raises ValueError."""
    if not what:
        raise ValueError("it does not say where it is")
    meter: dict[str, Any] = {"kind": kind, "interval_seconds": options.interval}
    if isinstance(options, _Command):
        meter["timeout_seconds"] = options.timeout
    if isinstance(options, _Strip):
        address, port = _address(what)
        strip = {"address": address, "port": port, "community": options.password()}
        return meter | strip | {"readings": options.readings()}
    place = {"path": str(Path(what).absolute())} if kind == "file" else {"arguments": _arguments(what)}
    return meter | place | {"measured": options.measured()}


def _split(kind: str, rest: str) -> tuple[str, dict[str, str]]:
    """What comes before the options, and the options, which are told by their names from the end on."""
    known = tuple(_KINDS[kind].model_fields)
    parts = rest.split(",")
    options: dict[str, str] = {}
    while len(parts) > 1:
        name, sign, value = parts[-1].partition("=")
        if name not in known or not sign:
            # A command's own arguments may hold a comma and a sign, a file's name a comma.
            if kind == "command" or (kind == "file" and not sign):
                break
            advice = f"{did_you_mean(name, known)}It has {', '.join(known)}."
            raise UsageError(f"invalid option of a power meter by {kind}: '{parts[-1]}'", advice)
        if name in options or not value:
            fault = "is given twice" if value else "is empty"
            raise UsageError(f"{name} of a power meter {fault}", f"Write it like {_EXAMPLES[kind]}.")
        options[name] = value
        parts.pop()
    return ",".join(parts).strip(), options


def _arguments(what: str) -> list[str]:
    try:
        arguments = shlex.split(what)
    except ValueError as error:
        raise ValueError(f"the command cannot be read ({error}): close its quotes") from None
    if not arguments or shutil.which(arguments[0]) is None:
        raise ValueError(f"the program '{arguments[0] if arguments else what}' is not on PATH: write its path")
    return arguments


def _address(what: str) -> tuple[str, int]:
    match = re.fullmatch(r"\[([0-9A-Fa-f:.%\w]+)\](?::(\d+))?|([^:\[\]\s]+)(?::(\d+))?", what)
    if match is None:
        raise ValueError(f"'{what}' is not an address: expected one like 192.0.2.7, 192.0.2.7:161 or [2001:db8::7]:161")
    port = int(match[2] or match[4] or 161)
    if not 1 <= port <= 65535:
        raise ValueError(f"{port} is not a UDP port (1 to 65535; SNMP is on 161)")
    return match[1] or match[3], port
