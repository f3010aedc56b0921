"""What can be derived from the samples, as data: one definition serves plots (row by row) and verdicts (by window).

A quantity is a *rate* (growth of counters a second), a *ratio* (growth of counters by growth of other counters), a
*level* (gauges as they were read) or a *share* (gauges by other gauges). ``by`` names the labels that make one series
each; of a ratio, the denominator is grouped by ``denominator_by`` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

QuantityKind = Literal["rate", "ratio", "level", "share"]
Unit = Literal[
    "ratio",
    "seconds",
    "bytes",
    "bytes/s",
    "operations/s",
    "1/s",
    "cores",
    "tasks",
    "hertz",
    "cycles",
    "misses",
    "watts",
    "1",
]
Panel = Literal["cpu", "memory", "disk", "network", "pressure", "process", "cgroup", "perf", "power", "load"]

#: CPU time in which work was done; the rest is idle, iowait (idle with a disk request open) and steal.
BUSY = ("user", "nice", "system", "irq", "softirq")
KERNEL = ("system", "irq", "softirq")
#: All time that the host's own cores had: without what the hypervisor gave to others.
USABLE = (*BUSY, "idle", "iowait")
#: Bytes that one fill from DRAM moves: a cache line of every x86-64 and nearly every aarch64 processor.
CACHE_LINE_BYTES = 64


@dataclass(frozen=True)
class Term:
    """Columns of one metric to add up. Every listed label value must be there, or the sum is not known."""

    metric: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sign: float = 1.0


@dataclass(frozen=True)
class Quantity:
    """One derived quantity; ``labels`` are fixed labels of its series' names."""

    name: str
    unit: Unit
    panel: Panel
    help: str
    kind: QuantityKind
    numerator: tuple[Term, ...]
    denominator: tuple[Term, ...] = ()
    by: tuple[str, ...] = ()
    denominator_by: tuple[str, ...] | None = None
    factor: float = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)


def _rate(
    name: str, unit: Unit, panel: Panel, metric: str, help_: str, by: tuple[str, ...] = (), factor: float = 1.0
) -> Quantity:
    return Quantity(name, unit, panel, help_, "rate", (Term(metric),), by=by, factor=factor)


def _level(name: str, unit: Unit, panel: Panel, metric: str, help_: str, by: tuple[str, ...] = ()) -> Quantity:
    return Quantity(name, unit, panel, help_, "level", (Term(metric),), by=by)


def _memory(part: str, kinds: tuple[str, ...], help_: str) -> Quantity:
    terms = (Term("memory_bytes", {"kind": kinds}),)
    return Quantity("memory_part_bytes", "bytes", "memory", help_, "level", terms, labels={"part": part})


def _states(*states: str) -> Mapping[str, tuple[str, ...]]:
    return {"state": states}


_CPU = (
    Quantity(
        "cpu_ratio", "ratio", "cpu", "Fraction of all cores' time in each state", "ratio",
        (Term("cpu_seconds_total"),), (Term("cpu_seconds_total"),), by=("state",), denominator_by=(),
    ),
    Quantity(
        "cpu_busy_ratio", "ratio", "cpu", "Fraction of the time of all cores, without steal, that they worked", "ratio",
        (Term("cpu_seconds_total", _states(*BUSY)),), (Term("cpu_seconds_total", _states(*USABLE)),),
    ),
    Quantity(
        "cpu_kernel_share_ratio", "ratio", "cpu", "Fraction of the busy time of all cores spent in the kernel", "ratio",
        (Term("cpu_seconds_total", _states(*KERNEL)),), (Term("cpu_seconds_total", _states(*BUSY)),),
    ),
    Quantity(
        "cpu_busy_cores", "cores", "cpu", "CPU time used, in cores, on the whole host", "rate",
        (Term("cpu_seconds_total", _states(*BUSY)),),
    ),
    Quantity(
        "cpu_process_context_cores", "cores", "cpu", "CPU time used, in cores, without interrupts", "rate",
        (Term("cpu_seconds_total", _states("user", "nice", "system")),),
    ),
    Quantity(
        "cpu_core_ratio", "ratio", "cpu", "Fraction of a core's time in each state", "ratio",
        (Term("cpu_core_seconds_total"),), (Term("cpu_core_seconds_total"),),
        by=("core", "state"), denominator_by=("core",),
    ),
    Quantity(
        "cpu_core_busy_ratio", "ratio", "cpu", "Fraction of a core's time (without steal) in which it worked", "ratio",
        (Term("cpu_core_seconds_total", _states(*BUSY)),), (Term("cpu_core_seconds_total", _states(*USABLE)),),
        by=("core",),
    ),
    _rate("context_switches_per_second", "1/s", "cpu", "context_switches_total", "Context switches on the host"),
    _rate("interrupts_per_second", "1/s", "cpu", "interrupts_total", "Interrupts on the host"),
    _rate("processes_created_per_second", "1/s", "cpu", "processes_created_total", "Processes and threads created"),
    _level("run_queue_tasks", "tasks", "cpu", "run_queue_length", "Tasks running or ready to run, on all cores"),
    _level("processes_blocked_tasks", "tasks", "cpu", "processes_blocked", "Tasks waiting for a disk"),
    _level("cpu_frequency_hertz", "hertz", "cpu", "cpu_frequency_hertz", "Clock of a core", ("core",)),
)  # fmt: skip

