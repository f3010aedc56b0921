"""Power meters that the user names (``--meter``), as text and as ``rackscope._native`` takes them.

``KIND:WHAT,option=value,...``: a power strip (``snmp:192.0.2.7,preset=apc,outlet=4``), a file that holds a number
(``file:/run/watts,unit=watts``), a command that prints one a line (``command:meter --once,unit=watts``). ``none``
leaves out the meters that this host has itself, which are found without being asked for.
"""

from __future__ import annotations

import difflib
import json
import math
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rackscope import units
from rackscope.errors import UsageError

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

_SHARED = ("unit", "scale", "domain", "interval")
_OPTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "snmp": ("preset", "outlet", "oid", "community", "community_file", "timeout", *_SHARED),
        "file": _SHARED,
        "command": ("timeout", *_SHARED),
    }
)
_EXAMPLES = MappingProxyType(
    {
        "snmp": "snmp:192.0.2.7,preset=apc,outlet=4",
        "file": "file:/run/watts,unit=watts",
        "command": "command:wattmeter --watch,unit=watts",
    }
)
_INDEX = re.compile(r"\d{1,9}(\.\d{1,9}){0,5}")
_OID = re.compile(r"\.?[012](\.\d{1,10}){1,127}")
_DOMAIN = re.compile(r"[^\x00-\x1f\x7f,]{1,64}")
_MOST_OUTLETS = 16


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
    if kind not in _OPTIONS or not colon:
        kinds = ", ".join(f"{kind}:..." for kind in _OPTIONS)
        raise UsageError(f"'{text}' is no power meter", f"Choose {kinds} or none; like {_EXAMPLES['snmp']}.")
    what, options = _split(kind, rest)
    if not what:
        raise UsageError(f"the power meter '{text}' does not say where it is", f"Write it like {_EXAMPLES[kind]}.")
    interval = _seconds(options, "interval", 0.05, 3600.0)
    if kind == "file":
        return {"kind": kind, "path": str(Path(what).absolute()), "measured": _measured(kind, options)} | interval
    timeout = _seconds(options, "timeout", 0.01, 60.0)
    if kind == "command":
        meter = {"kind": kind, "arguments": _arguments(what), "measured": _measured(kind, options)}
        return meter | interval | timeout
    address, port = _address(what)
    strip = {"kind": kind, "address": address, "port": port, "community": _community(options)}
    return strip | {"readings": _readings(options)} | interval | timeout


def _split(kind: str, rest: str) -> tuple[str, dict[str, str]]:
    """What comes before the options, and the options, which are told by their names from the end on."""
    known = _OPTIONS[kind]
    parts = rest.split(",")
    options: dict[str, str] = {}
    while len(parts) > 1:
        name, sign, value = parts[-1].partition("=")
        if name not in known or not sign:
            # A command's own arguments may hold a comma and a sign, a file's name a comma.
            if kind == "command" or (kind == "file" and not sign):
                break
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]}? " if near else ""
            raise UsageError(
                f"a power meter by {kind} has no option '{parts[-1]}'", f"{hint}It has {', '.join(known)}."
            )
        if name in options:
            raise UsageError(f"{name} is given twice for a power meter", "Give it once.")
        if not value:
            raise UsageError(f"{name} of a power meter is empty", f"Write it like {_EXAMPLES[kind]}.")
        options[name] = value
        parts.pop()
    return ",".join(parts).strip(), options


def _seconds(options: Mapping[str, str], name: str, least: float, most: float) -> dict[str, float]:
    seconds = units.parse_duration_seconds(options[name]) if name in options else 1.0
    if not least <= seconds <= most:
        raise UsageError(f"a {name} of {seconds:g} s is none of a power meter", f"Choose {least:g}s to {most:g}s.")
    return {f"{name}_seconds": seconds}


def _quantity(options: Mapping[str, str]) -> tuple[str, float]:
    if options["unit"] not in UNITS:
        raise UsageError(f"'{options['unit']}' is no unit of power or energy", f"Choose {', '.join(UNITS)}.")
    return UNITS[options["unit"]]


def _scale(options: Mapping[str, str]) -> float:
    try:
        scale = float(options.get("scale", "1"))
    except ValueError:
        scale = math.nan
    if not (math.isfinite(scale) and scale > 0):
        raise UsageError(f"'{options['scale']}' is no scale", "Write what to multiply by, like scale=0.1.")
    return scale


