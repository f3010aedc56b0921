"""What the host did: CPU, memory (the legend of Awasthi 2015, Table 3), stalls, processes."""

from __future__ import annotations

import numpy as np

from rackscope.report.charts import Colour, Panel, Style
from rackscope.report.panels.source import PanelSource
from rackscope.report.quantities import format_quantity

#: Above this share of the installed memory the axis reaches up to all of it.
_SHOW_WHOLE_MEMORY = 0.3

_CPU_STATES: tuple[tuple[str, tuple[str, ...], Colour, str], ...] = (
    ("user", ("user", "nice"), "blue", "programs"),
    ("system", ("system",), "teal", "the kernel, called by programs"),
    ("interrupts", ("irq", "softirq"), "magenta", "hardware and software interrupts, receiving packets among them"),
    ("wait", ("iowait",), "yellow", "idle while a disk request was outstanding"),
    ("steal", ("steal",), "red", "used by other guests of the same machine (steal)"),
)


def cpu(source: PanelSource) -> Panel:
    """User, system, interrupts, wait and steal, stacked; the busiest core where the average would hide it."""
    samples, drawing = source.samples, source.host
    series = []
    for label, states, colour, explanation in _CPU_STATES:
        parts = [derived for state in states if (derived := samples.find("cpu_ratio", state=state)) is not None]
        if parts:
            series.append(drawing.sum(label, parts, colour, "area", factor=100, explanation=explanation))
    pinned = samples.find("cpu_set_busy_ratio", set="system")
    if series and pinned is not None:
        label, explanation = f"{source.system}'s cores", "busy, of those that it was given"
        series.append(drawing.sum(label, [pinned], "ink", "dashed", factor=100, explanation=explanation))
    cores = [drawing.values(core) for core in samples.find_all("cpu_core_busy_ratio")]
    if series and len(cores) > 1:
        busiest = 100 * np.fmax.reduce(np.array(cores), axis=0)
        series.append(drawing.series("busiest core", busiest, "ink", "dotted", explanation="at each moment"))
    return source.panel(
        "cpu",
        "CPU",
        f"percent of {len(cores)} core{'s' if len(cores) != 1 else ''}" if cores else "percent of all cores",
        "percent",
        series,
        metrics=("cpu_seconds_total",),
        maximum=100,
    )


_MEMORY_STACK: tuple[tuple[str, Colour, str], ...] = (
    ("anonymous", "blue", "heaps and stacks of programs"),
    ("slab", "magenta", "objects of the kernel"),
    ("buffers", "yellow", "disk blocks outside of files"),
    ("cached", "teal", "contents of files, mapped ones included"),
)
_MEMORY_OVERLAP: tuple[tuple[str, Style, str], ...] = (
    ("mapped", "dashed", "files mapped into programs; part of cached"),
    ("inactive", "dotted", "not used for a while, first to be reclaimed; part of anonymous and cached"),
)


def memory(source: PanelSource) -> Panel:
    """What does not overlap is stacked; mapped and inactive, which do, are lines."""
    samples, drawing = source.samples, source.host
    read = {
        kind: drawing.clock.place(drawing.clock.rows, samples.values(name)[drawing.clock.rows])
        for kind in ("total", *(row[0] for row in (*_MEMORY_STACK, *_MEMORY_OVERLAP)))
        if (name := f'memory_bytes{{kind="{kind}"}}') in samples.frame.columns
    }
    known = {kind: values for kind, values in read.items() if np.isfinite(values).any()}
    series = [
        drawing.series(kind, known[kind], colour, "area", explanation=explanation)
        for kind, colour, explanation in _MEMORY_STACK
        if kind in known
    ]
    stacked = np.nansum([known[kind] for kind, _, _ in _MEMORY_STACK if kind in known], axis=0) if series else None
    series += [
        drawing.series(kind, known[kind], "ink", style, explanation=explanation)
        for kind, style, explanation in _MEMORY_OVERLAP
        if kind in known
    ]
    caption, maximum = "in use", None
    if "total" in known and stacked is not None:
        total = float(np.nanmax(known["total"]))
        caption = f"in use, of {format_quantity(total, 'bytes')} installed; mapped and inactive overlap the stack"
        maximum = total if float(stacked.max()) > _SHOW_WHOLE_MEMORY * total else None
    return source.panel(
        "memory",
        "Memory",
        caption,
        "bytes",
        series,
        metrics=("memory_bytes",),
        maximum=maximum,
    )


_STALLS: tuple[tuple[str, str, Colour, Style], ...] = (
    ("cpu", "CPU", "blue", "area"),
    ("memory", "memory", "magenta", "line"),
    ("io", "disk", "orange", "line"),
)


def pressure(source: PanelSource) -> Panel:
    """Pressure stall information: the share of time in which some task waited."""
    samples, drawing = source.samples, source.host
    series = [
        drawing.sum(label, [derived], colour, style, factor=100)
        for resource, label, colour, style in _STALLS
        if (derived := samples.find("pressure_ratio", resource=resource, share="some")) is not None
    ]
    return source.panel(
        "pressure",
        "Stalls",
        "percent of time in which some task waited for the resource",
        "percent",
        series,
        metrics=("pressure_stall_seconds_total",),
    )


_PROCESS_COLOURS: tuple[Colour, ...] = ("blue", "orange", "magenta", "teal", "yellow")


def processes(source: PanelSource) -> Panel:
    """Cores that each process tree used. Not stacked: a tree can lie within another."""
    drawing = source.host
    names = {"system": source.system, "rackscope": "rackscope and all it started"}
    trees = sorted(source.samples.find_all("process_cpu_cores"), key=lambda tree: tree.labels["process"] != "system")
    series = [
        drawing.sum(names.get(label, label), [derived], colour, "line" if position else "area")
        for position, (derived, colour) in enumerate(zip(trees, _PROCESS_COLOURS, strict=False))
        if (label := derived.labels["process"])
    ]
    return source.panel(
        "processes",
        "CPU by process",
        "cores in use by process trees",
        "cores",
        series,
        metrics=("process_cpu_seconds_total",),
    )
