"""A projection as a record that the report shows as a page, like that of a study."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rackscope import __version__
from rackscope.advice.projecting.charts import charts_of
from rackscope.advice.projecting.project import Projection
from rackscope.models.estimates import Prediction
from rackscope.runs.study import Column, Finding, StudyRecord, Table
from rackscope.units import format_count, format_duration

_HEADLINES = ("throughput", "mean_response_seconds", "p99_response_seconds", "watts", "operations_per_joule",
              "operations_per_cost")  # fmt: skip
Row = list[str | float | int | bool | None]


def record_of(projection: Projection, command_line: Sequence[str]) -> StudyRecord:
    """Findings, tables and charts of a projection; nothing is measured for it."""
    measured = projection.measured
    names = ", ".join(one.server.name for one in projection.servers)
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    record = StudyRecord(
        rackscope_version=__version__,
        kind="projection (modelled)",
        title=f"{measured.system} under {measured.workload}, projected to {names}",
        status="complete",
        command_line=list(command_line),
        started_at=now,
        host=dict(measured.host),
        parameters={"runs": ", ".join(measured.names), "servers": projection.file, "phase": measured.phase},
    )
    if projection.rate_per_second is not None:
        record.parameters["rate"] = f"{format_count(projection.rate_per_second)}/s"
    record.findings = [*_findings(projection), *_doubts(projection)]
    record.tables = _tables(projection)
    record.charts = charts_of(projection)
    record.method = _method(projection)
    return record


def written(prediction: Prediction) -> tuple[str, str, str]:
    """Value, low and high as they are read, with their unit."""
    unit = prediction.unit.removesuffix(" (modelled)")

    def one(value: float) -> str:
        match unit:
            case "seconds":
                return format_duration(value)
            case "operations/s":
                return f"{format_count(value)}/s"
            case "watts":
                return f"{value:,.0f} W" if value >= 100 else f"{value:.3g} W"
            case "operations/joule":
                return f"{format_count(value)}/J"
        return format_count(value) if value >= 100 else f"{value:.3g}"

    return one(prediction.value), one(prediction.low), one(prediction.high)


def _findings(projection: Projection) -> list[Finding]:
    found = []
    for server in projection.servers:
        for name in _HEADLINES:
            answer = server.answer(name)
            if answer is None or answer.prediction is None:
                continue
            value, low, high = written(answer.prediction)
            found.append(
                Finding(
                    sentence=f"{server.server.name}, {answer.what}: {value} (90 % interval {low} to {high})",
                    evidence=f"Evidence: {answer.stands_on}. {answer.changes_if}",
                )
            )
    return found


def _doubts(projection: Projection) -> list[Finding]:
    found = [Finding(sentence=f"not projected: {text}", severity="warning") for text in projection.refused]
    found += [Finding(sentence=text, severity="warning") for text in projection.measured.remarks]
    notes: dict[str, list[str]] = {}
    for server in projection.servers:
        for note in server.notes:
            notes.setdefault(note, []).append(server.server.name)
    found += [
        Finding(sentence=f"assumed of {', '.join(names)}: {note}", severity="note") for note, names in notes.items()
    ]
    return found


def _tables(projection: Projection) -> list[Table]:
    answers = [(server.server.name, answer) for server in projection.servers for answer in server.answers]
    refused: list[Row] = [[name, answer.what, answer.refused] for name, answer in answers if answer.refused]
    rows: list[Row] = []
    for name, answer in answers:
        if answer.prediction is not None:
            value, low, high = written(answer.prediction)
            rows.append([name, answer.what, value, f"{low} to {high}", answer.prediction.basis])
    headings = ("server", "what", "value", "90 % interval", "how it was obtained")
    figures = Table(
        identifier="answers",
        title="Every figure, and how it was obtained",
        caption="Everything here is modelled, except what is marked as measured.",
        columns=[Column(name=name) for name in headings],
        rows=rows,
    )
    columns = [Column(name=name) for name in ("server", "what", "why")]
    refusals = Table(identifier="refused", title="Not projected", columns=columns, rows=refused)
    return [figures, refusals] if refused else [figures]


def _method(projection: Projection) -> list[str]:
    lines = []
    for server, found in zip(projection.servers, projection.models, strict=True):
        compared = [f"{name.replace('_', ' ')} x {ratio.middle:.3g}" for name, ratio in found.ratios.items()] or [
            "nothing that differs"
        ]
        lines.append(
            f"{server.server.name}: {server.cores} of its {server.threads} hardware threads; compared by "
            f"{', '.join(compared)}."
        )
    lines.append(
        "Intervals hold 90 % of 20,000 draws from the models' own intervals, elasticities, calibrations and prices; "
        "docs/projection.md has the models and what they refuse."
    )
    return lines
