"""Places: systems run in one, and nothing of it is left however its maker ends."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import process_exists, wait_until
from rackscope.errors import SqueezeError, UsageError
from rackscope.network_namespace import call_in_namespace
from rackscope.squeezes import control_groups, namespaces
from rackscope.squeezes import isolation as isolating
from rackscope.squeezes.base import Isolation
from rackscope.squeezes.isolation import make_isolation
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.recovery import recover
from rackscope.squeezes.undo import RemoveLink
from rackscope.systems import find_system, resolve_knobs
from rackscope.systems.base import Launch
from rackscope.systems.ports import Network, is_free
from rackscope.systems.text_socket import converse

_LINE = re.compile(rb"\r\n")


@pytest.fixture
def isolation(tmp_path: Path) -> Iterator[Isolation]:
    with Journal(tmp_path / "state") as journal, make_isolation("Test Place", journal) as isolation:
        yield isolation


def private_network(isolation: Isolation) -> Network:
    if isolation.network_namespace is None or isolation.address is None:
        pytest.skip(f"no network namespace can be made here: {isolation.missing['network']}")
    return Network(isolation.address, isolation.network_namespace)


def launch(folder: Path, isolation: Isolation, knobs: dict[str, str], port: int | None = None) -> Launch:
    return Launch(
        folder,
        tuple(sorted(os.sched_getaffinity(0)))[:1],
        knobs,
        port=port,
        control_groups=tuple(isolation.control_groups.values()),
        network_namespace=isolation.network_namespace,
        address=isolation.address or "127.0.0.1",
    )


def links() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def is_gone(isolation: Isolation) -> bool:
    return isolation.host_interface not in links() and not any(
        group.exists() for group in isolation.control_groups.values()
    )


@pytest.mark.parametrize("name", ["cache", "memcached", "redis"])
def test_a_system_runs_and_is_reached_in_its_namespace(tmp_path: Path, isolation: Isolation, name: str) -> None:
    network = private_network(isolation)
    system = find_system(name)
    knobs = resolve_knobs(system, {"memory": "64MiB"}, tuned=False, cores=(0,)).values
    running = system.start(system.acquire(fetch=True), launch(tmp_path / "logs", isolation, dict(knobs)))
    try:
        assert running.endpoint.host == isolation.address
        told = running.statistics()
        assert told["process_id" if name == "redis" else "pid"] == str(running.pid)
        inside = call_in_namespace(network.namespace or Path(), lambda: Path("/proc/thread-self/ns/net").readlink())
        assert Path(f"/proc/{running.pid}/ns/net").readlink() == inside
        for group in isolation.control_groups.values():
            assert str(running.pid) in (group / "cgroup.procs").read_text().split()
        assert str(os.getpid()) not in "".join(
            (g / "cgroup.procs").read_text() for g in isolation.control_groups.values()
        )
        # A port is taken where it is taken, and free elsewhere.
        assert not is_free(running.endpoint.port, network)
        answer = converse(running.endpoint, b"PING\r\n" if name == "redis" else b"version\r\n", _LINE)
        assert answer
    finally:
        running.stop()
    assert not process_exists(running.pid)


def test_two_systems_of_a_namespace_find_ports_of_their_own(tmp_path: Path, isolation: Isolation) -> None:
    private_network(isolation)
    system = find_system("cache")
    knobs = dict(resolve_knobs(system, {"memory": "64MiB"}, tuned=False, cores=(0,)).values)
    acquired = system.acquire(fetch=False)
    first = system.start(acquired, launch(tmp_path / "a", isolation, knobs))
    try:
        second = system.start(acquired, launch(tmp_path / "b", isolation, knobs))
        second.stop()
    finally:
        first.stop()
    assert first.endpoint.port != second.endpoint.port


def test_ports_are_counted_where_they_are(isolation: Isolation) -> None:
    network = private_network(isolation)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert not is_free(port)
        assert is_free(port, network)
        # The same number is listened on twice, and each is counted in its own network.
        inside = call_in_namespace(network.namespace or Path(), lambda: socket.create_server((network.address, port)))
        with inside:
            assert not is_free(port, network)


def test_an_address_that_others_reach_needs_a_network_of_its_own(tmp_path: Path) -> None:
    system = find_system("cache")
    acquired = system.acquire(fetch=False)
    knobs = dict(resolve_knobs(system, {"memory": "64MiB"}, tuned=False, cores=(0,)).values)
    for address in ("0.0.0.0", "198.18.0.2", "somewhere"):
        with pytest.raises(UsageError, match=address):
            system.start(acquired, Launch(tmp_path, (0,), knobs, address=address))


def test_a_place_says_what_it_lacks_and_leaves_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path / "state") as journal:
        with make_isolation("x", journal) as isolation, make_isolation("x", journal) as second:
            parts = {"control_group", *isolation.missing}
            if isolation.cgroup_version is None:
                assert parts.intersection({"cpu", "memory"})
            if isolation.network_namespace is None:
                assert isolation.missing["network"]
            else:
                assert isolation.address != second.address
                assert {isolation.host_interface, second.host_interface} <= links()
                assert isolation.system_interface not in links()
        assert journal.pending == ()
        assert is_gone(isolation)
        assert is_gone(second)


def test_without_a_network_only_groups_are_made(tmp_path: Path) -> None:
    before = links()
    with Journal(tmp_path / "state") as journal, make_isolation("x", journal, network=False) as isolation:
        assert isolation.network_namespace is isolation.address is isolation.host_interface is None
        assert isolation.missing["network"] == "it was not asked for"
        assert links() == before


def test_without_any_right_everything_is_missing_and_nothing_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> int:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(namespaces, "new_namespace", refuse)
    monkeypatch.setattr(control_groups, "_make_folder", refuse)
    before = links()
    with Journal(tmp_path / "state") as journal, make_isolation("x", journal) as isolation:
        assert isolation == Isolation(missing=isolation.missing)
        assert "CAP_SYS_ADMIN" in isolation.missing["network"]
        assert "cpu" in isolation.missing
        assert journal.pending == ()
    assert links() == before


def test_a_group_that_cannot_be_made_is_missing_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise SqueezeError("no control group could be made: the limit of groups is reached")

    monkeypatch.setattr(isolating, "make_control_group", refuse)
    with Journal(tmp_path / "state") as journal, make_isolation("x", journal, network=False) as isolation:
        assert isolation.missing["control_group"] == "no control group could be made: the limit of groups is reached"
        assert isolation.control_groups == {}


@pytest.mark.parametrize("step", ["_bring_up", "_bring_up_inside"])
def test_a_network_that_is_half_made_is_taken_away_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with Journal(tmp_path / "state") as journal, make_isolation("x", journal) as isolation:
        private_network(isolation)

    def fail(*arguments: object) -> None:
        raise OSError(errno.ENOBUFS, os.strerror(errno.ENOBUFS))

    before = links()
    monkeypatch.setattr(namespaces, step, fail)
    with Journal(tmp_path / "state") as journal, make_isolation("x", journal) as isolation:
        assert "No buffer space" in isolation.missing["network"]
        assert not any(isinstance(undo, RemoveLink) for undo in journal.pending)
        assert links() == before


HOLDER = """
import json, os, sys, time
from pathlib import Path
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.isolation import make_isolation
from rackscope.systems import find_system, resolve_knobs
from rackscope.systems.base import Launch

