"""What the page says, as data; the templates decide how it looks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from rackscope.analysis.characterisation import characterise
from rackscope.analysis.context import Run
from rackscope.analysis.rates import Samples
from rackscope.analysis.thresholds import packaged_thresholds
from rackscope.models.modelled_power import ServerWatts
from rackscope.report.charts import Distribution, Panel, distribution_data, embed_json, panel_data, significant
from rackscope.report.configuration import configuration_of
from rackscope.report.distribution import distribution_of
from rackscope.report.energy import energy_table, power_of, with_power
from rackscope.report.figures import REPETITION_COLUMNS, measured_phases
from rackscope.report.intensity import intensity_of
from rackscope.report.logs import read_log_tails
from rackscope.report.notices import findings_of, notices_of
from rackscope.report.panels import PanelSource, build_panels
from rackscope.report.quantities import format_quantity
from rackscope.report.svg.lines import draw_distribution, draw_panel
from rackscope.report.window import Window, groups_of, origin_ns, windows_of
from rackscope.runs.directory import RunDirectory
from rackscope.runs.facts import run_facts


def page_of(run: RunDirectory, server: ServerWatts | None = None, share: float | None = None) -> dict[str, Any]:
    """What the templates show, by name. Power is modelled from ``server``. RunDirectoryError for a damaged table."""
    manifest, recorded, results, latency = run.manifest, run.samples(), run.results(), run.latency()
    origin = origin_ns(manifest, None if recorded.is_empty() else int(recorded["timestamp_ns"][0]))
    # A column that was never read must not make sums with it unknown.
    read = recorded.select(column for column in recorded if column.null_count() < len(column) or not len(column))
    facts = run_facts(manifest)
    judged = Run.of(facts, read, results, latency, packaged_thresholds())
    pinned = {"system": facts.system_cores} if facts.system_cores else {}
    samples = Samples(read, origin_ns=origin, core_sets=pinned)
    windows = windows_of(manifest, origin, float(samples.seconds[-1]) if len(samples.seconds) else None)
    discarded = _discarded(results)
    groups = groups_of(windows, discarded)
    power = power_of(manifest, judged, server, share)
    source = PanelSource(samples, groups, judged, power)
    panels = build_panels(source)
    characterisation = with_power(characterise(facts, read, results, latency), power)
    measured = [group.name for group in groups if group.kind == "measure"]
    distribution, rows = distribution_of(latency, measured, discarded)
    notices = notices_of(manifest, characterisation)
    data = _data(panels, distribution, windows, source)
    return {
        "title": f"{manifest.system.name} under {manifest.workload.name}",
        "started": readable_time(manifest.started_at),
        "manifest": manifest,
        # Why the run did not finish, what of it is missing; empty when it is whole.
        "remarks": run.remarks,
        "notices": [notice for notice in notices if notice.severity != "note"],
        "notes": [notice for notice in notices if notice.severity == "note"],
        "findings": findings_of(characterisation),
        "measured": measured_phases(
            results,
            sequential=manifest.repetition.maximum is None,
            memory_total_bytes=manifest.host.get("memory_total_bytes"),
            host_busy=_host_busy(source),
        ),
        "repetition_columns": REPETITION_COLUMNS,
        "intensity": intensity_of(characterisation),
        "energy": energy_table(power),
        "panels": panels,
        "groups": groups,
        "distribution": distribution,
        "distribution_rows": rows,
        "configuration": configuration_of(manifest),
        "logs": read_log_tails(run.path / "logs"),
        "footnotes": _footnotes(source),
        "drawings": _drawings(panels, distribution, windows, data["span"], source),
        "data": embed_json(data),
    }


def readable_time(text: str) -> str:
    """``2025-11-21 18:22 UTC+00:00`` of an ISO time; the text itself where it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{moment:%Y-%m-%d %H:%M} {moment.tzname() or ''}".strip()


def _discarded(results: pl.DataFrame) -> set[tuple[str, int | None]]:
    if "discarded" not in results.columns:
        return set()
    return {(row["phase"], row["repetition"]) for row in results.to_dicts() if row["discarded"]}


def _host_busy(source: PanelSource) -> dict[str, float]:
    """Percent of all cores that worked, by phase."""
    busy = source.samples.find("cpu_busy_ratio")
    if busy is None:
        return {}
    readings = {group.name: busy.over(group.spans).value for group in source.groups}
    return {name: 100 * value for name, value in readings.items() if value is not None}


def _footnotes(source: PanelSource) -> tuple[str, ...]:
    notes = []
    widths = [width for drawing in (source.host, source.load) if (width := drawing.buckets.width_seconds) is not None]
    if widths:
        notes.append(
            f"Long runs are drawn in steps of {format_quantity(max(widths), 'seconds')}: means, with the lowest and "
            "highest throughput as a band, and the worst p99, p99.9 and maximum, so that no stall is lost. "
            "samples.parquet has every sample."
        )
    notes.append("Time counts from the start of the first phase, as in the evidence of the findings.")
    return tuple(notes)


def _drawings(
    panels: tuple[Panel, ...],
    distribution: Distribution,
    windows: tuple[Window, ...],
    span: Sequence[float],
    source: PanelSource,
) -> dict[str, str]:
    seconds = {"host": source.host.buckets.seconds, "load": source.load.buckets.seconds}
    drawn = [panel for panel in panels if panel.missing is None]
    found = {panel.identifier: draw_panel(panel, seconds[panel.clock], (span[0], span[1]), windows) for panel in drawn}
    return found | ({"latency-distribution": draw_distribution(distribution)} if distribution.curves else {})


def _data(
    panels: tuple[Panel, ...], distribution: Distribution, windows: tuple[Window, ...], source: PanelSource
) -> dict[str, Any]:
    clocks = {
        name: [significant(round(float(value), 3), 9) for value in drawing.buckets.seconds]
        for name, drawing in (("host", source.host), ("load", source.load))
    }
    ends = [values[edge] for values in clocks.values() if values for edge in (0, -1)]
    ends += [edge for window in windows for edge in (window.start_seconds, window.end_seconds)]
    known = [end for end in ends if end is not None]
    return {
        "clocks": clocks,
        "span": [min(known, default=0), max(known, default=1)],
        "phases": [
            {
                "name": window.name,
                "label": window.label,
                "kind": window.kind,
                "repetition": window.repetition,
                "start": round(window.start_seconds, 3),
                "end": round(window.end_seconds, 3),
            }
            for window in windows
        ],
        "panels": [panel_data(panel) for panel in panels if panel.missing is None],
        "distribution": distribution_data(distribution) if distribution.curves else None,
    }
