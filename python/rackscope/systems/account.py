"""Who a system runs as: never root."""

from __future__ import annotations

import os
import pwd
import re
from dataclasses import dataclass
from pathlib import Path

from rackscope.errors import SystemUnderTestError

UNPRIVILEGED_USER = "nobody"
#: capabilities(7): CAP_SETGID is bit 6, CAP_SETUID bit 7.
_MAY_CHANGE_USER = 1 << 6 | 1 << 7


@dataclass(frozen=True)
class Account:
    """A user to become, by number."""

    name: str
    user_id: int
    group_id: int

    def keeper_option(self) -> str:
        """As ``rackscope-keeper --user`` takes it."""
        return f"{self.user_id}:{self.group_id}"


def find_account(name: str) -> Account | None:
    """The user ``name`` of this host; ``None`` when there is none."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def account_for_systems(root: Path = Path("/")) -> Account | None:
    """The account that a system is given: ``nobody`` when rackscope is root, else ``None`` (rackscope's own).

    Root of a user namespace that maps no one else is the ordinary user who made it, and can become nobody else:
    ``None`` too. Raises SystemUnderTestError when this host has no user ``nobody``, or root may not become it.
    """
    if os.geteuid() != 0:
        return None
    account = find_account(UNPRIVILEGED_USER)
    if account is None:
        raise SystemUnderTestError(
            f"a system is not run as root, and this host has no user '{UNPRIVILEGED_USER}' to run it as",
            "Run rackscope as an ordinary user.",
        )
    if not is_mapped(account, root):
        return None
    if not may_change_user(root):
        raise SystemUnderTestError(
            "a system is not run as root, and this root may not become another user (CAP_SETUID, CAP_SETGID)",
            "Run rackscope as an ordinary user, or give the container these capabilities.",
        )
    return account


def is_mapped(account: Account, root: Path = Path("/")) -> bool:
    """Whether this process's user namespace has the account."""
    user_map, group_map = root / "proc/self/uid_map", root / "proc/self/gid_map"
    return _maps(user_map, account.user_id) and _maps(group_map, account.group_id)


def may_change_user(root: Path = Path("/")) -> bool:
    """Whether this process has the capabilities to become another user; it is said to where /proc does not tell."""
    try:
        status = (root / "proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return match is None or int(match[1], 16) & _MAY_CHANGE_USER == _MAY_CHANGE_USER


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