def _domain(options: Mapping[str, str], default: str) -> str:
    domain = options.get("domain", default)
    if _DOMAIN.fullmatch(domain) is None:
        raise UsageError("a domain of a power meter has 1 to 64 characters", "Write it like domain=server.")
    return domain


def _measured(kind: str, options: Mapping[str, str]) -> dict[str, Any]:
    if "unit" not in options:
        raise UsageError(
            f"the unit of a power meter by {kind} is missing",
            f"Add unit=watts or unit=joules, as in {_EXAMPLES[kind]}.",
        )
    quantity, one = _quantity(options)
    return {"domain": _domain(options, "server"), "quantity": quantity, "scale": one * _scale(options)}


def _arguments(what: str) -> list[str]:
    try:
        arguments = shlex.split(what)
    except ValueError as error:
        raise UsageError(f"the command of a power meter cannot be read: {error}", "Close its quotes.") from None
    if not arguments or shutil.which(arguments[0]) is None:
        program = arguments[0] if arguments else what
        raise UsageError(f"the program '{program}' of a power meter is not here", "Write its path.")
    return arguments


def _address(what: str) -> tuple[str, int]:
    match = re.fullmatch(r"\[([0-9A-Fa-f:.%\w]+)\](?::(\d+))?|([^:\[\]\s]+)(?::(\d+))?", what)
    if match is None:
        raise UsageError(
            f"'{what}' is no address of a power strip", "Write 192.0.2.7, 192.0.2.7:161 or [2001:db8::7]:161."
        )
    port = int(match[2] or match[4] or 161)
    if not 1 <= port <= 65535:
        raise UsageError(f"{port} is not a UDP port", "Ports go from 1 to 65535; SNMP is on 161.")
    return match[1] or match[3], port


def _community(options: Mapping[str, str]) -> str:
    if "community_file" not in options:
        return options.get("community", "public")
    if "community" in options:
        raise UsageError("a power strip has two communities", "Give community or community_file.")
    path = Path(options["community_file"])
    try:
        return path.read_text(encoding="utf-8")[:256].splitlines()[0].strip()
    except (OSError, UnicodeDecodeError, IndexError) as error:
        raise UsageError(
            f"the community of a power strip cannot be read from {path} ({type(error).__name__})",
            "Write it in the first line of a file that you may read.",
        ) from None


def _readings(options: Mapping[str, str]) -> list[dict[str, Any]]:
    if "oid" in options:
        if "preset" in options or "outlet" in options:
            raise UsageError("a power strip has an oid and a preset", "Give oid and unit, or preset and outlet.")
        if _OID.fullmatch(options["oid"]) is None:
            raise UsageError(f"'{options['oid']}' is no object identifier", "Write it like 1.3.6.1.4.1.318.1.1.12.1.")
        return [{"oid": options["oid"], "measured": _measured("snmp", options)}]
    name = options.get("preset", "")
    if name not in PRESETS:
        said = f"'{name}' is no preset of power strips" if name else "the maker of a power strip is missing"
        raise UsageError(said, f"Choose preset={'|'.join(PRESETS)}, or give oid=... and unit=....")
    if "unit" in options:
        raise UsageError("a preset knows its unit", "Leave out unit, or give oid instead of preset.")
    preset, scale = PRESETS[name], _scale(options)
    if "outlet" not in options:
        measured = {"domain": _domain(options, "strip"), "quantity": "watts", "scale": preset.scale[1] * scale}
        return [{"oid": preset.strip, "measured": measured}]
    outlets = options["outlet"].split("+")
    wrong = [outlet for outlet in outlets if _INDEX.fullmatch(outlet) is None]
    if wrong or len(outlets) > _MOST_OUTLETS or len(set(outlets)) < len(outlets):
        raise UsageError(
            f"'{options['outlet']}' are no outlets", f"Write outlet=4, or outlet=4+5 for up to {_MOST_OUTLETS}."
        )
    if "domain" in options and len(outlets) > 1:
        raise UsageError("one domain cannot be that of several outlets", "Leave out domain, or name one outlet.")
    return [
        {
            "oid": preset.outlet.format(index=outlet if "." in outlet else preset.number.format(number=outlet)),
            "measured": {
                "domain": _domain(options, f"outlet-{outlet}"),
                "quantity": "watts",
                "scale": preset.scale[0] * scale,
            },
        }
        for outlet in outlets
    ]
