"""Key-value mixes: YCSB's core workloads, Facebook's pools, and the papers' image preview."""

from __future__ import annotations

from rackscope.workloads.base import Stage, Workload
from rackscope.workloads.parameters import with_defaults

_ATIKOGLU = "Atikoglu et al., Workload Analysis of a Large-Scale Key-Value Store, SIGMETRICS 2012"
_YCSB = "Cooper et al., Benchmarking Cloud Serving Systems with YCSB, SoCC 2010"


def _ycsb(letter: str, description: str, operations: dict[str, float], distribution: str = "zipfian") -> Workload:
    return Workload(
        name=f"ycsb-{letter}",
        description=description,
        source=_YCSB,
        stages=(Stage("measure", operations),),
        parameters=with_defaults(distribution=distribution),
        notes=("A record is one value of 1,000 bytes (YCSB: ten fields of 100); the key space is 100,000 keys.",)
        if letter != "e"
        else (),
    )


def _pool(name: str, description: str, reads: float, *, fitted: bool = False) -> Workload:
    notes = (
        "The paper publishes no fit for this pool: sizes and shares are in part assumed (docs/reference/workloads.md).",
    )
    return Workload(
        name=name,
        description=f"Facebook's pool {name.upper()}, {description}",
        source=_ATIKOGLU,
        stages=(Stage("measure", {"read": reads, "update": 1 - reads}),),
        parameters=with_defaults(key_size=name, value_size=name),
        notes=() if fitted else notes,
    )


WORKLOADS: tuple[Workload, ...] = (
    _ycsb("a", "session store: half reads, half updates", {"read": 0.5, "update": 0.5}),
    _ycsb("b", "photo tagging: 95 % reads, 5 % updates", {"read": 0.95, "update": 0.05}),
    _ycsb("c", "profile cache: reads only", {"read": 1.0}),
    _ycsb("d", "status updates: 95 % reads of the newest, 5 % inserts", {"read": 0.95, "insert": 0.05}, "latest"),
    _ycsb("e", "threaded conversations: 95 % short scans, 5 % inserts", {"scan": 0.95, "insert": 0.05}),
    _ycsb("f", "user database: half reads, half read-modify-writes", {"read": 0.5, "read_modify_write": 0.5}),
    _pool(
        "etc", "general purpose: 30 reads to a write, small keys, values from bytes to a megabyte", 30 / 31, fitted=True
    ),
    _pool("usr", "user accounts: 998 reads to 2 writes, keys of 16 or 21 bytes, values of 2 bytes", 0.998),
    _pool("app", "objects of one application: 30 reads to a write, keys of 31 bytes, values about 270 bytes", 30 / 31),
    _pool("var", "browsers: 82 % writes, keys of 31 bytes, values of a few bytes to 500", 0.18),
    _pool("sys", "locations of services: two reads to a write, keys of 20 to 45 bytes, values about 500 bytes", 2 / 3),
    Workload(
        name="image-preview",
        description="32-byte keys and 25 KB values, nine reads to a write",
        source="Awasthi et al. 2015, section 4.3.1",
        stages=(Stage("measure", {"read": 0.9, "update": 0.1}),),
        parameters=with_defaults(keys="4000", key_size="32", value_size=str(25 * 1024)),
    ),
)
