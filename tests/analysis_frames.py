"""Runs whose truth is known: frames built from the rates and levels that a test states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from rackscope.analysis.facts import PhaseWindow, RunFacts, SamplerCost
from rackscope.analysis.histograms import Histogram
from rackscope.analysis.rates import Samples

START_NS = 1_790_000_000_000_000_000
STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
Amount = float | Callable[[str], float]


def nanoseconds(seconds: float) -> int:
    return START_NS + round(seconds * 1e9)


def derived(samples: pl.DataFrame) -> pl.DataFrame:
    """``timestamp_ns`` and one column a derived series, row by row; null where there is no value."""
    table = Samples(samples)
    columns = [table.frame["timestamp_ns"]]
    for series in (one for group in table.series.values() for one in group):
        rows, values = series.by_row()
        column = np.full(len(table.frame), np.nan)
        column[rows] = values
        columns.append(pl.Series(series.name, column).fill_nan(None))
    return pl.DataFrame(columns)


def bucket_index(grouping_power: int, value: int) -> int:
    """The index of the bucket of an H2 histogram that holds ``value``."""
    dropped = max(value.bit_length() - grouping_power - 1, 0)
    return (dropped << grouping_power) + (value >> dropped)


def histogram_of(grouping_power: int, max_value_power: int, values: Iterable[int]) -> Histogram:
    """A histogram that has recorded ``values`` (nanoseconds)."""
    counts = Counter(bucket_index(grouping_power, value) for value in values)
    ordered = sorted(counts)
    return Histogram.of(grouping_power, max_value_power, ordered, [counts[index] for index in ordered])


def core(number: int, **shares: Amount) -> dict[str, Amount]:
    """Rates of one core's states; what is not named is idle."""

    def idle(phase: str) -> float:
        return 1.0 - sum(amount(phase) if callable(amount) else amount for amount in shares.values())

    return {
        f'cpu_core_seconds_total{{core="{number}",state="{state}"}}': (
            idle if state == "idle" else shares.get(state, 0.0)
        )
        for state in STATES
    }


def all_cores(rates: Mapping[str, Amount], count: int) -> dict[str, Amount]:
    """``cpu_seconds_total`` as the sum of the cores."""

    def total(state: str) -> Callable[[str], float]:
        def of(phase: str) -> float:
            amounts = [rates[f'cpu_core_seconds_total{{core="{number}",state="{state}"}}'] for number in range(count)]
            return sum(amount(phase) if callable(amount) else amount for amount in amounts)

        return of

    return {f'cpu_seconds_total{{state="{state}"}}': total(state) for state in STATES}


def two_cores(system: Mapping[str, Amount], client: Mapping[str, Amount]) -> dict[str, Amount]:
    """A host of two cores: the system's is 0, the client's is 1."""
    rates: dict[str, Amount] = {**core(0, **system), **core(1, **client)}
    return rates | all_cores(rates, 2)


def disk(device: str = "vda", **rates: Amount) -> dict[str, Amount]:
    """Rates of a disk's counters; what is not named stands still."""
    names = ("read_bytes", "write_bytes", "reads", "writes", "read_seconds", "write_seconds", "busy_seconds")
    return {f'disk_{name}_total{{device="{device}"}}': rates.get(name, 0.0) for name in (*names, "queue_seconds")}


def network(interface: str = "lo", **rates: Amount) -> dict[str, Amount]:
    """Rates of an interface's counters; what is not named stands still."""
    names = ("bytes", "packets", "drops", "errors")
    return {
        f'network_{direction}_{name}_total{{interface="{interface}"}}': rates.get(f"{direction}_{name}", 0.0)
        for direction in ("receive", "transmit")
        for name in names
    }


def process(**rates: Amount) -> dict[str, Amount]:
    """Rates of the system's process counters."""
    return {
        'process_cpu_seconds_total{process="system",state="user"}': rates.get("user", 0.0),
        'process_cpu_seconds_total{process="system",state="system"}': rates.get("system", 0.0),
        'process_context_switches_total{kind="voluntary",process="system"}': rates.get("voluntary", 0.0),
        'process_context_switches_total{kind="involuntary",process="system"}': rates.get("involuntary", 0.0),
        'process_run_delay_seconds_total{process="system"}': rates.get("run_delay", 0.0),
        'process_page_faults_major_total{process="system"}': rates.get("major_faults", 0.0),
    }


def quiet_rates() -> dict[str, Amount]:
    """A host with every sensor, on which next to nothing happens."""
    rates = two_cores({"user": 0.05, "system": 0.05}, {"user": 0.10, "system": 0.10})
    rates |= disk(write_bytes=4096.0, writes=1.0, write_seconds=0.001, busy_seconds=0.002, queue_seconds=0.001)
    rates |= network(receive_bytes=1e6, transmit_bytes=1e6, receive_packets=1e3, transmit_packets=1e3)
    rates |= process(user=0.05, system=0.05, voluntary=1000.0)
    for resource in ("cpu", "memory", "io"):
        for share in ("some", "full"):
            rates[f'pressure_stall_seconds_total{{resource="{resource}",share="{share}"}}'] = 0.0
    for name in ("swap_in_bytes_total", "swap_out_bytes_total", "out_of_memory_kills_total", "tcp_retransmits_total"):
        rates[name] = 0.0
    rates["tcp_segments_sent_total"] = 2000.0
    rates["tcp_listen_overflows_total"] = 0.0
    rates["context_switches_total"] = 3000.0
    return rates


