"""Talking to servers: whole answers from any fragments, and an end to waiting."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.systems.base import Endpoint
from rackscope.systems.text_socket import MemcachedDialect, RedisDialect

STATS = b"STAT pid 42\r\nSTAT version 1.6 with words\r\nSTAT END 3\r\nEND\r\n"
INFO_TEXT = b"# Server\r\nprocess_id:42\r\nredis_version:7.0\r\nodd:a:b\r\n\r\n# Empty\r\n"
INFO = b"$%d\r\n%s\r\n" % (len(INFO_TEXT), INFO_TEXT)


@contextmanager
def serving(answer: Callable[[socket.socket], None]) -> Iterator[Endpoint]:
    """A server that reads one request and answers it so."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(1024)
                    answer(connection)
            except OSError:
                pass  # the client has seen enough

        thread = threading.Thread(target=serve)
        thread.start()
        yield Endpoint("tcp", port=listener.getsockname()[1])
        thread.join(30)
        assert not thread.is_alive()


def fragments(data: bytes, cuts: list[int]) -> Callable[[socket.socket], None]:
    def answer(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        places = sorted({cut % len(data) for cut in cuts})
        for start, end in zip([0, *places], [*places, len(data)], strict=True):
            connection.sendall(data[start:end])
        connection.recv(1)  # until the client, which knows that this was all, closes

    return answer


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(0, 200), max_size=4))
def test_statistics_come_whole_from_any_fragments(cuts):
    with serving(fragments(STATS, cuts)) as endpoint:
        assert MemcachedDialect().statistics(endpoint) == {"pid": "42", "version": "1.6 with words", "END": "3"}
    with serving(fragments(INFO, cuts)) as endpoint:
        assert RedisDialect().statistics(endpoint) == {"process_id": "42", "redis_version": "7.0", "odd": "a:b"}


@pytest.mark.parametrize(
    ("answer", "ready"),
    [(b"+PONG\r\n", True), (b"-LOADING Redis is loading the dataset in memory\r\n", False), (b"-NOAUTH\r\n", False)],
)
def test_redis_is_ready_when_it_serves(answer, ready):
    with serving(fragments(answer, [])) as endpoint:
        assert RedisDialect().is_ready(endpoint) is ready


def test_memcached_is_ready_when_it_tells_its_version():
    with serving(fragments(b"VERSION 1.6.18\r\n", [])) as endpoint:
        assert MemcachedDialect().is_ready(endpoint)
    with serving(fragments(b"HTTP/1.1 400 Bad Request\r\n", [])) as endpoint:
        assert not MemcachedDialect().is_ready(endpoint)


def test_a_server_without_statistics_has_none():
    with serving(fragments(b"ERROR\r\n", [])) as endpoint:
        assert MemcachedDialect().statistics(endpoint) == {}
    with serving(fragments(b"-ERR unknown command\r\n", [])) as endpoint:
        assert RedisDialect().statistics(endpoint) == {}


def test_a_connection_closed_early_is_an_error_not_an_empty_answer():
    with serving(lambda connection: connection.sendall(STATS[:20])) as endpoint, pytest.raises(ConnectionError):
        MemcachedDialect().statistics(endpoint)


def test_a_server_that_never_stops_talking_is_cut_off():
    def babble(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"x" * 65536)

    with serving(babble) as endpoint, pytest.raises(ConnectionError, match="more than"):
        MemcachedDialect().statistics(endpoint)
