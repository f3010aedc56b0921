"""Network: requests and bytes over loopback (measured), the links' speed (as their drivers claim)."""

from __future__ import annotations

import json
from typing import Any

from rackscope.host.ceilings import CalibrationError, Ceiling
from rackscope.host.measurements.setting import Setting

_CONNECTIONS = 50
_KEYS = 1000
_VALUE_BYTES = 100
_SHARED_CORE = "this process may use one core only, so both ends competed for it"


def measure_loopback_bytes(setting: Setting) -> list[Ceiling]:
    """One TCP connection from one core to another, again and again."""
    sender, receiver = _two_cores(setting)
    seconds = setting.seconds(0.3, 1.5)
    transfers = [setting.kernels.measure_loopback_bandwidth(seconds, sender, receiver) for _ in range(4)]
    return [
        Ceiling.of(
            "loopback_bytes_per_second",
            # The first one also widens the connection's buffers for the kernel to remember.
            [transfer["bytes_per_second"] for transfer in transfers[1:]],
            "bytes/s",
            method=f"one TCP connection over 127.0.0.1 from core {sender} to core {receiver}",
            distrust=_SHARED_CORE if sender == receiver else None,
        )
    ]


def measure_loopback_requests(setting: Setting) -> list[Ceiling]:
    """The load generator on one core against a responder with canned responses on another, closed loop."""
    server_core, client_core = _two_cores(setting)
    responder = setting.kernels.NullResponder(
        "memcached_text", json.dumps({"kind": "tcp", "host": "127.0.0.1", "port": 0}), server_core
    )
    try:
        client = setting.kernels.LoadClient(json.dumps(_client(json.loads(responder.endpoint), client_core)))
        try:
            rates = [_phase(client, setting.seconds(0.7, 3.0)) for _ in range(3)]
        finally:
            client.close()
    finally:
        responder.stop()
    return [
        Ceiling.of(
            "loopback_requests_per_second",
            rates,
            "requests/s",
            method=f"memcached reads over {_CONNECTIONS} TCP connections on 127.0.0.1, one outstanding on each, "
            f"load generator on core {client_core} against canned responses from core {server_core}",
            distrust=_SHARED_CORE if server_core == client_core else None,
            detail={"connections": _CONNECTIONS, "pipeline": 1, "value_bytes": _VALUE_BYTES},
        )
    ]


def read_link_speeds(setting: Setting) -> list[Ceiling]:
    """What each link that is up could carry in one direction. Raises CalibrationError when no driver tells."""
    ceilings = [
        Ceiling.of(
            f'network_bytes_per_second{{interface="{interface.name}"}}',
            [interface.speed_bytes_per_second],
            "bytes/s",
            method="the speed that the driver reports, one direction; not measured",
        )
        for interface in setting.inventory.interfaces
        if interface.speed_bytes_per_second is not None and not interface.virtual and interface.state != "down"
    ]
    if not ceilings:
        raise CalibrationError("no network driver of this host reports the speed of its link")
    return ceilings


def _two_cores(setting: Setting) -> tuple[int, int]:
    return setting.cores[0], setting.cores[1 if len(setting.cores) > 1 else 0]


def _client(target: dict[str, Any], core: int) -> dict[str, Any]:
    return {
        "target": target,
        "protocol": "memcached_text",
        "connections": _CONNECTIONS,
        "cores": [core],
        "pipeline": 1,
        "multiget": 1,
        "seed": 1,
        "verify": False,
        "keys": {"count": _KEYS, "size": {"kind": "fixed", "bytes": 24}},
        "values": {"kind": "fixed", "bytes": _VALUE_BYTES},
    }


def _phase(client: Any, seconds: float) -> float:
    client.start_phase(
        json.dumps(
            {
                "name": "loopback",
                "operations": {"read": 1.0},
                "distribution": {"kind": "uniform"},
                "loop": {"kind": "closed"},
                "duration_seconds": seconds,
                "operation_count": None,
                "interval_seconds": 0.25,
                "record_latency": False,
            }
        )
    )
    if not client.wait(seconds + 10.0):
        client.stop_phase()
        raise CalibrationError("the load generator did not end in time", "Run 'rackscope calibrate' again.")
    result = client.phase_result()
    if result["failed"] or not result["operations"]:
        raise CalibrationError(f"the load generator failed: {result['failed'] or 'no answer came'}")
    return float(result["operations"]) / float(result["duration_seconds"])
