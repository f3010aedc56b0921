"""Issa 2012 number by number: tables 2 to 4 and 6 to 10, the CPI regression, path length and power."""

from __future__ import annotations

from rackscope.models.papers.issa2012 import printed, projections, tables
from rackscope.models.papers.issa2012.remarks import remarks
from rackscope.models.papers.reproduction import Reproduction


def reproduce() -> Reproduction:
    """Every number that the paper computes, beside the same computed here."""
    return Reproduction(
        name="issa2012",
        citation=printed.CITATION,
        applies=(
            "These are the paper's models, kept to reproduce it. rackscope projects nothing with them: see the remarks."
        ),
        sections=(
            tables.table_2(),
            tables.table_3(),
            tables.table_4(),
            tables.table_6(),
            *tables.tables_7_and_8(),
            projections.cpi_regression(),
            projections.path_length(),
            projections.table_9(),
            projections.table_10(),
            projections.power(),
        ),
        remarks=remarks(),
    )
