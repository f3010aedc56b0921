"""What a run says about power: watts of each phase and domain, joules an operation, idle and dynamic parts.

Watts and joules are of a domain (a package, the server); intervals are over repetitions, never over samples. What the
host's number is made of is its ``HostScope``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import polars as pl

from rackscope.analysis.context import Run
from rackscope.analysis.findings import plain
from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.analysis.power_domains import HostScope, MeterFault, Meters, choose_meters
from rackscope.analysis.power_trace import PowerTrace, power_traces
from rackscope.analysis.rates import Windows

#: Columns that ``results_with_energy`` adds, in base units.
ENERGY_COLUMNS = ("mean_watts", "energy_joules", "energy_joules_per_operation", "operations_per_joule")

#: ``before_load``: the window before the first phase, with the CPU idle. ``idle_phase``: a phase of that name.
#: ``quietest_second``: the lowest mean of a second in which the CPU was idle. ``lowest_second``: the lowest of all,
#: though the host was not idle in it: no less than idle.
IdleBasis = Literal["before_load", "idle_phase", "quietest_second", "lowest_second"]
_IDLE_WORDS: Mapping[IdleBasis, str] = {
    "before_load": "before the load began",
    "idle_phase": "in the idle phase",
    "quietest_second": "in the quietest second of the run, with the CPU idle",
    "lowest_second": "in the second that took least: the host was never idle, so idle takes no more than this",
}


@dataclass(frozen=True)
class DomainEnergy:
    """One domain over one phase. ``mean_watts`` is over repetitions; an estimate of NaN is not known (``reason``)."""

    domain: str
    meter: str
    #: Column of the samples that it was read from.
    column: str
    mean_watts: Interval
    #: Of all repetitions together; ``None`` when some of it is not known.
    energy_joules: float | None
    reason: str = ""


@dataclass(frozen=True)
class RepetitionEnergy:
    """The host in one repetition; ``None`` is what is not known."""

    repetition: int | None
    seconds: float
    mean_watts: float | None
    operations: float | None

    @property
    def energy_joules(self) -> float | None:
        return None if self.mean_watts is None else self.mean_watts * self.seconds

    @property
    def energy_joules_per_operation(self) -> float | None:
        return self.energy_joules / self.operations if self.energy_joules is not None and self.operations else None

    @property
    def operations_per_joule(self) -> float | None:
        """Throughput for each watt: the same as performance per watt."""
        return self.operations / self.energy_joules if self.energy_joules and self.operations else None


@dataclass(frozen=True)
class HostEnergy:
    """The host over one phase; intervals over repetitions, of 95 %."""

    mean_watts: Interval
    energy_joules: float | None
    energy_joules_per_operation: Interval | None
    operations_per_joule: Interval | None
    #: Mean watts less those of the idle host; ``None`` where idle is not known. Idle's own error is not in it.
    dynamic_watts: Interval | None
    dynamic_joules_per_operation: Interval | None
    repetitions: tuple[RepetitionEnergy, ...]
    reason: str = ""


@dataclass(frozen=True)
class PhaseEnergy:
    """One phase, all its repetitions that count. ``host`` is ``None`` where no domain speaks for the host."""

    phase: str
    kind: str
    seconds: tuple[tuple[float, float], ...]
    domains: tuple[DomainEnergy, ...]
    host: HostEnergy | None


@dataclass(frozen=True)
class IdlePower:
    """What the host takes with nothing to do, or the nearest to it that the run has."""

    watts: float
    basis: IdleBasis
    #: When, in seconds since the first phase began.
    seconds: tuple[float, float]
    domains: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_idle(self) -> bool:
        """Whether the host was idle then; else ``watts`` is an upper bound, and the dynamic part a lower one."""
        return self.basis != "lowest_second"

    @property
    def words(self) -> str:
        """When that was, for sentences."""
        return _IDLE_WORDS[self.basis]


@dataclass(frozen=True)
class RunEnergy:
    """The whole answer; metered, never modelled."""

    scope: HostScope | None
    idle: IdlePower | None
    phases: tuple[PhaseEnergy, ...]
    faults: tuple[MeterFault, ...]

    @property
    def has_watts(self) -> bool:
        """Whether some domain's watts are known in some phase."""
        return any(math.isfinite(one.mean_watts.estimate) for phase in self.phases for one in phase.domains)

    @property
    def host_is_known(self) -> bool:
        """Whether the host's watts are known in some phase."""
        hosts = [phase.host for phase in self.phases if phase.host is not None]
        return any(math.isfinite(host.mean_watts.estimate) for host in hosts)

    def phase(self, name: str, kind: str = "measure") -> PhaseEnergy | None:
        return next((one for one in self.phases if (one.phase, one.kind) == (name, kind)), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, strings and numbers; what is not known becomes null."""
        scope = None if self.scope is None else {**asdict(self.scope), "sentence": self.scope.sentence}
        idle = None if self.idle is None else {**asdict(self.idle), "is_idle": self.idle.is_idle}
        phases = [asdict(phase) for phase in self.phases]
        content = {"source": "metered", "host_scope": scope, "idle": idle, "phases": phases}
        content["faults"] = [asdict(fault) for fault in self.faults]
        return {name: plain(value) for name, value in content.items()}


def measure_energy(run: Run) -> RunEnergy | None:
    """Watts and joules of every phase of a run; ``None`` when no meter was ever read."""
    traces = power_traces(run.samples)
    if not traces:
        return None
    meters = choose_meters(traces, run.samples, run.thresholds)
    read = _Reader(meters, run.thresholds.limit("power.coverage"))
    operations = {
        (row.get("phase"), row.get("kind"), row.get("repetition")): _number(row.get("operations"))
        for row in run.results
    }
    idle = _idle(run, read)
    phases = []
    for phase in run.phases():
        repetitions = tuple(
            _repetition(read, number, window, operations.get((phase.name, phase.kind, number)))
            for number, window in zip(phase.numbers, phase.windows, strict=True)
        )
        domains = tuple(_domain(read, trace, phase.windows, run.facts.sequential) for trace in meters.traces.values())
        known = meters.scope is not None
        host = _host(read, phase.windows, repetitions, idle, run.facts.sequential) if known else None
        phases.append(PhaseEnergy(phase.name, phase.kind, phase.windows, domains, host))
    return RunEnergy(meters.scope, idle, tuple(phases), meters.faults)


def results_with_energy(run: Run, results: pl.DataFrame) -> pl.DataFrame:
    """The results with ``mean_watts``, ``energy_joules``, ``energy_joules_per_operation`` and ``operations_per_joule``
    of the host in each row, null where not known. Unchanged when no meter speaks for the host."""
    meters = choose_meters(power_traces(run.samples), run.samples, run.thresholds)
    if meters.scope is None or results.is_empty():
        return results
    read = _Reader(meters, run.thresholds.limit("power.coverage"))
    columns: dict[str, list[float | None]] = {name: [] for name in ENERGY_COLUMNS}
    for row in results.to_dicts():
        start, end = (((row.get(name) or 0) - run.facts.start_ns) / 1e9 for name in ("start_ns", "end_ns"))
        one = _repetition(read, row.get("repetition"), (start, end), _number(row.get("operations")))
        for name, values in columns.items():
            values.append(getattr(one, name))
    return results.with_columns(pl.Series(name, values, dtype=pl.Float64) for name, values in columns.items())


class _Reader:
    """Watts over windows, with the reason where they are not known."""

    def __init__(self, meters: Meters, coverage: float) -> None:
        self.meters = meters
        self._coverage = coverage

    def watts(self, trace: PowerTrace, start: float, end: float) -> tuple[float | None, str]:
        energy = trace.over(start, end)
        if energy.coverage < self._coverage:
            read = f"{trace.name} was read in {energy.seconds:.1f} of {energy.wanted_seconds:.1f} s"
            return None, f"{read} only: what it took in the rest is not known"
        if trace.counts and energy.joules == 0:
            return None, f"the energy counter of {trace.name} did not change"
        return energy.watts, ""

    def host_watts(self, start: float, end: float) -> tuple[float | None, str]:
        if self.meters.scope is None:
            return None, ""
        total = 0.0
        for domain in self.meters.scope.domains:
            value, reason = self.watts(self.meters.traces[domain], start, end)
            if value is None:
                return None, reason
            total += value
        return total, ""


def _domain(read: _Reader, trace: PowerTrace, windows: Windows, sequential: bool) -> DomainEnergy:
    found = [read.watts(trace, *window) for window in windows]
    reason = next((why for value, why in found if value is None), "")
    lengths = [end - start for start, end in windows]
    joules = _sum([None if value is None else value * long for (value, _), long in zip(found, lengths, strict=True)])
    interval = mean_interval([value for value, _ in found if value is not None], sequential=sequential)
    return DomainEnergy(trace.domain, trace.meter, trace.column, interval, joules, reason)


def _repetition(
    read: _Reader, number: int | None, window: tuple[float, float], operations: float | None
) -> RepetitionEnergy:
    return RepetitionEnergy(number, window[1] - window[0], read.host_watts(*window)[0], operations)


def _host(
    read: _Reader,
    windows: Windows,
    repetitions: tuple[RepetitionEnergy, ...],
    idle: IdlePower | None,
    sequential: bool,
) -> HostEnergy:
    reason = next((why for window in windows if (why := read.host_watts(*window)[1])), "")

    def over(value: Callable[[RepetitionEnergy], float | None]) -> Interval | None:
        known = [found for one in repetitions if (found := value(one)) is not None]
        return mean_interval(known, sequential=sequential) if known else None

    def dynamic_watts(one: RepetitionEnergy) -> float | None:
        return None if idle is None or one.mean_watts is None else one.mean_watts - idle.watts

    def dynamic_joules(one: RepetitionEnergy) -> float | None:
        watts = dynamic_watts(one)
        return watts * one.seconds / one.operations if watts is not None and one.operations else None

    return HostEnergy(
        mean_watts=over(lambda one: one.mean_watts) or mean_interval([]),
        energy_joules=_sum([one.energy_joules for one in repetitions]),
        energy_joules_per_operation=over(lambda one: one.energy_joules_per_operation),
        operations_per_joule=over(lambda one: one.operations_per_joule),
        dynamic_watts=over(dynamic_watts),
        dynamic_joules_per_operation=over(dynamic_joules),
        repetitions=repetitions,
        reason=reason,
    )


def _idle(run: Run, read: _Reader) -> IdlePower | None:
    if read.meters.scope is None or not len(run.samples.seconds):
        return None
    least = run.thresholds.limit("power.idle_seconds")
    line = run.thresholds.limit("power.idle_busy")
    busy = run.samples.find("cpu_busy_ratio")

    def is_quiet(start: float, end: float) -> bool:
        value = busy.over(((start, end),)).value if busy else None
        return value is not None and value <= line

    def power(basis: IdleBasis, start: float, end: float) -> IdlePower | None:
        watts, _ = read.host_watts(start, end)
        if watts is None:
            return None
        domains = {name: read.watts(trace, start, end)[0] for name, trace in read.meters.traces.items()}
        return IdlePower(watts, basis, (start, end), {name: one for name, one in domains.items() if one is not None})

    # The first reading of each meter may be later than the first sample.
    traces = [read.meters.traces[name] for name in read.meters.scope.domains]
    first = max(float(trace.times[0]) for trace in traces)
    last = min(float(trace.times[-1]) for trace in traces)
    phases = run.phases()
    begun = min((phase.windows[0][0] for phase in phases), default=last)
    if begun - first >= least and is_quiet(first, begun) and (found := power("before_load", first, begun)):
        return found
    for window in (window for phase in phases if phase.name == "idle" for window in phase.windows):
        if found := power("idle_phase", *window):
            return found
    width = max(least, 1.0)
    seconds = [(first + place * width, first + (place + 1) * width) for place in range(int((last - first) / width))]
    known = [(watts, window) for window in seconds if (watts := read.host_watts(*window)[0]) is not None]
    if not known:
        return None
    quiet = [(watts, window) for watts, window in known if is_quiet(*window)]
    _, window = min(quiet or known)
    return power("quietest_second" if quiet else "lowest_second", *window)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known and len(known) == len(values) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
