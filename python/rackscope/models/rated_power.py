"""Watts over load of a server of which only watts idle and full are known. Modelled, and called so.

P = idle + (full - idle) s(u), where u is how busy its cores are (0 to 1). Servers lie between s(u) = u and the curve
that Fan, Weber and Barroso (ISCA 2007, section 4.3) found for theirs, s(u) = 2 u - u^1.4: which of them is not known,
so the share between them is drawn.
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

_EXPONENT = 1.4
#: A server draws this much more or less than its kind is said to: 90 % within. Parts, fans, supplies. Ours.
_COPY = 1.05

BASIS = "drawn from the rated watts and from forms between a straight line and the curve of Fan 2007; no meter was read"


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
                f"a load of {float(load.max()):g} is no share of the most that the server does", "Give it from 0 to 1."
            )
        count = len(load)
        idle, full = self.idle.draw("idle watts", count, seed), self.full.draw("full watts", count, seed)
        bend = Uncertain.uniform(0.0, 1.0).draw("power form", count, seed)
        shape = (1 - bend) * load + bend * (2 * load - load**_EXPONENT)
        copy = Uncertain.lognormal(1.0, _COPY).draw("copy", count, seed)
        return np.asarray((idle + np.maximum(full - idle, 0.0) * shape) * copy)

    def predict(self, load: float, *, draws: int = 20_000, seed: int = 1) -> Prediction:
        """Modelled watts at ``load`` (0 to 1)."""
        import numpy as np

        drawn = self.draw(np.full(draws, float(load)), seed=seed)
        low, value, high = (float(one) for one in np.quantile(drawn, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2]))
        return Prediction(value, low, high, "watts (modelled)", BASIS, False)
