"""The real servers, started and stopped as a run does it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import process_exists, wait_until
from rackscope.errors import SystemUnderTestError, UsageError
from rackscope.systems import ports, server
from rackscope.systems.account import account_for_systems
from rackscope.systems.base import Endpoint, EndpointKind
from rackscope.systems.ports import choose_port, is_free
from rackscope.systems.text_socket import connect
from systems_started import started

SYSTEMS = ("cache", "memcached", "redis")


def ask(endpoint: Endpoint, request: bytes, answer: bytes) -> None:
    """Fails unless the server gives exactly this answer."""
    with connect(endpoint, 10) as connection:
        connection.sendall(request)
        received = b""
        while len(received) < len(answer):
            block = connection.recv(4096)
            if not block:
                break
            received += block
        assert received == answer


def status_of(pid: int) -> dict[str, list[str]]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


def sockets_of(pid: int, table: str) -> list[list[str]]:
    """The process's rows in a table of /proc/net."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(link.readlink().name.removeprefix("socket:[").removesuffix("]"))
    file = Path("/proc/net") / table
    rows = [line.split() for line in file.read_text().splitlines()[1:]] if file.exists() else []
    return [row for row in rows if row[9] in inodes]


@pytest.mark.parametrize("endpoint_kind", ["tcp", "unix"])
def test_workers_with_keys_of_their_own_are_reached_by_themselves(tmp_path: Path, endpoint_kind: EndpointKind):
    with started("cache", tmp_path / "own", endpoint_kind, threads="2", access="erew") as running:
        name, field = ("own_ports", "port") if endpoint_kind == "tcp" else ("own_paths", "path")
        own = [replace(running.endpoint, **{field: one}) for one in running.target[name]]
        assert len(set(own)) == 2 and running.endpoint not in own
        for endpoint in own:
            ask(endpoint, b"set key 0 0 5\r\nvalue\r\n", b"STORED\r\n")
    with started("cache", tmp_path / "shared", endpoint_kind, threads="2") as running:
        assert running.target == running.endpoint.target() | {name: []}


