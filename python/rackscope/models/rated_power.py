"""Watts over load of a server of which only watts idle and full are known. Modelled, and called so.

P(u) = idle + (full - idle) u^h, where u is how busy its cores are (0 to 1). Not known, and drawn, are

* ``h``: of 23 published SPECpower_ssj2008 curves of 2007 to 2024, the exponent at each of their nine loads has a median
  of 1.0, and 90 % lie between 0.61 and 1.67; 2u - u^1.4 (Fan, Weber and Barroso, ISCA 2007) lies within;
* the work: another program at the same use takes more or less than SPEC's (von Kistowski et al., ICPE 2015, find tens
  of percent). 90 % of the dynamic part within a factor of 1.25 is our choice;
* the copy: two servers of a kind differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rackscope.errors import RackscopeError
from rackscope.models.estimates import Prediction, from_draws
from rackscope.models.uncertain import Array, Uncertain

EXPONENT = Uncertain.lognormal(1.0, 1.65)
WORK = Uncertain.lognormal(1.0, 1.25)
#: A server draws this much more or less than its kind is said to: 90 % within. Parts, fans, supplies. Ours.
_COPY = 1.05

BASIS = "drawn from the rated watts, forms of published curves between idle and full, and the work; no meter was read"


@dataclass(frozen=True)
class RatedPowerModel:
    """Watts ``idle`` and ``full``, as they are said to be."""

    idle: Uncertain
    full: Uncertain

    def draw(self, load: Array, *, seed: int = 1) -> Array:
        """Modelled watts, draw by draw, at the loads (0 to 1) of ``load``. Raises RackscopeError for another load."""
        if not np.all((load >= 0) & (load <= 1)):
            raise RackscopeError(
                f"a load of {float(load.max()):g} is not a fraction of full load", "Give it from 0 to 1."
            )
        count = len(load)
        idle, full = self.idle.draw("idle watts", count, seed), self.full.draw("full watts", count, seed)
        shape = load ** EXPONENT.draw("exponent", count, seed) * WORK.draw("work", count, seed)
        copy = Uncertain.lognormal(1.0, _COPY).draw("copy", count, seed)
        return np.asarray((idle + np.maximum(full - idle, 0.0) * shape) * copy)

    def predict(self, load: float, *, draws: int = 20_000, seed: int = 1) -> Prediction:
        """Modelled watts at ``load`` (0 to 1)."""
        return from_draws(self.draw(np.full(draws, float(load)), seed=seed), "watts (modelled)", BASIS)
