"""A catalogue as TOML text, which ``catalogue.py`` reads back to the same."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import fields

from rackscope.models.catalogue import CEILINGS, FORMAT_VERSION, Measured, Server, ServerFile
from rackscope.models.uncertain import Uncertain

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def catalogue_text(servers: ServerFile, remarks: Sequence[str] = ()) -> str:
    """The whole file, with ``remarks`` as comments on top."""
    lines = [f"# {_CONTROL.sub(' ', remark)}" for remark in remarks]
    lines += ["", f"format_version = {FORMAT_VERSION}"] if remarks else [f"format_version = {FORMAT_VERSION}"]
    if servers.currency:
        lines.append(f"currency = {_text(servers.currency)}")
    if servers.site is not None:
        site = (f"{one.name} = {_amount(getattr(servers.site, one.name))}" for one in fields(servers.site))
        lines += ["", "[site]", *site]
    for server in servers.servers:
        lines += ["", *_server(server)]
    return "\n".join(lines) + "\n"


def _server(server: Server) -> list[str]:
    lines = ["[[server]]", f"name = {_text(server.name)}"]
    if server.processor:
        lines.append(f"processor = {_text(server.processor)}")
    for name in ("cores", "threads", "chips", "year", "memory_bytes", "last_level_cache_bytes"):
        value = getattr(server, name)
        if value is not None:
            lines.append(f"{name} = {value}")
    for name in ("frequency_hertz", "thermal_design_watts", "idle_watts", "full_watts", "price"):
        amount = getattr(server, name)
        if amount is not None:
            lines.append(f"{name} = {_amount(amount)}")
    lines.append(f"source = {_text(server.source)}")
    if server.ceilings:
        lines += ["", "[server.ceilings]"]
        lines += [f"{name} = {_amount(server.ceilings[name])}" for name in CEILINGS if name in server.ceilings]
    for one in server.measured:
        lines += ["", *_measured(one)]
    return lines


def _measured(one: Measured) -> list[str]:
    return [
        "[[server.measured]]",
        f"workload = {_text(one.workload)}",
        *(
            f"{name} = {_amount(amount)}"
            for name in ("operations_per_second", "seconds_per_job")
            if (amount := getattr(one, name)) is not None
        ),
        f"watts = {_amount(one.watts)}",
        f"source = {_text(one.source)}",
    ]


def _amount(amount: Uncertain) -> str:
    match amount.shape:
        case "certain":
            return _number(amount.middle)
        case "uniform":
            return f"{{ low = {_number(amount.low)}, high = {_number(amount.high)} }}"
        case "triangular":
            return f"{{ low = {_number(amount.low)}, mode = {_number(amount.middle)}, high = {_number(amount.high)} }}"
    return f"{{ median = {_number(amount.middle)}, factor = {_number(amount.high / amount.middle)} }}"


def _number(value: float) -> str:
    """Six digits are more than any of these is known to; a float of TOML needs a point or an exponent."""
    text = f"{value:.6g}"
    return text if "." in text or "e" not in text else text.replace("e", ".0e")


def _text(value: str) -> str:
    """A basic string, whose escapes for these are those of JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
