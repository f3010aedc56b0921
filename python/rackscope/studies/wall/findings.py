"""What growing the data showed: where the wall is, what changes there, in words, a table and charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from rackscope.analysis.intervals import Interval, mean_interval
from rackscope.analysis.wall import SizePoint, Wall, find_wall
from rackscope.runs.study import Axis, Chart, Finding, StudyRecord, Table
from rackscope.studies.kit import axis, chart, finding, line, note, reference, table_of, warning, when
from rackscope.studies.wall.growth import Growth, Setting
from rackscope.units import format_bytes

#: Hits of reads from which on the data counts as held; a cache with a lossy index misses now and then. Our choice.
_WHOLE = 0.99
#: What a quantity that changes at the wall means, by its name in ``Point.resources``.
_MEANING = {
    "misses per read": "reads began to miss: the system evicted items to stay within its own limit",
    "evictions per key": "items were evicted to stay within the system's own limit",
    "refaults per second": "pages that had been reclaimed had to be read again (refaults)",
    "swap reads (bytes/s)": "the data no longer fitted and came back from swap",
    "swap writes (bytes/s)": "the data no longer fitted and went to swap",
    "major page faults per second": "pages had to be read from disk (major faults)",
    "disk reads (bytes/s)": "the system read from disk",
}


def describe(record: StudyRecord, setting: Setting, growth: Growth) -> None:
    """Replace the record's findings, table, charts, method and result by what ``growth`` shows."""
    wall = find_wall([SizePoint(one.data_bytes, one.seconds_per_byte, one.resources) for one in growth.points])
    # Bytes of data that were in when memory ran out, over the attempts.
    held = mean_interval([one.held_bytes for one in growth.ran_out]) if growth.ran_out else None
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
        "held_bytes": held and asdict(held),
        "misses_begin_bytes": _misses_begin(growth),
        "wall": {
            "at_bytes": wall.at_bytes and asdict(wall.at_bytes),
            "slowdown": wall.slowdown,
            "broke": [asdict(one) for one in wall.broke],
            "reason": wall.reason,
        },
    }


def _ran_out_findings(setting: Setting, growth: Growth, held: Interval | None) -> list[Finding]:
    if held is None:
        return []
    low, high = min(one.held_bytes for one in growth.ran_out), max(one.held_bytes for one in growth.ran_out)
    spread = f" ({format_bytes(low)} to {format_bytes(high)} in {held.count} attempts)" if held.count > 1 else ""
    limit, how = format_bytes(setting.limit_bytes), growth.ran_out[0].how
    wall = f"The wall is at {format_bytes(held.estimate)} of data"
    if not setting.by_group:
        sentence = f"{wall}: from there on {setting.system} refused writes, with its own limit of {limit}{spread}."
        return [finding(sentence, how)]
    swap = "this host has no swap" if setting.swap_bytes == 0 else "swap did not take it"
    overhead = setting.limit_bytes / held.estimate * setting.item_bytes if held.estimate else 0.0
    return [
        finding(
            f"{wall}: {setting.system} ran out of the {limit} it was given{spread}.",
            f"The limit is DRAM capacity: {how.rstrip('.')}; {swap}. Outside of this study the kernel would have "
            "killed it there; here it was stopped before.",
        ),
        note(
            f"{setting.system} takes {overhead:,.0f} bytes of memory for an item of {setting.item_bytes:,} bytes (key "
            "and value).",
            "The limit divided by the number of items that were in; includes what the system needs for itself.",
        ),
    ]


def _misses_begin(growth: Growth) -> tuple[float, float] | None:
    """The largest size at which reads found everything, and the next: in between the system began to evict items."""
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
            f"Between {format_bytes(between[0])} and {format_bytes(between[1])} of data {setting.system} begins to "
            f"evict items: {1 - (largest.hit_ratio or 0.0):.0%} of reads miss at {format_bytes(largest.data_bytes)}.",
            f"The limit is DRAM capacity, by the system's own limit; below, at least {_WHOLE:.0%} of reads hit. Time "
            "per byte counts only bytes that were found.",
        )
    ]


def _misses(growth: Growth) -> bool:
    return any(one.hit_ratio is not None and one.hit_ratio < _WHOLE for one in growth.points)


def _wall_findings(setting: Setting, growth: Growth, wall: Wall) -> list[Finding]:
    sizes = sorted({one.data_bytes for one in growth.points})
    at = wall.at_bytes
    if at is None and growth.ran_out:
        if len(sizes) < 5:
            return [note(f"Whether {setting.system} slows down before that is not known: {wall.reason}.")]
        return [
            note(f"Until then time per byte follows one line: {setting.system} does not slow down before the wall.")
        ]
    if at is None:
        largest = format_bytes(sizes[-1]) if sizes else "the smallest size"
        sentence = f"Time per byte shows no wall up to {largest} of data."
        return [finding(sentence, wall.reason, "note" if _misses_begin(growth) else "finding")]
    goodput = "time per byte found (misses take time and return nothing)" if _misses(growth) else "time per byte"
    ends = [format_bytes(one) if one is not None else "unknown" for one in (at.low, at.high)]
    findings = [
        finding(
            f"The wall is at {format_bytes(at.estimate)} of data, {at.estimate / setting.limit_bytes:.0%} of the "
            f"limit: above it {goodput} is {wall.slowdown or 1.0:.1f} times what smaller sizes predict.",
            f"95 % interval {ends[0]} to {ends[1]}, over {at.count} runs.",
        )
    ]
    if not wall.broke:
        findings.append(note("No other measured quantity changes there."))
    return findings + [
        finding(
            f"What changes there: {_MEANING.get(one.resource, one.resource)}.",
            f"{one.resource}: {one.before:.3g} below {format_bytes(one.at_bytes)}, {one.after:.3g} above.",
        )
        for one in wall.broke[:3]
    ]


