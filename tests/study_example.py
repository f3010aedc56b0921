"""Made-up studies with realistic values (a pressure study, an SLO study, a sweep), for tests of their pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rackscope.runs.study import (
    Axis,
    Chart,
    Column,
    Finding,
    Member,
    Reference,
    Series,
    StudyRecord,
    Table,
    create_study_folder,
    write_study,
)
from report_example import HOST

RESOURCES = ["cpu_share", "cpu_set", "dram_capacity", "dram_bandwidth", "last_level_cache", "disk_bandwidth", "network"]


def record(kind: str, title: str) -> StudyRecord:
    """A complete study without findings."""
    return StudyRecord(
        rackscope_version="0.1.0",
        kind=kind,
        title=title,
        status="complete",
        command_line=["rackscope", "study", kind, "memcached", "ycsb-b"],
        started_at="2026-11-21T18:22:31+00:00",
        finished_at="2026-11-21T18:25:06+00:00",
        host=dict(HOST),
        parameters={"budget": "3m", "connections": "50", "memory": "2GiB"},
        method=[
            "12 blocks, each of one free and seven squeezed windows of 0.8 s in an order drawn anew.",
            "1 of 96 windows was discarded: another process took 0.31 cores while it lasted.",
            "Intervals are Student's t over blocks, at 99 % because blocks were added until verdicts were reached.",
        ],
    )


def pressure_study() -> StudyRecord:
    """Elasticities with intervals, slack, verdicts in two phases."""
    study = record("pressure", "pressure of memcached under ycsb-b")
    study.findings = [
        Finding(
            sentence="memcached under ycsb-b is limited by the CPU: 20 % less of it cost 19 % of the throughput.",
            evidence="elasticity 0.97 (95 % interval 0.91 to 1.02, 12 blocks)",
        ),
        Finding(
            sentence="Half of the memory and nine tenths of the network could be taken away at no cost.",
            evidence="slack: the largest part taken that cost less than 2 % of the throughput",
        ),
        Finding(
            sentence="The last-level cache cannot be squeezed here, so nothing is proven about it.",
            severity="note",
            evidence="no resctrl: the processor's cache allocation is not offered to this guest",
        ),
        Finding(
            sentence="DRAM bandwidth stays open: its interval holds the line above which a resource limits.",
            severity="warning",
            evidence="elasticity 0.21 (0.09 to 0.33); a longer --budget decides it",
        ),
    ]
    reads = [0.97, 0.92, 0.02, 0.21, None, -0.01, 0.04]
    half = [0.05, 0.07, 0.02, 0.12, None, 0.02, 0.03]
    writes = [0.71, 0.66, 0.35, 0.12, None, 0.44, 0.02]
    study.charts = [
        Chart(
            identifier="elasticity",
            title="Elasticity of throughput",
            caption="1: losing a tenth of the resource costs a tenth of the throughput; 0: it costs nothing.",
            x=Axis(label="", scale="category", categories=[name.replace("_", " ") for name in RESOURCES]),
            y=Axis(label="elasticity"),
            series=[
                _bars("read phase", reads, half),
                _bars("write phase", writes, [value and 2 * value for value in half]),
            ],
            references=[Reference(label="limits above 0.25", value=0.25)],
        ),
        Chart(
            identifier="slack",
            title="Slack",
            caption="How much of each resource could be taken away at no cost.",
            x=Axis(label="part of the resource", unit="ratio"),
            y=Axis(label="", scale="category", categories=["CPU", "DRAM capacity", "DRAM bandwidth", "network"]),
            series=[Series(label="slack", kind="bars", x=[0.03, 0.5, 0.22, 0.91], y=[0, 1, 2, 3])],
        ),
        Chart(
            identifier="answer",
            title="How throughput answers",
            caption="Against what was left of the resource.",
            x=Axis(label="left of the resource", unit="ratio"),
            y=Axis(label="throughput, of that when nothing is squeezed", unit="ratio"),
            series=[
                Series(
                    label="CPU", x=[0.4, 0.6, 0.8, 1], y=[0.41, 0.6, 0.81, 1], low=[0.39, 0.58, 0.79, 0.995],
                    high=[0.43, 0.62, 0.83, 1.005],
                ),
                Series(
                    label="network", x=[0.2, 0.5, 0.8, 1], y=[0.99, 0.995, 1.0, 1], low=[0.97, 0.98, 0.99, 0.995],
                    high=[1.01, 1.01, 1.01, 1.005],
                ),
            ],
        ),
    ]  # fmt: skip
    study.tables = [
        Table(
            identifier="verdicts",
            title="Verdicts",
            caption="Elasticity with its 95 % interval at the mildest level; slack where it was found.",
            columns=[
                Column(name="resource"),
                Column(name="verdict"),
                Column(name="elasticity", unit="", help="d ln(throughput) / d ln(resource)"),
                Column(name="low", unit=""),
                Column(name="high", unit=""),
                Column(name="slack", unit="ratio"),
                Column(name="why"),
            ],
            rows=[
                ["CPU", "limits", 0.97, 0.91, 1.02, 0.03, "20 % less of it cost 19 % of the throughput"],
                ["DRAM capacity", "does not limit", 0.02, 0.0, 0.04, 0.5, "50 % less of it cost no throughput"],
                ["DRAM bandwidth", "inconclusive", 0.21, 0.09, 0.33, 0.22, "the interval holds 0.25"],
                ["last-level cache", "not squeezable", None, None, None, None, "no resctrl in this guest"],
                ["network", "does not limit", 0.04, 0.01, 0.07, 0.91, "80 % less of it cost no throughput"],
            ],
        ),
        Table(
            identifier="matrix",
            title="Pressure points",
            columns=[Column(name=name) for name in ("", "CPU", "DRAM capacity", "Network")],
            rows=[
                ["memcached × ycsb-b", "● 0.97\n0.91 to 1.02\nslack 3 %", "· 0.02\n0.00 to 0.04", "◌ 12 %"],
                ["redis × ycsb-a", "◐ 98 %\nstrong queueing", "? \nnot squeezable", "~ 0.21\n0.09 to 0.33"],
            ],
        ),
    ]
    study.result = pressure_result()
    study.members = [Member(folder="free", label="memcached under ycsb-b, squeezed and free by turns")]
    return study


def squeezed(
    squeeze: str,
    resource: str,
    status: str,
    elasticity: tuple[float, float, float] | None = None,
    slack: float | None = None,
) -> dict[str, Any]:
    """One resource of ``pressure_result``."""
    interval = None if elasticity is None else dict(zip(("estimate", "low", "high"), elasticity, strict=True))
    return {
        "squeeze": squeeze,
        "resource": resource,
        "status": status,
        "evidence": "none" if status == "not_squeezable" else "experiment",
        "elasticity": interval,
        "p99_elasticity": None,
        "slack": slack,
        "sentence": f"what {squeeze} showed",
    }


def pressure_result() -> dict[str, Any]:
    """What a pressure study leaves for programs."""
    throughput = {"estimate": 101_000.0, "low": 99_800.0, "high": 102_200.0}
    reads = [
        squeezed("cpu_share", "cpu", "limits", (0.97, 0.91, 1.02), 0.03),
        squeezed("cpu_set", "cpu", "inconclusive", (0.3, 0.1, 0.5)),
        squeezed("dram_capacity", "dram_capacity", "does_not_limit", (0.02, 0.0, 0.04), 0.5),
        squeezed("dram_bandwidth", "dram_bandwidth", "inconclusive", (0.21, 0.09, 0.33), 0.22),
        squeezed("last_level_cache", "last_level_cache", "not_squeezable"),
        {
            **squeezed("disk_bandwidth", "disk", "not_squeezable"),
            "evidence": "intensity",
            "weaker_status": "does_not_limit",
        },
        squeezed("network_bandwidth", "network", "does_not_limit", (0.04, 0.01, 0.07), 0.91),
    ]
    phase = {"phase": "measure", "throughput_operations_per_second": throughput, "resources": reads}
    return {
        "system": "memcached",
        "workload": "ycsb-b",
        "phases": [{**phase, "limits": ["cpu"], "none_of_these": False}],
    }


def slo_study() -> StudyRecord:
    """A throughput-latency curve with its bound and its knee."""
    study = record("slo", "highest rate of memcached under ycsb-b with p99 < 1 ms")
    study.findings = [
        Finding(
            sentence="memcached serves 84,300 operations a second with p99 below 1 ms.",
            evidence="confirmed in 5 of 5 repetitions; the next rate up, 86,000/s, failed in 3 of 5",
        ),
        Finding(sentence="The knee of the curve is at 71,000/s: beyond it latency grows faster than throughput."),
    ]
    rates = [10e3, 20e3, 30e3, 40e3, 50e3, 60e3, 70e3, 76e3, 80e3, 84e3, 88e3, 92e3, 96e3]
    p99 = [9e-5 / (1 - rate / 100e3) ** 1.35 for rate in rates]
    p50 = [5e-5 / (1 - rate / 104e3) ** 0.9 for rate in rates]
    study.charts = [
        Chart(
            identifier="curve",
            title="Throughput and latency",
            caption="Open loop; each point is the median of three repetitions, with its 95 % interval.",
            x=Axis(label="throughput", unit="operations/s"),
            y=Axis(label="response time", unit="seconds", scale="logarithmic"),
            series=[
                Series(label="p99", x=rates, y=p99, low=[y * 0.86 for y in p99], high=[y * 1.19 for y in p99]),
                Series(label="p50", x=rates, y=p50, low=[y * 0.95 for y in p50], high=[y * 1.04 for y in p50]),
            ],
            references=[
                Reference(label="bound: p99 < 1 ms", value=1e-3),
                Reference(label="knee", value=71e3, axis="x"),
                Reference(label="highest confirmed rate", value=84.3e3, axis="x"),
            ],
        )
    ]
    study.tables = [
        Table(
            identifier="rates",
            title="Rates that were tried",
            columns=[
                Column(name="rate", unit="operations/s"),
                Column(name="p99", unit="seconds"),
                Column(name="held", unit="text"),
                Column(name="sound", unit="ratio", help="Little's law: concurrency over rate times time"),
            ],
            rows=[[rate, y, y < 1e-3, 0.97] for rate, y in zip(rates, p99, strict=True)],
        )
    ]
    study.members = [
        Member(folder=f"{at:03d}", label=f"{rate:,.0f} operations a second") for at, rate in enumerate(rates)
    ]
    study.members[3].discarded = "the generator was late by 1.2 ms at its 99th percentile"
    return study


def sweep_study() -> StudyRecord:
    """Lines over value size by threads, and the same as bars of sizes."""
    study = record("sweep", "sweep of memcached over threads and value size")
    study.findings = [Finding(sentence="Four threads are worth 3.1 times one at 64 B and 1.2 times one at 1 MiB.")]
    sizes = [64.0, 256.0, 1024.0, 4096.0, 25600.0, 102400.0, 1048576.0]

    def throughput(threads: int, size: float) -> float:
        return 1 / (1 / (92e3 * threads**0.83) + size / (1.9e9 * threads**0.15))

    def line(threads: int) -> Series:
        y = [throughput(threads, size) for size in sizes]
        return Series(
            label=f"{threads} thread{'s' if threads > 1 else ''}",
            x=sizes,
            y=[None if size == 25600 and threads == 2 else value for size, value in zip(sizes, y, strict=True)],
            low=[value * 0.94 for value in y],
            high=[value * 1.06 for value in y],
        )

    study.charts = [
        Chart(
            identifier="throughput",
            title="Throughput by value size",
            x=Axis(label="value size", unit="bytes", scale="logarithmic"),
            y=Axis(label="throughput", unit="operations/s", scale="logarithmic"),
            series=[line(threads) for threads in (1, 2, 4, 8)],
        ),
        Chart(
            identifier="bandwidth",
            title="Bytes moved",
            x=Axis(label="value size", scale="category", categories=["64 B", "1 KiB", "25 KiB", "1 MiB"]),
            y=Axis(label="bytes a second", unit="bytes/s"),
            series=[
                Series(
                    label="1 thread" if threads == 1 else f"{threads} threads",
                    kind="points",
                    x=[0, 1, 2, 3],
                    y=[throughput(threads, size) * size for size in (64, 1024, 25600, 1048576)],
                    low=[throughput(threads, size) * size * 0.9 for size in (64, 1024, 25600, 1048576)],
                    high=[throughput(threads, size) * size * 1.1 for size in (64, 1024, 25600, 1048576)],
                )
                for threads in (1, 2, 4)
            ],
        ),
        Chart(
            identifier="threads",
            title="Threads at 1 KiB",
            x=Axis(label="threads", unit="count"),
            y=Axis(label="throughput", unit="operations/s"),
            series=[Series(label="throughput", x=[1, 2, 4, 8], y=[throughput(n, 1024) for n in (1, 2, 4, 8)])],
            references=[Reference(label="client's ceiling", value=5.2e5)],
        ),
        Chart(
            identifier="cost",
            title="CPU for a million operations",
            x=Axis(label="", scale="category", categories=["default configuration", "tuned configuration"]),
            y=Axis(label="CPU time", unit="seconds"),
            series=[Series(label="CPU", kind="bars", x=[0, 1], y=[9.8, 7.4], low=[9.6, 7.3], high=[10.0, 7.5])],
        ),
    ]
    return study


def write_example_study(path: Path, study: StudyRecord | None = None) -> Path:
    """A study directory with ``study.json`` and, where the study has members, their folders."""
    create_study_folder(path)
    study = study or pressure_study()
    write_study(path, study)
    return path


def _bars(label: str, values: list[float | None], half: list[float | None]) -> Series:
    def ends(sign: int) -> list[float | None]:
        pairs = zip(values, half, strict=True)
        return [None if value is None or width is None else value + sign * width for value, width in pairs]

    places = [float(at) for at in range(len(values))]
    return Series(label=label, kind="bars", x=places, y=values, low=ends(-1), high=ends(1))
