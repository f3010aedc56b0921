"""Made-up run and study directories of one host at several cores, clocks and loads, and servers to project to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from rackscope.runs.directory import RunWriter
from rackscope.runs.manifest import Manifest
from rackscope.runs.study import Member, StudyRecord, create_study_folder, write_study
from rackscope.runs.tables import results_frame
from report_example import HOST, Example, manifest

START_NS = 1_763_749_351_000_000_000
CEILINGS = {
    "instructions_per_second": 2.8e10,
    "dram_read_bytes_per_second": 21.4e9,
    "dram_latency_seconds": 95e-9,
    'disk_random_read_operations_per_second{device="vda"}': 60_000.0,
}
IDENTITY = str(HOST["identity"])
PROCESSOR = str(HOST["cpu_model"])


def write_run(
    path: Path,
    throughputs: Sequence[float],
    *,
    cores: int = 1,
    rate: float | None = None,
    mean_seconds: float | None = None,
    p99_seconds: float = 1e-3,
    hertz: float | None = None,
    instructions: float | None = None,
    watts: float | None = None,
    status: str = "complete",
    squeezed: bool = False,
    ceilings: bool = True,
    **changes: Any,
) -> Path:
    """One repetition of a second for each of ``throughputs``; ``mean_seconds`` follows Little's law by default."""
    writer = RunWriter.create(path)
    phases, rows, samples = [], [], []
    counted = joules = 0.0
    for number, throughput in enumerate(throughputs, 1):
        start = START_NS + number * 2_000_000_000
        end = start + 1_000_000_000
        phases.append({"name": "measure", "kind": "measure", "repetition": number, "start_ns": start, "end_ns": end})
        rows.append(
            {
                "phase": "measure",
                "kind": "measure",
                "repetition": number,
                "start_ns": start,
                "end_ns": end,
                "duration_seconds": 1.0,
                "operations": round(throughput),
                "throughput_operations_per_second": throughput,
                "offered_operations_per_second": rate,
                "response_mean_seconds": mean_seconds or 50 / throughput,
                "response_p99_seconds": p99_seconds,
                "generator_idle_ratio": 0.3,
                "system_cpu_seconds": 0.95 * cores,
                "system_resident_bytes": 1.1 * 1024**3,
            }
        )
        for at in range(6):
            sample: dict[str, float] = {"timestamp_ns": start + at * 200_000_000}
            if hertz is not None:
                sample |= {
                    f'cpu_frequency_hertz{{core="{core}"}}': hertz * (1 + 0.002 * math.sin(at)) for core in range(cores)
                }
            if instructions is not None:
                sample['perf_instructions_total{scope="system"}'] = counted + at * 0.2 * throughput * instructions
            if watts is not None:
                sample['energy_joules_total{domain="package-0",meter="rapl_perf"}'] = joules + at * 0.2 * watts
            samples.append(sample)
        counted += throughput * (instructions or 0) * 2
        joules += (watts or 0) * 2
    if squeezed:
        phases.append({"name": "measure under cpu_share@0.8", "kind": "squeezed", "start_ns": 1, "end_ns": 2})
    content = manifest(Example()).model_dump()
    content["phases"] = phases
    content["status"] = status
    content["system"]["cores"] = list(range(cores))
    content["system"]["knobs"] = {"threads": {"value": str(cores), "default": str(cores), "source": "default"}}
    content["client"] |= {"rate_per_second": rate, "loop": "closed" if rate is None else "open"}
    content["ceilings"]["values"] = CEILINGS if ceilings else {}
    content["probes"] = [
        {"name": "perf", "status": "ok", "columns": ['perf_instructions_total{scope="system"}']},
    ]
    for place, value in changes.items():
        part, _, key = place.partition("__")
        content[part] = {**content[part], key: value}
    writer.write_manifest(Manifest.model_validate(content))
    writer.append("results", results_frame(rows))
    writer.append("samples", pl.DataFrame(samples))
    writer.join_parts()
    return path


def noisy(center: float, count: int = 4, seed: int = 1, deviation: float = 0.01) -> list[float]:
    """Repetitions that scatter as those of a quiet host."""
    generator = np.random.default_rng(seed)
    return [float(one) for one in center * np.exp(deviation * generator.standard_normal(count))]


def write_pressure(path: Path, elasticity: float = 0.97, half: float = 0.04, **result: Any) -> Path:
    """A pressure study that squeezed CPU time, and the network, which does not matter."""
    create_study_folder(path)
    record = StudyRecord(
        rackscope_version="0.1.0",
        kind="pressure",
        title="pressure of memcached under ycsb-b",
        status="complete",
        started_at="2026-11-21T18:22:31+00:00",
        host=dict(HOST),
        members=[Member(folder="squeezed", label="free and squeezed windows")],
    )
    record.result = {
        "system": "memcached",
        "workload": "ycsb-b",
        "limits": {},
        "phases": [
            {
                "phase": "measure",
                "throughput_operations_per_second": {"estimate": 100_000, "low": 99_000, "high": 101_000},
                "resources": [
                    squeeze("cpu_share", "cpu", elasticity, half),
                    squeeze("network_in", "network", 0.0, 0.03),
                ],
            }
        ],
        **result,
    }
    write_study(path, record)
    write_run(path / "runs" / "squeezed", noisy(100_000, 6, seed=2), squeezed=True)
    return path


def squeeze(name: str, resource: str, elasticity: float, half: float) -> dict[str, Any]:
    """What a pressure study found of one squeeze at two levels."""
    levels = [
        {
            "asked_fraction": left,
            "left_fraction": left,
            "throughput_ratio": {
                "estimate": left**elasticity,
                "low": left ** (elasticity + half),
                "high": left ** (elasticity - half),
            },
        }
        for left in (0.8, 0.4)
    ]
    return {"squeeze": name, "resource": resource, "status": "limits", "levels": levels}


HEAD = """
format_version = 1
currency = "USD"
[site]
electricity_price_per_kilowatt_hour = { low = 0.07, high = 0.20 }
power_usage_effectiveness = 1.5
discount_rate_per_year = 0.08
service_years = 4
network_price_per_server = 150
upkeep_share_per_year = 0.05
"""


def server(name: str = "other", ceilings: str = "instructions_per_second = 3.5e10", **keys: Any) -> str:
    """A [[server]] like the host that runs were made on, but for ``keys``; ``None`` leaves one out."""
    values: dict[str, Any] = {
        "name": name,
        "processor": "Another CPU",
        "source": "an offer",
        "cores": 4,
        "threads": 4,
        "memory_bytes": "16GiB",
        "price": 2000,
        "idle_watts": 50,
        "full_watts": 150,
        **keys,
    }
    lines = [
        f"{key} = {value if isinstance(value, int | float) else chr(34) + value + chr(34)}"
        for key, value in values.items()
        if value is not None
    ]
    return "\n".join(["[[server]]", *lines, *(["[server.ceilings]", ceilings] if ceilings else [])]) + "\n"


def write_servers(path: Path, *servers: str, head: str = HEAD) -> Path:
    """A file of servers."""
    path.write_text(head + "\n".join(servers), encoding="utf-8")
    return path
