"""What two workloads keep of their throughput on one core, slice by slice: models are judged by it."""

from __future__ import annotations

from functools import cache

SLICES = 20_000
#: What a workload may be behind with, in slices: clients wait for what they asked.
BEHIND_MAX = 50.0


@cache
def slices_had(first: float, second: float, switch_cost: float = 0.0) -> tuple[float, float]:
    """The core's time that each makes use of, where alone they would use ``first`` and ``second`` cores.

    Each slice goes to the one that has had fewer, if it has something to do. After a switch, ``switch_cost`` of the
    slice is lost to caches that are cold.
    """
    wanted, behind, used, had, last = (first, second), [0.0, 0.0], [0.0, 0.0], [0, 0], -1
    for _ in range(SLICES):
        behind = [min(one + more, BEHIND_MAX) for one, more in zip(behind, wanted, strict=True)]
        ready = [one for one in (0, 1) if behind[one] >= 1]
        if not ready:
            continue
        runs = min(ready, key=had.__getitem__)
        useful = 1 - switch_cost if last not in (-1, runs) else 1.0
        behind[runs] -= useful
        used[runs] += useful
        had[runs] += 1
        last = runs
    return used[0] / SLICES, used[1] / SLICES


def kept(cores: float, elasticity: float, beside: float, switch_cost: float = 0.0) -> float:
    """The part of its throughput that a workload keeps beside one that would use ``beside`` cores."""
    return float(min(1.0, slices_had(cores, beside, switch_cost)[0] / cores) ** elasticity)