_MEMORY = (
    # The legend of Awasthi 2015, Table 3, and what is left.
    _memory("map", ("mapped", "anonymous"), "Mapped and anonymous memory"),
    _memory("buffers", ("buffers",), "Buffers of block devices"),
    _memory("cached", ("cached",), "Page cache"),
    _memory("slab", ("slab",), "The kernel's own objects"),
    _memory("inactive", ("inactive",), "Memory not used lately (also counted in the other parts)"),
    _memory("available", ("available",), "What could be allocated without swapping"),
    _memory("total", ("total",), "Installed memory that the kernel uses"),
    _memory("free", ("free",), "Free memory"),
    Quantity(
        "memory_used_ratio", "ratio", "memory", "Fraction of memory that is not available without swapping", "share",
        (Term("memory_bytes", {"kind": ("total",)}), Term("memory_bytes", {"kind": ("available",)}, -1.0)),
        (Term("memory_bytes", {"kind": ("total",)}),),
    ),
    Quantity(
        "swap_bytes_per_second", "bytes/s", "memory", "Memory swapped in and out", "rate",
        (Term("swap_in_bytes_total"), Term("swap_out_bytes_total")),
    ),
    _rate("swap_in_bytes_per_second", "bytes/s", "memory", "swap_in_bytes_total", "Memory swapped in"),
    _rate("swap_out_bytes_per_second", "bytes/s", "memory", "swap_out_bytes_total", "Memory swapped out"),
    _rate("page_faults_major_per_second", "1/s", "memory", "page_faults_major_total", "Faults that read a disk"),
    _rate("refaults_per_second", "1/s", "memory", "refaults_total", "Pages read again soon after eviction", ("kind",)),
    _rate("out_of_memory_kills_per_second", "1/s", "memory", "out_of_memory_kills_total", "Killed as memory ran out"),
)  # fmt: skip

_DEVICE = ("device",)
_DISK = (
    _rate("disk_read_bytes_per_second", "bytes/s", "disk", "disk_read_bytes_total", "Read from the device", _DEVICE),
    _rate("disk_write_bytes_per_second", "bytes/s", "disk", "disk_write_bytes_total", "Written to the device", _DEVICE),
    _rate("disk_reads_per_second", "operations/s", "disk", "disk_reads_total", "Reads completed", _DEVICE),
    _rate("disk_writes_per_second", "operations/s", "disk", "disk_writes_total", "Writes completed", _DEVICE),
    Quantity(
        "disk_read_latency_seconds", "seconds", "disk", "Mean time of a read, queueing included", "ratio",
        (Term("disk_read_seconds_total"),), (Term("disk_reads_total"),), by=_DEVICE,
    ),
    Quantity(
        "disk_write_latency_seconds", "seconds", "disk", "Mean time of a write, queueing included", "ratio",
        (Term("disk_write_seconds_total"),), (Term("disk_writes_total"),), by=_DEVICE,
    ),
    Quantity(
        "disk_latency_seconds", "seconds", "disk", "Mean time of a read or write, queueing included", "ratio",
        (Term("disk_read_seconds_total"), Term("disk_write_seconds_total")),
        (Term("disk_reads_total"), Term("disk_writes_total")), by=_DEVICE,
    ),
    _rate("disk_queue_depth", "1", "disk", "disk_queue_seconds_total", "Mean requests in the device's queue", _DEVICE),
    _rate("disk_busy_ratio", "ratio", "disk", "disk_busy_seconds_total", "Time with a request open", _DEVICE),
    _level("disk_in_flight", "1", "disk", "disk_in_flight", "Requests open at the tick", _DEVICE),
)  # fmt: skip

