"""The tables of Awasthi 2015, and beside its pressure points those that studies proved here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rackscope.papers.awasthi2015 import printed
from rackscope.papers.base import NOT_MEASURED, Content, Paper
from rackscope.papers.document import Section, Table
from rackscope.papers.measured import Measured
from rackscope.studies.pressure.matrix import LEGEND, matrix_record
from rackscope.studies.pressure.points import read_pressure_points

#: Which rows of its Table 2 have something like them here.
_KNOBS = {
    "DRAM size": "`--tuned`, scaled to the host",
    "server threads": "`--tuned`, scaled to the host",
    "server TCP connections": "`--tuned`",
    "memslap clients": "`--connections`",
    "threads a client": "`--connections`",
}


def make(measured: Sequence[Measured], _say: Callable[[str], None]) -> Content:
    """Its tables; of pressure studies the matrix, and in each row of Table 4 what was found for its system."""
    matrix, found = _matrix([one for one in measured if one.record.kind == "pressure"])
    rows = tuple(
        (row.workload, row.limited_by, row.because, _here(row, found, bool(matrix))) for row in printed.TABLE_4
    )
    return Content(
        sections=(
            Section(
                "Table 4: pressure points",
                (
                    "The paper names what looked full in plots of use. Here a resource limits when throughput falls as "
                    "part of it is taken away. What one host gave, and why the two may differ, is in "
                    "`docs/pressure-points.md`.",
                    Table(("workload", "limited by, in the paper", "because", "limited by, measured here"), rows),
                    *matrix,
                ),
            ),
            Section("Table 1: the paper's servers", (Table(("what", "value"), printed.TABLE_1),)),
            Section(
                "Table 2: tuned parameters",
                (
                    Table(
                        ("system", "parameter", "original", "tuned", "here"),
                        tuple((*row, _KNOBS.get(row[1], NOT_MEASURED)) for row in printed.TABLE_2),
                    ),
                ),
            ),
            Section(
                "Table 3: what its plots show, and the metric here",
                (
                    Table(
                        ("group", "label", "meaning", "metric"),
                        tuple((*row[:3], ", ".join(f"`{name}`" for name in row[3])) for row in printed.TABLE_3),
                    ),
                    "Every run samples these; its report draws them over time.",
                ),
            ),
            Section("Numbers that the text gives", (Table(("where", "what", "paper"), printed.TEXT),)),
        ),
        values={
            "table_1": dict(printed.TABLE_1),
            "table_2": _named(("system", "parameter", "original", "tuned"), printed.TABLE_2),
            "table_3": _named(("group", "label", "meaning", "metrics"), printed.TABLE_3),
            "table_4": [
                {"workload": row.workload, "limited_by": row.limited_by.split(", "), "measured": _of(row, found)}
                for row in printed.TABLE_4
            ],
            "text": _named(("where", "what", "paper"), printed.TEXT),
        },
    )


def _named(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in rows]


def _matrix(studies: Sequence[Measured]) -> tuple[tuple[str | Table, ...], list[dict[str, Any]]]:
    """The measured matrix with its legend, and its rows for programs. Raises RunDirectoryError."""
    if not studies:
        return (), []
    record = matrix_record([read_pressure_points(one.path) for one in studies], ())
    table = next(one for one in record.tables if one.identifier == "matrix")
    rows = tuple(tuple(str(cell).replace("\n", " ") for cell in row) for row in table.rows)
    shown = Table(("measured here", *(column.name for column in table.columns[1:])), rows)
    return (LEGEND, shown), list(record.result["rows"])


def _of(row: printed.PressurePoints, found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in found if one["system"] in row.systems]


def _here(row: printed.PressurePoints, found: Sequence[dict[str, Any]], asked: bool) -> str:
    cells = [
        f"{one['label']}: {', '.join(name.replace('_', ' ') for name in one['limits']) or 'nothing proven'}"
        for one in _of(row, found)
    ]
    if cells:
        return "; ".join(cells)
    has_studies = not asked and row.systems in (("memcached",), ("redis",))
    return "no study given: `--runs DIR...`" if has_studies else NOT_MEASURED


PAPER = Paper(
    name="awasthi2015",
    title="what limits datacenter applications",
    citation=printed.CITATION,
    shows="The paper's plots carry no numbers: tables and the numbers of its text are shown.",
    make=make,
    figures=(
        ("Figure 4", "memcached over time", "`rackscope run memcached image-preview --tuned`"),
        ("Figures 13 and 14", "Redis stages over time", "`rackscope run redis redis-stages --tuned`"),
        ("Table 4, Memcache", "pressure points", "`rackscope study pressure memcached image-preview --tuned`"),
        ("Table 4, Redis", "pressure points", "`rackscope study pressure redis redis-stages --tuned`"),
        ("Figures 3 and 5", "Cassandra", NOT_MEASURED),
        ("Figures 6 to 8", "Nutch indexing", NOT_MEASURED),
        ("Figures 9 to 12", "Data Analytics", NOT_MEASURED),
    ),
    presets="awasthi-",
    studies=("pressure", "sweep"),
)