def quiet_levels() -> dict[str, Amount]:
    """Gauges of the quiet host."""
    return {
        'memory_bytes{kind="total"}': 8e9,
        'memory_bytes{kind="available"}': 6e9,
        'memory_bytes{kind="free"}': 3e9,
        'memory_bytes{kind="mapped"}': 1e8,
        'memory_bytes{kind="anonymous"}': 1e9,
        "run_queue_length": 1.0,
        'process_resident_bytes{process="system"}': 1e9,
    }


def quiet_ceilings() -> dict[str, float]:
    """What calibrate would have measured on the quiet host."""
    return {
        "dram_read_bytes_per_second": 20e9,
        "loopback_bytes_per_second": 4e9,
        "loopback_requests_per_second": 150e3,
        'disk_sequential_read_bytes_per_second{device="vda"}': 400e6,
        'disk_sequential_write_bytes_per_second{device="vda"}': 200e6,
        'disk_random_read_operations_per_second{device="vda"}': 20e3,
        'disk_random_write_operations_per_second{device="vda"}': 10e3,
    }


@dataclass
class SyntheticRun:
    """A run to be turned into facts and frames; change what a test is about."""

    phases: list[tuple[str, str, int | None, float]] = field(
        default_factory=lambda: [
            ("load", "load", None, 2.0),
            ("warm-up", "warm-up", None, 2.0),
            *(("measure", "measure", number, 5.0) for number in (1, 2, 3)),
        ]
    )
    rates: dict[str, Amount] = field(default_factory=quiet_rates)
    levels: dict[str, Amount] = field(default_factory=quiet_levels)
    throughputs: list[float] = field(default_factory=lambda: [20_000.0, 20_050.0, 19_950.0])
    result: dict[str, Any] = field(default_factory=dict)
    facts: RunFacts = field(
        default_factory=lambda: RunFacts(
            phases=(),
            host_cores=2,
            system_cores=(0,),
            client_cores=(1,),
            memory_total_bytes=8e9,
            ceilings=quiet_ceilings(),
            connections=50,
            system="memcached",
            sampler=SamplerCost(0.1, 190, 0, 0.1, 19.0),
        )
    )
    hertz: float = 10.0

    def with_rates(self, **changes: Any) -> SyntheticRun:
        return replace(self, **changes)

    def windows(self) -> tuple[PhaseWindow, ...]:
        found, clock = [], 0.0
        for name, kind, repetition, seconds in self.phases:
            found.append(PhaseWindow(name, kind, repetition, nanoseconds(clock), nanoseconds(clock + seconds)))  # type: ignore[arg-type]
            clock += seconds
        return tuple(found)

    def run_facts(self, **changes: Any) -> RunFacts:
        return replace(self.facts, phases=self.windows(), **changes)

    def samples(self) -> pl.DataFrame:
        total = sum(phase[-1] for phase in self.phases)
        # Ticks before and after, and off the phases' edges.
        times = np.arange(-0.43, total + 0.5, 1 / self.hertz)
        ends = np.cumsum([phase[-1] for phase in self.phases])
        names = [phase[0] for phase in self.phases]
        columns: dict[str, Any] = {"timestamp_ns": [nanoseconds(time) for time in times]}
        for name, amount in self.rates.items():
            edges = np.concatenate(([-10.0, 0.0], ends, [total + 10.0]))
            speeds = [_amount(amount, which) for which in (names[0], *names, names[-1])]
            heights = np.concatenate(([0.0], np.cumsum(np.diff(edges) * speeds)))
            columns[name] = 1000.0 + np.interp(times, edges, heights)
        places = np.clip(np.searchsorted(ends, times, side="left"), 0, len(names) - 1)
        for name, amount in self.levels.items():
            columns[name] = [_amount(amount, names[place]) for place in places]
        return pl.DataFrame(columns)

    def results(self) -> pl.DataFrame:
        rows = []
        throughputs = iter(self.throughputs)
        for window in self.windows():
            seconds = (window.end_ns - window.start_ns) / 1e9
            throughput = next(throughputs) if window.kind == "measure" else 10_000.0
            operations = round(throughput * seconds)
            rows.append(
                {
                    "phase": window.name, "kind": window.kind, "repetition": window.repetition,
                    "start_ns": window.start_ns, "end_ns": window.end_ns, "duration_seconds": seconds,
                    "operations": operations, "errors": 0, "hits": operations, "misses": 0, "wrong_values": 0,
                    "throughput_operations_per_second": throughput, "offered_operations_per_second": None,
                    "bytes_sent": operations * 50, "bytes_received": operations * 1000,
                    "response_p50_seconds": 1e-3, "response_p90_seconds": 1.5e-3, "response_p99_seconds": 2e-3,
                    "response_p999_seconds": 4e-3, "response_max_seconds": 9e-3, "response_mean_seconds": 1e-3,
                    "service_p50_seconds": 1e-3, "service_p99_seconds": 2e-3, "lag_p99_seconds": 1e-6,
                    "generator_idle_ratio": 0.6, "generator_cpu_seconds": 0.15 * seconds,
                    "system_cpu_seconds": 0.1 * seconds, "system_resident_bytes": 1e9, "discarded": None,
                    **self.result,
                }
            )  # fmt: skip
        return pl.DataFrame(rows, schema_overrides={"discarded": pl.String})


def _amount(amount: Amount, phase: str) -> float:
    return float(amount(phase)) if callable(amount) else float(amount)


def only_in(wanted: str, inside: float, outside: float) -> Callable[[str], float]:
    """An amount that one phase differs in."""
    return lambda phase: inside if phase == wanted else outside
