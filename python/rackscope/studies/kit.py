"""Findings, tables, charts and common sentences of studies; importing it loads nothing heavy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from rackscope.analysis.wording import listing

if TYPE_CHECKING:
    from rackscope.analysis.intervals import Interval
    from rackscope.runs.study import Axis, Chart, Finding, Reference, Series, Table
    from rackscope.studies.bench.interference import Interference

_Item = TypeVar("_Item")
_Label = TypeVar("_Label")
_Key = TypeVar("_Key")
#: A cell is a value in its column's unit; ``None`` is what is not known.
Row = list[Any]
Kind = Literal["line", "points", "bars"]
Severity = Literal["finding", "note", "warning", "serious"]
#: Ends of an interval of a ratio that are further apart than this say nothing.
_WIDEST = 20.0


def finding(sentence: str, evidence: str = "", severity: Severity = "finding") -> Finding:
    """A sentence that answers the study's question, and the figures that it rests on."""
    from rackscope.runs.study import Finding

    return Finding(sentence=sentence, evidence=evidence, severity=severity)


def note(sentence: str, evidence: str = "") -> Finding:
    """Something that a reader may want to know."""
    return finding(sentence, evidence, "note")


def warning(sentence: str, evidence: str = "") -> Finding:
    """Something that puts the answer in doubt."""
    return finding(sentence, evidence, "warning")


def when(shown: object, *findings: Finding) -> list[Finding]:
    """The findings where there is something to show, else none."""
    return list(findings) if shown else []


def table(
    identifier: str, title: str, columns: Iterable[Sequence[str]], rows: Sequence[Row], caption: str = ""
) -> list[Table]:
    """The table; nothing where it has no rows. A column is its name, or its name, unit and what it means."""
    from rackscope.runs.study import Column, Table

    if not rows:
        return []
    named = [
        Column.model_validate(
            dict(zip(("name", "unit", "help"), (one,) if isinstance(one, str) else one, strict=False))
        )
        for one in columns
    ]
    return [Table(identifier=identifier, title=title, caption=caption, columns=named, rows=list(rows))]


def table_of(
    identifier: str,
    title: str,
    items: Iterable[_Item],
    columns: Iterable[tuple[str | Sequence[str], Callable[[_Item], Any]]],
    caption: str = "",
) -> list[Table]:
    """The table with a row for each item: of every column what it is called (as ``table`` takes it), and its value."""
    named = list(columns)
    rows = [[of(one) for _, of in named] for one in items]
    return table(identifier, title, [name for name, _ in named], rows, caption)


def chart(
    identifier: str,
    title: str,
    x: Axis,
    y: Axis,
    series: Sequence[Series],
    *,
    caption: str = "",
    references: Sequence[Reference] = (),
) -> Chart:
    from rackscope.runs.study import Chart

    return Chart(
        identifier=identifier, title=title, caption=caption, x=x, y=y, series=list(series), references=list(references)
    )


def axis(label: str, unit: str = "", *, logarithmic: bool = False, categories: Sequence[str] | None = None) -> Axis:
    """An axis of a chart; with ``categories`` its values are positions in that list."""
    from rackscope.runs.study import Axis

    scale = "category" if categories is not None else "logarithmic" if logarithmic else "linear"
    content = {"label": label, "unit": unit, "scale": scale, "categories": list(categories or ())}
    return Axis.model_validate(content)


def reference(label: str, value: float, across: Literal["x", "y"] = "y") -> Reference:
    """A line through the chart at a value of one axis."""
    from rackscope.runs.study import Reference

    return Reference(label=label, value=value, axis=across)


def line(label: str, x: Sequence[float], y: Sequence[float | None], kind: Kind = "line") -> Series:
    """Values without intervals."""
    from rackscope.runs.study import Series

    return Series(label=label, x=list(x), y=list(y), kind=kind)


def estimates(
    label: str, known: Iterable[tuple[float, Interval]], kind: Kind = "points", *, lying: bool = False
) -> Series:
    """Estimates with their intervals, each at its position; ``lying`` ones are drawn along the horizontal axis."""
    from rackscope.runs.study import Series

    pairs = list(known)
    positions, values = [position for position, _ in pairs], [interval.estimate for _, interval in pairs]
    return Series(
        label=label,
        kind=kind,
        x=values if lying else positions,
        y=list(positions if lying else values),
        low=[interval.low for _, interval in pairs],
        high=[interval.high for _, interval in pairs],
    )


