"""What the cache engine can do, reached through its knobs: each serves a short load that finds what it wrote."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from conftest import Rackscope
from rackscope import _native
from rackscope.errors import SystemUnderTestError, UsageError
from rackscope.systems import find_system, resolve_knobs
from rackscope.systems.base import RunningSystem
from systems_started import started

_KEYS = 500


def load(
    running: RunningSystem, keys: int, counts: dict[str, int], *, value_bytes: int = 100, **client: object
) -> dict[str, Any]:
    """Drive so many of each operation, one after the other; the result of the last. Keys are written in order."""
    sizes = {"keys": {"count": keys, "size": {"kind": "fixed", "bytes": 24}}}
    values = {"kind": "fixed", "bytes": value_bytes}
    configuration = {"target": dict(running.target), "connections": 2, "pipeline": 8, "seed": 7, "values": values}
    generator = _native.LoadClient(json.dumps(configuration | sizes | client))
    result: dict[str, Any] = {}
    try:
        for operation, count in counts.items():
            phase = {"name": operation, "operations": {operation: 1.0}, "loop": {"kind": "closed"}}
            distribution = {"kind": "sequential" if operation == "insert" else "uniform"}
            how = {"distribution": distribution, "operation_count": count, "interval_seconds": 0.25}
            generator.start_phase(json.dumps(phase | how))
            assert generator.wait(20)
            result = generator.phase_result()
            assert not result["failed"] and result["wrong_values"] == 0
    finally:
        generator.close()
    return result


def drive(running: RunningSystem, protocol: str = "memcached_text", batch: int = 1) -> dict[str, Any]:
    """Write every key once, then read keys; the result of the reading."""
    return load(running, _KEYS, {"insert": _KEYS, "read": 5000}, protocol=protocol, batch=batch)


@pytest.mark.parametrize(
    ("knobs", "protocol", "batch"),
    [
        ({"transport": "udp"}, "memcached_text", 1),
        ({"transport": "udp"}, "batch", 16),
        ({"transport": "udp", "access": "erew", "threads": "2"}, "batch", 4),
        ({"transport": "udp", "access": "erew", "threads": "2", "request_direction": "server"}, "memcached_text", 1),
        ({"access": "crew", "threads": "2", "request_direction": "server"}, "memcached_text", 1),
        ({"transport": "tls"}, "memcached_text", 1),
        ({"access": "erew", "threads": "2"}, "memcached_text", 1),
        ({"access": "crew", "threads": "2"}, "memcached_meta", 1),
        ({"evict": "no"}, "memcached_text", 1),
    ],
)
def test_a_load_finds_what_it_wrote(tmp_path: Path, knobs: dict[str, str], protocol: str, batch: int) -> None:
    with started("cache", tmp_path, **knobs) as running:
        assert drive(running, protocol, batch)["hits"] == 5000
        datagrams = int(running.statistics()["datagrams_received"])
        assert (datagrams >= (5000 + _KEYS) / batch) == (knobs.get("transport") == "udp")


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_requests_go_to_owners_unless_the_server_is_to_find_them(tmp_path: Path, transport: str) -> None:
    knobs = {"transport": transport, "access": "erew", "threads": "2"}
    ports = {"tcp": "own_ports", "udp": "ports"}[transport]
    with started("cache", tmp_path / "client", **knobs) as running:
        own = set(running.target[ports])
        assert len(own) == 2
    with started("cache", tmp_path / "server", **knobs, request_direction="server") as running:
        assert len(running.target.get(ports, [])) == {"tcp": 0, "udp": 1}[transport]


def test_memcached_serves_datagrams_with_flags_and_an_end(tmp_path: Path) -> None:
    message = "transport=udp does not go with a unix socket"
    with pytest.raises(UsageError, match=message), started("memcached", tmp_path / "unix", "unix", transport="udp"):
        pass
    with started("memcached", tmp_path / "udp", transport="udp") as running:
        assert running.target["kind"] == "udp"
        counts = {"insert": _KEYS, "read": 1000}
        result = load(running, _KEYS, counts, protocol="memcached_text", flags=7, expire_seconds=600)
        assert (result["hits"], result["errors"]) == (1000, 0)
        stats = running.statistics()
        assert int(stats["cmd_set"]) == _KEYS


def test_io_uring_serves_or_says_why_it_cannot(tmp_path: Path) -> None:
    try:
        with started("cache", tmp_path, event_loop="io_uring") as running:
            assert drive(running)["hits"] == 5000
    except SystemUnderTestError as error:
        assert "io_uring" in error.what
        pytest.skip(error.what)


@pytest.mark.parametrize("name", ["", "system", "reno"])
def test_its_connections_have_the_congestion_control_asked_for(tmp_path: Path, name: str) -> None:
    with started("cache", tmp_path, congestion_control=name) as running:
        assert drive(running)["hits"] == 5000


def test_a_congestion_control_that_the_host_has_not_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(SystemUnderTestError, match="congestion control none_such"),
        started("cache", tmp_path, congestion_control="none_such"),
    ):
        pass


def test_a_store_refuses_what_a_cache_evicts_for(tmp_path: Path) -> None:
    with started("cache", tmp_path, evict="no", memory="8MiB") as running:
        result = load(running, 20_000, {"insert": 20_000}, value_bytes=1000, protocol="memcached_text")
        assert result["errors"] > 5000
        assert running.statistics()["evictions"] == "0"


def test_items_are_found_again_after_a_warm_restart(tmp_path: Path) -> None:
    # As nobody it can write there; pytest closes its own folders to others whenever it starts, elsewhere too.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        knobs = {"memory_file": f"{folder}/items", "memory": "16MiB"}
        with started("cache", tmp_path / "first", **knobs) as running:
            drive(running)
        with started("cache", tmp_path / "second", **knobs) as running:
            assert running.statistics()["curr_items"] == str(_KEYS)


def test_af_xdp_is_reached_over_a_veth_made_for_the_run(rackscope: Rackscope) -> None:
    ended = rackscope(
        "run", "cache", "ycsb-c", "--set", "transport=af_xdp", "--set", "keys=500", "--connections", "2",
        "--repeat", "2", "--duration", "0.2s", "--warm-up", "0s", "--json",
    )  # fmt: skip
    if ended.returncode != 0 and ("AF_XDP" in ended.stderr or "CAP_" in ended.stderr):
        pytest.skip(ended.stderr.strip().splitlines()[-1])
    assert ended.returncode == 0, ended.stderr
    manifest = json.loads((rackscope.folder / json.loads(ended.stdout)["run_directory"] / "manifest.json").read_text())
    # The kernel served the statistics alone; what was loaded and read bypassed it.
    assert int(manifest["system"]["statistics"]["datagrams_received"]) > 500
    assert not Path("/sys/class/net", manifest["system"]["interface"]).exists()


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"event_loop": "io_uring", "access": "erew"}, "event_loop=io_uring does not go with"),
        ({"event_loop": "io_uring", "transport": "udp"}, "event_loop=io_uring does not go with"),
        ({"transport": "tls", "access": "erew"}, "transport=tls does not go with access=erew"),
        ({"certificate": "/no/such.pem"}, "is not a file"),
        ({"memory_file": "items"}, "expected an absolute path"),
        ({"congestion_control": "a,b"}, "invalid congestion_control: 'a,b'"),
        ({"transport": "quic"}, "invalid transport: 'quic'"),
    ],
)
def test_knobs_that_do_not_go_together_are_refused_before_the_start(knobs: dict[str, str], message: str) -> None:
    system = find_system("cache")
    with pytest.raises(UsageError, match=message):
        system.check_knobs(resolve_knobs(system, knobs, tuned=False, cores=(0,)).values)


def test_datagrams_take_a_port_and_af_xdp_a_veth(tmp_path: Path) -> None:
    message = "transport=udp does not go with a unix socket"
    with pytest.raises(UsageError, match=message), started("cache", tmp_path, "unix", transport="udp"):
        pass
    message = "needs a network namespace of its own"
    with pytest.raises(SystemUnderTestError, match=message), started("cache", tmp_path, transport="af_xdp"):
        pass
