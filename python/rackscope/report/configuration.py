"""What ran and where: settings, host, probes, what rackscope itself cost, how to do it again."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rackscope.analysis.columns import split_column
from rackscope.report.quantities import format_quantity
from rackscope.runs.manifest import ClientPart, Manifest, OverheadPart

#: Rows that a nested inventory may take; what is longer is in manifest.json.
MAXIMUM_HOST_ROWS = 160


@dataclass(frozen=True)
class Row:
    """A term and what it is; ``depth`` indents parts of something."""

    term: str
    value: str
    depth: int = 0


@dataclass(frozen=True)
class Knob:
    """A setting of the system, its default, and why it is what it is."""

    name: str
    value: str
    default: str
    source: str


def configuration_of(manifest: Manifest) -> dict[str, Any]:
    """All of it as text, as the templates name it; ``settings`` are tables of rows by their headings."""
    return {
        "settings": {
            "System": _system(manifest),
            "Workload": _workload(manifest),
            "Client": _client(manifest.client),
            "Repetition": _repetition(manifest),
        },
        "knobs": _knobs(manifest),
        "host_summary": host_summary(manifest.host),
        "host": inventory_of(manifest.host, "manifest.json"),
        "probes": sorted(manifest.probes, key=lambda probe: probe.status == "ok"),
        "overhead": _overhead(manifest.overhead),
        "ceilings": _ceilings(manifest),
        "command": shlex.join(manifest.command_line),
    }


def list_metric_names(columns: Iterable[str]) -> str:
    """Metrics without their labels, each once."""
    return ", ".join(dict.fromkeys(column.partition("{")[0] for column in columns))


def host_summary(host: Mapping[str, Any]) -> str:
    """One line about the machine, of whatever the inventory holds."""
    parts = []
    model = host.get("cpu_model")
    if isinstance(model, str):
        parts.append(model)
    cores = host.get("online_cores")
    if isinstance(cores, list):
        cores = len(cores)
    if isinstance(cores, int):
        parts.append(f"{cores} core{'s' if cores != 1 else ''}")
    memory = host.get("memory_total_bytes")
    if isinstance(memory, int | float):
        parts.append(format_quantity(float(memory), "bytes"))
    kernel = host.get("kernel")
    if isinstance(kernel, str):
        parts.append(f"Linux {kernel}" if kernel[:1].isdigit() else kernel)
    return ", ".join(parts)


def _rows(pairs: Iterable[tuple[str, Any]]) -> tuple[Row, ...]:
    return tuple(Row(term, text) for term, value in pairs if (text := _text(value)))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(item)}" for name, item in value.items())
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 10_000 else str(value)


def _system(manifest: Manifest) -> tuple[Row, ...]:
    system = manifest.system
    return _rows(
        [
            ("name", system.name),
            ("version", system.version),
            ("from", system.origin),
            ("program", system.program),
            ("command", shlex.join(system.command)),
            ("cores", system.cores or "any"),
            ("endpoint", system.endpoint),
            ("ready after", None if system.ready_seconds is None else format_quantity(system.ready_seconds, "seconds")),
        ]
    )


def _knobs(manifest: Manifest) -> tuple[Knob, ...]:
    """Those that were changed first."""
    knobs = [
        Knob(name, _readable_size(knob.value), _readable_size(knob.default), knob.source)
        for name, knob in manifest.system.knobs.items()
    ]
    return tuple(sorted(knobs, key=lambda knob: (knob.source == "default", knob.name)))


def _readable_size(value: str) -> str:
    """``4294967296 (4.00 GiB)``."""
    if value.isascii() and value.isdigit() and int(value) >= 1024**2 and int(value) % 1024 == 0:
        return f"{value} ({format_quantity(float(value), 'bytes')})"
    return value


def _workload(manifest: Manifest) -> tuple[Row, ...]:
    workload = manifest.workload
    pairs: list[tuple[str, Any]] = [
        ("name", workload.name),
        ("what", workload.description),
        ("after", workload.source),
    ]
    pairs += [(name.replace("_", " "), value) for name, value in workload.parameters.items()]
    pairs += [("note", note) for note in workload.notes]
    return _rows(pairs)


def _client(client: ClientPart) -> tuple[Row, ...]:
    if client.loop == "open":
        rate = format_quantity(client.rate_per_second, "operations/s")
        loop = f"open, {client.arrivals or 'poisson'} arrivals at {rate}; latency counts from the intended start"
    else:
        loop = (
            "closed: each connection waits for its responses, so latency hides what a stall would cost an open client"
        )
    return _rows(
        [
            ("loop", loop),
            ("protocol", client.protocol.replace("_", " ")),
            ("connections", client.connections),
            ("pipeline", client.pipeline),
            ("keys a read", client.multiget),
            ("cores", client.cores or "any"),
            ("seed", str(client.seed)),
            ("values checked", client.verify),
        ]
    )


def _repetition(manifest: Manifest) -> tuple[Row, ...]:
    part = manifest.repetition
    return _rows(
        [
            ("measured phase", format_quantity(part.duration_seconds, "seconds")),
            ("repetitions", part.achieved),
            ("stopped because", part.stopping_reason),
            ("interval wanted", f"± {100 * part.target_relative_half_width:.2g} %"),
            ("budget", None if part.budget_seconds is None else format_quantity(part.budget_seconds, "seconds")),
            *(("discarded", reason) for reason in part.discarded),
        ]
    )


def _overhead(overhead: OverheadPart) -> tuple[Row, ...]:
    cpu, wall = overhead.sampler_cpu_seconds, overhead.sampler_wall_seconds
    ticks, missed = overhead.sampler_ticks, overhead.sampler_missed_ticks
    interval = overhead.sampler_interval_seconds
    return _rows(
        [
            ("sampler", None if cpu is None or not wall else f"{100 * cpu / wall:.2g} % of one core"),
            ("sampled every", None if interval is None else format_quantity(interval, "seconds")),
            ("ticks missed", None if ticks is None or missed is None else f"{missed:,} of {ticks:,}"),
            ("latest tick", _seconds(overhead.sampler_worst_lateness_seconds, " late")),
            ("load generator", _seconds(overhead.generator_cpu_seconds, " of CPU time, on the client's cores")),
            ("rackscope in all", _seconds(overhead.rackscope_cpu_seconds, " of CPU time")),
        ]
    )


def _seconds(value: float | None, rest: str) -> str | None:
    return None if value is None else f"{format_quantity(value, 'seconds')}{rest}"


_CEILING_UNITS = (
    ("_bytes_per_second", "bytes/s"),
    ("_operations_per_second", "operations/s"),
    ("_requests_per_second", "operations/s"),
    ("_seconds", "seconds"),
    ("_per_second", "operations/s"),
)


def _ceilings(manifest: Manifest) -> tuple[Row, ...]:
    rows = []
    for column, value in sorted(manifest.ceilings.values.items()):
        name, labels = split_column(column)
        suffix, unit = next((pair for pair in _CEILING_UNITS if name.endswith(pair[0])), ("", "count"))
        kept = suffix if suffix in ("_operations_per_second", "_requests_per_second") else ""
        term = (name.removesuffix(suffix) + kept.removesuffix("_per_second")).replace("_", " ")
        term = " ".join([term.replace("dram", "DRAM"), *labels.values()])
        untrusted = manifest.ceilings.untrusted.get(column)
        text = format_quantity(value, unit)
        rows.append(Row(term, f"{text} (not trusted: {untrusted})" if untrusted else text))
    return tuple(rows)


_INVENTORY_UNITS = {"_bytes_per_second": "bytes/s", "_bytes": "bytes", "_hertz": "hertz", "_seconds": "seconds"}


def inventory_of(host: Mapping[str, Any], file: str) -> tuple[Row, ...]:
    """The inventory as indented rows; what could not be read is named at the end. ``file`` is where all of it is."""
    unread: list[str] = []
    rows = list(_tree(host, "", unread))
    if len(rows) > MAXIMUM_HOST_ROWS:
        rows = [*rows[:MAXIMUM_HOST_ROWS], Row("", f"the rest is in {file}")]
    return (*rows, Row("could not be read", ", ".join(unread))) if unread else tuple(rows)


def _tree(value: Mapping[str, Any], path: str, unread: list[str], depth: int = 0) -> Iterable[Row]:
    for name, item in value.items():
        term, text = _leaf(str(name), item)
        if item is None:
            unread.append(f"{path}{term}")
        elif isinstance(item, Mapping) and item:
            yield Row(term, "", depth)
            yield from _tree(item, f"{path}{term} ", unread, depth + 1)
        elif isinstance(item, list) and item and all(isinstance(entry, Mapping) for entry in item):
            yield Row(term, "", depth)
            for entry in item:
                leaves = (_leaf(str(key), part) for key, part in entry.items())
                yield Row("", ", ".join(" ".join(leaf) for leaf in leaves), depth + 1)
        elif text:
            yield Row(term, text, depth)


def _leaf(name: str, value: Any) -> tuple[str, str]:
    """What it is called without its unit, and its value with it."""
    suffix, unit = next((pair for pair in _INVENTORY_UNITS.items() if name.endswith(pair[0])), ("", ""))
    term = name.removesuffix(suffix).replace("_", " ")
    if unit and isinstance(value, int | float) and not isinstance(value, bool):
        return term, format_quantity(float(value), unit)
    return term, _text(value)
