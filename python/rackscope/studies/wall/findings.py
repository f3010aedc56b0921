"""What growing the data showed: where the wall is, what broke there, in words, a table and charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.analysis.wall import SizePoint, Wall, find_wall
from rackscope.runs.study import Chart, Finding, Reference, Series, StudyRecord, Table
from rackscope.studies.kit import Row, axis, chart, finding, line, note, reference, table, warning
from rackscope.studies.wall.growth import Growth, Point
from rackscope.units import format_bytes

#: Hits of reads from which on the data counts as held; a cache with a lossy index misses now and then. Our choice.
_WHOLE = 0.99
#: What a resource that departs at the wall means, by its name in ``Point.resources``.
_MEANING = {
    "misses per read": "reads began to miss: the system gave up items to stay within its own limit",
    "evictions per key": "items were evicted to stay within the system's own limit",
    "refaults per second": "pages that had been given up had to be read again (refaults)",
    "swap reads (bytes/s)": "the data no longer fitted and came back from swap",
    "swap writes (bytes/s)": "the data no longer fitted and went to swap",
    "major page faults per second": "pages had to be read from disk (major faults)",
    "disk reads (bytes/s)": "the system read from disk",
}


@dataclass(frozen=True)
class Setting:
    """What was studied: who limited memory to how much, and why so."""

    system: str
    workload: str
    limit_bytes: int
    item_bytes: int
    by_group: bool
    why_not_group: str
    swap_bytes: int | None
    rounds: int
    duration_seconds: float
    notes: tuple[str, ...] = ()


def describe(record: StudyRecord, setting: Setting, growth: Growth) -> None:
    """Replace the record's findings, table, charts, method and result by what ``growth`` shows."""
    wall = find_wall([SizePoint(one.data_bytes, one.seconds_per_byte, one.resources) for one in growth.points])
    held = _held(growth)
    record.findings = [
        *_ran_out_findings(setting, growth, held),
        *_miss_findings(setting, growth),
        *_wall_findings(setting, growth, wall),
        *_notes(setting, growth),
    ]
    record.tables = _table(growth)
    record.charts = _charts(setting, growth, wall, held)
    record.method = _method(setting, growth)
    record.result = {
        "limit_bytes": setting.limit_bytes,
        "limited_by": "control group" if setting.by_group else "knob",
        "item_bytes": setting.item_bytes,
        "points": [asdict(point) for point in growth.points],
        "ran_out": [asdict(one) for one in growth.ran_out],
        "held_bytes": _interval(held),
        "misses_begin_bytes": _misses_begin(growth),
        "wall": {
            "at_bytes": _interval(wall.at_bytes),
            "slowdown": wall.slowdown,
            "broke": [asdict(one) for one in wall.broke],
            "reason": wall.reason,
        },
    }


def _held(growth: Growth) -> Interval | None:
    """Bytes of data that were in when memory ran out, over the attempts."""
    return mean_interval([one.held_bytes for one in growth.ran_out]) if growth.ran_out else None


def _ran_out_findings(setting: Setting, growth: Growth, held: Interval | None) -> list[Finding]:
    if held is None:
        return []
    overhead = setting.limit_bytes / held.estimate * setting.item_bytes if held.estimate else 0.0
    low, high = min(one.held_bytes for one in growth.ran_out), max(one.held_bytes for one in growth.ran_out)
    spread = f" ({format_bytes(low)} to {format_bytes(high)} in {held.count} attempts)" if held.count > 1 else ""
    if setting.by_group:
        swap = (
            "there is no swap on this host, so there is nowhere to go"
            if setting.swap_bytes == 0
            else "what swap there was did not take it"
        )
        return [
            finding(
                f"The wall is at {format_bytes(held.estimate)} of data: {setting.system} ran out of the "
                f"{format_bytes(setting.limit_bytes)} it was given{spread}.",
                f"What broke is DRAM capacity: {growth.ran_out[0].how.rstrip('.')}; {swap}. Outside of this "
                "study the kernel would have killed it there; here it was stopped before.",
            ),
            note(
                f"{setting.system} takes {overhead:,.0f} bytes of memory for an item of "
                f"{setting.item_bytes:,} bytes (key and value).",
                "The limit over the items that were in, so with what the system needs for itself.",
            ),
        ]
    return [
        finding(
            f"The wall is at {format_bytes(held.estimate)} of data: from there on {setting.system} "
            f"refused writes, with its own limit of {format_bytes(setting.limit_bytes)}{spread}.",
            growth.ran_out[0].how,
        )
    ]


