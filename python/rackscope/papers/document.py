"""A page of text and tables, for terminals, Markdown, HTML and programs alike: what is in docs is what is printed."""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass
from typing import Any

_WIDTH = 120
_NUMBER = re.compile(r"[+–-]?(\$?[\d.,]+(e[+-]\d+)?\s?(x|%|s|µs|W)?(\s\([\d.,]+( to |–)[\d.,]+\))?)?")


@dataclass(frozen=True)
class Table:
    """Rows as long as ``columns``; cells are what people read. The last ``aside`` columns are left out in terminals."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    aside: int = 0

    def numeric(self) -> list[bool]:
        """Of each column, whether it holds numbers only."""
        return [all(_NUMBER.fullmatch(row[place]) for row in self.rows) for place in range(len(self.columns))]

    def markdown(self) -> str:
        """All columns."""
        rule = ["---:" if numeric else "---" for numeric in self.numeric()]
        return "\n".join(f"| {' | '.join(line)} |" for line in (self.columns, rule, *self.rows))


@dataclass(frozen=True)
class Section:
    """A title (empty for what comes first) with paragraphs and tables in their order. ``level`` 3 is below another."""

    title: str
    parts: tuple[str | Table, ...]
    level: int = 2


@dataclass(frozen=True)
class Document:
    """``values`` is the same for programs: numbers in base units, by name."""

    title: str
    sections: tuple[Section, ...]
    values: dict[str, Any]
    #: The command that prints the page, which a file of it says.
    made_by: str = ""

    def markdown(self) -> str:
        """The whole page, ending in a newline."""
        blocks = [f"# {self.title}"]
        if self.made_by:
            blocks.append(f"This page is what `{self.made_by}` prints; do not edit it.")
        for section in self.sections:
            if section.title:
                blocks.append(f"{'#' * section.level} {section.title}")
            blocks += [_wrapped(part) if isinstance(part, str) else part.markdown() for part in section.parts]
        return "\n\n".join(blocks) + "\n"

    def html(self, style: str) -> str:
        """The whole page as one file that fetches nothing and runs no script."""
        body = [f"<h1>{_inline(self.title)}</h1>"]
        for section in self.sections:
            if section.title:
                body.append(f"<h{section.level}>{_inline(section.title)}</h{section.level}>")
            body += [
                f"<p>{_inline(part)}</p>" if isinstance(part, str) else _html_table(part) for part in section.parts
            ]
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        return (
            f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{html.escape(self.title)} · rackscope</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
            + "\n".join(body)
            + "\n</main>\n</body>\n</html>\n"
        )


def _html_table(table: Table) -> str:
    marks = [' style="text-align: right"' if numeric else "" for numeric in table.numeric()]
    head = "".join(f"<th{mark}>{_inline(cell)}</th>" for mark, cell in zip(marks, table.columns, strict=True))
    rows = (
        "".join(f"<td{mark}>{_inline(cell)}</td>" for mark, cell in zip(marks, row, strict=True)) for row in table.rows
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _inline(text: str) -> str:
    """Escaped, with the marks of Markdown that pages use as elements."""
    escaped = html.escape(text).replace("\n", "<br>")
    for mark, element in ((r"\*\*", "strong"), (r"\*", "em"), ("`", "code")):
        escaped = re.sub(rf"{mark}(\S.*?){mark}", rf"<{element}>\1</{element}>", escaped)
    return escaped


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
