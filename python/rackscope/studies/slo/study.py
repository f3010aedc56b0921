"""``study slo``: the highest rate at which a quantile of the response time stays below a bound."""

from __future__ import annotations

from rackscope.studies.base import Option, Study, later

STUDY = Study(
    name="slo",
    help="the highest open-loop rate that keeps a quantile of the response time below a bound",
    description="""Find the highest rate of requests at which a latency bound holds, the curve of latency over
throughput, and its knee.

Requests arrive on their own schedule (Poisson), and a response time counts from the moment its request was meant to
be sent: the delay of a system that falls behind counts.

Examples:
  rackscope study slo cache ycsb-b --bound 'p99<1ms'
  rackscope study slo redis ycsb-a --bound 'p99.9<5ms' --budget 5m""",
    conduct=later("slo.conduct:conduct"),
    options=(
        Option("bound", "text", "quantile (p50, p90, p99, p999) and its largest acceptable value", "p99<1ms",
               metavar="'p99<1ms'"),
        Option("budget", "duration", "measuring time, without loading, warming up and waiting for a quiet host",
               "100s"),
        Option("stage", "text", "stage of the workload, where it has several", metavar="NAME"),
    ),
    run_defaults={"sample_interval_seconds": 0.25, "warm_up_seconds": 2.0},
    title=lambda request: (
        f"{request.asked.system} under {request.asked.workload}: highest rate within {request.values['bound']}"
    ),
    check=later("slo.conduct:check"),
)  # fmt: skip
