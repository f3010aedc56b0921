"""What a sweep is going to do, in a form that is kept in ``study.json`` and compared when a sweep is taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rackscope.analysis.multiple import interleave
from rackscope.errors import UsageError
from rackscope.runs.manifest import ServerPart
from rackscope.runs.options import RunOptions
from rackscope.studies.sweep.grid import Cell, Factor, make_cells

#: Fields of RunOptions that say nothing about what is measured.
_NO_CONFIGURATION = {"out", "command_line", "fetch"}


@dataclass(frozen=True)
class SweepPlan:
    """The grid and what runs have in common; ``notes`` say what of the ``preset`` was changed for this host."""

    options: RunOptions
    factors: tuple[Factor, ...]
    repetitions: int
    preset: str
    notes: tuple[str, ...]
    system_cores: int

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every combination of levels."""
        return make_cells(self.factors)

    @property
    def runs(self) -> int:
        """How many runs that makes."""
        return len(self.cells) * self.repetitions

    def order(self) -> list[tuple[int, int]]:
        """Cells by number, each with its repetition from 1, in the order in which they run.

        Rounds hold every cell once. Of two rounds the second is the first backwards, and the first is shuffled from
        the seed: what drifts while the sweep lasts falls on all cells alike.
        """
        labels = [str(index) for index in range(len(self.cells))]
        order = interleave(labels, self.repetitions, self.options.seed)
        return [(int(label), 1 + place // len(labels)) for place, label in enumerate(order)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold."""
        content: dict[str, Any] = _adapter().dump_python(self, mode="json", exclude={"options": _NO_CONFIGURATION})
        return content

    @classmethod
    def from_dict(cls, content: Any) -> SweepPlan:
        """What ``to_dict`` gave. Raises UsageError when it is something else."""
        try:
            return _adapter().validate_python(content)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise UsageError(
                f"the plan in study.json is damaged ({where}: {first['msg']})", "Start the sweep again."
            ) from error

    def differences(self, other: SweepPlan) -> list[str]:
        """What ``other`` has otherwise, in words; empty when both are the same."""
        mine, theirs = self.to_dict(), other.to_dict()
        words = [
            f"{name.replace('_', ' ')} {_show(value)} instead of {_show(theirs['options'][name])}"
            for name, value in mine["options"].items()
            if value != theirs["options"][name]
        ]
        if mine["repetitions"] != theirs["repetitions"]:
            words.append(f"{self.repetitions} repetitions instead of {other.repetitions}")
        if mine["factors"] != theirs["factors"]:
            words.append(f"varying {_grid(self)} instead of {_grid(other)}")
        return words


@cache
def _adapter() -> TypeAdapter[SweepPlan]:
    adapter = TypeAdapter(SweepPlan)
    # Options name the type for type checks only, so that help is printed without pydantic.
    adapter.rebuild(_types_namespace={"ServerPart": ServerPart})
    return adapter


def _grid(plan: SweepPlan) -> str:
    return " ".join(f"{one.name}={','.join(one.levels)}" for one in plan.factors)


def _show(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={one}" for name, one in value.items()) or "none"
    return "none" if value in (None, "", []) else str(value)
