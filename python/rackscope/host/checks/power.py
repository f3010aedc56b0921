"""Power meters: which can be read, and what each of the others needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackscope.host.checks.check import Check, Examined, lacking_probe, limited, ok
from rackscope.metrics import parse_metric

#: How the sampler names the probes that are power meters.
PREFIX = "power:"
#: How the reason begins of a meter that this host does not have.
_ABSENT = "not present: "
_EFFECT = "watts and energy per operation are modelled, not measured"
_NAME_ONE = "A power strip, a file or a command can be named: --meter snmp:..., file:... or command:...."


def power_meters(examined: Examined) -> list[Check]:
    """Each way to measure power: there, and allowed."""
    found = [probe for probe in examined.found_probes() if str(probe["name"]).startswith(PREFIX)]
    if not found:
        return []
    working = [probe for probe in found if probe["status"] != "missing"]
    absent = [probe for probe in found if str(probe["reason"]).startswith(_ABSENT)]
    if working:
        head = ok("; ".join(f"{_name(probe)} ({', '.join(_domains(probe))})" for probe in working))
    else:
        why = "; ".join(f"{_name(probe)}: {str(probe['reason'])[len(_ABSENT) :]}" for probe in absent)
        head = limited(f"none can be read here ({why})" if why else "none can be read here", _EFFECT, _NAME_ONE)
    failing = [probe for probe in found if probe not in absent and probe["status"] != "ok"]
    missing = "what it measures is missing from runs"
    return [head, *(lacking_probe(f"power meter {_name(probe)}", probe, missing) for probe in failing)]


def _name(probe: Mapping[str, Any]) -> str:
    return str(probe["name"]).removeprefix(PREFIX)


def _domains(probe: Mapping[str, Any]) -> list[str]:
    domains = [parse_metric(column)[1].get("domain", "") for column in probe["columns"]]
    return list(dict.fromkeys(domains))
