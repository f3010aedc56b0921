"""Ask a trained model about one server that is described in words and numbers.

trained = train("redis", tables)             # tables: name of a file's start -> frame, as ``cli/model_tables.py`` reads
trained.predict({"processor": "AMD EPYC 9654", "hardware_threads": 32, ...})    # -> {"pipelined, best": Prediction}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rackscope.errors import ModelError
from rackscope.models.estimates import Prediction
from rackscope.models.trained import find_model
from rackscope.models.trained.base import Examples, Floats
from rackscope.models.trained.columns import UNITS
from rackscope.models.trained.fit import Fit
from rackscope.models.trained.model import Described, Input, Model
from rackscope.models.trained.refusals import VAGUEST, furthest, outside, seen_range

if TYPE_CHECKING:
    import polars as pl

#: Less than this outside is the rounding of a data sheet.
_SLACK = 0.02
_OUTSIDE = "; outside of the servers that were fitted on it also takes the model's form to hold there"


@dataclass(frozen=True)
class TrainedModel:
    """A model after its fit, with the range of each feature that it saw. ``model.inputs`` says what to describe."""

    model: Model
    fitted: Fit
    lowest: Floats
    highest: Floats
    processors: int

    def predict(self, server: Described) -> dict[str, Prediction]:
        """Modelled values with intervals of 90 %, by what is predicted (a part, such as ``pipelined, best``).

        ``server`` maps names of ``model.inputs`` to values in the units that these state. Raises ModelError where one
        is missing, unknown, not above zero or cannot be in its unit, or lies further from what was fitted than twice
        the greatest or half the least (for the year: four past the last).
        """
        self._check(server)
        examples = self.model.describe(server)
        outside = self._outside(examples)
        answers = self.fitted.predict(examples)
        basis = f"{answers.how}, of {self.processors} processors" + (_OUTSIDE + f" ({outside})" if outside else "")
        found = {}
        for row, part in enumerate(examples.parts.tolist()):
            value, low, high = (float(ends[row]) for ends in (answers.estimate, answers.low, answers.high))
            if high > VAGUEST * low:
                raise ModelError(
                    f"{self.model.name} cannot tell: anything from {low:.3g} to {high:.3g} {self.model.unit} may be",
                    "Say more of the server (of watts: thermal_design_watts), or fit on servers like it.",
                )
            found[str(part)] = Prediction(value, low, high, self.model.unit, basis, bool(outside))
        return found

    def _check(self, server: Described) -> None:
        known = {one.name: one for one in self.model.inputs}
        for name in server:
            if name not in known:
                raise ModelError(f"{self.model.name} does not ask for '{name}'", f"It asks for {', '.join(known)}.")
        for one in known.values():
            if one.name not in server and not one.optional:
                raise ModelError(f"{self.model.name} needs '{one.name}' of a server", f"That is: {one.meaning}.")
            if one.name in server:
                _check_number(one, server[one.name])

    def _outside(self, examples: Examples) -> str:
        """Which features lie outside, in words; empty where none does. Raises ModelError where one is too far."""
        said = []
        for column, name, distances, limited in outside(examples, self.lowest, self.highest):
            by, year = float(distances.max()), name in ("year", "year of the generation")
            if limited and by > furthest(name):
                value = examples.features[int(np.argmax(distances)), column]
                shown = [
                    f"{value if year else np.exp(value):.{0 if year else 4}{'f' if year else 'g'}}"
                    for value in (value, self.lowest[column], self.highest[column])
                ]
                raise ModelError(
                    f"{name} is {shown[0]}, far outside of the {shown[1]} to {shown[2]} that {self.model.name} saw",
                    "Check the unit, or fit on servers like it.",
                )
            if by > _SLACK:
                said.append(name)
        return ", ".join(said)


def _check_number(one: Input, value: object) -> None:
    """Raises ModelError where ``value`` is no number that ``one`` can be."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if (one.column and not number) or isinstance(value, bool) or (number and not 0 <= float(str(value)) < float("inf")):
        raise ModelError(f"'{one.name}' is {value}, no number above zero", f"That is: {one.meaning}.")
    if one.column:
        unit, least, most = UNITS[one.column]
        if not least <= float(str(value)) <= most:
            raise ModelError(f"'{one.name}' is {value:g}, which cannot be {unit}", f"That is: {one.meaning}.")


def train(name: str, tables: Mapping[str, pl.DataFrame]) -> TrainedModel:
    """Fit the model called ``name`` on ``tables`` (by the start of their files' names, see ``Model.tables``).

    Raises UsageError for a name that there is not, ModelError where a table is missing, lacks columns, is in other
    units or holds too little.
    """
    model = find_model(name)
    missing = [table for table in model.tables if table not in tables]
    if missing:
        raise ModelError(f"{name} is fitted on {missing[0]}, which is not given", "See docs/models.md.")
    examples = model.examples({table: tables[table] for table in model.tables})
    return trained_on(model, examples, model.fit(examples, None))


def trained_on(model: Model, examples: Examples, fitted: Fit) -> TrainedModel:
    return TrainedModel(model, fitted, *seen_range(examples.features), len(np.unique(examples.groups)))