_INTERFACE = ("interface",)
_NETWORK = (
    _rate(
        "network_receive_bytes_per_second", "bytes/s", "network", "network_receive_bytes_total", "Received", _INTERFACE
    ),
    _rate(
        "network_transmit_bytes_per_second", "bytes/s", "network", "network_transmit_bytes_total", "Sent", _INTERFACE
    ),
    _rate(
        "network_receive_packets_per_second", "1/s", "network", "network_receive_packets_total", "Packets received",
        _INTERFACE,
    ),
    _rate(
        "network_transmit_packets_per_second", "1/s", "network", "network_transmit_packets_total", "Packets sent",
        _INTERFACE,
    ),
    Quantity(
        "network_drops_per_second", "1/s", "network", "Packets dropped, both directions", "rate",
        (Term("network_receive_drops_total"), Term("network_transmit_drops_total")), by=_INTERFACE,
    ),
    Quantity(
        "network_errors_per_second", "1/s", "network", "Packets with errors, both directions", "rate",
        (Term("network_receive_errors_total"), Term("network_transmit_errors_total")), by=_INTERFACE,
    ),
    Quantity(
        "tcp_retransmit_ratio", "ratio", "network", "Fraction of TCP segments sent again", "ratio",
        (Term("tcp_retransmits_total"),), (Term("tcp_segments_sent_total"),),
    ),
    _rate("tcp_retransmits_per_second", "1/s", "network", "tcp_retransmits_total", "TCP segments sent again"),
    _rate(
        "tcp_listen_overflows_per_second", "1/s", "network", "tcp_listen_overflows_total",
        "Connections that found the accept queue full",
    ),
    _rate(
        "udp_receive_buffer_errors_per_second", "1/s", "network", "udp_receive_buffer_errors_total",
        "Datagrams that found the socket's buffer full",
    ),
)  # fmt: skip

_PRESSURE = (
    _rate(
        "pressure_ratio", "ratio", "pressure", "pressure_stall_seconds_total",
        "Fraction of time in which some or all tasks waited for the resource", ("resource", "share"),
    ),
)  # fmt: skip

_PROCESS_BY = ("process",)
_PROCESS = (
    _rate("process_cpu_cores", "cores", "process", "process_cpu_seconds_total", "Cores that it used", _PROCESS_BY),
    Quantity(
        "process_kernel_share_ratio", "ratio", "process", "Fraction of its CPU time spent in the kernel", "ratio",
        (Term("process_cpu_seconds_total", _states("system")),), (Term("process_cpu_seconds_total"),), by=_PROCESS_BY,
    ),
    _level("process_resident_bytes", "bytes", "process", "process_resident_bytes", "Resident memory", _PROCESS_BY),
    _level("process_threads", "1", "process", "process_threads", "Threads", _PROCESS_BY),
    _rate(
        "process_context_switches_per_second", "1/s", "process", "process_context_switches_total",
        "Context switches, voluntary and involuntary", ("process", "kind"),
    ),
    _rate("process_read_bytes_per_second", "bytes/s", "process", "process_read_bytes_total", "Read", _PROCESS_BY),
    _rate("process_write_bytes_per_second", "bytes/s", "process", "process_write_bytes_total", "Written", _PROCESS_BY),
    _rate(
        "process_page_faults_major_per_second", "1/s", "process", "process_page_faults_major_total",
        "Faults that read a disk", _PROCESS_BY,
    ),
    _rate(
        "process_run_delay_cores", "cores", "process", "process_run_delay_seconds_total",
        "Threads that were ready and waited for a core, on average", _PROCESS_BY,
    ),
)  # fmt: skip

_GROUP = ("cgroup",)
_CGROUP = (
    _rate("cgroup_cpu_cores", "cores", "cgroup", "cgroup_cpu_seconds_total", "Cores that it used", _GROUP),
    _rate(
        "cgroup_throttled_ratio", "ratio", "cgroup", "cgroup_throttled_seconds_total",
        "Seconds of throttling a second, by the group's CPU limit", _GROUP,
    ),
    _level("cgroup_memory_bytes", "bytes", "cgroup", "cgroup_memory_bytes", "Memory by kind", ("cgroup", "kind")),
    _level("cgroup_memory_limit_bytes", "bytes", "cgroup", "cgroup_memory_limit_bytes", "Memory limit", _GROUP),
    _rate("cgroup_read_bytes_per_second", "bytes/s", "cgroup", "cgroup_read_bytes_total", "Read", _GROUP),
    _rate("cgroup_write_bytes_per_second", "bytes/s", "cgroup", "cgroup_write_bytes_total", "Written", _GROUP),
    _rate("cgroup_refaults_per_second", "1/s", "cgroup", "cgroup_refaults_total", "Pages read again", _GROUP),
)  # fmt: skip

