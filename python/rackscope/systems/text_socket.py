"""Short conversations with a server over its own protocol: is it there, who is it, what are its counters."""

from __future__ import annotations

import re
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rackscope.systems.base import Endpoint

#: Seconds for one whole response. A loaded server is slow, a dead one is found out otherwise.
RESPONSE_SECONDS = 2.0
#: No statistics are this long; a server that goes on and on is cut off.
_LONGEST_RESPONSE_BYTES = 1024 * 1024


class Dialect(ABC):
    """What to say to servers of one kind. Every method raises OSError when the server does not respond in time."""

    #: The counter in which the server tells its process id.
    process_id_counter: str

    @abstractmethod
    def is_ready(self, endpoint: Endpoint) -> bool:
        """Whether it serves requests now."""

    @abstractmethod
    def statistics(self, endpoint: Endpoint) -> Mapping[str, str]:
        """Its counters."""

    def target(self, endpoint: Endpoint) -> Mapping[str, Any]:
        """As ``RunningSystem.target``."""
        return endpoint.target()


class MemcachedDialect(Dialect):
    """The memcached text protocol (doc/protocol.txt): ``version`` and ``stats``."""

    process_id_counter = "pid"

    def is_ready(self, endpoint: Endpoint) -> bool:
        return converse(endpoint, b"version\r\n", re.compile(rb"\r\n")).startswith(b"VERSION ")

    def statistics(self, endpoint: Endpoint) -> Mapping[str, str]:
        return told(endpoint, b"stats\r\n")


def told(endpoint: Endpoint, request: bytes) -> dict[str, str]:
    """The ``STAT`` lines of a memcached server's reply to ``request``. Raises OSError."""
    response = converse(endpoint, request, re.compile(rb"(?:^|\r\n)(?:END|ERROR)\r\n"))
    lines = response.decode("utf-8", errors="replace").split("\r\n")
    words = (line.split(" ", 2) for line in lines)
    return {word[1]: word[2] for word in words if len(word) == 3 and word[0] == "STAT"}


class RedisDialect(Dialect):
    """The Redis protocol, inline commands (RESP): ``PING`` and ``INFO``."""

    process_id_counter = "process_id"

    def is_ready(self, endpoint: Endpoint) -> bool:
        # While it loads a data set from disk it responds -LOADING.
        return converse(endpoint, b"PING\r\n", re.compile(rb"\r\n")).startswith(b"+PONG")

    def statistics(self, endpoint: Endpoint) -> Mapping[str, str]:
        # A bulk string: $LENGTH, that many bytes, end of line; or -ERROR.
        response = converse(endpoint, b"INFO\r\n", re.compile(rb"^-.*\r\n|^\$(\d+)\r\n", re.DOTALL), bulk=True)
        lines = response.decode("utf-8", errors="replace").split("\r\n")
        pairs = (line.split(":", 1) for line in lines if not line.startswith(("#", "$", "-")))
        return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def connect(endpoint: Endpoint, timeout_seconds: float = RESPONSE_SECONDS) -> socket.socket:
    """A connection to a server. Raises OSError."""
    if endpoint.kind == "tcp":
        return socket.create_connection((endpoint.host, endpoint.port), timeout_seconds)
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout_seconds)
        connection.connect(endpoint.path)
    except BaseException:
        connection.close()
        raise
    return connection


def converse(endpoint: Endpoint, request: bytes, end: re.Pattern[bytes], *, bulk: bool = False) -> bytes:
    """Send ``request`` on a connection of its own and return the response, which is complete once ``end`` is found.

    With ``bulk`` the first group of ``end``, where it matched, is how many bytes follow the match and an end of line.
    Raises OSError when the server closes early, is too slow or says too much.
    """
    deadline = time.monotonic() + RESPONSE_SECONDS
    with connect(endpoint) as connection:
        connection.sendall(request)
        response = bytearray()
        while True:
            match = end.search(response)
            if match and (not bulk or match[1] is None or len(response) >= match.end() + int(match[1]) + 2):
                return bytes(response)
            # A server that responds byte by byte gets no more time than one that does not respond.
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            block = connection.recv(65536)
            if not block:
                raise ConnectionError(f"{endpoint.describe()} closed the connection before it had responded")
            response += block
            if len(response) > _LONGEST_RESPONSE_BYTES:
                raise ConnectionError(f"{endpoint.describe()} sent more than {_LONGEST_RESPONSE_BYTES} bytes")
