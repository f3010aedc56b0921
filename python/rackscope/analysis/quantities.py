"""What can be derived from the samples, as data: one definition serves plots (row by row) and verdicts (by window).

A quantity is a *rate* (growth of counters a second), a *ratio* (growth of counters by growth of other counters), a
*level* (gauges as they were read) or a *share* (gauges by other gauges). ``by`` names the labels that make one series
each; of a ratio, the denominator is grouped by ``denominator_by`` only. What each counter and gauge is stands in
``rackscope.metrics``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

QuantityKind = Literal["rate", "ratio", "level", "share"]
Unit = Literal[
    "ratio", "seconds", "bytes", "bytes/s", "operations/s", "1/s", "cores", "tasks", "hertz", "cycles", "misses",
    "watts", "1",
]  # fmt: skip

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
    kind: QuantityKind
    numerator: tuple[Term, ...]
    denominator: tuple[Term, ...] = ()
    by: tuple[str, ...] = ()
    denominator_by: tuple[str, ...] | None = None
    factor: float = 1.0
    labels: Mapping[str, str] = field(default_factory=dict)


def _rate(name: str, unit: Unit, metrics: str, by: str = "", factor: float = 1.0) -> Quantity:
    """Of counters added up; ``metrics`` and ``by`` are names with spaces between."""
    terms = tuple(Term(metric) for metric in metrics.split())
    return Quantity(name, unit, "rate", terms, by=tuple(by.split()), factor=factor)


def _level(name: str, unit: Unit, metric: str, by: str = "") -> Quantity:
    return Quantity(name, unit, "level", (Term(metric),), by=tuple(by.split()))


def _ratio(name: str, unit: Unit, above: str, below: str, by: str = "", factor: float = 1.0) -> Quantity:
    numerator, denominator = (tuple(Term(metric) for metric in metrics.split()) for metrics in (above, below))
    return Quantity(name, unit, "ratio", numerator, denominator, tuple(by.split()), factor=factor)


def _memory(part: str) -> Quantity:
    terms = (Term("memory_bytes", {"kind": (part,)}),)
    return Quantity("memory_part_bytes", "bytes", "level", terms, labels={"part": part})


def _cpu(*states: str) -> tuple[Term, ...]:
    return (Term("cpu_seconds_total", {"state": states}),)


def _core(*states: str) -> tuple[Term, ...]:
    return (Term("cpu_core_seconds_total", {"state": states}),)


#: Everything that can be derived without knowing which cores belong to whom.
QUANTITIES: tuple[Quantity, ...] = (
    # CPU: of all cores together, then of each
    Quantity(
        "cpu_ratio", "ratio", "ratio", (Term("cpu_seconds_total"),), (Term("cpu_seconds_total"),),
        by=("state",), denominator_by=(),
    ),
    Quantity("cpu_busy_ratio", "ratio", "ratio", _cpu(*BUSY), _cpu(*USABLE)),
    Quantity("cpu_kernel_share_ratio", "ratio", "ratio", _cpu(*KERNEL), _cpu(*BUSY)),
    Quantity("cpu_busy_cores", "cores", "rate", _cpu(*BUSY)),
    # Without interrupts
    Quantity("cpu_process_context_cores", "cores", "rate", _cpu("user", "nice", "system")),
    Quantity("cpu_core_busy_ratio", "ratio", "ratio", _core(*BUSY), _core(*USABLE), by=("core",)),
    _level("run_queue_tasks", "tasks", "run_queue_length"),
    _level("cpu_frequency_hertz", "hertz", "cpu_frequency_hertz", "core"),
    # Memory; used is what is not available without swapping
    _memory("available"),
    _memory("total"),
    Quantity(
        "memory_used_ratio", "ratio", "share",
        (Term("memory_bytes", {"kind": ("total",)}), Term("memory_bytes", {"kind": ("available",)}, -1.0)),
        (Term("memory_bytes", {"kind": ("total",)}),),
    ),
    _rate("swap_bytes_per_second", "bytes/s", "swap_in_bytes_total swap_out_bytes_total"),
    _rate("refaults_per_second", "1/s", "refaults_total", "kind"),
    _rate("out_of_memory_kills_per_second", "1/s", "out_of_memory_kills_total"),
    # Disks
    _rate("disk_read_bytes_per_second", "bytes/s", "disk_read_bytes_total", "device"),
    _rate("disk_write_bytes_per_second", "bytes/s", "disk_write_bytes_total", "device"),
    _rate("disk_reads_per_second", "operations/s", "disk_reads_total", "device"),
    _rate("disk_writes_per_second", "operations/s", "disk_writes_total", "device"),
    # Mean time of a request, queueing included
    _ratio(
        "disk_latency_seconds", "seconds", "disk_read_seconds_total disk_write_seconds_total",
        "disk_reads_total disk_writes_total", "device",
    ),
    _rate("disk_queue_depth", "1", "disk_queue_seconds_total", "device"),
    _rate("disk_busy_ratio", "ratio", "disk_busy_seconds_total", "device"),
    # Network
    _rate("network_receive_bytes_per_second", "bytes/s", "network_receive_bytes_total", "interface"),
    _rate("network_transmit_bytes_per_second", "bytes/s", "network_transmit_bytes_total", "interface"),
    _rate(
        "network_drops_per_second", "1/s", "network_receive_drops_total network_transmit_drops_total", "interface"
    ),
    _rate(
        "network_errors_per_second", "1/s", "network_receive_errors_total network_transmit_errors_total", "interface"
    ),
    _ratio("tcp_retransmit_ratio", "ratio", "tcp_retransmits_total", "tcp_segments_sent_total"),
    _rate("tcp_retransmits_per_second", "1/s", "tcp_retransmits_total"),
    _rate("tcp_listen_overflows_per_second", "1/s", "tcp_listen_overflows_total"),
    _rate("udp_receive_buffer_errors_per_second", "1/s", "udp_receive_buffer_errors_total"),
    # Part of the time in which some or all tasks waited
    _rate("pressure_ratio", "ratio", "pressure_stall_seconds_total", "resource share"),
    # Processes
    _rate("process_cpu_cores", "cores", "process_cpu_seconds_total", "process"),
    Quantity(
        "process_kernel_share_ratio", "ratio", "ratio", (Term("process_cpu_seconds_total", {"state": ("system",)}),),
        (Term("process_cpu_seconds_total"),), by=("process",),
    ),
    _level("process_resident_bytes", "bytes", "process_resident_bytes", "process"),
    _rate("process_context_switches_per_second", "1/s", "process_context_switches_total", "process kind"),
    _rate("process_read_bytes_per_second", "bytes/s", "process_read_bytes_total", "process"),
    _rate("process_write_bytes_per_second", "bytes/s", "process_write_bytes_total", "process"),
    _rate("process_page_faults_major_per_second", "1/s", "process_page_faults_major_total", "process"),
    # Threads that were ready and waited for a core, on average
    _rate("process_run_delay_cores", "cores", "process_run_delay_seconds_total", "process"),
    # Control groups; throttled are seconds a second, by the group's CPU limit
    _rate("cgroup_throttled_ratio", "ratio", "cgroup_throttled_seconds_total", "cgroup"),
    _level("cgroup_memory_bytes", "bytes", "cgroup_memory_bytes", "cgroup kind"),
    _level("cgroup_memory_limit_bytes", "bytes", "cgroup_memory_limit_bytes", "cgroup"),
    _rate("cgroup_refaults_per_second", "1/s", "cgroup_refaults_total", "cgroup"),
    # Hardware counters: CPI, MPKI, and fills from DRAM in bytes
    _ratio("cycles_per_instruction", "cycles", "perf_cycles_total", "perf_instructions_total", "scope"),
    _rate("instructions_per_second", "1/s", "perf_instructions_total", "scope"),
    _ratio(
        "llc_misses_per_kilo_instruction", "misses", "perf_llc_misses_total", "perf_instructions_total", "scope", 1000.0
    ),
    _rate("dram_read_bytes_per_second", "bytes/s", "perf_dram_fills_total", "scope", float(CACHE_LINE_BYTES)),
    _level("perf_running_ratio", "ratio", "perf_running_ratio", "scope"),
    # The load generator
    _level("load_throughput_operations_per_second", "operations/s", "load_throughput_operations_per_second"),
    _level("load_response_seconds", "seconds", "load_response_seconds", "quantile"),
    _level("load_idle_ratio", "ratio", "load_idle_ratio"),
    _rate("load_errors_per_second", "operations/s", "load_errors_total"),
)  # fmt: skip


def core_set_quantities(name: str, cores: tuple[int, ...]) -> tuple[Quantity, ...]:
    """CPU use of a set of cores, together: ``cpu_set_*{set="system"}``; no cores means the whole host."""
    numbers = tuple(str(core) for core in cores)

    def of(*states: str) -> tuple[Term, ...]:
        return (Term("cpu_core_seconds_total", {"core": numbers, "state": states}),) if numbers else _cpu(*states)

    def ratio(quantity: str, part: tuple[Term, ...], whole: tuple[Term, ...]) -> Quantity:
        return Quantity(quantity, "ratio", "ratio", part, whole, labels={"set": name})

    every = of(*USABLE, "steal")
    return (
        ratio("cpu_set_busy_ratio", of(*BUSY), of(*USABLE)),
        ratio("cpu_set_kernel_share_ratio", of(*KERNEL), of(*BUSY)),
        ratio("cpu_set_steal_ratio", of("steal"), every),
        ratio("cpu_set_iowait_ratio", of("iowait"), every),
        Quantity("cpu_set_busy_cores", "cores", "rate", of(*BUSY), labels={"set": name}),
    )
