"""Issa 2012 number by number: tables 2 to 4 and 6 to 10, the CPI regression, path length and power."""

from __future__ import annotations

from rackscope.papers.base import NOT_MEASURED, Paper
from rackscope.papers.issa2012 import printed, projections, tables
from rackscope.papers.issa2012.remarks import remarks
from rackscope.papers.reproduction import Reproduction


def reproduce() -> Reproduction:
    """Every number that the paper computes, beside the same computed here."""
    return Reproduction(
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


PAPER = Paper(
    name="issa2012",
    title="Hadoop and memcached, performance and power",
    citation=printed.CITATION,
    shows=(
        "These are the paper's models, kept to reproduce it. rackscope projects nothing with them: see what was found."
    ),
    make=lambda _measured, _say: reproduce().content(),
    figures=(
        ("Tables 1 to 5, figures 1 to 5", "Hadoop jobs: time, power, CPI", f"{NOT_MEASURED}; ratios computed above"),
        ("Table 6", "memcached on two servers", "`rackscope run memcached ycsb-c`; ratios computed above"),
        ("Tables 7 and 8", "disk patterns at a queue depth of 32", f"{NOT_MEASURED}; ratios computed above"),
        ("Figures 13 to 15", "CPI and throughput per watt over frequency", "computed above"),
    ),
    presets="issa-",
    studies=("sweep",),
)
