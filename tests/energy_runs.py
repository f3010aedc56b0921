"""Runs whose power is known: meters of stated watts over a few phases, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from analysis_frames import nanoseconds
from rackscope.analysis.context import Run
from rackscope.analysis.facts import PhaseKind, PhaseWindow, RunFacts
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.metrics import format_metric

#: Watts at seconds of the run; the first phase begins at zero.
Watts = Callable[[np.ndarray], np.ndarray]
Drop = Callable[[np.ndarray], np.ndarray]


def gauge(domain: str, meter: str = "ipmi_dcmi") -> str:
    return format_metric("power_watts", {"domain": domain, "meter": meter})


def counter(domain: str, meter: str = "rapl_perf") -> str:
    return format_metric("energy_joules_total", {"domain": domain, "meter": meter})


def constant(watts: float) -> Watts:
    """Constant but for the last digit, as real meters are; see ``stuck``."""
    return lambda seconds: watts * (1 + 1e-7 * np.sin(37 * seconds))


def stuck(watts: float) -> Watts:
    return lambda seconds: np.full(len(seconds), watts)


def ramp(start: float, slope: float) -> Watts:
    return lambda seconds: start + slope * seconds


@dataclass(frozen=True)
class Metered:
    """``phases`` are (name, kind, repetition, seconds, operations); the CPU is busy in them and idle before."""

    meters: Mapping[str, Watts]
    phases: Sequence[tuple[str, PhaseKind, int | None, float, int]] = (
        ("warm-up", "warm-up", None, 2.0, 2_000),
        ("measure", "measure", 1, 4.0, 8_000),
        ("measure", "measure", 2, 4.0, 8_000),
        ("measure", "measure", 3, 4.0, 8_000),
    )
    before: float = 3.0
    after: float = 1.0
    hertz: float = 10.0
    busy: float = 0.8
    busy_before: float = 0.01
    #: Ticks at which a column could not be read, by column.
    unread: Mapping[str, Drop] = field(default_factory=dict)
    discarded: frozenset[int] = frozenset()
    host: Mapping[str, Any] = field(default_factory=dict)

    @property
    def length(self) -> float:
        return sum(phase[3] for phase in self.phases)

    def windows(self) -> list[PhaseWindow]:
        at, found = 0.0, []
        for name, kind, repetition, seconds, _ in self.phases:
            found.append(PhaseWindow(name, kind, repetition, nanoseconds(at), nanoseconds(at + seconds)))
            at += seconds
        return found

    def facts(self) -> RunFacts:
        return RunFacts(phases=tuple(self.windows()), host_cores=4, sequential=False)

    def samples(self) -> pl.DataFrame:
        times = np.arange(-self.before + 0.03, self.length + self.after, 1 / self.hertz)
        columns: dict[str, Any] = {"timestamp_ns": [nanoseconds(time) for time in times]}
        inside = (times > 0) & (times <= self.length)
        share = np.where(inside, self.busy, self.busy_before)
        columns['cpu_seconds_total{state="user"}'] = np.cumsum(4 * share / self.hertz)
        columns['cpu_seconds_total{state="idle"}'] = np.cumsum(4 * (1 - share) / self.hertz)
        for state in ("nice", "system", "irq", "softirq", "iowait", "steal"):
            columns[f'cpu_seconds_total{{state="{state}"}}'] = np.zeros(len(times))
        fine = np.linspace(times[0], times[-1], 40_001)
        for column, watts in self.meters.items():
            if column.startswith("energy"):
                power = watts(fine)
                joules = np.concatenate(([0.0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(fine))))
                values = np.interp(times, fine, joules)
            else:
                values = watts(times)
            drop = self.unread.get(column)
            if drop is not None:
                values = np.where(drop(times), np.nan, values)
            columns[column] = values
        return pl.DataFrame(columns)

    def results(self) -> pl.DataFrame:
        rows = []
        for window, (*_, seconds, operations) in zip(self.windows(), self.phases, strict=True):
            rows.append(
                {
                    "phase": window.name,
                    "kind": window.kind,
                    "repetition": window.repetition,
                    "start_ns": window.start_ns,
                    "end_ns": window.end_ns,
                    "duration_seconds": seconds,
                    "operations": operations,
                    "throughput_operations_per_second": operations / seconds,
                    "discarded": "disturbed" if window.repetition in self.discarded else None,
                }
            )
        return pl.DataFrame(rows, schema_overrides={"discarded": pl.String})

    def run(self) -> Run:
        return Run.of(self.facts(), self.samples(), self.results(), pl.DataFrame(), packaged_thresholds())
