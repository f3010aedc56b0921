"""Who a system runs as: never root."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from rackscope.errors import SystemUnderTestError

UNPRIVILEGED_USER = "nobody"


@dataclass(frozen=True)
class Account:
    """A user to become, by number."""

    name: str
    user_id: int
    group_id: int

    def keeper_option(self) -> str:
        """As ``rackscope-keeper --user`` takes it."""
        return f"{self.user_id}:{self.group_id}"


def account_for_systems(root: Path = Path("/")) -> Account | None:
    """The account that a system is given: ``nobody`` when rackscope is root, else ``None`` (rackscope's own).

    Root of a user namespace that maps no one else is the ordinary user who made it, and can become nobody else:
    ``None`` too. Raises SystemUnderTestError when this host has no user ``nobody``.
    """
    if os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwnam(UNPRIVILEGED_USER)
    except KeyError as error:
        raise SystemUnderTestError(
            f"a system is not run as root, and this host has no user '{UNPRIVILEGED_USER}' to run it as",
            "Run rackscope as an ordinary user.",
        ) from error
    if not (_maps(root / "proc/self/uid_map", entry.pw_uid) and _maps(root / "proc/self/gid_map", entry.pw_gid)):
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def _maps(map_file: Path, number: int) -> bool:
    """Whether the user namespace has ``number`` (user_namespaces(7): lines of first inside, first outside, count)."""
    try:
        lines = map_file.read_text(encoding="ascii").splitlines()
    except OSError:
        return True
    for line in lines:
        first, _, count = (int(field) for field in line.split())
        if first <= number < first + count:
            return True
    return False
