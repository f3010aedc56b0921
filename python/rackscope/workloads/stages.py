"""Redis stage lists: data-structure commands one after the other (Awasthi 2015, section 4.3.5 and figure 14)."""

from __future__ import annotations

from rackscope.workloads.base import Stage, Workload
from rackscope.workloads.parameters import with_defaults

WORKLOADS: tuple[Workload, ...] = (
    Workload(
        name="redis-stages",
        description="lists, sorted sets and sets: lpush, lpop, zadd, zrange, sadd, one stage each",
        source="Awasthi et al. 2015, section 4.3.5",
        stages=tuple(Stage(name, {name: 1.0}) for name in ("lpush", "lpop", "zadd", "zrange", "sadd")),
        parameters=with_defaults(distribution="uniform", value_size="100"),
        preload=False,
        notes=("A pop from an empty list counts as a miss, not as an error.",),
    ),
)
