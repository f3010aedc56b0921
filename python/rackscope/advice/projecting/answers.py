"""What a projection says of one server: each figure with its interval, what it stands on and what would change it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from rackscope.models.catalogue import Server
from rackscope.models.estimates import LEVEL, Prediction
from rackscope.models.rated_power import RatedPowerModel
from rackscope.models.uncertain import Array, Uncertain

DRAWS = 20_000


@dataclass(frozen=True)
class Answer:
    """One figure; without a ``prediction``, ``refused`` says why there is none."""

    name: str
    what: str
    prediction: Prediction | None
    stands_on: str = ""
    changes_if: str = ""
    refused: str = ""


@dataclass(frozen=True)
class Projected:
    """Draws of a server at work: operations a second at most, and at the load that was asked; watts there."""

    throughput: Array
    rate: Array
    watts: Array | None


@dataclass(frozen=True)
class ServerProjection:
    """All answers on one server, on ``cores`` of its ``threads``; ``notes`` are assumptions that all stand on."""

    server: Server
    cores: int
    threads: int
    same_processor: bool
    answers: tuple[Answer, ...]
    notes: tuple[str, ...]
    drawn: Projected
    #: Of watts idle and full, as the catalogue states or a model of data sheets gives them.
    rated: RatedPowerModel | None = None

    def answer(self, name: str) -> Answer | None:
        return next((one for one in self.answers if one.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        return {
            "server": self.server.name,
            "cores": self.cores,
            "same_processor": self.same_processor,
            "answers": [
                {
                    "name": one.name,
                    "what": one.what,
                    **({} if one.prediction is None else asdict(one.prediction)),
                    "stands_on": one.stands_on,
                    "changes_if": one.changes_if,
                    "refused": one.refused,
                }
                for one in self.answers
            ],
            "notes": list(self.notes),
        }


def draws_of(prediction: Prediction, name: str, *, seed: int = 1) -> Array:
    """Draws whose median and ends of 90 % are those of a prediction above zero: lognormal on either side."""
    uniform = Uncertain.uniform(0.0, 1.0).draw(name, DRAWS, seed)
    normal = ndtri(np.clip(uniform, 1e-12, 1 - 1e-12)) / ndtri((1 + LEVEL) / 2)
    up = np.log(prediction.high / prediction.value)
    down = np.log(prediction.value / prediction.low)
    return np.asarray(prediction.value * np.exp(np.where(normal > 0, up, down) * normal))
