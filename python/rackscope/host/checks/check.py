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
    """One thing that was examined: ``what`` was found, the ``effect`` of what is missing, and the ``advice``."""

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
