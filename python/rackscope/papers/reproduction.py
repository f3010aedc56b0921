"""What a paper prints beside what follows from its own equations and data, and what came of comparing them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rackscope.papers import document
from rackscope.papers.base import Content

#: A printed number that is this close to the computed one follows from it, whatever the digits.
TOLERANCE_PERCENT = 0.5


def format_number(value: str | float, decimals: int | None = None) -> str:
    """A number with its thousands apart; text as it is."""
    if isinstance(value, str):
        return value
    if decimals is not None:
        # Not "-0.0".
        return f"{round(value, decimals) + 0.0:,.{decimals}f}"
    return f"{value:,.0f}" if value == round(value) else f"{value:,.10g}"


_SHOWN = ("computed", "difference_percent", "unit", "formula", "verdict", "follows", "counted")


@dataclass(frozen=True)
class Comparison:
    """One printed number beside the computed one.

    ``printed`` is the number as the paper writes it, so that its digits are known; ``computed`` is in the same
    ``unit`` (empty for ratios). ``formula`` says how it was computed, in words. ``counted`` is false where the
    computation is another reading than the paper's, shown to explain; it then says nothing about the paper.
    ``attainable`` is what the computation can give when an input that the paper cut off is given back its digits.
    """

    item: str
    printed: str
    computed: float
    unit: str
    formula: str
    counted: bool = True
    attainable: tuple[float, float] | None = None

    @property
    def printed_value(self) -> float:
        return float(self.printed)

    @property
    def decimals(self) -> int:
        """Digits that the paper prints after the point."""
        return len(self.printed.partition(".")[2])

    @property
    def difference_percent(self) -> float:
        """Computed less printed, in percent of what is printed."""
        return 100 * (self.computed - self.printed_value) / self.printed_value

    @property
    def verdict(self) -> str:
        """How the printed number comes from the computed one, or that it does not."""
        step = 10.0**-self.decimals
        slack = 1e-9 * max(1.0, abs(self.computed))
        gap = self.computed - self.printed_value
        if abs(gap) <= step / 2 + slack:
            return "rounded"
        if 0 <= math.copysign(1, self.printed_value) * gap < step:
            return "cut off"
        if abs(self.difference_percent) <= TOLERANCE_PERCENT:
            return "within 0.5 %"
        if self.attainable and self.attainable[0] - step / 2 <= self.printed_value <= self.attainable[1] + step / 2:
            return "within the digits of its inputs"
        return "does not follow"

    @property
    def follows(self) -> bool:
        """Whether the printed number is the computed one, to the digits printed or within 0.5 %."""
        return self.verdict != "does not follow"

    def cells(self) -> tuple[str, str, str, str, str]:
        """Item, printed, computed, difference and verdict, as people read them."""
        unit = f" {self.unit}" if self.unit in ("s", "%") else ""
        return (
            self.item,
            f"{self.printed}{unit}",
            f"{format_number(self.computed, self.decimals + 2)}{unit}",
            f"{self.difference_percent:+.2f} %",
            self.verdict if self.counted else f"another reading: {self.verdict}",
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "item": self.item,
            "printed": self.printed_value,
            "printed_as": self.printed,
            "difference": self.computed - self.printed_value,
            **{name: getattr(self, name) for name in _SHOWN},
        }


@dataclass(frozen=True)
class DerivedTable:
    """Numbers that the paper does not print: what its equations give elsewhere. Rows are as long as ``columns``.

    ``decimals``, where given, says column by column how many digits are shown; ``None`` is as many as there are.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]
    note: str = ""
    decimals: tuple[int | None, ...] = ()

    def cells(self) -> list[tuple[str, ...]]:
        decimals = self.decimals or (None,) * len(self.columns)
        return [
            tuple(format_number(cell, digits) for cell, digits in zip(row, decimals, strict=True)) for row in self.rows
        ]


@dataclass(frozen=True)
class Section:
    """One table or equation of the paper."""

    identifier: str
    title: str
    comparisons: tuple[Comparison, ...]
    note: str = ""
    derived: tuple[DerivedTable, ...] = ()


@dataclass(frozen=True)
class Remark:
    """Something that the numbers show about the paper: what was looked for, what was found, and what it means."""

    identifier: str
    title: str
    text: str


@dataclass(frozen=True)
class Reproduction:
    sections: tuple[Section, ...]
    remarks: tuple[Remark, ...]

    def comparisons(self) -> tuple[Comparison, ...]:
        """All that count: printed numbers by the paper's own way of computing them."""
        return tuple(one for section in self.sections for one in section.comparisons if one.counted)

    def not_following(self) -> tuple[tuple[Section, Comparison], ...]:
        """Printed numbers that do not come from the paper's own data, with where they are."""
        return tuple(
            (section, one)
            for section in self.sections
            for one in section.comparisons
            if one.counted and not one.follows
        )

    def summary(self) -> str:
        """One sentence with the counts."""
        every, unlike = len(self.comparisons()), len(self.not_following())
        return (
            f"{every - unlike} of {every} printed numbers follow from the paper's own data and equations; {unlike} do "
            "not."
        )

    def content(self) -> Content:
        """The page: what does not follow first, then what was found out, then all numbers."""
        unlike = tuple(
            (section.title.partition(":")[0], *one.cells()[:4], one.formula) for section, one in self.not_following()
        )
        columns = ("what", "printed", "computed", "difference")
        return Content(
            (
                document.Section(
                    "What does not follow", (document.Table(("where", *columns, "computed as"), unlike, aside=1),)
                ),
                document.Section("Checked and explained", ()),
                *(document.Section(remark.title, (remark.text,), level=3) for remark in self.remarks),
                document.Section("Number by number", (_VERDICTS,)),
                *(document.Section(section.title, tuple(_parts(section)), level=3) for section in self.sections),
            ),
            self._values(),
            (
                "Every number that the paper computes stands beside the same computed here, from the paper's own data "
                "and equations.",
                f"**{self.summary()}**",
            ),
        )

    def _values(self) -> dict[str, Any]:
        return {
            "summary": self.summary(),
            "numbers": len(self.comparisons()),
            "do_not_follow": [
                {"section": section.identifier, **one.to_dict()} for section, one in self.not_following()
            ],
            "sections": [
                asdict(section) | {"comparisons": [one.to_dict() for one in section.comparisons]}
                for section in self.sections
            ],
            "remarks": [asdict(remark) for remark in self.remarks],
        }


_VERDICTS = (
    "*rounded*: the printed digits are the computed number rounded; *cut off*: they are its first digits; "
    "*within 0.5 %*: neither, but no further off than that; *within the digits of its inputs*: it comes out when an "
    "input that was cut off is given back its fraction. *Another reading* is shown to explain and is not counted."
)


def _parts(section: Section) -> Iterator[str | document.Table]:
    if section.note:
        yield section.note
    if section.comparisons:
        rows = tuple((*one.cells(), one.formula) for one in section.comparisons)
        columns = ("what", "printed", "computed", "difference", "verdict", "computed as")
        yield document.Table(columns, rows, aside=1)
    for derived in section.derived:
        yield f"{derived.title}:"
        yield document.Table(derived.columns, tuple(derived.cells()))
        if derived.note:
            yield derived.note
