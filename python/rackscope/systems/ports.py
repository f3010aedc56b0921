"""Where a system listens: a free port, on loopback or in a network of its own, or a unix socket in its own folder."""

from __future__ import annotations

import errno
import ipaddress
import os
import shutil
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rackscope.errors import SystemUnderTestError, UsageError
from rackscope.network_namespace import call_in_namespace
from rackscope.systems.account import Account

if TYPE_CHECKING:
    from rackscope.systems.base import Launch

LOOPBACK = "127.0.0.1"
#: ``sun_path`` of unix(7) holds 108 bytes with its final zero.
LONGEST_SOCKET_PATH_BYTES = 107


@dataclass(frozen=True)
class Network:
    """Where ports are counted: an address in the namespace of a file, by default loopback in this process's own."""

    address: str = LOOPBACK
    namespace: Path | None = None


#: What every process starts in.
HERE = Network()


def network_of(launch: Launch) -> Network:
    """Where a system is to listen. Raises UsageError for no address, and for one that others could reach."""
    try:
        is_loopback = ipaddress.ip_address(launch.address).is_loopback
    except ValueError as error:
        raise UsageError(f"'{launch.address}' is not an IP address", "Leave the address out.") from error
    if launch.network_namespace is None and not is_loopback:
        raise UsageError(
            f"a system does not listen on {launch.address}, where others could reach it",
            "Leave the address out, or give the system a network namespace of its own.",
        )
    return Network(launch.address, launch.network_namespace)


#: How often it is looked for several free ports in a row.
_ATTEMPTS_AT_SEVERAL = 100
#: Ports are below this.
_PORTS_END = 65536


def choose_port(network: Network = HERE, following: int = 0) -> int:
    """A port that was free a moment ago, and so many that follow it, unless a few attempts found no such row."""
    for _ in range(_ATTEMPTS_AT_SEVERAL):
        with _socket_in(network) as probe:
            probe.bind((network.address, 0))
            port = int(probe.getsockname()[1])
        others = range(port + 1, port + 1 + following)
        if others.stop <= _PORTS_END and all(is_free(other, network) for other in others):
            break
    return port


def is_free(port: int, network: Network = HERE) -> bool:
    """Whether a server could listen on this port now. Raises OSError for any reason but "in use"."""
    with _socket_in(network) as probe:
        # As servers do: connections of an earlier one that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((network.address, port))
            probe.listen(1)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return False
            raise
    return True


def require_free(port: int, name: str, network: Network = HERE) -> None:
    """Raises UsageError for what is no port, SystemUnderTestError for one that ``name`` cannot have."""
    if not 1 <= port <= 65535:
        raise UsageError(f"{port} is not a TCP port", "Ports go from 1 to 65535; leave it out and one is chosen.")
    try:
        if is_free(port, network):
            return
    except OSError as error:
        raise SystemUnderTestError(
            f"{name} cannot listen on {network.address}:{port}: {error.strerror}",
            "Leave the port out and one is chosen.",
        ) from error
    raise SystemUnderTestError(
        f"port {port} on {network.address} is in use, so {name} cannot listen there",
        "Choose another port, or leave it out and a free one is chosen.",
    )


def _socket_in(network: Network) -> socket.socket:
    """A TCP socket that belongs to the network. Raises SystemUnderTestError when its namespace cannot be entered."""
    if network.namespace is None:
        return socket.socket()
    try:
        return call_in_namespace(network.namespace, socket.socket)
    except OSError as error:
        raise SystemUnderTestError(
            f"the network namespace {network.namespace} cannot be entered: {error.strerror}",
            "It takes root (CAP_SYS_ADMIN), and the namespace must still be there.",
        ) from error


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
