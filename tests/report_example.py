"""A made-up run with realistic values: memcached under YCSB-B on a small guest, for tests of the report."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rackscope.runs.directory import RunDirectory, RunWriter
from rackscope.runs.manifest import Manifest
from rackscope.runs.tables import latency_frame, results_frame

START_NS = 1_763_749_351_000_000_000
CORES = 4
GROUPING_POWER = 7
MAX_VALUE_POWER = 40
GIB = 1024**3
#: As rackscope.host.inventory gives it.
PROCESSOR = {
    "vendor": "AuthenticAMD",
    "online": [0, 1, 2, 3],
    "caches": [{"level": 1, "kind": "data", "size_bytes": 32768, "instances": 2}],
    "base_hertz": 2.45e9,
    "governor": None,
}
HOST = {
    "identity": "cedd67801426a1fd",
    "cpu_model": "AMD EPYC 7763 64-Core Processor",
    "online_cores": CORES,
    "memory_total_bytes": 15.6 * GIB,
    "kernel": "6.1.0-29-amd64",
    "distribution": "Debian GNU/Linux 12 (bookworm)",
    "processor": PROCESSOR,
    "disks": {"vda": {"model": None, "size_bytes": 256 * GIB, "rotational": False}},
    "interfaces": {"eth0": {"driver": "virtio_net", "mtu_bytes": 1500, "speed_bytes_per_second": 1.25e9}},
    "mitigations": {"spectre_v2": "Mitigation: Retpolines"},
}


@dataclass
class Example:
    """Knobs of the made-up run."""

    load_seconds: float = 6.0
    warm_up_seconds: float = 5.0
    repetition_seconds: float = 5.0
    repetitions: int = 5
    host_interval_seconds: float = 0.1
    load_interval_seconds: float = 0.25
    perf: bool = True
    status: str = "complete"
    finished_repetitions: int | None = None
    extra_columns: int = 0
    ceilings: bool = True
    system_name: str = "memcached"
    log_text: str = "memcached 1.6.18 ready\n<0> slab class 1: chunk size 96 perslab 10922\n"
    warnings: list[dict[str, Any]] = field(default_factory=list)
    seed: int = 7
    stages: tuple[str, ...] = ("measure",)
    host: dict[str, Any] = field(default_factory=lambda: dict(HOST))

    @property
    def phases(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        at = 1.0
        kept = self.repetitions if self.finished_repetitions is None else self.finished_repetitions
        plan = [("load", "load", None, self.load_seconds), ("warm-up", "warm-up", None, self.warm_up_seconds)]
        plan += [
            (stage, "measure", number, self.repetition_seconds)
            for number in range(1, kept + 1)
            for stage in self.stages
        ]
        for name, kind, repetition, seconds in plan:
            rows.append(
                {
                    "name": name,
                    "kind": kind,
                    "repetition": repetition,
                    "start_ns": START_NS + round(at * 1e9),
                    "end_ns": START_NS + round((at + seconds) * 1e9),
                }
            )
            at += seconds + 0.15
        return rows


def h2_indices(values: np.ndarray, grouping_power: int = GROUPING_POWER) -> np.ndarray:
    """Buckets of whole numbers in an H2 histogram (linear below 2^(g+1), then 2^g buckets a power of two)."""
    power = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    above = (
        2 ** (grouping_power + 1)
        + (power - grouping_power - 1) * 2**grouping_power
        + ((values - (1 << np.maximum(power, 0))) >> np.maximum(power - grouping_power, 0))
    )
    return np.where(values < 2 ** (grouping_power + 1), values, above)


def _histogram(latencies_seconds: np.ndarray) -> tuple[list[int], list[int]]:
    unique, counts = np.unique(h2_indices((latencies_seconds * 1e9).astype(np.int64)), return_counts=True)
    return unique.tolist(), counts.tolist()


def _latencies(generator: np.random.Generator, median: float, count: int) -> np.ndarray:
    body = generator.lognormal(math.log(median), 0.28, count)
    slow = generator.random(count) < 0.004
    return np.where(slow, body * generator.lognormal(math.log(9), 0.5, count), body)


def _samples(example: Example, phases: list[dict[str, Any]]) -> pl.DataFrame:
    generator = np.random.default_rng(example.seed)
    end = (phases[-1]["end_ns"] - START_NS) / 1e9 + 0.8
    seconds = np.arange(0.0, end, example.host_interval_seconds)
    step = example.host_interval_seconds
    size = len(seconds)
    activity = np.zeros(size)
    loading = np.zeros(size)
    for phase in phases:
        inside = (seconds >= (phase["start_ns"] - START_NS) / 1e9) & (seconds < (phase["end_ns"] - START_NS) / 1e9)
        activity[inside] = {"load": 0.72, "warm-up": 0.96, "measure": 1.0}[phase["kind"]]
        if phase["kind"] == "load":
            loading[inside] = 1.0
    activity *= 1 + 0.02 * generator.standard_normal(size) + 0.025 * np.sin(seconds / 2.1)

    def total(rate: np.ndarray | float, start: float = 0.0) -> np.ndarray:
        return start + np.cumsum(np.broadcast_to(rate, (size,)) * step)

    noise = np.abs(generator.standard_normal(size))
    user = 0.02 * CORES + 0.30 * CORES * activity * 0.75 + 0.005 * noise
    system = 0.01 * CORES + 0.38 * CORES * activity * 0.75 + 0.008 * noise
    soft = 0.05 * CORES * activity
    iowait = 0.01 * CORES * noise * (generator.random(size) < 0.1)
    steal = 0.006 * CORES * noise
    idle = np.clip(CORES - user - system - soft - iowait - steal, 0, None)
    columns: dict[str, np.ndarray] = {}
    for state, rate in (
        ("user", user),
        ("nice", 0.0),
        ("system", system),
        ("idle", idle),
        ("iowait", iowait),
        ("irq", 0.0),
        ("softirq", soft),
        ("steal", steal),
    ):
        columns[f'cpu_seconds_total{{state="{state}"}}'] = total(rate, 1000.0)
        for core in range(CORES):
            share = (np.asarray(rate) / CORES) * (1 + 0.12 * math.cos(core * 2.0))
            columns[f'cpu_core_seconds_total{{core="{core}",state="{state}"}}'] = total(share, 250.0)
    columns["context_switches_total"] = total(91_000 * activity + 900)
    columns["interrupts_total"] = total(60_000 * activity + 700)
    columns["run_queue_length"] = np.round(1 + 3 * activity + generator.random(size))

    resident = 0.06 * GIB + 1.05 * GIB * np.clip(np.cumsum(loading * step) / max(example.load_seconds, 0.1), 0, 1)
    for kind, value in {
        "total": 15.6 * GIB,
        "free": 9.9 * GIB - resident,
        "available": 13.8 * GIB - resident,
        "mapped": 0.31 * GIB + 0.002 * GIB * noise,
        "anonymous": 1.1 * GIB + resident,
        "buffers": 0.18 * GIB,
        "cached": 3.3 * GIB + 0.0006 * GIB * seconds,
        "slab": 0.42 * GIB,
        "inactive": 2.1 * GIB,
        "active": 2.2 * GIB + resident,
        "dirty": 0.002 * GIB * noise,
        "writeback": 0.0,
        "swap_total": 0.0,
        "swap_free": 0.0,
    }.items():
        columns[f'memory_bytes{{kind="{kind}"}}'] = np.broadcast_to(value, (size,)).astype(float)
    columns["page_faults_major_total"] = total(0.4 * noise)

    burst = (generator.random(size) < 0.04) * 18e6
    for name, rate in {
        "disk_read_bytes_total": 0.02e6 * noise,
        "disk_write_bytes_total": burst + 0.05e6,
        "disk_reads_total": 2 * noise,
        "disk_writes_total": burst / 64e3 + 1,
        "disk_read_seconds_total": 0.0003 * noise,
        "disk_write_seconds_total": burst / 6e8,
        "disk_busy_seconds_total": burst / 4e8,
        "disk_queue_seconds_total": burst / 3e8,
    }.items():
        columns[f'{name}{{device="vda"}}'] = total(rate)
    for interface, scale in (("lo", 1.0), ("eth0", 0.00002)):
        columns[f'network_receive_bytes_total{{interface="{interface}"}}'] = total(168e6 * activity * scale)
        columns[f'network_transmit_bytes_total{{interface="{interface}"}}'] = total(168e6 * activity * scale)
        columns[f'network_receive_packets_total{{interface="{interface}"}}'] = total(290e3 * activity * scale)
        columns[f'network_transmit_packets_total{{interface="{interface}"}}'] = total(290e3 * activity * scale)
        columns[f'network_receive_drops_total{{interface="{interface}"}}'] = total(0.0)
    columns["tcp_retransmits_total"] = total(0.0)
    for resource, scale in (("cpu", 0.22), ("memory", 0.0), ("io", 0.002)):
        columns[f'pressure_stall_seconds_total{{resource="{resource}",share="some"}}'] = total(scale * activity)
        columns[f'pressure_stall_seconds_total{{resource="{resource}",share="full"}}'] = total(scale * 0.1 * activity)
    columns['process_cpu_seconds_total{process="system",state="user"}'] = total(0.26 * activity)
    columns['process_cpu_seconds_total{process="system",state="system"}'] = total(0.68 * activity)
    columns['process_resident_bytes{process="system"}'] = resident
    columns['process_threads{process="system"}'] = np.full(size, 10.0)
    if example.perf:
        cycles = (user + system + soft) * 2.9e9
        columns['perf_cycles_total{scope="host"}'] = total(cycles)
        columns['perf_instructions_total{scope="host"}'] = total(cycles / (1.62 + 0.05 * noise))
        columns['perf_llc_misses_total{scope="host"}'] = total(cycles * 0.0021)
        columns['perf_dram_fills_total{scope="host"}'] = total(4.2e7 * activity + 1e6)
        columns['perf_running_ratio{scope="host"}'] = np.ones(size)
    for number in range(example.extra_columns):
        columns[f'process_threads{{process="extra-{number}"}}'] = np.full(size, float(number))
    timestamps = START_NS + np.round(seconds * 1e9).astype(np.int64) + generator.integers(0, 90_000, size)
    host = pl.DataFrame({"timestamp_ns": timestamps, **columns})
    return pl.concat([host, _load_rows(example, phases, generator)], how="diagonal_relaxed").sort("timestamp_ns")


def _load_rows(example: Example, phases: list[dict[str, Any]], generator: np.random.Generator) -> pl.DataFrame:
    rows = []
    operations = 0.0
    for phase in phases:
        base = {"load": 71_000.0, "warm-up": 96_000.0, "measure": 101_000.0}[phase["kind"]]
        step = round(example.load_interval_seconds * 1e9)
        for at in range(phase["start_ns"] + step, phase["end_ns"] + 1, step):
            throughput = base * (1 + 0.012 * generator.standard_normal() + 0.02 * math.sin((at - START_NS) / 2.1e9))
            operations += throughput * example.load_interval_seconds
            slow = 1 + 4 * (generator.random() < 0.05)
            spread = abs(generator.standard_normal())
            p50 = 50 / throughput
            rows.append(
                {
                    "timestamp_ns": at,
                    "load_operations_total": operations,
                    "load_errors_total": 0.0,
                    "load_hits_total": operations * 0.95,
                    "load_misses_total": 0.0,
                    "load_throughput_operations_per_second": throughput,
                    'load_response_seconds{quantile="0.5"}': p50,
                    'load_response_seconds{quantile="0.9"}': p50 * 1.45,
                    'load_response_seconds{quantile="0.99"}': p50 * (2.1 + 0.2 * spread),
                    'load_response_seconds{quantile="0.999"}': p50 * (5.5 + spread) * slow,
                    'load_response_seconds{quantile="1"}': p50 * (14 + 4 * spread) * slow,
                    'load_service_seconds{quantile="0.5"}': p50 * 0.98,
                    'load_service_seconds{quantile="0.99"}': p50 * 1.9,
                    'load_lag_seconds{quantile="0.99"}': 4e-6,
                    "load_idle_ratio": 0.22,
                }
            )
    return pl.DataFrame(rows)


def _results(example: Example, phases: list[dict[str, Any]]) -> pl.DataFrame:
    generator = np.random.default_rng(example.seed + 1)
    rows = []
    for phase in phases:
        seconds = (phase["end_ns"] - phase["start_ns"]) / 1e9
        throughput = {"load": 71_000.0, "warm-up": 96_000.0, "measure": 101_000.0}[phase["kind"]]
        throughput *= 1 + 0.008 * generator.standard_normal()
        operations = round(throughput * seconds)
        rows.append(
            {
                "phase": phase["name"],
                "kind": phase["kind"],
                "repetition": phase["repetition"],
                "start_ns": phase["start_ns"],
                "end_ns": phase["end_ns"],
                "duration_seconds": seconds,
                "operations": operations,
                "errors": 0,
                "hits": round(operations * 0.95),
                "misses": 0,
                "wrong_values": 0,
                "throughput_operations_per_second": throughput,
                "offered_operations_per_second": None,
                "bytes_sent": operations * 98,
                "bytes_received": operations * 1012,
                "response_p50_seconds": 4.9e-4,
                "response_p90_seconds": 7.1e-4,
                "response_p99_seconds": 1.08e-3 * (1 + 0.03 * generator.standard_normal()),
                "response_p999_seconds": 2.9e-3 * (1 + 0.08 * generator.standard_normal()),
                "response_max_seconds": 9.8e-3 * (1 + 0.3 * generator.random()),
                "response_mean_seconds": 5.2e-4,
                "service_p50_seconds": 4.8e-4,
                "service_p99_seconds": 9.9e-4,
                "lag_p99_seconds": 5e-6,
                "generator_idle_ratio": 0.22,
                "generator_cpu_seconds": seconds * 0.78,
                "system_cpu_seconds": seconds * 0.94,
                "system_resident_bytes": 1.11 * GIB,
                "discarded": None,
            }
        )
    return results_frame(rows)


def _latency(example: Example, phases: list[dict[str, Any]]) -> pl.DataFrame:
    generator = np.random.default_rng(example.seed + 2)
    rows = []
    for phase in phases:
        operations = {"insert": 5.2e-4} if phase["kind"] == "load" else {"read": 4.8e-4, "update": 5.3e-4}
        for operation, median in operations.items():
            count = 2_000 if operation == "update" else 20_000
            for kind, shift in (("response", 1.0), ("service", 0.96), ("lag", 0.008)):
                index, counts = _histogram(_latencies(generator, median * shift, count))
                rows.append(
                    {
                        "phase": phase["name"],
                        "repetition": phase["repetition"],
                        "operation": operation,
                        "kind": kind,
                        "grouping_power": GROUPING_POWER,
                        "max_value_power": MAX_VALUE_POWER,
                        "index": index,
                        "count": counts,
                    }
                )
    return latency_frame(rows)


def manifest(example: Example) -> Manifest:
    """The manifest of the made-up run."""
    probes = [
        {"name": "cpu", "status": "ok", "columns": ["context_switches_total"]},
        {"name": "memory", "status": "ok", "columns": ['memory_bytes{kind="total"}']},
        {"name": "disk", "status": "ok"},
        {"name": "network", "status": "ok"},
        {"name": "pressure", "status": "ok"},
        {"name": "process", "status": "ok"},
        {
            "name": "perf",
            "status": "ok" if example.perf else "missing",
            "reason": "" if example.perf else "perf_event_open: Operation not permitted (perf_event_paranoid is 4)",
            "needs": "kernel.perf_event_paranoid at most 0, or CAP_PERFMON",
            "columns": [
                f'{name}{{scope="host"}}'
                for name in (
                    "perf_cycles_total",
                    "perf_instructions_total",
                    "perf_llc_misses_total",
                    "perf_dram_fills_total",
                    "perf_running_ratio",
                )
            ],
        },
    ]
    return Manifest.model_validate(
        {
            "rackscope_version": "0.1.0",
            "status": example.status,
            "command_line": ["rackscope", "run", example.system_name, "ycsb-b", "--cores", "0", "--client-cores", "1"],
            "started_at": "2025-11-21T18:22:31+00:00",
            "finished_at": None if example.status == "running" else "2025-11-21T18:23:11+00:00",
            "system": {
                "name": example.system_name,
                "version": "1.6.18",
                "program": "/usr/bin/memcached",
                "origin": "Debian package memcached 1.6.18-1",
                "command": ["memcached", "-t", "4", "-m", "2048", "-c", "1024"],
                "knobs": {
                    "threads": {"value": "4", "default": "4", "source": "default"},
                    "memory": {"value": "2GiB", "default": "64MiB", "source": "set"},
                    "connections": {"value": "1024", "default": "1024", "source": "default"},
                    "hash_power": {"value": "20", "default": "16", "source": "tuned"},
                },
                "cores": [0],
                "endpoint": "127.0.0.1:35211",
                "pid": 4242,
                "ready_seconds": 0.05,
                "statistics": {"curr_items": "1000000", "evictions": "0"},
            },
            "workload": {
                "name": "ycsb-b",
                "description": "95 % reads, 5 % updates, zipfian",
                "source": "Cooper et al., SoCC 2010",
                "parameters": {"keys": "1000000", "value_size": "1000", "theta": "0.99"},
                "notes": [],
                "keys": {"count": 1000000, "size": {"kind": "fixed", "bytes": 24}},
                "values": {"kind": "fixed", "bytes": 1000},
            },
            "client": {
                "protocol": "memcached_text",
                "connections": 50,
                "cores": [1],
                "loop": "closed",
                "seed": 42,
            },
            "host": example.host,
            "ceilings": {
                "measured_at": "2025-11-21T17:00:00+00:00",
                "values": {"dram_read_bytes_per_second": 21.4e9, "instructions_per_second": 2.8e10},
            }
            if example.ceilings
            else {},
            "phases": example.phases,
            "repetition": {
                "duration_seconds": example.repetition_seconds,
                "minimum": 3,
                "maximum": 10,
                "budget_seconds": 60,
                "achieved": example.repetitions,
                "stopping_reason": "the interval is tight enough",
                "relative_half_width": 0.0091,
            },
            "probes": probes,
            "overhead": {
                "sampler_interval_seconds": example.host_interval_seconds,
                "sampler_ticks": 372,
                "sampler_missed_ticks": 0,
                "sampler_cpu_seconds": 0.19,
                "sampler_wall_seconds": 37.2,
                "sampler_worst_lateness_seconds": 0.0009,
                "generator_cpu_seconds": 28.1,
                "rackscope_cpu_seconds": 1.9,
            },
            "warnings": example.warnings,
        }
    )


def write_example(
    path: Path,
    example: Example | None = None,
    *,
    edit_manifest: Callable[[Manifest], None] | None = None,
    edit_samples: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
    edit_results: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
) -> RunDirectory:
    """Write the made-up run below ``path``, changed as asked, and open it."""
    example = example or Example()
    writer = RunWriter.create(path)
    described = manifest(example)
    if edit_manifest:
        edit_manifest(described)
    writer.write_manifest(described)
    phases = example.phases
    samples, results = _samples(example, phases), _results(example, phases)
    writer.append("samples", edit_samples(samples) if edit_samples else samples)
    writer.append("latency", _latency(example, phases))
    writer.append("results", edit_results(results) if edit_results else results)
    if example.status == "complete":
        writer.join_parts()
    (writer.logs / "system.log").write_text(example.log_text)
    return RunDirectory.open(path)
