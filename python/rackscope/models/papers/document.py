"""A page of text and tables, for terminals, Markdown and programs alike: what is in docs is what is printed."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_WIDTH = 120


@dataclass(frozen=True)
class Table:
    """Rows as long as ``columns``; cells are what people read."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """A title (empty for what comes first) with paragraphs and tables in their order."""

    title: str
    parts: tuple[str | Table, ...]


@dataclass(frozen=True)
class Document:
    """``values`` is the same for programs: numbers in base units, by name."""

    title: str
    sections: tuple[Section, ...]
    values: dict[str, Any]

    def markdown(self) -> str:
        """The whole page, ending in a newline."""
        blocks = [f"# {self.title}"]
        for section in self.sections:
            if section.title:
                blocks.append(f"## {section.title}")
            blocks += [_wrapped(part) if isinstance(part, str) else _table(part) for part in section.parts]
        return "\n\n".join(blocks) + "\n"


def _table(table: Table) -> str:
    lines: list[Sequence[str]] = [table.columns, ["---", *["---:"] * (len(table.columns) - 1)], *table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
