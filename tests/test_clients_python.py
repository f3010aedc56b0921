"""Python's clients of memcached: what they ordinarily do, on the cache engine and on memcached itself.

What fails on both is the client's or the test's; what fails on the engine alone is the engine's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from conftest import wait_until
from rackscope.systems.base import Endpoint

BINARY = bytes(range(256))
LARGE = BINARY * 4000
#: Longer than the largest item, 1 MiB on both.
TOO_LARGE = BINARY * 4200
TEXT = "naïve 鍵 🗝"


def is_gone(get: Callable[[str], object], key: str) -> None:
    """Waits until an item that was stored for a second has expired."""
    wait_until(lambda: get(key) is None, f"{key} to expire", seconds=10)


def test_pymemcache(cache_endpoint: Endpoint):
    from pymemcache.client.base import Client, PooledClient
    from pymemcache.exceptions import MemcacheClientError, MemcacheServerError

    client = Client((cache_endpoint.host, cache_endpoint.port), timeout=10, default_noreply=False)
    assert client.flush_all()
    assert client.version()
    assert client.set("key", b"value", flags=7)
    assert client.get("key") == b"value"
    assert client.get("absent") is None
    assert client.get("absent", default=b"other") == b"other"
    assert client.set_many({"a": b"1", "b": b"2"}) == []
    assert client.get_many(["a", "b", "absent"]) == {"a": b"1", "b": b"2"}
    assert not client.add("a", b"x")
    assert client.add("c", b"3")
    assert not client.replace("absent", b"x")
    assert client.replace("c", b"33")
    assert client.append("c", b">")
    assert client.prepend("c", b"<")
    assert not client.append("absent", b">")
    assert client.get("c") == b"<33>"

    value, cas = client.gets("c")
    assert value == b"<33>"
    assert client.cas("c", b"swapped", cas) is True
    assert client.cas("c", b"late", cas) is False
    assert client.cas("absent", b"x", cas) is None
    assert client.gets("c")[0] == b"swapped"
    assert {key: value for key, (value, _) in client.gets_many(["a", "b"]).items()} == {"a": b"1", "b": b"2"}

    client.set("n", b"9")
    assert client.incr("n", 3) == 12
    assert client.decr("n", 100) == 0
    assert client.incr("absent", 1) is None
    with pytest.raises(MemcacheClientError, match="non-numeric value"):
        client.incr("key", 1)

    assert client.touch("a", 100)
    assert not client.touch("absent", 100)
    assert client.raw_command(b"gat 100 a", b"END\r\n").startswith(b"VALUE a 0 1\r\n1\r\n")
    assert client.raw_command(b"mg a v t", b"\r\n1\r\n") == b"VA 1 t100"
    assert client.set("brief", b"x", expire=1)
    assert client.set("past", b"x", expire=-1)
    assert client.get("past") is None
    is_gone(client.get, "brief")

    for key, stored in (("binary", BINARY), ("large", LARGE), ("empty", b"")):
        assert client.set(key, stored)
        assert client.get(key) == stored
    with pytest.raises(MemcacheServerError, match="object too large for cache"):
        client.set("large", TOO_LARGE)
    assert client.get("large") is None
    assert client.set("k" * 250, b"x")

    # Nobody waits for these; the next answer comes after them.
    assert client.set("quiet", b"1", noreply=True)
    assert client.incr("quiet", 1, noreply=True) is None
    assert client.append("quiet", b"0", noreply=True)
    assert client.get("quiet") == b"20"
    client.delete("quiet", noreply=True)
    assert client.get("quiet") is None

    assert client.delete("a")
    assert not client.delete("a")
    assert client.delete_many(["b", "c"])
    assert client.get_many(["a", "b", "c"]) == {}
    statistics = client.stats()
    assert statistics[b"curr_items"] > 0
    assert {b"pid", b"version", b"get_hits", b"evictions"} < statistics.keys()
    assert client.stats("settings")[b"maxbytes"] == 64 << 20
    client.quit()

    text = Client((cache_endpoint.host, cache_endpoint.port), timeout=10, encoding="utf-8", allow_unicode_keys=True)
    assert text.set("schlüssel", TEXT.encode(), noreply=False)
    assert text.get("schlüssel").decode() == TEXT
    pool = PooledClient((cache_endpoint.host, cache_endpoint.port), timeout=10, max_pool_size=4)
    assert pool.get("key") == b"value"
    assert pool.flush_all(noreply=False)
    assert pool.get("key") is None
    pool.close()


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_pylibmc(cache_endpoint: Endpoint, binary: bool):
    pylibmc = pytest.importorskip("pylibmc", reason="it has no wheels for this Python")
    client = pylibmc.Client([f"{cache_endpoint.host}:{cache_endpoint.port}"], binary=binary, behaviors={"cas": True})
    assert client.flush_all()
    # The type is in the client's flags.
    for key, stored in (
        ("text", TEXT),
        ("number", 17),
        ("bytes", BINARY),
        ("list", [1, {"a": None}]),
        ("large", LARGE),
    ):
        assert client.set(key, stored)
        assert client.get(key) == stored
    assert client.get("absent") is None
    assert client.set_multi({"a": "1", "b": "2"}, key_prefix="p.") == []
    assert client.get_multi(["a", "b", "absent"], key_prefix="p.") == {"a": "1", "b": "2"}
    assert not client.add("p.a", "x")
    assert client.add("p.c", "3")
    # The client makes an answer of it in one dialect, an error in the other.
    with contextlib.suppress(pylibmc.NotFound):
        assert not client.replace("absent", "x")
    assert client.get("absent") is None
    assert client.replace("p.c", "33")
    assert client.append("p.c", ">")
    assert client.prepend("p.c", "<")
    assert client.get("p.c") == "<33>"
    value, cas = client.gets("p.c")
    assert value == "<33>"
    assert client.cas("p.c", "swapped", cas)
    assert not client.cas("p.c", "late", cas)
    assert client.get("p.c") == "swapped"
    assert client.set("n", 9)
    assert client.incr("n", 3) == 12
    assert client.decr("n", 100) == 0
    with pytest.raises(pylibmc.NotFound):
        client.incr("absent")
    if not binary:
        # In binary this libmemcached waits five seconds for more than the answer, whoever gives it.
        assert client.touch("n", 100)
        assert not client.touch("absent", 100)
    assert client.set("brief", "x", time=1)
    is_gone(client.get, "brief")
    assert client.set("packed", "ab" * 100_000, min_compress_len=1000)
    assert client.get("packed") == "ab" * 100_000
    with pytest.raises(pylibmc.TooBig):
        client.set("large", TOO_LARGE)
    assert client.get("text") == TEXT
    assert client.delete("p.a")
    assert not client.delete("p.a")
    assert client.delete_multi(["b", "c"], key_prefix="p.")
    ((_, statistics),) = client.get_stats()
    assert int(statistics["curr_items"]) > 0
    assert int(statistics["limit_maxbytes"]) == 64 << 20
    quiet = pylibmc.Client(
        [f"{cache_endpoint.host}:{cache_endpoint.port}"], binary=binary, behaviors={"_noreply": True}
    )
    for number in range(1000):
        quiet.set(f"quiet.{number}", str(number))
    wait_until(lambda: client.get("quiet.999") == "999", "the last of what was sent without waiting", seconds=10)
    expected = {f"quiet.{number}": str(number) for number in range(1000)}
    assert client.get_multi(list(expected)) == expected
    assert client.flush_all()
    assert client.get_multi(list(expected)) == {}


def test_python_binary_memcached(cache_endpoint: Endpoint):
    import bmemcached

    client = bmemcached.Client([f"{cache_endpoint.host}:{cache_endpoint.port}"], socket_timeout=10)
    assert client.flush_all()
    for key, stored in (("text", TEXT), ("number", 17), ("bytes", BINARY), ("list", [1, {"a": None}])):
        assert client.set(key, stored, compress_level=0)
        assert client.get(key) == stored
    assert client.set("large", LARGE, compress_level=0)
    assert client.get("large") == LARGE
    assert client.get("absent") is None
    assert client.set_multi({"a": "1", "b": "2"}) == []
    assert client.get_multi(["a", "b", "absent"]) == {"a": "1", "b": "2"}
    assert not client.add("a", "x")
    assert client.add("c", "3")
    assert not client.replace("absent", "x")
    assert client.replace("c", "33")
    value, cas = client.gets("c")
    assert value == "33"
    assert client.cas("c", "swapped", cas)
    assert not client.cas("c", "late", cas)
    assert client.get("c") == "swapped"
    # Without an item these begin with the default.
    assert client.incr("n", 3, default=5) == 5
    assert client.incr("n", 3) == 8
    assert client.decr("n", 100) == 0
    assert client.set("brief", "x", time=1)
    is_gone(client.get, "brief")
    assert client.delete("a")
    assert client.get("a") is None
    ((_, statistics),) = client.stats().items()
    assert int(statistics["curr_items"]) > 0
    ((_, settings),) = client.stats("settings").items()
    assert settings["maxbytes"] == str(64 << 20).encode()
    assert client.flush_all()
    assert client.get_multi(["b", "c", "n"]) == {}
    client.disconnect_all()
