"""A reproduction as a page of Markdown: what is in docs is what this gives."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rackscope.models.papers.reproduction import DerivedTable, Reproduction, Section

_WIDTH = 120


def markdown_page(reproduction: Reproduction) -> str:
    """The whole page, ending in a newline."""
    parts = [
        f"# Reproduced: {reproduction.name}",
        _wrapped(f"{reproduction.citation}."),
        _wrapped(
            f"This page is what `rackscope project --model {reproduction.name} --markdown` prints; do not edit it. "
            "Every number that the paper computes stands beside the same computed here, from the paper's own data "
            f"and equations. {reproduction.applies}"
        ),
        f"**{reproduction.summary()}**",
    ]
    unlike = reproduction.not_following()
    if unlike:
        rows = [(section.title.partition(":")[0], *one.cells()[:4], one.formula) for section, one in unlike]
        parts += [
            "## What does not follow",
            _table(("where", "what", "printed", "computed", "difference", "computed as"), rows),
        ]
    parts.append("## Checked and explained")
    for remark in reproduction.remarks:
        parts += [f"### {remark.title}", _wrapped(remark.text)]
    parts += [
        "## Number by number",
        _wrapped(
            "*rounded*: the printed digits are the computed number rounded; *cut off*: they are its first digits; "
            "*within 0.5 %*: neither, but no further off than that; *within the digits of its inputs*: it comes out "
            "when an input that was cut off is given back its fraction. *Another reading* is shown to explain and is "
            "not counted."
        ),
    ]
    for section in reproduction.sections:
        parts += _section(section)
    return "\n\n".join(parts) + "\n"


def _section(section: Section) -> list[str]:
    parts = [f"### {section.title}"]
    if section.note:
        parts.append(_wrapped(section.note))
    if section.comparisons:
        rows = [(*one.cells(), one.formula) for one in section.comparisons]
        parts.append(_table(("what", "printed", "computed", "difference", "verdict", "computed as"), rows))
    for derived in section.derived:
        parts += _derived(derived)
    return parts


def _derived(derived: DerivedTable) -> list[str]:
    parts = [_wrapped(f"{derived.title}:"), _table(derived.columns, derived.cells())]
    return [*parts, _wrapped(derived.note)] if derived.note else parts


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)