_SCOPE = ("scope",)
_PERF = (
    Quantity(
        "cycles_per_instruction", "cycles", "perf", "CPI: cycles for each instruction", "ratio",
        (Term("perf_cycles_total"),), (Term("perf_instructions_total"),), by=_SCOPE,
    ),
    _rate("instructions_per_second", "1/s", "perf", "perf_instructions_total", "Instructions retired", _SCOPE),
    Quantity(
        "llc_misses_per_kilo_instruction", "misses", "perf", "MPKI: last-level cache misses for 1000 instructions",
        "ratio", (Term("perf_llc_misses_total"),), (Term("perf_instructions_total"),), by=_SCOPE, factor=1000.0,
    ),
    _rate(
        "dram_read_bytes_per_second", "bytes/s", "perf", "perf_dram_fills_total",
        "Cache lines filled from DRAM, in bytes", _SCOPE, float(CACHE_LINE_BYTES),
    ),
    _level("perf_running_ratio", "ratio", "perf", "perf_running_ratio", "Part of time the counters ran", _SCOPE),
)  # fmt: skip

_METER = ("domain", "meter")
_POWER = (
    _level("power_watts", "watts", "power", "power_watts", "Power of a domain, as its meter shows it", _METER),
    _rate(
        "power_from_energy_watts", "watts", "power", "energy_joules_total", "Power, from the energy counter",
        _METER,
    ),
)  # fmt: skip

_QUANTILE = ("quantile",)
_LOAD = (
    _level(
        "load_throughput_operations_per_second", "operations/s", "load", "load_throughput_operations_per_second",
        "Operations completed",
    ),
    _level("load_response_seconds", "seconds", "load", "load_response_seconds", "From intended start", _QUANTILE),
    _level("load_service_seconds", "seconds", "load", "load_service_seconds", "From the moment of sending", _QUANTILE),
    _level("load_lag_seconds", "seconds", "load", "load_lag_seconds", "Sent later than intended", _QUANTILE),
    _level("load_idle_ratio", "ratio", "load", "load_idle_ratio", "Fraction of time that the generator was idle"),
    _rate("load_operations_per_second", "operations/s", "load", "load_operations_total", "Operations completed"),
    _rate("load_errors_per_second", "operations/s", "load", "load_errors_total", "Operations that failed"),
    _rate("load_sent_bytes_per_second", "bytes/s", "load", "load_bytes_sent_total", "Sent to the system"),
    _rate("load_received_bytes_per_second", "bytes/s", "load", "load_bytes_received_total", "Received from the system"),
    Quantity(
        "load_hit_ratio", "ratio", "load", "Fraction of reads that found their key", "ratio",
        (Term("load_hits_total"),), (Term("load_hits_total"), Term("load_misses_total")),
    ),
)  # fmt: skip

#: Everything that can be derived without knowing which cores belong to whom.
QUANTITIES: tuple[Quantity, ...] = (
    *_CPU, *_MEMORY, *_DISK, *_NETWORK, *_PRESSURE, *_PROCESS, *_CGROUP, *_PERF, *_POWER, *_LOAD,
)  # fmt: skip


def core_set_quantities(name: str, cores: tuple[int, ...]) -> tuple[Quantity, ...]:
    """CPU use of a set of cores, together: ``cpu_set_*{set="system"}``; no cores means the whole host."""
    numbers = tuple(str(core) for core in cores)

    def of(*states: str) -> tuple[Term, ...]:
        if not numbers:
            return (Term("cpu_seconds_total", _states(*states)),)
        return (Term("cpu_core_seconds_total", {"core": numbers, "state": states}),)

    def ratio(
        quantity: str, part: tuple[Term, ...], whole: tuple[Term, ...], help_: str, *, by_state: bool = False
    ) -> Quantity:
        by = ("state",) if by_state else ()
        return Quantity(
            quantity, "ratio", "cpu", help_, "ratio", part, whole, by=by, denominator_by=(), labels={"set": name}
        )

    which = f"the {name}'s cores"
    usable, every = of(*USABLE), of(*USABLE, "steal")
    return (
        ratio("cpu_set_ratio", every, every, f"Fraction of the time of {which} in each state", by_state=True),
        ratio("cpu_set_busy_ratio", of(*BUSY), usable, f"Fraction of the time of {which} (no steal) that they worked"),
        ratio("cpu_set_kernel_share_ratio", of(*KERNEL), of(*BUSY), f"Kernel's fraction of the CPU time of {which}"),
        ratio("cpu_set_steal_ratio", of("steal"), every, f"Fraction of the time of {which} that the hypervisor took"),
        ratio("cpu_set_iowait_ratio", of("iowait"), every, f"Fraction of the time of {which} idle with disk I/O open"),
        Quantity(
            "cpu_set_busy_cores", "cores", "cpu", f"CPU time used, in cores, on {which}", "rate", of(*BUSY),
            labels={"set": name},
        ),
    )  # fmt: skip
