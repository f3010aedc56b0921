"""``study colocate``: workloads alone and in pairs on the same cores, each pair predicted from the rest."""

from __future__ import annotations

from rackscope.studies.base import Option, Study, later

STUDY = Study(
    name="colocate",
    help="measure workloads alone and in pairs on the same cores: which pairs fit",
    description=(
        "Starts all workloads on the same cores, squeezes each alone, and measures them alone and in pairs, in turns.\n"
        "Each pair is then predicted from the squeezes and from all other pairs, and compared with what was measured.\n"
        "Without arguments it uses six example workloads (8 to 12 minutes).\n\n"
        "A workload is written SYSTEM:WORKLOAD,NAME=VALUE,... with name (a label), cpu (most cores it may use),\n"
        "connections (16), rate (an open loop, judged by p99; without it a closed loop, judged by throughput), knobs\n"
        "of the system and parameters of the workload.\n\n"
        "Examples:\n"
        "  rackscope study colocate\n"
        "  rackscope study colocate memcached:ycsb-b,cpu=0.4 redis:ycsb-b --rounds 12\n"
        "  rackscope study colocate cache:ycsb-b,rate=20k redis:ycsb-b,cpu=0.3 memcached:ycsb-b --pairs cache+redis"
    ),
    conduct=later("colocate.conduct:conduct"),
    subject="workloads",
    options=(
        Option("pairs", "text", "pairs to measure (default: all)", metavar="A+B,C+D"),
        Option("slowdown", "text", "largest acceptable slowdown of each side of a pair", "5%", metavar="PERCENT"),
        Option("rounds", "count", "number of times each pair is measured", "8"),
        Option("window", "duration", "length of one window", "600ms"),
        Option("levels", "text", "fractions of a resource that squeezes leave", "0.8,0.65,0.5", metavar="LIST"),
        Option("budget", "duration", "time for squeezes and pairs together", "12m"),
    ),
    title=later("colocate.conduct:title"),
    check=later("colocate.conduct:build_plan"),
)
