"""Systems that are only ever found on PATH: what they are told, and that those that are there serve."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from conftest import process_exists
from rackscope.errors import SystemUnderTestError
from rackscope.systems import find_system, resolve_knobs
from rackscope.systems.base import Acquired, Endpoint, Launch
from rackscope.systems.knobs import KnobContext
from rackscope.systems.segcache import segcache_configuration
from systems_started import arguments_of

CONTEXT = KnobContext(cores=1, memory_available_bytes=2**34, memory_total_bytes=2**34)
PEERS = {
    "pogocache": "pogocache",
    "valkey": "valkey-server",
    "dragonfly": "dragonfly",
    "garnet": "garnet-server",
    "segcache": "pelikan_segcache_rs",
}
#: What their programs print when asked for the version.
VERSIONS = {
    "pogocache": ("pogocache 1.3.1", "1.3.1"),
    "valkey": ("Valkey server v=8.0.1 sha=00000000:0 malloc=libc bits=64 build=1", "8.0.1"),
    "dragonfly": ("dragonfly \\033[1;32mv1.27.1-9e7d5\\033[0m\\nbuild time: \\033[1;33m2025", "1.27.1"),
    "garnet": ("GarnetServer 1.0.84+4c2f", "1.0.84"),
    "segcache": ("pelikan_segcache_rs 0.3.1", "0.3.1"),
}
TCP = Endpoint("tcp", port=4000)
UNIX = Endpoint("unix", path="/tmp/x/y.sock")


def values(name: str, **settings: str) -> dict[str, str]:
    chosen = {"memory": "1GiB", **settings}
    return dict(resolve_knobs(find_system(name), chosen, tuned=False, cores=[0], context=CONTEXT).values)


def on_path(name: str) -> Acquired:
    try:
        return find_system(name).acquire(fetch=False)
    except SystemUnderTestError as error:
        pytest.skip(error.what)


@pytest.mark.parametrize("name", PEERS)
def test_one_that_is_not_there_is_said_to_be_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemUnderTestError, match=f"{name} is not on this machine: no .*{PEERS[name]}.* on PATH"):
        find_system(name).acquire(fetch=True)


@pytest.mark.parametrize("name", PEERS)
def test_one_on_path_is_found_with_its_version(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed, version = VERSIONS[name]
    program = tmp_path / PEERS[name]
    program.write_text(f"#!/bin/sh\nprintf '{printed}\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    acquired = find_system(name).acquire(fetch=False)
    assert (acquired.program, acquired.version, acquired.source) == (program, version, "PATH")


def test_all_are_on_loopback_with_one_thread_and_their_memory() -> None:
    pogocache = arguments_of("pogocache", values("pogocache"), TCP)
    assert pogocache[:8] == ["-h", "127.0.0.1", "-p", "4000", "--threads", "1", "--maxmemory", "1024M"]
    assert arguments_of("pogocache", values("pogocache"), UNIX)[:4] == ["-p", "0", "-s", UNIX.path]
    dragonfly = arguments_of("dragonfly", values("dragonfly"), TCP)
    assert {"--bind=127.0.0.1", "--port=4000", "--proactor_threads=1", f"--maxmemory={2**30}"} <= set(dragonfly)
    # Nothing is written, and nobody is asked for newer versions.
    assert {"--dbfilename=", "--version_check=false"} <= set(dragonfly)
    assert {"--port=0", f"--unixsocket={UNIX.path}"} <= set(arguments_of("dragonfly", values("dragonfly"), UNIX))
    garnet = arguments_of("garnet", values("garnet"), TCP)
    assert garnet == ["--bind", "127.0.0.1", "--port", "4000", "--memory", "1024m", "--index", "128m"]
    valkey = arguments_of("valkey", values("valkey"), TCP)
    assert valkey[:4] == ["--bind", "127.0.0.1", "--port", "4000"]
    assert valkey[valkey.index("--maxmemory") + 1] == str(2**30)


def test_segcache_is_configured_by_a_file() -> None:
    content = tomllib.loads(segcache_configuration(values("segcache"), TCP, 4001))
    assert content["server"] == {"host": "127.0.0.1", "port": "4000"}
    assert content["admin"] == {"host": "127.0.0.1", "port": "4001"}
    assert content["worker"] == {"threads": 1}
    assert content["seg"]["heap_size"] == 2**30


@pytest.mark.parametrize("name", PEERS)
def test_one_that_is_here_starts_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    acquired = on_path(name)
    system = find_system(name)
    cores = tuple(sorted(os.sched_getaffinity(0)))[:1]
    knobs = resolve_knobs(system, {"memory": "256MiB"}, tuned=False, cores=cores).values
    for kind in system.endpoint_kinds:
        folder = tmp_path / kind
        running = system.start(acquired, Launch(folder, cores, knobs, endpoint_kind=kind))
        try:
            assert running.wait_ready() > 0
            running.check_alive()
            assert os.sched_getaffinity(running.pid) == set(cores)
        finally:
            running.stop()
        assert not process_exists(running.pid)
        assert [file.name for file in folder.iterdir()] == [running.log.name]
