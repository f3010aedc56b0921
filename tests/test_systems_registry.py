"""Systems are found by name; a new one is a new file; command lines keep them on loopback and off the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

import rackscope.systems
from rackscope.errors import RackscopeError, SystemUnderTestError, UsageError
from rackscope.systems import find_system, list_systems, resolve_knobs
from rackscope.systems.account import Account, is_mapped, may_change_user
from rackscope.systems.base import Endpoint
from rackscope.systems.knobs import KnobContext
from systems_started import arguments_of

CONTEXT = KnobContext(cores=2, memory_available_bytes=2**34, memory_total_bytes=2**34)
TCP = Endpoint("tcp", port=4000)
UNIX = Endpoint("unix", path="/tmp/x/y.sock")
NOBODY = Account("nobody", 65534, 65534)


def test_finds_systems_by_name():
    names = [system.name for system in list_systems()]
    assert names == sorted(set(names))
    assert {"cache", "dragonfly", "garnet", "memcached", "pogocache", "redis", "segcache", "synthetic", "valkey"} <= {
        *names
    }
    assert find_system("redis").name == "redis"


def test_an_unknown_system_is_refused_with_the_nearest_and_all():
    with pytest.raises(UsageError) as caught:
        find_system("redi")
    known = ", ".join(system.name for system in list_systems())
    assert str(caught.value) == f"there is no system 'redi'. Did you mean redis? Systems: {known}."
    assert caught.value.exit_status == 2
    assert isinstance(caught.value, RackscopeError)


def test_adding_a_file_is_all_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "another_system.py").write_text(
        "from rackscope.systems.memcached import Memcached\n"
        "class Another(Memcached):\n"
        "    name = 'another'\n"
        "SYSTEM = Another()\n"
    )
    monkeypatch.setattr(rackscope.systems, "__path__", [*rackscope.systems.__path__, str(tmp_path)])
    assert find_system("another").description == find_system("memcached").description


def test_no_system_claims_scans():
    assert all("scan" not in system.operations for system in list_systems())


def _values(name: str, **settings: str) -> dict[str, str]:
    return dict(resolve_knobs(find_system(name), settings, tuned=False, cores=[0], context=CONTEXT).values)


def _option(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_memcached_listens_on_loopback_without_udp():
    arguments = arguments_of("memcached", _values("memcached"), TCP, NOBODY)
    assert _option(arguments, "-l") == "127.0.0.1"
    assert _option(arguments, "-p") == "4000"
    assert _option(arguments, "-U") == "0"
    assert "-s" not in arguments
    arguments = arguments_of("memcached", _values("memcached"), UNIX, NOBODY)
    assert _option(arguments, "-s") == UNIX.path
    assert not {"-l", "-p"} & set(arguments)


def test_memcached_takes_its_knobs():
    knobs = _values("memcached", memory="64MiB", threads="3", cas="no", evict="no", lru="flat", hash_power="20")
    arguments = arguments_of("memcached", knobs, TCP, NOBODY)
    assert _option(arguments, "-m") == "64"
    assert _option(arguments, "-t") == "3"
    assert {"-C", "-M"} <= set(arguments)
    assert _option(arguments, "-o") == "hashpower=20,no_lru_maintainer,no_lru_crawler"
    # Readiness and statistics take nothing from what the client was promised.
    assert int(_option(arguments, "-c")) > 200


def test_redis_is_protected_and_writes_nothing_unless_asked():
    arguments = arguments_of("redis", _values("redis"), TCP)
    assert _option(arguments, "--bind") == "127.0.0.1"
    assert _option(arguments, "--protected-mode") == "yes"
    assert _option(arguments, "--save") == ""
    assert _option(arguments, "--appendonly") == "no"
    arguments = arguments_of("redis", _values("redis", append_only="yes", save="60 1", list_node_size="64KiB"), UNIX)
    assert _option(arguments, "--port") == "0"
    assert _option(arguments, "--unixsocket") == UNIX.path
    assert _option(arguments, "--save") == "60 1"
    assert _option(arguments, "--appendonly") == "yes"
    assert _option(arguments, "--list-max-ziplist-size") == "-5"


def test_redis_saves_only_at_save_points():
    for wrong in ("often", "60", "60 1 300", "60 1 --port 1"):
        with pytest.raises(UsageError, match="redis cannot save at"):
            find_system("redis").check_knobs(_values("redis", save=wrong))


def test_connection_limits_are_what_a_client_may_open():
    assert find_system("memcached").connection_limit(_values("memcached", connections="77")) == 77
    # Redis lowers its own limit when it may not open that many files.
    assert find_system("redis").connection_limit(_values("redis", open_files="100")) == 60


def test_who_can_be_become_is_read_from_the_user_namespace(tmp_path: Path):
    folder = tmp_path / "proc/self"
    folder.mkdir(parents=True)
    assert is_mapped(NOBODY, tmp_path)  # no /proc to say otherwise
    for text, expected in (
        ("         0          0 4294967295\n", True),
        ("         0       1000          1\n", False),
        ("0 1000 1\n1 100000 65536\n", True),
    ):
        (folder / "uid_map").write_text(text)
        (folder / "gid_map").write_text(text)
        assert is_mapped(NOBODY, tmp_path) is expected
    for mask, expected in (("000001ffffffffff", True), ("0000000000000000", False), ("0000000000000040", False)):
        (folder / "status").write_text(f"Name:\tx\nCapEff:\t{mask}\n")
        assert may_change_user(tmp_path) is expected


def test_the_errors_of_systems_are_one_kind():
    assert issubclass(SystemUnderTestError, RackscopeError)
