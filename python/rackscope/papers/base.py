"""What a paper is to rackscope, and how all of them are found."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from rackscope.errors import named
from rackscope.papers.document import Document, Section, Table
from rackscope.papers.measured import Measured, read_measured

NOT_MEASURED = "not measured here"


@dataclass(frozen=True)
class Content:
    """What a paper puts on its page. ``values`` is the same for programs: numbers in base units, by name."""

    sections: tuple[Section, ...]
    values: Mapping[str, Any]
    #: Sentences that come first, behind the citation.
    summary: tuple[str, ...] = ()


@dataclass(frozen=True)
class Paper:
    """One paper. ``make`` is given the studies of ``--runs``, and says each step that takes long."""

    name: str
    title: str
    citation: str
    #: What the page shows, in a sentence or two.
    shows: str
    make: Callable[[Sequence[Measured], Callable[[str], None]], Content]
    #: Tables and figures that are not computed on the page: what they are, and the command that redoes each here.
    figures: tuple[tuple[str, str, str], ...] = ()
    #: How the names of its presets of ``study sweep`` begin.
    presets: str = ""
    #: Kinds of studies that ``--runs`` takes.
    studies: tuple[str, ...] = ()

    def page(self, runs: Sequence[Path] = (), say: Callable[[str], None] = lambda _step: None) -> Document:
        """The whole page. Raises UsageError for ``runs`` that it has no use for, RunDirectoryError."""
        measured = read_measured(self.name, self.studies, runs)
        content = self.make(measured, say)
        figures = self._figures()
        return Document(
            f"{self.name}: {self.title}",
            (
                Section("", (f"{self.citation}.", self.shows, *content.summary)),
                *content.sections,
                *(one.section() for one in measured),
                Section("Tables and figures of the paper, and what redoes each here", (figures,)),
            ),
            {
                "paper": self.name,
                "citation": self.citation,
                **content.values,
                "measured": [one.values() for one in measured],
                "figures": [dict(zip(figures.columns, row, strict=True)) for row in figures.rows],
            },
            made_by=f"rackscope paper {self.name} --markdown",
        )

    def _figures(self) -> Table:
        from rackscope.studies.sweep.presets import load_presets

        rows = [
            (one.source.partition(", ")[2].capitalize(), one.asks, f"`rackscope study sweep SYSTEM --preset {name}`")
            for name, one in load_presets().items()
            if self.presets and name.startswith(self.presets)
        ]
        return Table(("what", "shows", "here"), (*rows, *self.figures))


@cache
def all_papers() -> Mapping[str, Paper]:
    """Every paper by name, in the order of their names."""
    folders = [one.name for one in pkgutil.iter_modules([str(Path(__file__).parent)]) if one.ispkg]
    found = [import_module(f"rackscope.papers.{name}.page").PAPER for name in folders]
    return {paper.name: paper for paper in found}


def find_paper(name: str) -> Paper:
    """The paper of that name. Raises UsageError."""
    return named([name], all_papers().values(), "there is no paper", "Papers")[0]
