"""The control group of what is squeezed, by controller, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from rackscope.errors import SqueezeError
from rackscope.squeezes.base import Isolation, NotSqueezable, Subject

_Found = TypeVar("_Found")
_NEEDS = "the right to make control groups (root, or a delegated group), and the '{}' controller"


@dataclass(frozen=True)
class Group:
    """The system's folder of one controller."""

    folder: Path
    version: Literal[1, 2]


def group_of(isolation: Isolation, controller: str) -> Group | NotSqueezable:
    """``controller`` by its name in version 1; version 2 calls ``blkio`` ``io``."""
    name = "io" if controller == "blkio" and isolation.cgroup_version != 1 else controller
    folder = isolation.control_groups.get(name)
    if folder is None or isolation.cgroup_version is None:
        reasons = (isolation.missing.get(key) for key in (name, controller, "control_group"))
        reason = next((reason for reason in reasons if reason), None)
        reason = reason or f"the system is in no control group with the '{name}' controller"
        return NotSqueezable(reason, _NEEDS.format(name))
    return Group(folder, isolation.cgroup_version)


def group_folders(subject: Subject, *controllers: str) -> list[Path]:
    """Folders to join so that a load is limited as the system is; each folder once."""
    groups = (group_of(subject.isolation, controller) for controller in controllers)
    return list(dict.fromkeys(group.folder for group in groups if isinstance(group, Group)))


def require(found: _Found | NotSqueezable, name: str) -> _Found:
    """What there is. Raises SqueezeError where it cannot be squeezed."""
    if isinstance(found, NotSqueezable):
        raise SqueezeError(
            f"{name} cannot be squeezed here: {found.reason}", f"Needs {found.needs}." * bool(found.needs)
        )
    return found