@pytest.mark.parametrize("endpoint_kind", ["tcp", "unix"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_starts_serves_and_leaves_nothing(tmp_path: Path, name: str, endpoint_kind: EndpointKind):
    core = max(os.sched_getaffinity(0))
    folder = tmp_path / "logs"
    with started(name, folder, endpoint_kind, cores=(core,)) as running:
        if name == "redis":
            ask(running.endpoint, b"SET key value\r\n", b"+OK\r\n")
            ask(running.endpoint, b"GET key\r\n", b"$5\r\nvalue\r\n")
            assert running.statistics()["process_id"] == str(running.pid)
        else:
            ask(running.endpoint, b"set key 0 0 5\r\nvalue\r\n", b"STORED\r\n")
            ask(running.endpoint, b"get key\r\n", b"VALUE key 0 5\r\nvalue\r\nEND\r\n")
            assert running.statistics()["pid"] == str(running.pid)
        assert running.endpoint.kind == endpoint_kind
        assert running.wait_ready() > 0
        running.check_alive()

        status = status_of(running.pid)
        assert os.sched_getaffinity(running.pid) == {core}
        assert status["NoNewPrivs"] == ["1"]
        account = account_for_systems()
        expected = os.geteuid() if account is None else account.user_id
        assert status["Uid"] == [str(expected)] * 4
        if account is not None:
            assert "0" not in status["Uid"] + status["Gid"] + status["Groups"]
        assert sockets_of(running.pid, "udp") == sockets_of(running.pid, "udp6") == []
        assert sockets_of(running.pid, "tcp6") == []
        assert all(row[1].startswith("0100007F:") for row in sockets_of(running.pid, "tcp"))
        assert bool(sockets_of(running.pid, "tcp")) == (endpoint_kind == "tcp")

        running.stop()
        assert not process_exists(running.pid)
        running.stop()
    if endpoint_kind == "tcp":
        assert is_free(running.endpoint.port)
    else:
        assert not Path(running.endpoint.path).parent.exists()
    assert running.log.parent == folder
    assert [file.name for file in folder.iterdir()] == [running.log.name]


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_chosen_port_is_used_and_one_in_use_is_refused(tmp_path: Path, name: str):
    port = choose_port()
    with started(name, tmp_path, port=port) as running:
        assert running.endpoint == Endpoint("tcp", port=port)
        message = f"port {port} on 127.0.0.1 is in use, so {name} cannot listen there"
        with pytest.raises(SystemUnderTestError, match=message), started(name, tmp_path, port=port):
            pass


def test_a_free_port_that_was_taken_meanwhile_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken, free = listener.getsockname()[1], choose_port()
        choices = iter([taken, free])
        monkeypatch.setattr(ports, "choose_port", lambda network, following: next(choices))
        with started("memcached", tmp_path) as running:
            assert running.endpoint.port == free


def test_a_port_answered_by_someone_else_is_not_mistaken_for_ours(tmp_path: Path):
    with started("memcached", tmp_path / "a") as first, started("memcached", tmp_path / "b") as second:
        assert isinstance(second, server.RunningServer)
        second._ready_seconds = None
        second.endpoint = first.endpoint
        with pytest.raises(SystemUnderTestError, match=f"is answered by process {first.pid}, not by the memcached"):
            second.wait_ready()


def test_a_unix_socket_has_no_port(tmp_path: Path):
    with pytest.raises(UsageError, match="has no port"), started("memcached", tmp_path, "unix", port=4000):
        pass


def test_a_system_that_dies_at_the_start_says_what_it_said(tmp_path: Path):
    with (
        pytest.raises(SystemUnderTestError) as caught,
        started("memcached", tmp_path, item_size_max="60MiB"),
    ):
        pass
    assert "memcached ended while starting (exit status " in caught.value.what
    assert "item size limit" in caught.value.what
    assert str(tmp_path / "memcached.log") in caught.value.advice


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_system_that_dies_in_a_run_is_noticed(tmp_path: Path, name: str):
    with started(name, tmp_path) as running:
        os.kill(running.pid, signal.SIGKILL)

        def is_noticed() -> bool:
            with contextlib.suppress(SystemUnderTestError):
                running.check_alive()
                return False
            return True

        wait_until(is_noticed, "the death to be noticed")
        with pytest.raises(SystemUnderTestError, match=rf"{name} ended while it was needed \(killed by SIGKILL\)"):
            running.check_alive()
        assert running.statistics() == {}


def test_knobs_reach_the_server(tmp_path: Path):
    with started("memcached", tmp_path, threads="3", connections="77", hash_power="18") as running:
        statistics = running.statistics()
        assert statistics["threads"] == "3"
        assert statistics["limit_maxbytes"] == str(64 * 1024**2)
        assert statistics["hash_power_level"] == "18"
    with started("redis", tmp_path, eviction="allkeys-lfu", io_threads="2", connections="500") as running:
        statistics = running.statistics()
        assert statistics["maxmemory"] == str(64 * 1024**2)
        assert statistics["maxmemory_policy"] == "allkeys-lfu"
        # As many as asked for, and a few of our own.
        assert 500 <= int(statistics["maxclients"]) <= 510


def test_every_connection_that_was_promised_is_served(tmp_path: Path):
    with (
        started("memcached", tmp_path, connections="20", threads="16") as running,
        contextlib.ExitStack() as stack,
    ):
        connections = [stack.enter_context(connect(running.endpoint, 10)) for _ in range(20)]
        for connection in connections:
            connection.sendall(b"version\r\n")
            assert connection.recv(100).startswith(b"VERSION")
        assert running.statistics()["pid"] == str(running.pid)


def test_redis_writes_to_disk_when_asked_and_takes_it_away_again(tmp_path: Path):
    with started("redis", tmp_path, append_only="yes") as running:
        ask(running.endpoint, b"SET key value\r\n", b"+OK\r\n")
        assert any((tmp_path / "redis-data").iterdir())
    assert not (tmp_path / "redis-data").exists()


PARENT = """
import sys
from pathlib import Path
from rackscope.systems import find_system, resolve_knobs
from rackscope.systems.base import Launch
name, folder, kind = sys.argv[1:]
system = find_system(name)
knobs = resolve_knobs(system, {"memory": "64MiB"}, tuned=False, cores=[])
running = system.start(system.acquire(fetch=True), Launch(Path(folder), [], knobs.values, kind))
running.wait_ready()
print(running.pid, running.endpoint.path, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("name", SYSTEMS)
def test_kill_9_of_rackscope_leaves_no_server(tmp_path: Path, name: str):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, name, str(tmp_path), "unix"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        pid, socket_path = parent.stdout.readline().split()
        assert process_exists(int(pid))
        os.killpg(parent.pid, signal.SIGKILL)
    wait_until(lambda: not process_exists(int(pid)), "the server to be gone")
    wait_until(lambda: not Path(socket_path).parent.exists(), "the socket to be gone")
