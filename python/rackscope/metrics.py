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


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. ``unit`` is its base unit; a count has unit ``1``. Counters end in ``_total`` and only grow."""

    name: str
    unit: str
    labels: tuple[str, ...]
    help: str
    opentelemetry: str | None = None


#: Name, unit, labels, what it is, and the name that OpenTelemetry has for it.
_TABLE = """\
# CPU: /proc/stat and /proc/loadavg
cpu_seconds_total | seconds | state | CPU time of all cores in a state | system.cpu.time
cpu_core_seconds_total | seconds | core state | CPU time of one core in a state | system.cpu.time
context_switches_total | 1 | | Context switches of all cores
interrupts_total | 1 | | Interrupts served by all cores
processes_created_total | 1 | | Processes and threads created | system.process.created
processes_blocked | 1 | | Tasks that wait for a disk request | system.process.count
run_queue_length | 1 | | Tasks that run or could run at this moment, without the sampler
cpu_frequency_hertz | hertz | core | Clock frequency of a core | system.cpu.frequency
# Memory: /proc/meminfo and /proc/vmstat
memory_bytes | bytes | kind | Memory by kind | system.memory.usage
swap_in_bytes_total | bytes | | Memory read back from swap
swap_out_bytes_total | bytes | | Memory written to swap
page_faults_major_total | 1 | | Page faults that had to read a disk | system.paging.faults
refaults_total | 1 | kind | Pages that were needed again soon after they were reclaimed
out_of_memory_kills_total | 1 | | Processes killed because memory ran out
# Disks: /proc/diskstats
disk_read_bytes_total | bytes | device | Bytes read from a disk | system.disk.io
disk_write_bytes_total | bytes | device | Bytes written to a disk | system.disk.io
disk_reads_total | 1 | device | Read requests that a disk completed | system.disk.operations
disk_writes_total | 1 | device | Write requests that a disk completed | system.disk.operations
disk_read_seconds_total | seconds | device | Time of all reads, summed | system.disk.operation_time
disk_write_seconds_total | seconds | device | Time of all writes, summed | system.disk.operation_time
disk_busy_seconds_total | seconds | device | Time with a request in flight | system.disk.io_time
disk_queue_seconds_total | seconds | device | Time of requests in flight, summed: its rate is queue depth
disk_in_flight | 1 | device | Requests in flight at this moment
# Network: /proc/net/dev, snmp and netstat
network_receive_bytes_total | bytes | interface | Bytes received | system.network.io
network_transmit_bytes_total | bytes | interface | Bytes sent | system.network.io
network_receive_packets_total | 1 | interface | Packets received | system.network.packet.count
network_transmit_packets_total | 1 | interface | Packets sent | system.network.packet.count
network_receive_drops_total | 1 | interface | Received packets dropped | system.network.packet.dropped
network_transmit_drops_total | 1 | interface | Packets to send dropped | system.network.packet.dropped
network_receive_errors_total | 1 | interface | Errors of receiving | system.network.errors
network_transmit_errors_total | 1 | interface | Errors of sending | system.network.errors
tcp_segments_sent_total | 1 | | TCP segments sent, without those sent again
tcp_retransmits_total | 1 | | TCP segments sent again
tcp_listen_overflows_total | 1 | | TCP connections refused because a listen queue was full
udp_receive_buffer_errors_total | 1 | | UDP (IPv4) datagrams dropped because a buffer was full
# Pressure: /proc/pressure
pressure_stall_seconds_total | seconds | resource share | Time in which some or all (full) tasks waited for a resource
# Processes: /proc/PID of a labelled process and all that descend from it
process_cpu_seconds_total | seconds | process state | CPU time of a process tree | process.cpu.time
process_resident_bytes | bytes | process | Resident memory, shared pages in each process | process.memory.usage
process_count | 1 | process | Processes in a process tree
process_threads | 1 | process | Threads of a process tree | process.thread.count
process_context_switches_total | 1 | process kind | Context switches, voluntary or preempted | process.context_switches
process_read_bytes_total | bytes | process | Bytes a process tree had read from disks | process.disk.io
process_write_bytes_total | bytes | process | Bytes a process tree wrote towards disks | process.disk.io
process_page_faults_major_total | 1 | process | Page faults of a process tree that read a disk | process.paging.faults
process_run_delay_seconds_total | seconds | process | Time in which threads of a process tree waited for a core
# Control groups, v1 and v2
cgroup_cpu_seconds_total | seconds | cgroup state | CPU time of a group | container.cpu.time
cgroup_throttled_seconds_total | seconds | cgroup | Time in which a CPU quota stopped the group
cgroup_throttled_periods_total | 1 | cgroup | Quota periods in which the group was stopped
cgroup_memory_bytes | bytes | cgroup kind | Memory of a group by kind | container.memory.usage
cgroup_memory_limit_bytes | bytes | cgroup | Memory limit of a group; null where there is none
cgroup_read_bytes_total | bytes | cgroup | Bytes a group read from disks | container.disk.io
cgroup_write_bytes_total | bytes | cgroup | Bytes a group wrote to disks | container.disk.io
cgroup_refaults_total | 1 | cgroup | Pages a group needed again soon after they were reclaimed
# Hardware counters: perf events of the whole host, or of the system under test
perf_cycles_total | 1 | scope | Core clock cycles in which a core was not halted
perf_instructions_total | 1 | scope | Instructions retired
perf_llc_misses_total | 1 | scope | Cache lines that the last-level cache did not hold
perf_dram_fills_total | 1 | scope | Cache lines filled from DRAM
perf_running_ratio | ratio | scope | Fraction of time in which the counters ran: 1 is not multiplexed
# Power meters; a domain is what is measured: package-0, dram-0, core-0, psys, gpu-0, server, outlet-4
power_watts | watts | domain meter | Power of a domain, as a meter reads it | hw.power
energy_joules_total | joules | domain meter | Energy of a domain since a meter was first read | hw.energy
# The load generator; response is from the intended start, service from the moment of sending
load_operations_total | 1 | | Operations completed
load_errors_total | 1 | | Operations that failed
load_hits_total | 1 | | Reads that found their key
load_misses_total | 1 | | Reads that did not find their key
load_bytes_sent_total | bytes | | Bytes sent to the system
load_bytes_received_total | bytes | | Bytes received from the system
load_throughput_operations_per_second | operations/s | | Operations completed a second
load_response_seconds | seconds | quantile | Time from the intended start to the response
load_service_seconds | seconds | quantile | Time from sending to the response
load_lag_seconds | seconds | quantile | Time from the intended start to sending
load_idle_ratio | ratio | | Fraction of time in which the generator had nothing to do
"""


def _parse(row: str) -> Metric:
    name, unit, labels, help_text, *opentelemetry = (cell.strip() for cell in row.split("|"))
    return Metric(name, unit, tuple(labels.split()), help_text, *opentelemetry)


_METRICS = (_parse(row) for row in _TABLE.splitlines() if not row.startswith("#"))

#: Every metric by its name.
METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _METRICS})

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
