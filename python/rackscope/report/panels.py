"""The panels over time: what each is made of, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rackscope.report.charts import Colour, Missing, Panel, PhaseSummary, Reference, Series, Style
from rackscope.report.quantities import Unit, format_quantity
from rackscope.report.timeline import Array, Buckets, Timeline
from rackscope.report.window import PhaseGroup

#: A CPU moves whole cache lines; every CPU that rackscope runs on has lines of 64 bytes.
CACHE_LINE_BYTES = 64
#: A device or an interface that never moved this much a second is not worth a line.
QUIET_BYTES_PER_SECOND = 2_000.0
MAXIMUM_DEVICES = 3
_STYLES: tuple[Style, ...] = ("line", "dashed", "dotted")


@dataclass(frozen=True)
class PanelSource:
    """What panels are built from."""

    host: Timeline
    load: Timeline
    groups: tuple[PhaseGroup, ...]
    #: Probe name to why it does not read here and what it needs.
    missing_probes: Mapping[str, Missing]
    ceilings: Mapping[str, float] = field(default_factory=dict)
    offered_operations_per_second: float | None = None
    loop: str = "closed"
    system: str = "system"

    def missing(self, *probes: str, otherwise: str) -> Missing:
        """Why a panel has nothing to show: what its probe said, or that the run holds no such samples."""
        for probe in probes:
            if probe in self.missing_probes:
                return self.missing_probes[probe]
        return Missing(otherwise)


class _Builder:
    """Turns full-resolution values into series of one clock: summaries of all, points of as many as are drawn."""

    def __init__(self, timeline: Timeline, groups: Sequence[PhaseGroup]) -> None:
        self.timeline = timeline
        self.groups = groups
        self.buckets = Buckets.of(timeline.seconds)
        self._masks = [timeline.inside(group.spans) for group in groups]

    def series(
        self,
        label: str,
        values: Array,
        colour: Colour,
        style: Style = "line",
        *,
        worst: bool = False,
        band: bool = False,
        help: str = "",  # noqa: A002 - the field is called so
    ) -> Series:
        summaries = tuple(_summary(values[mask]) for mask in self._masks)
        drawn = self.buckets.gather(values, "maximum" if worst else "mean")
        edges = None
        if band and self.buckets.width_seconds is not None:
            edges = (self.buckets.gather(values, "minimum"), self.buckets.gather(values, "maximum"))
        return Series(label, drawn, colour, style, edges, summaries, help)


def _summary(values: Array) -> PhaseSummary:
    read = values[~np.isnan(values)]
    if len(read) == 0:
        return PhaseSummary(None, None, None)
    return PhaseSummary(float(read.mean()), float(read.min()), float(read.max()))


def build_panels(source: PanelSource) -> tuple[Panel, ...]:
    """All panels; one whose samples are missing says why."""
    host, load = _Builder(source.host, source.groups), _Builder(source.load, source.groups)
    return (
        _throughput(source, load),
        _latency(source, load),
        _cpu(source, host),
        _memory(source, host),
        _disk(source, host),
        _network(source, host),
        _pressure(source, host),
        _processes(source, host),
        _cycles_per_instruction(source, host),
        _dram_bandwidth(source, host),
    )


def bucket_widths(source: PanelSource) -> tuple[float | None, float | None]:
    """Width of a bucket of the host's and of the generator's samples; None where every sample is drawn."""
    return Buckets.of(source.host.seconds).width_seconds, Buckets.of(source.load.seconds).width_seconds


def _phase_names(groups: Sequence[PhaseGroup]) -> tuple[str, ...]:
    return tuple(group.name for group in groups)


def _throughput(source: PanelSource, builder: _Builder) -> Panel:
    values = source.load.column("load_throughput_operations_per_second")
    title, unit = "Throughput", "operations per second"
    if values is None:
        return _absent(
            "throughput", title, unit, "operations_per_second", source.missing(otherwise="No load was sampled.")
        )
    series = [builder.series("completed", values, "blue", "area", band=True)]
    errors = source.load.counter_rate("load_errors_total")
    if errors is not None and np.nanmax(errors, initial=0.0) > 0:
        series.append(builder.series("errors", errors, "red", worst=True))
    references: tuple[Reference, ...] = ()
    if source.offered_operations_per_second is not None:
        references = (Reference("offered", source.offered_operations_per_second),)
    return Panel(
        "throughput",
        title,
        unit,
        "operations_per_second",
        "load",
        tuple(series),
        references=references,
        phases=_phase_names(source.groups),
    )


_QUANTILES: tuple[tuple[str, str, Colour, Style], ...] = (
    ("1", "maximum", "grey", "dotted"),
    ("0.999", "p99.9", "red", "line"),
    ("0.99", "p99", "magenta", "line"),
    ("0.9", "p90", "blue", "line"),
    ("0.5", "p50", "teal", "line"),
)


def _latency(source: PanelSource, builder: _Builder) -> Panel:
    series = []
    for quantile, label, colour, style in _QUANTILES:
        values = source.load.column(f'load_response_seconds{{quantile="{quantile}"}}')
        if values is not None:
            positive = np.where(values > 0, values, np.nan)
            series.append(builder.series(label, positive, colour, style, worst=quantile not in ("0.5", "0.9")))
    title = "Response time"
    loop = "from intended start" if source.loop == "open" else "closed loop"
    if not series:
        return _absent("latency", title, loop, "seconds", source.missing(otherwise="No latency was sampled."))
    return Panel(
        "latency",
        title,
        f"{loop}, log scale",
        "seconds",
        "load",
        tuple(series),
        scale="logarithmic",
        phases=_phase_names(source.groups),
    )


_CPU_STATES: tuple[tuple[str, tuple[str, ...], Colour, str], ...] = (
    ("user", ("user", "nice"), "blue", "programs"),
    ("system", ("system",), "teal", "the kernel on behalf of programs"),
    ("interrupts", ("irq", "softirq"), "magenta", "hardware and software interrupts, network receive among them"),
    ("wait", ("iowait",), "yellow", "idle while a disk request was outstanding"),
    ("steal", ("steal",), "red", "taken by other guests of the same machine"),
)
_CPU_IDLE = ("idle", "iowait")


def _cpu(source: PanelSource, builder: _Builder) -> Panel:
    host = source.host
    rates = {
        labels.get("state", ""): host.rate(values) for labels, values in host.labelled("cpu_seconds_total")
    }
    title, caption = "CPU", "percent of all cores"
    if not rates or source.host.is_empty:
        return _absent("cpu", title, caption, "percent", source.missing("cpu", otherwise="CPU time was not sampled."))
    total = np.sum(list(rates.values()), axis=0)
    series = []
    with np.errstate(invalid="ignore", divide="ignore"):
        for label, states, colour, explanation in _CPU_STATES:
            parts = [rates[state] for state in states if state in rates]
            if parts:
                share = 100 * np.sum(parts, axis=0) / total
                series.append(builder.series(label, share, colour, "area", help=explanation))
    busiest = _busiest_core(host)
    if busiest is not None:
        series.append(builder.series("busiest core", busiest, "ink", "dashed", help="the core that worked hardest"))
    cores = len({labels.get("core") for labels, _ in host.labelled("cpu_core_seconds_total")})
    if cores:
        caption = f"percent of {cores} core{'s' if cores != 1 else ''}"
    return Panel(
        "cpu", title, caption, "percent", "host", tuple(series), maximum=100, phases=_phase_names(source.groups)
    )


def _busiest_core(host: Timeline) -> Array | None:
    cores: dict[str, dict[str, Array]] = {}
    for labels, values in host.labelled("cpu_core_seconds_total"):
        cores.setdefault(labels.get("core", ""), {})[labels.get("state", "")] = host.rate(values)
    if len(cores) < 2:
        return None
    busy = []
    with np.errstate(invalid="ignore", divide="ignore"):
        for states in cores.values():
            total = np.sum(list(states.values()), axis=0)
            idle = np.sum([states[state] for state in _CPU_IDLE if state in states], axis=0)
            busy.append(100 * (total - idle) / total)
    return _ignoring_unread(np.array(busy), np.fmax)


def _ignoring_unread(rows: Array, combine: np.ufunc) -> Array:
    result: Array = combine.reduce(rows, axis=0)
    return result


_MEMORY_STACK: tuple[tuple[str, str, Colour, str], ...] = (
    ("anonymous", "anonymous", "blue", "heaps and stacks of programs (the paper's Map is this and mapped files)"),
    ("slab", "slab", "magenta", "kernel objects"),
    ("buffers", "buffers", "yellow", "disk blocks outside of files"),
    ("cached", "cached", "teal", "contents of files, mapped ones included"),
)


def _memory(source: PanelSource, builder: _Builder) -> Panel:
    kinds = {labels.get("kind", ""): values for labels, values in source.host.labelled("memory_bytes")}
    title = "Memory"
    if "anonymous" not in kinds and "cached" not in kinds:
        missing = source.missing("memory", otherwise="Memory was not sampled.")
        return _absent("memory", title, "bytes in use", "bytes", missing)
    series = [
        builder.series(label, kinds[kind], colour, "area", help=explanation)
        for label, kind, colour, explanation in _MEMORY_STACK
        if kind in kinds
    ]
    overlays: tuple[tuple[str, Style, str], ...] = (
        ("mapped", "dashed", "files mapped into programs; part of cached"),
        ("inactive", "dotted", "not used for a while, the first to be reclaimed; part of anonymous and cached"),
    )
    for kind, style, explanation in overlays:
        if kind in kinds:
            series.append(builder.series(kind, kinds[kind], "ink", style, help=explanation))
    caption, references, maximum = "bytes in use", (), None
    if "total" in kinds:
        total = float(np.nanmax(kinds["total"]))
        stacked = np.nansum([kinds[kind] for _, kind, _, _ in _MEMORY_STACK if kind in kinds], axis=0)
        caption = f"of {format_quantity(total, 'bytes')} installed"
        if len(stacked) and float(stacked.max()) > 0.3 * total:
            maximum = total
    return Panel(
        "memory",
        title,
        caption,
        "bytes",
        "host",
        tuple(series),
        maximum=maximum,
        references=references,
        phases=_phase_names(source.groups),
        footnote="Mapped and inactive overlap the stack, so they are lines.",
    )


def _disk(source: PanelSource, builder: _Builder) -> Panel:
    return _directions(
        source,
        builder,
        identifier="disk",
        title="Disk",
        probe="disk",
        label="device",
        quiet="No disk moved data worth a line.",
        directions=(("read", "disk_read_bytes_total", "blue"), ("write", "disk_write_bytes_total", "orange")),
    )


def _network(source: PanelSource, builder: _Builder) -> Panel:
    return _directions(
        source,
        builder,
        identifier="network",
        title="Network",
        probe="network",
        label="interface",
        quiet="No interface moved data worth a line.",
        directions=(
            ("in", "network_receive_bytes_total", "blue"),
            ("out", "network_transmit_bytes_total", "orange"),
        ),
    )


def _directions(
    source: PanelSource,
    builder: _Builder,
    *,
    identifier: str,
    title: str,
    probe: str,
    label: str,
    quiet: str,
    directions: tuple[tuple[str, str, Colour], ...],
) -> Panel:
    """Two directions of the few devices that moved most; the rest are counted in the caption."""
    rates: dict[str, dict[str, Array]] = {}
    for direction, metric, _ in directions:
        for labels, values in source.host.labelled(metric):
            rates.setdefault(labels.get(label, ""), {})[direction] = source.host.rate(values)
    caption = "bytes per second"
    if not rates:
        missing = source.missing(probe, otherwise=f"{title} traffic was not sampled.")
        return _absent(identifier, title, caption, "bytes_per_second", missing)
    weight = {name: sum(float(np.nansum(rate)) for rate in parts.values()) for name, parts in rates.items()}
    peak = {name: max(float(np.nanmax(rate, initial=0.0)) for rate in parts.values()) for name, parts in rates.items()}
    ranked = sorted(rates, key=lambda name: -weight[name])
    active = [name for name in ranked if peak[name] >= QUIET_BYTES_PER_SECOND][:MAXIMUM_DEVICES] or ranked[:1]
    series = []
    for name, style in zip(active, _STYLES, strict=False):
        for direction, _, colour in directions:
            if direction in rates[name]:
                series.append(builder.series(f"{name} {direction}", rates[name][direction], colour, style))
    others = len(rates) - len(active)
    if others:
        caption += f"; {others} quieter {label}{'s' if others != 1 else ''} left out"
    return Panel(
        identifier,
        title,
        caption,
        "bytes_per_second",
        "host",
        tuple(series),
        phases=_phase_names(source.groups),
        footnote="" if any(peak[name] >= QUIET_BYTES_PER_SECOND for name in rates) else quiet,
    )


def _pressure(source: PanelSource, builder: _Builder) -> Panel:
    rates = {
        (labels.get("resource"), labels.get("share")): source.host.rate(values)
        for labels, values in source.host.labelled("pressure_stall_seconds_total")
    }
    title, caption = "Stalls", "percent of time that some task waited for a resource"
    wanted: tuple[tuple[str, Colour, Style], ...] = (
        ("cpu", "blue", "line"),
        ("memory", "magenta", "line"),
        ("io", "orange", "line"),
    )
    series = [
        builder.series("disk" if resource == "io" else resource, 100 * rates[(resource, "some")], colour, style)
        for resource, colour, style in wanted
        if (resource, "some") in rates
    ]
    if not series:
        missing = source.missing("pressure", otherwise="Pressure stalls were not sampled.")
        return _absent("pressure", title, caption, "percent", missing)
    return Panel("pressure", title, caption, "percent", "host", tuple(series), phases=_phase_names(source.groups))


def _processes(source: PanelSource, builder: _Builder) -> Panel:
    used: dict[str, Array] = {}
    for labels, values in source.host.labelled("process_cpu_seconds_total"):
        name, rate = labels.get("process", ""), source.host.rate(values)
        used[name] = used[name] + rate if name in used else rate
    title, caption = "CPU by process", "cores in use"
    if not used:
        missing = source.missing("process", otherwise="Processes were not sampled.")
        return _absent("processes", title, caption, "cores", missing)
    names = {"system": source.system, "rackscope": "rackscope (generator and sampler)"}
    colours: tuple[Colour, ...] = ("blue", "yellow", "magenta", "teal", "orange")
    series = [
        builder.series(names.get(name, name), rate, colour, "area")
        for (name, rate), colour in zip(used.items(), colours, strict=False)
    ]
    return Panel("processes", title, caption, "cores", "host", tuple(series), phases=_phase_names(source.groups))


_SCOPES: tuple[tuple[str, Colour, Style], ...] = (("host", "blue", "line"), ("system", "orange", "line"))


def _cycles_per_instruction(source: PanelSource, builder: _Builder) -> Panel:
    series = []
    for scope, colour, style in _SCOPES:
        cycles = source.host.counter_rate(f'perf_cycles_total{{scope="{scope}"}}')
        instructions = source.host.counter_rate(f'perf_instructions_total{{scope="{scope}"}}')
        if cycles is not None and instructions is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                values = np.where(instructions > 0, cycles / instructions, np.nan)
            series.append(builder.series(_scope_label(scope, source), values, colour, style))
    title, caption = "CPI", "cycles per instruction; lower does more with each cycle"
    if not series:
        missing = source.missing("perf", otherwise="Cycles and instructions were not counted.")
        return _absent("cpi", title, caption, "ratio", missing)
    return Panel("cpi", title, caption, "ratio", "host", tuple(series), phases=_phase_names(source.groups))


def _dram_bandwidth(source: PanelSource, builder: _Builder) -> Panel:
    series = []
    for scope, colour, style in _SCOPES:
        fills = source.host.counter_rate(f'perf_dram_fills_total{{scope="{scope}"}}')
        if fills is not None:
            series.append(builder.series(_scope_label(scope, source), fills * CACHE_LINE_BYTES, colour, style))
    title, caption = "DRAM bandwidth", "bytes per second that the cores read from memory"
    if not series:
        missing = source.missing("perf", otherwise="This CPU's DRAM fills were not counted.")
        return _absent("dram-bandwidth", title, caption, "bytes_per_second", missing)
    ceiling = source.ceilings.get("dram_read_bytes_per_second")
    references = (Reference("measured ceiling", ceiling),) if ceiling else ()
    return Panel(
        "dram-bandwidth",
        title,
        caption,
        "bytes_per_second",
        "host",
        tuple(series),
        references=references,
        phases=_phase_names(source.groups),
    )


def _scope_label(scope: str, source: PanelSource) -> str:
    return "whole host" if scope == "host" else source.system


def _absent(identifier: str, title: str, caption: str, unit: Unit, missing: Missing) -> Panel:
    return Panel(identifier, title, caption, unit, "host", missing=missing)
