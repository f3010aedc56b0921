"""A page of text and tables in the terminal."""

from __future__ import annotations

import re

from rich.console import Console

from rackscope.papers.document import Document, Table


def print_document(console: Console, document: Document) -> None:
    """Section after section, without the marks of Markdown."""
    console.print(document.title, style="bold", markup=False)
    for section in document.sections:
        if section.title:
            console.print(f"\n{section.title}", style="bold" if section.level == 2 else "bold dim", markup=False)
        for part in section.parts:
            if isinstance(part, str):
                console.print(re.sub(r"[*`]", "", part), markup=False)
            else:
                print_table(console, part)


def print_table(console: Console, content: Table) -> None:
    """Columns of numbers to the right."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    shown = len(content.columns) - content.aside
    for column, numeric in zip(content.columns[:shown], content.numeric(), strict=False):
        table.add_column(Text(column), justify="right" if numeric else "left")
    for row in content.rows:
        table.add_row(*(Text(cell) for cell in row[:shown]))
    console.print(table)
