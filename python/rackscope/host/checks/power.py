"""Power meters: which can be read, and what each of the others needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rackscope.host.checks.check import Check, Examined
from rackscope.metrics import parse_metric

#: How the sampler names the probes that are power meters.
PREFIX = "power:"
#: How the reason begins of a meter that this host does not have.
_ABSENT = "not present: "
_EFFECT = "watts and energy per operation are modelled, not measured"
_NAME_ONE = "A power strip, a file or a command can be named: --meter snmp:..., file:... or command:...."


def power_meters(examined: Examined) -> list[Check]:
    """Each way to measure power: there, and allowed."""
    try:
        found = [probe for probe in examined.probes(str(examined.tree.root)) if str(probe["name"]).startswith(PREFIX)]
    except (ImportError, RuntimeError, OSError):
        # The check of the native module says so already.
        return []
    if not found:
        return []
    working = [probe for probe in found if probe["status"] != "missing"]
    absent = [probe for probe in found if str(probe["reason"]).startswith(_ABSENT)]
    checks = []
    if working:
        listed = "; ".join(f"{_name(probe)} ({', '.join(_domains(probe))})" for probe in working)
        checks.append(Check("power meters", "ok", listed))
    else:
        why = "; ".join(f"{_name(probe)}: {str(probe['reason'])[len(_ABSENT) :]}" for probe in absent)
        what = f"none can be read here ({why})" if why else "none can be read here"
        checks.append(Check("power meters", "limited", what, _EFFECT, _NAME_ONE))
    for probe in found:
        if probe in absent or probe["status"] == "ok":
            continue
        untrusted = probe["status"] == "untrusted"
        effect = "its values are not trusted" if untrusted else "what it measures is missing from runs"
        advice = f"It needs {probe['needs']}." if probe.get("needs") else ""
        checks.append(Check(f"power meter {_name(probe)}", "limited", str(probe["reason"]), effect, advice))
    return checks


def _name(probe: Mapping[str, Any]) -> str:
    return str(probe["name"]).removeprefix(PREFIX)


def _domains(probe: Mapping[str, Any]) -> list[str]:
    domains = [parse_metric(column)[1].get("domain", "") for column in probe["columns"]]
    return list(dict.fromkeys(domains))
