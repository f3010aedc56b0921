"""Every metric that samples.parquet may hold, as data, and how a column spells a metric with its labels.

A column is the metric's name and, in braces, its labels sorted by name with their values quoted, as in the Prometheus
exposition format: ``cpu_core_seconds_total{core="0",state="user"}``.

OpenTelemetry names are those of the semantic conventions (system, process, container and hardware metrics, version
1.38); where they say nothing, there is none, and an exporter keeps our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Unit = Literal["seconds", "bytes", "hertz", "ratio", "operations/s", "watts", "joules", "1"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. ``unit`` is its base unit; a count has unit ``1``. Counters end in ``_total`` and only grow."""

    name: str
    unit: Unit
    labels: tuple[str, ...]
    help: str
    opentelemetry: str | None = None


_TABLE = (
    # CPU: /proc/stat and /proc/loadavg
    Metric("cpu_seconds_total", "seconds", ("state",), "CPU time of all cores in a state", "system.cpu.time"),
    Metric(
        "cpu_core_seconds_total", "seconds", ("core", "state"), "CPU time of one core in a state", "system.cpu.time"
    ),
    Metric("context_switches_total", "1", (), "Context switches of all cores"),
    Metric("interrupts_total", "1", (), "Interrupts served by all cores"),
    Metric("processes_created_total", "1", (), "Processes and threads created", "system.process.created"),
    Metric("processes_blocked", "1", (), "Tasks that wait for a disk request", "system.process.count"),
    Metric("run_queue_length", "1", (), "Tasks that run or could run at this moment, without the sampler"),
    Metric("cpu_frequency_hertz", "hertz", ("core",), "Clock frequency of a core", "system.cpu.frequency"),
    # Memory: /proc/meminfo and /proc/vmstat
    Metric("memory_bytes", "bytes", ("kind",), "Memory by kind", "system.memory.usage"),
    Metric("swap_in_bytes_total", "bytes", (), "Memory read back from swap"),
    Metric("swap_out_bytes_total", "bytes", (), "Memory written to swap"),
    Metric("page_faults_major_total", "1", (), "Page faults that had to read a disk", "system.paging.faults"),
    Metric("refaults_total", "1", ("kind",), "Pages that were needed again soon after they were reclaimed"),
    Metric("out_of_memory_kills_total", "1", (), "Processes killed because memory ran out"),
    # Disks: /proc/diskstats
    Metric("disk_read_bytes_total", "bytes", ("device",), "Bytes read from a disk", "system.disk.io"),
    Metric("disk_write_bytes_total", "bytes", ("device",), "Bytes written to a disk", "system.disk.io"),
    Metric("disk_reads_total", "1", ("device",), "Read requests that a disk completed", "system.disk.operations"),
    Metric("disk_writes_total", "1", ("device",), "Write requests that a disk completed", "system.disk.operations"),
    Metric(
        "disk_read_seconds_total", "seconds", ("device",), "Time of all reads, summed", "system.disk.operation_time"
    ),
    Metric(
        "disk_write_seconds_total", "seconds", ("device",), "Time of all writes, summed", "system.disk.operation_time"
    ),
    Metric("disk_busy_seconds_total", "seconds", ("device",), "Time with a request in flight", "system.disk.io_time"),
    Metric(
        "disk_queue_seconds_total",
        "seconds",
        ("device",),
        "Time of requests in flight, summed: its rate is queue depth",
    ),
    Metric("disk_in_flight", "1", ("device",), "Requests in flight at this moment"),
    # Network: /proc/net/dev, snmp and netstat
    Metric("network_receive_bytes_total", "bytes", ("interface",), "Bytes received", "system.network.io"),
    Metric("network_transmit_bytes_total", "bytes", ("interface",), "Bytes sent", "system.network.io"),
    Metric("network_receive_packets_total", "1", ("interface",), "Packets received", "system.network.packet.count"),
    Metric("network_transmit_packets_total", "1", ("interface",), "Packets sent", "system.network.packet.count"),
    Metric(
        "network_receive_drops_total", "1", ("interface",), "Received packets dropped", "system.network.packet.dropped"
    ),
    Metric(
        "network_transmit_drops_total", "1", ("interface",), "Packets to send dropped", "system.network.packet.dropped"
    ),
    Metric("network_receive_errors_total", "1", ("interface",), "Errors of receiving", "system.network.errors"),
    Metric("network_transmit_errors_total", "1", ("interface",), "Errors of sending", "system.network.errors"),
    Metric("tcp_segments_sent_total", "1", (), "TCP segments sent, without those sent again"),
    Metric("tcp_retransmits_total", "1", (), "TCP segments sent again"),
    Metric("tcp_listen_overflows_total", "1", (), "TCP connections refused because a listen queue was full"),
    Metric("udp_receive_buffer_errors_total", "1", (), "UDP (IPv4) datagrams dropped because a buffer was full"),
    # Pressure: /proc/pressure
    Metric(
        "pressure_stall_seconds_total",
        "seconds",
        ("resource", "share"),
        "Time in which some or all (full) tasks waited for a resource",
    ),
    # Processes: /proc/PID of a labelled process and all that descend from it
    Metric(
        "process_cpu_seconds_total", "seconds", ("process", "state"), "CPU time of a process tree", "process.cpu.time"
    ),
    Metric(
        "process_resident_bytes",
        "bytes",
        ("process",),
        "Resident memory of a process tree; pages shared by its processes count in each",
        "process.memory.usage",
    ),
    Metric("process_count", "1", ("process",), "Processes in a process tree"),
    Metric("process_threads", "1", ("process",), "Threads of a process tree", "process.thread.count"),
    Metric(
        "process_context_switches_total",
        "1",
        ("process", "kind"),
        "Context switches of a process tree: voluntary to wait, involuntary when preempted",
        "process.context_switches",
    ),
    Metric(
        "process_read_bytes_total", "bytes", ("process",), "Bytes a process tree had read from disks", "process.disk.io"
    ),
    Metric(
        "process_write_bytes_total",
        "bytes",
        ("process",),
        "Bytes a process tree wrote towards disks",
        "process.disk.io",
    ),
    Metric(
        "process_page_faults_major_total",
        "1",
        ("process",),
        "Page faults of a process tree that had to read a disk",
        "process.paging.faults",
    ),
    Metric(
        "process_run_delay_seconds_total",
        "seconds",
        ("process",),
        "Time in which threads of a process tree could run but waited for a core",
    ),
    # Control groups, v1 and v2
    Metric("cgroup_cpu_seconds_total", "seconds", ("cgroup", "state"), "CPU time of a group", "container.cpu.time"),
    Metric("cgroup_throttled_seconds_total", "seconds", ("cgroup",), "Time in which a CPU quota stopped the group"),
    Metric("cgroup_throttled_periods_total", "1", ("cgroup",), "Quota periods in which the group was stopped"),
    Metric("cgroup_memory_bytes", "bytes", ("cgroup", "kind"), "Memory of a group by kind", "container.memory.usage"),
    Metric("cgroup_memory_limit_bytes", "bytes", ("cgroup",), "Memory limit of a group; null where there is none"),
    Metric("cgroup_read_bytes_total", "bytes", ("cgroup",), "Bytes a group read from disks", "container.disk.io"),
    Metric("cgroup_write_bytes_total", "bytes", ("cgroup",), "Bytes a group wrote to disks", "container.disk.io"),
    Metric("cgroup_refaults_total", "1", ("cgroup",), "Pages a group needed again soon after they were reclaimed"),
    # Hardware counters: perf events of the whole host, or of the system under test
    Metric("perf_cycles_total", "1", ("scope",), "Core clock cycles in which a core was not halted"),
    Metric("perf_instructions_total", "1", ("scope",), "Instructions retired"),
    Metric("perf_llc_misses_total", "1", ("scope",), "Cache lines that the last-level cache did not hold"),
    Metric("perf_dram_fills_total", "1", ("scope",), "Cache lines filled from DRAM"),
    Metric(
        "perf_running_ratio", "ratio", ("scope",), "Fraction of time in which the counters ran: 1 is not multiplexed"
    ),
    # Power meters; a domain is what is measured: package-0, dram-0, core-0, psys, gpu-0, server, outlet-4
    Metric("power_watts", "watts", ("domain", "meter"), "Power of a domain, as a meter reads it", "hw.power"),
    Metric(
        "energy_joules_total",
        "joules",
        ("domain", "meter"),
        "Energy of a domain since a meter was first read",
        "hw.energy",
    ),
    # The load generator; response is from the intended start, service from the moment of sending
    Metric("load_operations_total", "1", (), "Operations completed"),
    Metric("load_errors_total", "1", (), "Operations that failed"),
    Metric("load_hits_total", "1", (), "Reads that found their key"),
    Metric("load_misses_total", "1", (), "Reads that did not find their key"),
    Metric("load_bytes_sent_total", "bytes", (), "Bytes sent to the system"),
    Metric("load_bytes_received_total", "bytes", (), "Bytes received from the system"),
    Metric("load_throughput_operations_per_second", "operations/s", (), "Operations completed a second"),
    Metric("load_response_seconds", "seconds", ("quantile",), "Time from the intended start to the response"),
    Metric("load_service_seconds", "seconds", ("quantile",), "Time from sending to the response"),
    Metric("load_lag_seconds", "seconds", ("quantile",), "Time from the intended start to sending"),
    Metric("load_idle_ratio", "ratio", (), "Fraction of time in which the generator had nothing to do"),
)

#: Every metric by its name.
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _TABLE})

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_LABEL = re.compile(r'([a-z_][a-z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|\}$)')
_ESCAPE = re.compile(r'\\(["\\n])')


def parse_metric(column: str) -> tuple[str, dict[str, str]]:
    """Name and labels of a column. Raises ValueError if it is not spelled as one."""
    name, brace, rest = column.partition("{")
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"'{column}' is not a metric")
    labels: dict[str, str] = {}
    if not brace:
        return name, labels
    position = 0
    while True:
        match = _LABEL.match(rest, position)
        if match is None or match[1] in labels:
            raise ValueError(f"'{column}' is not a metric: its labels cannot be read from '{rest[position:]}' on")
        labels[match[1]] = _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], match[2])
        position = match.end()
        if match[3] == "}":
            return name, labels


def format_metric(name: str, labels: Mapping[str, str] | None = None) -> str:
    """The column of a metric with its labels, which come out sorted by name."""
    if not labels:
        return name
    spelled = ",".join(f'{label}="{_escape(labels[label])}"' for label in sorted(labels))
    return f"{name}{{{spelled}}}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
