"""Network namespaces (network_namespaces(7)): making one, running a few lines in one, and addresses of interfaces.

A namespace is named by a file: ``/run/netns/NAME``, ``/proc/PID/ns/net``, or ``/proc/PID/fd/N`` of a process that holds
a descriptor of it. It lives as long as something is in it or holds it, so one that is only held by a descriptor goes
with its process, however that ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_CLONE_NEWNET = 0x40000000

Result = TypeVar("Result")


def call_in_namespace(namespace: Path, function: Callable[[], Result]) -> Result:
    """What ``function`` returns, or raises, when it is called in the namespace.

    It is called on a thread of its own, for a thread is what enters a namespace; a socket that it makes stays in there
    whoever uses it later. Raises OSError when the namespace cannot be entered (which takes CAP_SYS_ADMIN).
    """

    def enter_and_call() -> Result:
        descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _check(_libc().setns(descriptor, _CLONE_NEWNET), str(namespace))
        finally:
            os.close(descriptor)
        return function()

    return _on_own_thread(enter_and_call)


def new_namespace() -> int:
    """A descriptor that holds a new namespace for as long as it is open. Raises OSError (it takes CAP_SYS_ADMIN)."""

    def leave() -> int:
        # Not os.unshare, which came with Python 3.12.
        _check(_libc().unshare(_CLONE_NEWNET), "a new network namespace")
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    return _on_own_thread(leave)


def _on_own_thread(function: Callable[[], Result]) -> Result:
    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001 (raised again by whoever waits)
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def interface_address(interface: str, namespace: Path | None = None) -> str:
    """The IPv4 address of an interface (netdevice(7), SIOCGIFADDR). Raises OSError."""
    return socket.inet_ntoa(_ask_interface(interface, 0x8915, namespace)[20:24])


def hardware_address(interface: str, namespace: Path | None = None) -> str:
    """The MAC address of an interface, like 02:00:00:00:00:01 (netdevice(7), SIOCGIFHWADDR). Raises OSError."""
    return _ask_interface(interface, 0x8927, namespace)[18:24].hex(":")


def _ask_interface(interface: str, request: int, namespace: Path | None) -> bytes:
    with socket.socket() if namespace is None else call_in_namespace(namespace, socket.socket) as asked:
        return fcntl.ioctl(asked, request, struct.pack("40s", interface.encode()))
