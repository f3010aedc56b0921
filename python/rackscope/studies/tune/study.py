"""``study tune``: which knobs make a system faster under a workload, and what each change is worth."""

from __future__ import annotations

from rackscope.studies.base import Option, Study, later

STUDY = Study(
    name="tune",
    help="search the knobs of a system for the best configuration",
    description="""Search the knobs of a system for the best configuration: the highest throughput of a closed loop, or
with --slo the highest rate within a latency bound.

The best configuration is measured again in turns with the defaults. Then one change at a time is reverted, to measure
what it contributes. Changes that make no difference are left out of the recommendation.

Examples:
  rackscope study tune memcached ycsb-b --budget 10m
  rackscope study tune redis ycsb-a --slo 'p99<1ms' --knobs io_threads,io_threads_read""",
    conduct=later("tune.conduct:conduct"),
    options=(
        Option("slo", "text", "tune for the highest rate under this bound, instead of throughput", metavar="'p99<1ms'"),
        Option("budget", "duration", "total time", "10m"),
        Option("knobs", "text", "search only these knobs", repeated=True, metavar="NAME,..."),
    ),
    run_defaults={"sample_interval_seconds": 0.5, "warm_up_seconds": 0.5},
    title=later("tune.conduct:title"),
    check=later("tune.conduct:check"),
)
