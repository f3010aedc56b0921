"""A run and its phases as the rules see them: windows in seconds, results that count, readings with their evidence."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rackscope.analysis.columns import split_column
from rackscope.analysis.facts import RunFacts
from rackscope.analysis.findings import Evidence
from rackscope.analysis.rates import Reading, Samples, Series, Windows
from rackscope.analysis.thresholds import Thresholds


@dataclass(frozen=True)
class Run:
    facts: RunFacts
    samples: Samples
    results: tuple[dict[str, Any], ...]
    latency: pl.DataFrame
    thresholds: Thresholds

    @classmethod
    def of(
        cls,
        facts: RunFacts,
        samples: pl.DataFrame,
        results: pl.DataFrame,
        latency: pl.DataFrame,
        thresholds: Thresholds,
    ) -> Run:
        sets = {"system": facts.system_cores} | ({"client": facts.client_cores} if facts.client_cores else {})
        coverage = thresholds.limit("coverage.minimum")
        table = Samples(samples, origin_ns=facts.start_ns, core_sets=sets, minimum_coverage=coverage)
        return cls(facts, table, tuple(results.to_dicts()), latency, thresholds)

    @property
    def host_core_count(self) -> int:
        """Cores of the host; one where the facts do not know better."""
        return max(self.facts.host_cores, 1)

    @property
    def system_core_count(self) -> int:
        return len(self.facts.system_cores) or self.host_core_count

    def ceiling(self, name: str, unmeasured: str) -> tuple[float | None, str, str]:
        """A ceiling, or ``None`` with the reason (``unmeasured`` where it was never measured) and what to do."""
        calibrate = "Run 'rackscope calibrate' once on this host, then run again."
        if name in self.facts.distrusted:
            return None, f"its ceiling failed a check: {self.facts.distrusted[name]}", calibrate
        value = self.facts.ceilings.get(name)
        if value is None or not math.isfinite(value) or value <= 0:
            return None, unmeasured, calibrate
        return value, "", ""

    @property
    def shares_cores(self) -> bool:
        system, client = set(self.facts.system_cores), set(self.facts.client_cores)
        return not system or not client or bool(system & client)

    def phases(self) -> list[Phase]:
        """Phases in the order in which they began, with all repetitions that count; squeezed ones are left out."""
        grouped: dict[tuple[str, str], list[tuple[int | None, float, float]]] = {}
        for window in sorted(self.facts.phases, key=lambda window: window.start_ns):
            if window.kind == "squeezed":
                continue
            start = (window.start_ns - self.facts.start_ns) / 1e9
            end = (window.end_ns - self.facts.start_ns) / 1e9
            if end > start:
                grouped.setdefault((window.name, window.kind), []).append((window.repetition, start, end))
        phases = []
        for (name, kind), repetitions in grouped.items():
            rows = [row for row in self.results if row.get("phase") == name and row.get("kind", kind) == kind]
            kept = [row for row in rows if not row.get("discarded")]
            discarded = {row.get("repetition") for row in rows} - {row.get("repetition") for row in kept}
            # Where all were discarded, what happened in them is still worth describing.
            counting = [one for one in repetitions if one[0] not in discarded] or repetitions
            windows = tuple((start, end) for _, start, end in counting)
            phases.append(Phase(self, name, kind, windows, tuple(kept), tuple(number for number, *_ in counting)))
        return phases

    def missing(self, *metrics: str) -> tuple[str, str]:
        """Why none of the metrics was sampled, and what to do about it."""
        for probe in self.facts.probes:
            if probe.status == "missing" and any(split_column(name)[0] in metrics for name in probe.columns):
                # What a probe says after its first clause is detail: it goes with the advice.
                why, _, more = (probe.reason or "no reason given").partition("; ")
                needs = f"It needs {probe.needs.rstrip('.')}." if probe.needs else ""
                detail = f"{more[:1].upper()}{more[1:].rstrip('.')}." if more else ""
                return f"probe '{probe.name}' could not be read: {why}", f"{needs} {detail}".strip()
        return f"the samples have no {metrics[0]}", "Run 'rackscope doctor' to see which probes work on this host."

    def distrust(self, *metrics: str) -> str:
        """Why one of the metrics is not to be believed here; empty when all are."""
        for column, why in self.facts.distrusted.items():
            if split_column(column)[0] in metrics:
                return why
        for probe in self.facts.probes:
            if probe.status == "untrusted" and any(split_column(name)[0] in metrics for name in probe.columns):
                return probe.reason or f"probe '{probe.name}' is marked untrusted"
        return ""


@dataclass(frozen=True)
class Phase:
    """One phase with all its repetitions."""

    run: Run
    name: str
    kind: str
    windows: Windows
    #: Rows of results.parquet that were not discarded.
    rows: tuple[dict[str, Any], ...]
    #: The repetition of each window.
    numbers: tuple[int | None, ...]

    @property
    def seconds(self) -> float:
        """Length of all repetitions together."""
        return sum(end - start for start, end in self.windows)

    def result_values(self, column: str) -> list[float]:
        """A column of the results, one value a repetition that has it."""
        values = (row.get(column) for row in self.rows)
        return [float(value) for value in values if value is not None and math.isfinite(value)]

    def result(self, column: str) -> float | None:
        """Median of a results column over the repetitions."""
        values = self.result_values(column)
        return statistics.median(values) if values else None

    def total(self, column: str) -> float | None:
        """Sum of a results column over the repetitions; ``None`` when some repetition has none."""
        values = self.result_values(column)
        return sum(values) if values and len(values) == len(self.rows) else None

    @property
    def offered(self) -> float | None:
        """Operations/s that an open loop offered; ``None`` in a closed one, as loading is even in an open run."""
        if any("offered_operations_per_second" in row for row in self.rows):
            return self.result("offered_operations_per_second") or None
        facts = self.run.facts
        return facts.offered_operations_per_second if facts.loop == "open" and self.kind == "measure" else None

    def read(self, quantity: str, **labels: str) -> Reading | None:
        """A derived quantity over the phase; ``None`` when its columns were not sampled."""
        series = self.run.samples.find(quantity, **labels)
        return series.over(self.windows) if series else None

    def value(self, quantity: str, **labels: str) -> float | None:
        reading = self.read(quantity, **labels)
        return reading.value if reading else None

    def find(self, quantity: str, **labels: str) -> tuple[Series, float] | None:
        """A derived quantity and its value; ``None`` when that is not known."""
        series = self.run.samples.find(quantity, **labels)
        value = series.over(self.windows).value if series else None
        return None if series is None or value is None else (series, value)

    def evidence(
        self, series: Series, value: float, threshold: str | None = None, *, seconds: Windows | None = None
    ) -> Evidence:
        """A reading of the phase as evidence; ``threshold`` is the whole name of a line, ``limit.steal.doubt``."""
        line = None if threshold is None else self.run.thresholds.line(threshold)
        windows = self.windows if seconds is None else seconds
        return Evidence(series.columns, windows, series.name, value, series.quantity.unit, threshold, line)

    def result_evidence(
        self, columns: Sequence[str], value: float, unit: str, threshold: str | None = None
    ) -> Evidence:
        """A figure from results.parquet as evidence."""
        line = None if threshold is None else self.run.thresholds.line(threshold)
        return Evidence(tuple(columns), self.windows, columns[0], value, unit, threshold, line)

    def windows_above(self, series: Series, line: float) -> Windows:
        """The parts of the phase in which the series was at or above ``line``, in bins of about a second."""
        bin_seconds = self.run.thresholds.limit("window.seconds")
        found: list[tuple[float, float]] = []
        for start, end, value in series.bins(self.windows, bin_seconds):
            if value < line:
                continue
            if found and abs(found[-1][1] - start) < bin_seconds / 100:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start, end))
        return tuple(found)
