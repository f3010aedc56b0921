"""What a sweep is going to do, in a form that is kept in ``study.json`` and compared when a sweep is taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from rackscope.analysis.multiple import interleave
from rackscope.errors import UsageError
from rackscope.runs.options import RunOptions
from rackscope.studies.sweep.grid import Cell, Factor, make_cells

#: Fields of RunOptions that say nothing about what is measured.
_NO_CONFIGURATION = ("out", "command_line", "fetch")


@dataclass(frozen=True)
class SweepPlan:
    """The grid, how often each cell is measured, and what every run has in common.

    ``preset`` is a name; ``notes`` say what of it was changed for this host, whose system gets ``system_cores``.
    """

    options: RunOptions
    factors: tuple[Factor, ...]
    repetitions: int
    preset: str = ""
    notes: tuple[str, ...] = ()
    system_cores: int = 1

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
        options = {name: value for name, value in asdict(self.options).items() if name not in _NO_CONFIGURATION}
        return {
            "options": {name: _plain(value) for name, value in options.items()},
            "factors": [_plain(asdict(factor)) for factor in self.factors],
            "repetitions": self.repetitions,
            "preset": self.preset,
            "notes": list(self.notes),
            "system_cores": self.system_cores,
        }

    @classmethod
    def from_dict(cls, content: Any) -> SweepPlan:
        """What ``to_dict`` gave. Raises UsageError when it is something else."""
        try:
            known = {field.name for field in fields(RunOptions)}
            options = {name: value for name, value in content["options"].items() if name in known}
            options["meters"] = tuple(options.get("meters", ()))
            for name in ("cores", "client_cores"):
                options[name] = None if options.get(name) is None else tuple(options[name])
            return cls(
                RunOptions(**options),
                tuple(
                    Factor(one["name"], tuple(one["levels"]), tuple(one["values"]), dict(one["names"]), one["unit"])
                    for one in content["factors"]
                ),
                int(content["repetitions"]),
                str(content["preset"]),
                tuple(content["notes"]),
                int(content["system_cores"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"the plan in study.json is damaged ({type(error).__name__}: {error})", "Start the sweep again."
            ) from error

    def differences(self, other: SweepPlan) -> list[str]:
        """What ``other`` has otherwise, in words; empty when both are the same."""
        mine, theirs = self.to_dict(), other.to_dict()
        words = [
            f"{name.replace('_', ' ')} {_show(mine['options'][name])} instead of {_show(theirs['options'][name])}"
            for name in mine["options"]
            if mine["options"][name] != theirs["options"][name]
        ]
        if mine["repetitions"] != theirs["repetitions"]:
            words.append(f"{self.repetitions} repetitions instead of {other.repetitions}")
        if mine["factors"] != theirs["factors"]:
            words.append(f"varying {_grid(self)} instead of {_grid(other)}")
        return words


def _grid(plan: SweepPlan) -> str:
    return " ".join(f"{one.name}={','.join(one.levels)}" for one in plan.factors)


def _show(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={one}" for name, one in value.items()) or "none"
    return "none" if value in (None, "", []) else str(value)


def _plain(value: Any) -> Any:
    """Tuples as lists, as they come back from JSON."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else value
