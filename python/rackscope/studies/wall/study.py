"""``study wall``: grow the data under a memory limit until it breaks; say where, and what broke."""

from __future__ import annotations

from rackscope.studies.base import Option, Study, later

STUDY = Study(
    name="wall",
    help="grow the data under a memory limit: where throughput breaks down, and why",
    description=(
        "Measures time per byte at sizes from an eighth of a memory limit to four times it, each after a fresh start,\n"
        "until memory runs out or the largest is measured. The limit is a control group's: the system is stopped when\n"
        "it has run out; the kernel's out-of-memory killer is not used. With --by knob it is the system's own limit,\n"
        "and the wall shows as misses.\n\n"
        "Examples:\n"
        "  rackscope study wall redis ycsb-b --memory 256m\n"
        "  rackscope study wall memcached ycsb-b --by knob --memory 64m --set distribution=uniform"
    ),
    conduct=later("wall.conduct:conduct"),
    options=(
        Option("memory", "size", "memory limit", "256m"),
        Option(
            "by",
            "text",
            "what limits memory: a control group, a knob of the system, or auto: a group if possible",
            "auto",
            choices=("auto", "group", "knob"),
        ),
        Option("repeat", "count", "rounds over all sizes", "2"),
        Option("duration", "duration", "measured time at a size", "1s"),
        Option("warm-up", "duration", "unmeasured time before it", "300ms"),
        Option("budget", "duration", "time after which later rounds skip sizes", "150s"),
    ),
    title=later("wall.conduct:title"),
    check=later("wall.conduct:check"),
    run_defaults={"repetitions": 1},
)
