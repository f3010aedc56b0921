"""The load generator as Python sees it: dictionaries, exceptions, signals, threads."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rackscope import _native, metrics

PATIENCE_SECONDS = 60.0

RESULT_KEYS = {
    "name",
    "start_ns",
    "end_ns",
    "duration_seconds",
    "operations",
    "errors",
    "hits",
    "misses",
    "wrong_values",
    "first_wrong",
    "first_error",
    "bytes_sent",
    "bytes_received",
    "offered_operations_per_second",
    "unsent_operations",
    "generator_cpu_seconds",
    "generator_idle_ratio",
    "lag_p99_seconds",
    "failed",
    "per_operation",
    "histograms",
}


@pytest.fixture
def endpoint() -> Iterator[dict[str, Any]]:
    responder = _native.NullResponder("memcached_text", json.dumps({"kind": "tcp", "host": "127.0.0.1", "port": 0}))
    yield json.loads(responder.endpoint)
    responder.stop()
    responder.stop()  # Once more does no harm.


def configuration(endpoint: dict[str, Any], **changes: Any) -> str:
    base = {
        "target": endpoint,
        "protocol": "memcached_text",
        "connections": 4,
        "seed": 1,
        "keys": {"count": 100, "size": {"kind": "fixed", "bytes": 24}},
        "values": {"kind": "fixed", "bytes": 100},
    }
    return json.dumps(base | changes)


def phase(**changes: Any) -> str:
    base = {
        "name": "test",
        "operations": {"read": 0.5, "update": 0.5},
        "distribution": {"kind": "uniform"},
        "loop": {"kind": "open", "arrivals": "poisson", "rate_per_second": 5000},
        "duration_seconds": 0.5,
        "operation_count": None,
        "interval_seconds": 0.05,
        "record_latency": True,
    }
    return json.dumps(base | changes)


def test_a_phase_gives_intervals_and_a_result(endpoint: dict[str, Any]) -> None:
    client = _native.LoadClient(configuration(endpoint))
    client.start_phase(phase())
    assert client.wait(PATIENCE_SECONDS)
    result = client.phase_result()
    assert set(result) == RESULT_KEYS
    assert result["failed"] is None and result["wrong_values"] == 0
    assert result["operations"] == sum(counts["count"] for counts in result["per_operation"].values())
    assert {(histogram["operation"], histogram["kind"]) for histogram in result["histograms"]} == {
        (operation, kind) for operation in ("read", "update") for kind in ("response", "service", "lag")
    }
    intervals = client.poll()
    assert intervals and client.poll() == []
    names = {name for interval in intervals for name in interval} - {"timestamp_ns"}
    known = set(metrics.METRICS)
    assert {name.partition("{")[0] for name in names} <= known
    assert all(result["start_ns"] < interval["timestamp_ns"] for interval in intervals)
    client.close()


def test_intervals_can_be_fetched_while_another_thread_waits(endpoint: dict[str, Any]) -> None:
    client = _native.LoadClient(configuration(endpoint))
    client.start_phase(phase(duration_seconds=600.0))
    waiter = threading.Thread(target=client.wait, args=(PATIENCE_SECONDS,))
    waiter.start()
    intervals: list[dict[str, float]] = []
    while len(intervals) < 3:
        intervals += client.poll()
    client.stop_phase()
    waiter.join()
    assert client.phase_result()["failed"] is None


def test_an_interrupt_ends_a_wait(endpoint: dict[str, Any]) -> None:
    client = _native.LoadClient(configuration(endpoint))
    client.start_phase(phase(duration_seconds=600.0))
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        client.wait(PATIENCE_SECONDS)
    client.close()


def test_mistakes_are_exceptions_with_a_sentence(endpoint: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="connections must be between 1 and"):
        _native.LoadClient(configuration(endpoint, connections=0))
    with pytest.raises(ValueError, match="load configuration: "):
        _native.LoadClient("{")
    with pytest.raises(OSError, match=r"cannot connect to 127\.0\.0\.1:1: "):
        _native.LoadClient(configuration({"kind": "tcp", "host": "127.0.0.1", "port": 1}))
    with pytest.raises(OSError, match=r"cannot listen on 127\.0\.0\.1:"):
        _native.NullResponder("resp", json.dumps(endpoint))
    with pytest.raises(ValueError, match="unknown variant `http`"):
        _native.NullResponder("http", json.dumps(endpoint))
    client = _native.LoadClient(configuration(endpoint))
    with pytest.raises(RuntimeError, match="there was no phase yet"):
        client.phase_result()
    with pytest.raises(ValueError, match="theta must be between"):
        client.start_phase(phase(distribution={"kind": "zipfian", "theta": -1}))
    with pytest.raises(ValueError, match="timeout_seconds"):
        client.wait(-1)
    client.start_phase(phase(duration_seconds=600.0))
    with pytest.raises(RuntimeError, match="a phase is running"):
        client.start_phase(phase())
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.start_phase(phase())