def estimates_by(
    labels: Mapping[_Label, str] | Sequence[_Label],
    keys: Mapping[_Key, float] | Sequence[_Key],
    of: Callable[[_Label, _Key], Interval | None],
    kind: Kind = "points",
    *,
    lying: bool = False,
) -> list[Series]:
    """A series for each label of what is known of it at every key. Keys without positions are categories.

    A mapping of labels says what is shown of each.
    """
    shown = labels if isinstance(labels, Mapping) else {one: str(one) for one in labels}
    places = keys if isinstance(keys, Mapping) else {one: float(at) for at, one in enumerate(keys)}
    return [
        estimates(
            text,
            [(place, known) for key, place in places.items() if (known := of(label, key)) is not None],
            kind,
            lying=lying,
        )
        for label, text in shown.items()
    ]


def is_useful(interval: Interval) -> bool:
    """Whether the ends of a ratio's interval are known, and not so far apart that they say nothing."""
    return interval.low is not None and interval.high is not None and interval.high <= _WIDEST * interval.low


def drawable(interval: Interval | None) -> Interval | None:
    """The interval of a ratio, without ends that say nothing."""
    return interval if interval is None or is_useful(interval) else replace(interval, low=None, high=None)


def ratio_words(interval: Interval) -> str:
    """``x1.42 (1.31 to 1.54)``."""
    if not is_useful(interval):
        return f"x{interval.estimate:.2f} (no useful interval)"
    return f"x{interval.estimate:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def interval_result(interval: Interval | None) -> dict[str, Any] | None:
    """An interval as results hold it: ``{"estimate", "low", "high", "count"}``."""
    if interval is None or not math.isfinite(interval.estimate):
        return None
    return {"estimate": interval.estimate, "low": interval.low, "high": interval.high, "count": interval.count}


def plain(known: Any) -> Any:
    """As results hold it: objects by the names of their fields, intervals as ``interval_result`` gives them."""
    from rackscope.analysis.intervals import Interval

    if isinstance(known, Interval):
        return interval_result(known)
    if is_dataclass(known):
        return {one.name: plain(getattr(known, one.name)) for one in fields(known)}
    if isinstance(known, Mapping):
        return {name: plain(one) for name, one in known.items()}
    return [plain(one) for one in known] if isinstance(known, list | tuple) else known


def picked(one: object, *names: str) -> dict[str, Any]:
    """Some attributes of an object by their names, as results hold them."""
    return {name: plain(getattr(one, name)) for name in names}


def listed(names: Sequence[str], most: int = 4) -> str:
    """``a, b, c, d and 3 more``."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, what: str) -> str:
    """``1 core``, ``2 cores``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def capital(text: str) -> str:
    """With a large first letter, unless it begins with a name that is spelled small."""
    return text if "_" in text.split(" ", maxsplit=1)[0] else f"{text[:1].upper()}{text[1:]}"


def interference_findings(seen: Interference, advice: str = "", what: str = "windows") -> list[Finding]:
    """The warning that the host was not the study's alone; nothing where it was."""
    if not seen.kept:
        return []
    sentence = (
        f"Interference: {listing(sorted(seen.reasons))} in {seen.kept} of the {seen.windows - seen.discarded} {what} "
        "that count."
    )
    return [warning(sentence, advice or "Repeat the study on a quiet host.")]


def measured_again(seen: Interference, what: str = "windows") -> str:
    """For the method: how much was discarded because of interference."""
    if not seen.discarded:
        return f"No {what} were discarded because of interference."
    reasons = listing(sorted(seen.reasons))
    return f"{seen.discarded} {what} were discarded and measured again because of interference: {reasons}."


def generator_findings(
    idle: Mapping[str, float | None], evidence: str = "Give it more cores with --client-cores."
) -> list[Finding]:
    """The warning that the load generator was the limit, by the ``idle`` part of its time in each cell; or nothing."""
    from rackscope.analysis.thresholds import packaged_thresholds

    smallest = packaged_thresholds().limit("generator.idle_minimum")
    full = [label for label, ratio in idle.items() if ratio is not None and ratio < smallest]
    sentence = f"The load generator was fully busy with {listed(full)}: the system can do more than was measured there."
    return when(full, warning(sentence, evidence))


def miss_findings(hits: Mapping[str, float | None], smallest: float) -> list[Finding]:
    """The warning that reads missed where fewer than this hit, by cell; nothing without any."""
    missed = [f"{label} ({ratio:.1%} hits)" for label, ratio in hits.items() if ratio is not None and ratio < smallest]
    sentence = f"Reads missed with {listed(missed)}. A miss is cheaper than a hit, so throughput is overstated there."
    return when(missed, warning(sentence))


def failure_findings(failures: Iterable[tuple[str, str]]) -> list[Finding]:
    """What could not be measured, with the reason: one warning for each reason."""
    by_reason: dict[str, list[str]] = {}
    for what, reason in failures:
        by_reason.setdefault(reason, []).append(what)
    return [warning(f"{listed(labels)} could not be measured: {reason}.") for reason, labels in by_reason.items()]


def value(interval: Interval | None) -> float | None:
    """The estimate, for a cell of a table."""
    return None if interval is None else interval.estimate