def _notes(setting: Setting, growth: Growth) -> list[Finding]:
    return [
        *when(
            not setting.by_group and setting.why_not_group,
            warning(
                f"Memory was limited by {setting.system}'s own knob, not by a control group: {setting.why_not_group}.",
                "The wall is then where it evicts items or refuses writes, not where memory ends.",
            ),
        ),
        *when(
            _misses(growth),
            note("A miss costs little here. With a database behind the cache, the effect of the wall is much larger."),
        ),
        *(note(f"{text}.") for text in setting.notes),
    ]


def _table(growth: Growth) -> list[Table]:
    def mean(name: str, size: float) -> float | None:
        values = [getattr(one, name) for one in growth.points if one.data_bytes == size]
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    def ran_out(size: float) -> str:
        failed = [one for one in growth.ran_out if one.data_bytes == size]
        return f"ran out at {format_bytes(failed[0].held_bytes)}" if failed else ""

    columns: list[tuple[str | Sequence[str], Callable[[float], Any]]] = [
        (("data", "text", "Bytes of keys and values"), format_bytes),
        (("time per byte", "seconds", "Of bytes that were found"), partial(mean, "seconds_per_byte")),
        (("throughput", "operations/s"), partial(mean, "throughput_operations_per_second")),
        (("resident", "bytes"), partial(mean, "resident_bytes")),
        (("runs", "count"), lambda size: sum(one.data_bytes == size for one in growth.points)),
        ("", ran_out),
    ]
    if any(one.hit_ratio is not None and one.hit_ratio < 1 for one in growth.points):
        columns.append((("hits", "ratio"), partial(mean, "hit_ratio")))
    sizes = sorted({one.data_bytes for one in growth.points} | {one.data_bytes for one in growth.ran_out})
    return table_of("sizes", "Sizes", sizes, columns, "Means over runs.")


def _charts(setting: Setting, growth: Growth, wall: Wall, held: Interval | None) -> list[Chart]:
    if not growth.points:
        return []
    x = axis("data", "bytes", logarithmic=True)
    references = [reference("memory limit", setting.limit_bytes, "x")]
    if held is not None:
        references.append(reference("memory ran out", held.estimate, "x"))
    if wall.at_bytes is not None:
        references.append(reference("wall", wall.at_bytes.estimate, "x"))
    points = sorted(growth.points, key=lambda one: one.data_bytes)

    def drawn(identifier: str, title: str, y: Axis, label: str, values: Sequence[float | None]) -> Chart:
        caption = "Each point is one run; bytes are those of keys and values that were found."
        series = [line(label, [one.data_bytes for one in points], values, "points")]
        return chart(identifier, title, x, y, series, caption=caption, references=references)

    per_byte, resident = [one.seconds_per_byte for one in points], [one.resident_bytes for one in points]
    over = "over the size of the data"
    y = axis("time per byte", "seconds", logarithmic=True)
    charts = [drawn("time-per-byte", f"Time per byte {over}", y, "time per byte", per_byte)]
    y = axis("resident", "bytes")
    charts.append(drawn("resident", f"Resident memory {over}", y, setting.system, resident))
    for number, name in enumerate((one.resource for one in wall.broke[:3]), 2):
        values = [one.resources.get(name) for one in points]
        charts.append(drawn(f"resource-{number}", name.capitalize(), axis(name), name, values))
    return charts


def _method(setting: Setting, growth: Growth) -> list[str]:
    who = "a control group" if setting.by_group else f"{setting.system}'s own knob"
    lines = [
        f"Memory was limited to {format_bytes(setting.limit_bytes)} by {who}. Each size is a fresh start: "
        f"load, warm up, measure {setting.duration_seconds:g} s; {len(growth.points)} runs count, "
        f"{len(growth.ran_out)} ran out of memory.",
        f"Sizes grow by half a doubling; of {setting.rounds} rounds the first goes up and the second down.",
        "The wall is a change-point in the logarithm of time per byte over the logarithm of size, its interval a "
        "bootstrap over runs; what changes there has a change-point at the same size (after Sevilla 2013's resource "
        "wall).",
    ]
    if setting.by_group:
        lines.append("The kernel's out-of-memory killer was not used: the system was stopped when its group was full.")
    if growth.skipped:
        lines.append(f"{len(growth.skipped)} runs of later rounds were left out: the budget of time was spent.")
    return lines
