"""The outcome of a check, and what checks look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from rackscope.host.inventory import Inventory
from rackscope.host.tree import Tree

#: ``limited``: something cannot be measured, or less well. ``bad``: results would be wrong or there would be none.
Status = Literal["ok", "limited", "bad"]
Probes = Callable[[str], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Check:
    """What was found, its ``effect`` and ``advice``; an empty ``name`` is that of its entry in the list of checks."""

    name: str
    status: Status
    what: str
    effect: str = ""
    advice: str = ""


@dataclass(frozen=True)
class Examined:
    """What the checks look at. ``probes`` raises ImportError where the native module is not to be had."""

    tree: Tree
    inventory: Inventory
    folder: Path
    user_id: int
    now: datetime
    pause: Callable[[float], None]
    probes: Probes

    def found_probes(self) -> Sequence[Mapping[str, Any]]:
        """What the sampler reads here; none where it fails, which the check of the native module tells."""
        try:
            return self.probes(str(self.tree.root))
        except (ImportError, RuntimeError, OSError):
            return ()


def ok(what: str) -> Check:
    """Nothing is missing."""
    return Check("", "ok", what)


def limited(what: str, effect: str, advice: str = "") -> Check:
    """Something cannot be measured, or less well."""
    return Check("", "limited", what, effect, advice)


def bad(what: str, effect: str, advice: str = "") -> Check:
    """Results would be wrong, or there would be none."""
    return Check("", "bad", what, effect, advice)


def lacking_probe(name: str, probe: Mapping[str, Any], missing: str) -> Check:
    """A source of samples that cannot be read, or not be trusted."""
    effect = "its values are not trusted" if probe["status"] == "untrusted" else missing
    advice = f"It needs {probe['needs']}." if probe.get("needs") else ""
    return Check(name, "limited", str(probe["reason"]), effect, advice)
