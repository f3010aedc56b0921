"""What a server that was not measured may do, from others that were: their rate and watts for each core.

A guess, and wide: it says what is worth measuring, never what to buy. On 69 processors of public cloud servers (redis),
each guessed from 2 to 8 others, 89 to 95 % of the intervals of 90 % held.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rackscope.analysis.intervals import student_quantile
from rackscope.errors import RackscopeError
from rackscope.models.estimates import LEVEL, require_positive
from rackscope.models.uncertain import Uncertain

#: How far servers differ in what a core does, as a deviation of logarithms, and of how many servers that is worth: two
#: or three measured ones alone do not tell. 0.5 is what 69 processors of public cloud servers differ by under redis
#: (0.44 with pipelining, 0.54 without); the weight is our choice.
_USUAL_DEVIATION, _WORTH = 0.5, 4
_FEWEST = 2
#: A factor of a million: beyond it nothing is known, and the arithmetic should survive it.
_FURTHEST = math.log(1e6)


def guess_by_cores(amounts: Sequence[float], cores: Sequence[int], for_cores: int) -> Uncertain:
    """What ``for_cores`` cores do, from ``amounts`` (rates, watts) of servers with ``cores`` each.

    Lognormal: amounts for each core of another server, by Student's t from those measured. Raises RackscopeError for
    less than two servers, and for values that are not above zero.
    """
    if len(amounts) < _FEWEST or len(amounts) != len(cores):
        raise RackscopeError(
            f"{len(amounts)} measured servers with known cores of at least {_FEWEST}",
            "Measure another, or give the catalogue an amount with its uncertainty.",
        )
    require_positive(amounts, "the amount")
    require_positive([*cores, for_cores], "the number of cores")
    each = [math.log(amount / count) for amount, count in zip(amounts, cores, strict=True)]
    middle = sum(each) / len(each)
    squares = sum((one - middle) ** 2 for one in each)
    # Drawn towards what is usual (Smyth 2004), as in analysis/moderation.
    degrees = len(each) - 1 + _WORTH
    deviation = math.sqrt((squares + _WORTH * _USUAL_DEVIATION**2) / degrees)
    reach = student_quantile(degrees, LEVEL) * deviation * math.sqrt(1 + 1 / len(each))
    return Uncertain.lognormal(for_cores * math.exp(middle), math.exp(min(reach, _FURTHEST)))
