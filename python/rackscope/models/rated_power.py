"""Watts over load of a server of which only watts idle and full are known. Modelled, and called so.

P(u) = idle + (full - idle) u^h, where u is how busy its cores are (0 to 1). Not known, and drawn, are

* ``h``: of 23 published SPECpower_ssj2008 curves of 2007 to 2024 (one to four processors, Intel and AMD), the exponent
  at each of their nine loads has a median of 1.0, and 90 % lie between 0.61 and 1.67. The form of Fan, Weber and
  Barroso (ISCA 2007, section 4.3), 2u - u^1.4, lies within;
* the work: another program at the same use takes more or less than SPEC's (von Kistowski et al., ICPE 2015, find tens
  of percent between the worklets of SERT). 90 % of the dynamic part within a factor of 1.25 is our choice;
* the copy: two servers of a kind differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rackscope.errors import RackscopeError
from rackscope.models.estimates import LEVEL, Prediction
from rackscope.models.uncertain import Uncertain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

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
        import numpy as np

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
        import numpy as np

        drawn = self.draw(np.full(draws, float(load)), seed=seed)
        low, value, high = (float(one) for one in np.quantile(drawn, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2]))
        return Prediction(value, low, high, "watts (modelled)", BASIS, False)