with Journal(Path(sys.argv[1])) as journal, make_isolation("killed", journal) as isolation:
    system = find_system("cache")
    knobs = resolve_knobs(system, {"memory": "64MiB"}, tuned=False, cores=(0,)).values
    running = system.start(system.acquire(fetch=False), Launch(
        Path(sys.argv[2]), tuple(sorted(os.sched_getaffinity(0)))[:1], knobs,
        control_groups=tuple(isolation.control_groups.values()), network_namespace=isolation.network_namespace,
        address=isolation.address or "127.0.0.1"))
    print(json.dumps({"pid": running.pid, "link": isolation.host_interface,
                      "groups": [str(group) for group in isolation.control_groups.values()]}), flush=True)
    time.sleep(600)
"""


def test_after_kill_9_the_journal_undoes_all_of_it(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(state), str(tmp_path / "logs")], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        try:
            made = json.loads(holder.stdout.readline())
        finally:
            holder.send_signal(signal.SIGKILL)
    if not made["groups"] and made["link"] is None:
        pytest.skip("neither a control group nor a network namespace can be made here")
    wait_until(lambda: not process_exists(made["pid"]), "the end of the system")
    told: list[str] = []

    def all_undone() -> bool:
        told.extend(recover(state))
        return not any(state.glob("*.json"))

    wait_until(all_undone, "an empty journal")
    assert told
    assert not any(Path(group).exists() for group in made["groups"])
    assert made["link"] not in links()
