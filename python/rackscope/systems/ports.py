"""Where a system listens: a loopback port that is free, or a unix socket in a folder of its own."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
from pathlib import Path

from rackscope.errors import SystemUnderTestError, UsageError
from rackscope.systems.account import Account

LOOPBACK = "127.0.0.1"
#: ``sun_path`` of unix(7) holds 108 bytes with its final zero.
LONGEST_SOCKET_PATH_BYTES = 107


def choose_port() -> int:
    """A loopback port that was free a moment ago; the caller tries another when it has been taken since."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now. Raises OSError for any reason but "in use"."""
    with socket.socket() as probe:
        # As servers do: connections of an earlier one that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def require_free(port: int, name: str) -> None:
    """Raises UsageError for what is no port, SystemUnderTestError for one that ``name`` cannot have."""
    if not 1 <= port <= 65535:
        raise UsageError(f"{port} is not a TCP port", "Ports go from 1 to 65535; leave it out and one is chosen.")
    try:
        if is_free(port):
            return
    except OSError as error:
        raise SystemUnderTestError(
            f"{name} cannot listen on {LOOPBACK}:{port}: {error.strerror}", "Leave the port out and one is chosen."
        ) from error
    raise SystemUnderTestError(
        f"port {port} on {LOOPBACK} is in use, so {name} cannot listen there",
        "Choose another port, or leave it out and a free one is chosen.",
    )


def make_socket_folder(socket_name: str, account: Account | None) -> Path:
    """A new private folder whose path leaves room for ``socket_name``; it belongs to ``account``.

    It is not in the run directory: paths of unix sockets are short, and those of run directories need not be. The
    keeper removes it. Raises SystemUnderTestError.
    """
    reasons: list[str] = []
    for base in dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp"]):  # noqa: S108 (mkdtemp is private)
        try:
            folder = Path(tempfile.mkdtemp(prefix="rackscope-", dir=base))
        except OSError as error:
            reasons.append(f"{base}: {error.strerror}")
            continue
        try:
            if len(os.fsencode(folder / socket_name)) > LONGEST_SOCKET_PATH_BYTES:
                raise OSError(errno.ENAMETOOLONG, "too long for the path of a unix socket")
            give_to(folder, account)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            reasons.append(f"{base}: {error.strerror}")
            continue
        return folder
    raise SystemUnderTestError(
        f"there is no folder for the unix socket ({'; '.join(reasons)})", "Set TMPDIR to a short, writable folder."
    )


def give_to(path: Path, account: Account | None) -> None:
    """Make ``path`` belong to ``account``, where there is one. Raises OSError."""
    if account is not None:
        os.chown(path, account.user_id, account.group_id)