def _misses_begin(growth: Growth) -> tuple[float, float] | None:
    """The largest size at which reads found everything, and the next: in between the system began to give items up."""
    worst: dict[float, float] = {}
    for one in growth.points:
        if one.hit_ratio is not None:
            worst[one.data_bytes] = min(worst.get(one.data_bytes, 1.0), one.hit_ratio)
    whole = [size for size, ratio in worst.items() if ratio >= _WHOLE]
    missing = [size for size, ratio in worst.items() if ratio < _WHOLE]
    if not whole or not missing or max(whole) > min(missing):
        return None
    return max(whole), min(missing)


def _miss_findings(setting: Setting, growth: Growth) -> list[Finding]:
    between = _misses_begin(growth)
    if between is None:
        return []
    largest = max(growth.points, key=lambda one: one.data_bytes)
    return [
        finding(
            f"Between {format_bytes(between[0])} and {format_bytes(between[1])} of data {setting.system} "
            f"begins to give items up: reads miss, {1 - (largest.hit_ratio or 0.0):.0%} of them at "
            f"{format_bytes(largest.data_bytes)}.",
            f"What broke is DRAM capacity, by the system's own limit; below, at least {_WHOLE:.0%} of reads "
            "are found. Time per byte counts only bytes that were found.",
        )
    ]


def _wall_findings(setting: Setting, growth: Growth, wall: Wall) -> list[Finding]:
    sizes = sorted({one.data_bytes for one in growth.points})
    if wall.at_bytes is None:
        if growth.ran_out:
            text = f"Until then time per byte follows one line: {setting.system} does not slow down before it breaks."
            if len(sizes) < 5:
                text = f"Whether {setting.system} slows down before that is not known: {wall.reason}."
            return [note(text)]
        largest = format_bytes(sizes[-1]) if sizes else "the smallest size"
        severity: Literal["finding", "note"] = "note" if _misses_begin(growth) else "finding"
        return [finding(f"Time per byte shows no wall up to {largest} of data.", wall.reason, severity)]
    at = wall.at_bytes
    lost = any(one.hit_ratio is not None and one.hit_ratio < _WHOLE for one in growth.points)
    goodput = "time per byte found (misses cost time and bring nothing)" if lost else "time per byte"
    findings = [
        finding(
            f"The wall is at {format_bytes(at.estimate)} of data, "
            f"{at.estimate / setting.limit_bytes:.0%} of the limit: past it {goodput} grows, to "
            f"{wall.slowdown or 1.0:.1f} times what smaller sizes lead one to expect.",
            f"95 % interval {_bytes(at.low)} to {_bytes(at.high)}, over {at.count} runs.",
        )
    ]
    if not wall.broke:
        findings.append(note("None of the resources that were watched departs there."))
    for one in wall.broke[:3]:
        findings.append(
            finding(
                f"What broke there: {_MEANING.get(one.resource, one.resource)}.",
                f"{one.resource}: {one.before:.3g} below {format_bytes(one.at_bytes)}, {one.after:.3g} above.",
            )
        )
    return findings


def _notes(setting: Setting, growth: Growth) -> list[Finding]:
    findings = []
    if not setting.by_group and setting.why_not_group:
        findings.append(
            warning(
                f"Memory was limited by {setting.system}'s own knob, not by a control group: {setting.why_not_group}.",
                "Its wall is then where it gives up items or refuses writes, not where memory ends.",
            )
        )
    if any(one.hit_ratio is not None and one.hit_ratio < _WHOLE for one in growth.points):
        findings.append(
            note(
                "A miss costs nothing but its answer here; where a miss is fetched from a database the "
                "wall is that much higher."
            )
        )
    findings += [note(f"{text}.") for text in setting.notes]
    return findings


