"""The server of known limits: it does the work that was asked for, says what is wrong, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import wait_until
from rackscope.errors import UsageError
from rackscope.squeezes.base import Capacity, Isolation, Subject
from rackscope.squeezes.dram_bandwidth import RegulatedChannel
from rackscope.squeezes.journal import Journal
from rackscope.systems import find_system, resolve_knobs
from rackscope.systems.base import EndpointKind, Launch, RunningSystem
from rackscope.systems.process import find_companion
from rackscope.systems.synthetic import DATA_FOLDER
from rackscope.systems.text_socket import connect
from rackscope.workloads import find_workload, list_workloads, plan

CORES = tuple(sorted(os.sched_getaffinity(0)))[:1]


@contextlib.contextmanager
def started(folder: Path, endpoint_kind: EndpointKind = "tcp", **settings: str) -> Iterator[RunningSystem]:
    system = find_system("synthetic")
    knobs = resolve_knobs(system, {"file_size": "1MiB", **settings}, tuned=False, cores=CORES).values
    system.check_knobs(knobs)
    launch = Launch(folder, CORES, knobs, endpoint_kind=endpoint_kind)
    running = system.start(system.acquire(fetch=False), launch)
    try:
        yield running
    finally:
        running.stop()


def converse(connection: socket.socket, request: bytes, length: int) -> bytes:
    connection.sendall(request)
    received = b""
    while len(received) < length:
        block = connection.recv(length - len(received))
        if not block:
            break
        received += block
    return received


ALL_WORK = (
    "cpu:10+memory-stream:4k+memory-stream-regulated:4k+page-touch:4+disk-sequential:4k+disk-random:4k+disk-write:4k"
    "+lock:10+sleep:10"
)


@pytest.mark.parametrize("endpoint_kind", ["tcp", "unix"])
def test_every_kind_of_work_is_done_and_nothing_is_left(tmp_path: Path, endpoint_kind: EndpointKind):
    with started(tmp_path, endpoint_kind, on_read=ALL_WORK, on_update=ALL_WORK, value_size="5") as running:
        with connect(running.endpoint, 30) as connection:
            expected = b"VALUE a 0 5\r\nvvvvv\r\nVALUE b 0 5\r\nvvvvv\r\nEND\r\n"
            assert converse(connection, b"get a b\r\n", len(expected)) == expected
            assert converse(connection, b"set a 0 0 3\r\nxyz\r\n", 8) == b"STORED\r\n"
        statistics = running.statistics()
        assert statistics["pid"] == str(running.pid)
        assert statistics["work_failures"] == "0"
        assert (statistics["cmd_get"], statistics["cmd_set"]) == ("2", "1")
        assert statistics["channel_carried_bytes"] == str(3 * 4096)
        counters = dict(line.split(": ") for line in Path(f"/proc/{running.pid}/io").read_text().splitlines())
        assert int(counters["syscr"]) > 0
        # Data files have no name: they are gone whatever becomes of the server.
        assert [path.name for path in (tmp_path / DATA_FOLDER).iterdir()] == ["regulated-channel"]
    assert not (tmp_path / DATA_FOLDER).exists()


def test_large_values_go_both_ways(tmp_path: Path):
    with (
        started(tmp_path, on_read="none", on_update="none", value_size="300000") as running,
        connect(running.endpoint, 30) as connection,
    ):
        expected = b"VALUE k 0 300000\r\n" + b"v" * 300000 + b"\r\nEND\r\n"
        assert converse(connection, b"get k\r\n", len(expected)) == expected
        stored = b"set k 0 0 1000000\r\n" + b"x" * 1000000 + b"\r\n"
        assert converse(connection, stored + stored, 16) == b"STORED\r\nSTORED\r\n"


def test_odd_clients_end_nothing_but_their_own_connection(tmp_path: Path):
    with started(tmp_path) as running:
        for request, answer in (
            (b"delete k\r\n", b"SERVER_ERROR this server does get and set only\r\n"),
            (b"mg k v\r\n", b"SERVER_ERROR this server does get and set only\r\n"),
            (b"nonsense\r\n", b"ERROR\r\n"),
            (b"set k 0 0 99999999\r\n", b"SERVER_ERROR object too large for cache\r\n"),
            (b"stats items\r\n", b"END\r\n"),
            (b"quit\r\n", b""),
        ):
            with connect(running.endpoint, 10) as connection:
                assert converse(connection, request, max(len(answer), 1)) == answer
        for request in (b"set k 0 0 100000\r\nhalf of it", b"get k\r\n" * 1000, b"\xff" * 5000):
            with connect(running.endpoint, 10) as connection:
                connection.sendall(request)
        # The connection that asks is one of them.
        wait_until(lambda: running.statistics().get("curr_connections") == "1", "others to have left")


def test_connections_beyond_the_limit_are_told_so(tmp_path: Path):
    with started(tmp_path, connections="1") as running, contextlib.ExitStack() as stack:
        answers = []
        for _ in range(20):
            connection = stack.enter_context(connect(running.endpoint, 10))
            with contextlib.suppress(OSError):
                answers.append(converse(connection, b"version\r\n", 7))
        assert answers[0] == b"VERSION"
        # One, and those that rackscope keeps for itself.
        assert answers.count(b"VERSION") <= 9


def test_knobs_that_are_no_work_are_refused_before_the_start():
    system = find_system("synthetic")
    for wrong in ("gpu:1", "cpu", "cpu:1+", "none+cpu:1", "cpu:1k", "lock:-1", "page-touch:1@2", "cpu:1 --help"):
        knobs = resolve_knobs(system, {"on_read": wrong}, tuned=False, cores=CORES).values
        with pytest.raises(UsageError, match="invalid on_"):
            system.check_knobs(knobs)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--on-read", "gpu:1"], 2, "'gpu:1' is an invalid kind of work"),
        (["--file-bytes", "2g"], 2, "a file is 1m to 1g"),
        (["-l", "192.0.2.1", "-p", "0"], 1, "cannot listen on 192.0.2.1:0"),
        (["-p", "0", "--on-read", "disk-random:4k", "--folder", "/nowhere"], 1, "/nowhere/blocks-to-read"),
        (["-p", "0", "--on-read", "disk-random:2m", "--file-bytes", "1m"], 1, "raise --file-bytes"),
    ],
)
def test_the_program_says_in_one_line_what_is_wrong(arguments: list[str], status: int, said: str):
    program = find_companion("rackscope-synthetic")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_channel_is_squeezed_by_lowering_its_rate(tmp_path: Path):
    with (
        started(tmp_path, on_read="memory-stream-regulated:4k", channel_rate="100000000") as running,
        Journal(tmp_path / "journal") as journal,
    ):
        squeeze = RegulatedChannel()
        subject = Subject(Isolation(), CORES, folder=tmp_path, pid=running.pid)
        capacity = squeeze.capacity(subject)
        assert isinstance(capacity, Capacity)
        assert capacity.value == 1e8
        with squeeze.apply(subject, 0.25, journal):
            assert running.statistics()["channel_bytes_per_second_left"] == "25000000"
        assert running.statistics()["channel_bytes_per_second_left"] == "100000000"
        # However slow this host is, more than what is left does not come through.
        achieved = squeeze.verify(subject, 0.5, journal)
        assert achieved.fraction is not None
        assert achieved.fraction < 0.75


def test_workloads_need_no_preload_and_match_the_system():
    names = [workload.name for workload in list_workloads() if workload.name.startswith("synthetic-")]
    assert names == ["synthetic-read", "synthetic-update", "synthetic-mixed", "synthetic-phases"]
    system = find_system("synthetic")
    for name in names:
        made = plan(
            find_workload(name), {}, operations=system.operations, protocols=system.protocols, system=system.name
        )
        assert made.preload is None
        assert made.values == {"kind": "fixed", "bytes": int(resolve_value_size())}


def resolve_value_size() -> str:
    return resolve_knobs(find_system("synthetic"), {}, tuned=False, cores=CORES).values["value_size"]
