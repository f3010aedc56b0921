"""Do independent clients see what our load generator sees? redis-benchmark on redis, memcaslap on memcached.

The same closed loop (50 connections, one client core, one server core), the same server process, in turn A B B A.
Prints throughput of each, the ratio with its interval, and the CPU time that each client and the server took for an
operation: where a client needs more of its core than the server needs of its own, the client is what was measured.

    .venv/bin/python benches/independent_clients.py [--rounds 4] [--seconds 4] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rackscope import _native
from rackscope.analysis.intervals import ratio_of_means
from rackscope.systems import find_system, resolve_knobs
from rackscope.systems.acquire import acquire_by_name
from rackscope.systems.base import Acquired, Launch, RunningSystem

CONNECTIONS = 50
KEYS = 100_000
VALUE_BYTES = 100
SERVER_CORE = 0
CLIENT_CORE = 1


@dataclass
class Side:
    """One client's figures, one entry a turn."""

    throughput: list[float] = field(default_factory=list)
    client_cpu_seconds_per_operation: list[float] = field(default_factory=list)
    server_cpu_seconds_per_operation: list[float] = field(default_factory=list)


def main() -> int:
    """Both comparisons, one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {CLIENT_CORE})
    rows = [
        compare("redis", "get", "redis-benchmark", redis_benchmark("get", 1), {"read": 1.0}, 1, arguments),
        compare("redis", "set", "redis-benchmark", redis_benchmark("set", 1), {"update": 1.0}, 1, arguments),
        compare("redis", "get", "redis-benchmark", redis_benchmark("get", 16), {"read": 1.0}, 16, arguments),
        compare("redis", "set", "redis-benchmark", redis_benchmark("set", 16), {"update": 1.0}, 16, arguments),
        compare("memcached", "9:1", "memcaslap", memcaslap, {"read": 0.9, "update": 0.1}, 1, arguments),
    ]
    if arguments.json:
        print(json.dumps(rows))
        return 0
    print(
        "| system | mix, depth | load, op/s | other client | op/s | load / other (95 %) | client µs/op | server µs/op |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['system']} | {row['mix']}, {row['depth']} | {row['load']:.0f} | {row['client']} | "
            f"{row['other']:.0f} | {row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f}) | "
            f"{row['load_client_cpu'] * 1e6:.2f} / {row['other_client_cpu'] * 1e6:.2f} | "
            f"{row['load_server_cpu'] * 1e6:.2f} / {row['other_server_cpu'] * 1e6:.2f} |"
        )
    return 0


def compare(
    name: str,
    mix: str,
    tool_name: str,
    other: Callable[[Acquired, RunningSystem, float, Path], tuple[float, float]],
    operations: dict[str, float],
    depth: int,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Start the server, let both clients take turns on it."""
    system = find_system(name)
    tool = acquire_by_name(tool_name, fetch=True)
    acquired = system.acquire(fetch=True)
    knobs = resolve_knobs(system, {"threads": "1"} if name == "memcached" else {}, tuned=False, cores=(SERVER_CORE,))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        running = system.start(acquired, Launch(folder=folder, cores=(SERVER_CORE,), knobs=knobs.values))
        try:
            running.wait_ready()
            client = _native.LoadClient(configuration(running, system.protocols[0], depth))
            run_ours(client, {"insert": 1.0}, None)
            sides = {"load": Side(), "other": Side()}
            turns = ["load", "other", "other", "load"] * ((arguments.rounds + 1) // 2)
            for turn in ["load", "other", *turns]:  # the first pair warms up and is dropped
                server_before, client_before = cpu_seconds(running.pid), own_cpu_seconds()
                if turn == "load":
                    operations_done, throughput = run_ours(client, operations, arguments.seconds)
                else:
                    operations_done, throughput = other(tool, running, arguments.seconds, folder)
                client_seconds, server_seconds = (
                    own_cpu_seconds() - client_before,
                    cpu_seconds(running.pid) - server_before,
                )
                sides[turn].throughput.append(throughput)
                sides[turn].client_cpu_seconds_per_operation.append(client_seconds / operations_done)
                sides[turn].server_cpu_seconds_per_operation.append(server_seconds / operations_done)
            client.close()
        finally:
            running.stop()
    for side in sides.values():
        for figures in (side.throughput, side.client_cpu_seconds_per_operation, side.server_cpu_seconds_per_operation):
            del figures[0]
    load, others = sides["load"], sides["other"]
    ratio = ratio_of_means(load.throughput, others.throughput)
    return {
        "system": f"{name} {acquired.version}",
        "mix": mix,
        "depth": depth,
        "client": tool_name,
        "load": mean(load.throughput),
        "other": mean(others.throughput),
        "ratio": ratio.estimate,
        "low": ratio.low,
        "high": ratio.high,
        "load_client_cpu": mean(load.client_cpu_seconds_per_operation),
        "other_client_cpu": mean(others.client_cpu_seconds_per_operation),
        "load_server_cpu": mean(load.server_cpu_seconds_per_operation),
        "other_server_cpu": mean(others.server_cpu_seconds_per_operation),
    }


def configuration(running: RunningSystem, protocol: str, depth: int) -> str:
    """The generator set as the other clients are."""
    endpoint = running.endpoint
    return json.dumps(
        {
            "target": {"kind": "tcp", "host": endpoint.host, "port": endpoint.port},
            "protocol": protocol,
            "connections": CONNECTIONS,
            "cores": [CLIENT_CORE],
            "pipeline": depth,
            "multiget": 1,
            "seed": 1,
            "verify": True,
            "keys": {"count": KEYS, "size": {"kind": "fixed", "bytes": 16}},
            "values": {"kind": "fixed", "bytes": VALUE_BYTES},
        }
    )


def run_ours(client: _native.LoadClient, operations: dict[str, float], seconds: float | None) -> tuple[float, float]:
    """Operations of one phase, and operations a second."""
    phase = {
        "name": "measure",
        "operations": operations,
        "distribution": {"kind": "sequential" if seconds is None else "uniform"},
        "loop": {"kind": "closed"},
        "duration_seconds": seconds,
        "operation_count": KEYS if seconds is None else None,
        "interval_seconds": 0.5,
        "record_latency": True,
    }
    client.start_phase(json.dumps(phase))
    while not client.wait(1.0):
        client.poll()
    result = client.phase_result()
    if result["failed"] or result["wrong_values"]:
        raise SystemExit(f"the load generator failed: {result['failed'] or result['first_wrong']}")
    return float(result["operations"]), float(result["operations"] / result["duration_seconds"])


def redis_benchmark(test: str, depth: int) -> Callable[[Acquired, RunningSystem, float, Path], tuple[float, float]]:
    """redis-benchmark on one test; its count of requests is set from a first short turn."""
    known: dict[str, int] = {}

    def run(tool: Acquired, running: RunningSystem, seconds: float, _folder: Path) -> tuple[float, float]:
        def once(count: int, which: str) -> float:
            arguments = f"-h {running.endpoint.host} -p {running.endpoint.port} -c {CONNECTIONS} -n {count} -t {which}"
            options = f"-d {VALUE_BYTES} -r {KEYS} -P {depth} --csv"
            output = tool_output(tool, [*arguments.split(), *options.split()])
            return float(output.splitlines()[-1].split(",")[1].strip('"'))

        if not known:
            once(3 * KEYS, "set")  # its keys have names of their own
            known["rate"] = int(once(50_000 * depth, test))
        count = int(known["rate"] * seconds)
        throughput = once(count, test)
        known["rate"] = int(throughput)
        return count, throughput

    return run


def memcaslap(tool: Acquired, running: RunningSystem, seconds: float, folder: Path) -> tuple[float, float]:
    """memcaslap with keys and values of one size."""
    settings = folder / "memcaslap.cnf"
    settings.write_text(f"key\n16 16 1\nvalue\n{VALUE_BYTES} {VALUE_BYTES} 1\ncmd\n0 0.1\n1 0.9\n")
    server = f"{running.endpoint.host}:{running.endpoint.port}"
    options = f"-s {server} -F {settings} -T 1 -c {CONNECTIONS} -w 1k -t {max(1, round(seconds))}s"
    output = tool_output(tool, options.split())
    match = re.search(r"Ops:\s*([0-9]+)\s+TPS:\s*([0-9.]+)", output)
    if match is None:
        raise SystemExit(f"memcaslap did not say its TPS:\n{output[-500:]}")
    return float(match.group(1)), float(match.group(2))


def tool_output(tool: Acquired, arguments: list[str]) -> str:
    """Run a client to its end on the client's core."""
    environment = {**os.environ, **tool.environment}
    ended = subprocess.run(
        [str(tool.program), *arguments], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return ended.stdout + ended.stderr


def cpu_seconds(pid: int) -> float:
    """User and system seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_cpu_seconds() -> float:
    """User and system seconds of this process and of the clients it ran."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in usage)


def mean(values: list[float]) -> float:
    """Arithmetic mean."""
    return sum(values) / len(values)


if __name__ == "__main__":
    raise SystemExit(main())