def _table(growth: Growth) -> list[Table]:
    with_misses = any(one.hit_ratio is not None and one.hit_ratio < 1 for one in growth.points)
    rows: list[Row] = []
    sizes = {one.data_bytes for one in growth.points} | {one.data_bytes for one in growth.ran_out}
    for size in sorted(sizes):
        at_size = [one for one in growth.points if one.data_bytes == size]
        failed = [one for one in growth.ran_out if one.data_bytes == size]
        row: Row = [
            format_bytes(size),
            _mean([one.seconds_per_byte for one in at_size]),
            _mean([one.throughput_operations_per_second for one in at_size]),
            _mean([one.resident_bytes for one in at_size if one.resident_bytes is not None]),
            len(at_size),
            f"ran out at {format_bytes(failed[0].held_bytes)}" if failed else "",
        ]
        rows.append(
            [*row, _mean([one.hit_ratio for one in at_size if one.hit_ratio is not None])] if with_misses else row
        )
    columns: list[Sequence[str]] = [
        ("data", "text", "Bytes of keys and values"),
        ("time per byte", "seconds", "Of bytes that were found"),
        ("throughput", "operations/s"),
        ("resident", "bytes"),
        ("runs", "count"),
        "",
    ]
    return table(
        "sizes", "Sizes", [*columns, ("hits", "ratio")] if with_misses else columns, rows, caption="Means over runs."
    )


def _charts(setting: Setting, growth: Growth, wall: Wall, held: Interval | None) -> list[Chart]:
    if not growth.points:
        return []
    x = axis("data", "bytes", logarithmic=True)
    references: list[Reference] = [reference("memory limit", setting.limit_bytes, "x")]
    if held is not None:
        references.append(reference("memory ran out", held.estimate, "x"))
    if wall.at_bytes is not None:
        references.append(reference("wall", wall.at_bytes.estimate, "x"))
    points = sorted(growth.points, key=lambda one: one.data_bytes)
    charts = [
        chart(
            "time-per-byte",
            "Time per byte over the size of the data",
            x,
            axis("time per byte", "seconds", logarithmic=True),
            [_series("time per byte", points, [one.seconds_per_byte for one in points])],
            caption="Each point is one run; bytes are those of keys and values that were found.",
            references=references,
        ),
        chart(
            "resident",
            "Resident memory over the size of the data",
            x,
            axis("resident", "bytes"),
            [_series(setting.system, points, [one.resident_bytes for one in points])],
            references=references,
        ),
    ]
    for one in wall.broke[:3]:
        charts.append(
            chart(
                f"resource-{len(charts)}",
                one.resource.capitalize(),
                x,
                axis(one.resource),
                [_series(one.resource, points, [point.resources.get(one.resource) for point in points])],
                references=references,
            )
        )
    return charts


def _series(label: str, points: list[Point], values: Sequence[float | None]) -> Series:
    return line(label, [one.data_bytes for one in points], list(values), "points")


def _method(setting: Setting, growth: Growth) -> list[str]:
    who = "a control group" if setting.by_group else f"{setting.system}'s own knob"
    lines = [
        f"Memory was limited to {format_bytes(setting.limit_bytes)} by {who}. Each size is a fresh start: "
        f"load, warm up, measure {setting.duration_seconds:g} s; {len(growth.points)} runs count, "
        f"{len(growth.ran_out)} ran out of memory.",
        f"Sizes grow by half a doubling; of {setting.rounds} rounds the first goes up and the second down.",
        "The wall is a change-point in the logarithm of time per byte over the logarithm of size, its interval a "
        "bootstrap over runs; what broke is what changes at the same place (after Sevilla 2013's resource wall).",
    ]
    if setting.by_group:
        lines.append(
            "Nothing was left to the kernel's killer: the system was stopped when its group had nothing more to give."
        )
    if growth.skipped:
        lines.append(f"{len(growth.skipped)} runs of later rounds were left out: the budget of time was spent.")
    return lines


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _bytes(value: float | None) -> str:
    return "unknown" if value is None else format_bytes(value)


def _interval(interval: Interval | None) -> dict[str, Any] | None:
    return None if interval is None else asdict(interval)
