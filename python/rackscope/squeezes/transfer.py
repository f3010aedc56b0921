"""How fast a system's network really is: bytes sent for a moment between the host and the system's namespace."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

from rackscope.errors import SqueezeError
from rackscope.network_namespace import call_in_namespace
from rackscope.squeezes.token_bucket import FRAME_BYTES, PAYLOAD_BYTES

#: ``in`` is towards the system.
Direction = Literal["in", "out"]
_BLOCK_BYTES = 256 * 1024
#: The bucket's first burst and the connection's start are not counted.
_WARM_UP_SECONDS = 0.1
_TIMEOUT_SECONDS = 5.0
#: The median of several is told: on a shared host the two ends are kept from running now and then.
_WINDOWS = 4


def measure_transfer(namespace: Path, address: str, direction: Direction, seconds: float = 0.4) -> float:
    """Bytes a second over one TCP connection, as frames on the link (see ``token_bucket``). Raises SqueezeError."""
    try:
        listener = call_in_namespace(namespace, lambda: socket.create_server((address, 0)))
        with listener:
            listener.settimeout(_TIMEOUT_SECONDS)
            with socket.create_connection(listener.getsockname(), _TIMEOUT_SECONDS) as outside:
                inside, _ = listener.accept()
                with inside:
                    inside.settimeout(_TIMEOUT_SECONDS)
                    sender, receiver = (outside, inside) if direction == "in" else (inside, outside)
                    return _receive_while_sending(sender, receiver, seconds) * FRAME_BYTES / PAYLOAD_BYTES
    except OSError as error:
        raise SqueezeError(
            f"nothing could be sent over the system's network to measure it: {error.strerror or error}",
            "A firewall on this host may be in the way.",
        ) from error


def _receive_while_sending(sender: socket.socket, receiver: socket.socket, seconds: float) -> float:
    """Payload bytes a second, counted where they arrive."""
    thread = threading.Thread(target=_send, args=(sender,), daemon=True)
    thread.start()
    buffer = bytearray(_BLOCK_BYTES)
    try:
        started = time.monotonic()
        while time.monotonic() - started < _WARM_UP_SECONDS:
            receiver.recv_into(buffer)
        return statistics.median(_count(receiver, buffer, seconds / _WINDOWS) for _ in range(_WINDOWS))
    finally:
        # Wakes the sender, whatever it waits for.
        for end in (receiver, sender):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        thread.join()


def _count(receiver: socket.socket, buffer: bytearray, seconds: float) -> float:
    received = 0
    started = now = time.monotonic()
    while now - started < seconds:
        received += receiver.recv_into(buffer)
        now = time.monotonic()
    return received / (now - started)


def _send(connection: socket.socket) -> None:
    block = bytes(_BLOCK_BYTES)
    with suppress(OSError):
        while True:
            connection.sendall(block)
