"""``study sweep``: a grid of configurations, each measured by fresh starts in an order that lets drift cancel."""

from __future__ import annotations

from rackscope.studies.base import Option, Study, later
from rackscope.studies.sweep.presets import load_presets

STUDY = Study(
    name="sweep",
    help="measure all combinations of some settings: which matter, which combination is best",
    description=(
        "Measures every combination of the varied values, each with fresh starts of the system, in rounds that cancel\n"
        "drift. You can vary a knob of the system, a parameter of the workload, or of the load:\n"
        "connections, client_threads (cores of the load generator), rate, tuned, endpoint, system, workload.\n"
        "SYSTEM may be a list. To continue a sweep that was stopped, give --resume DIR alone.\n\n"
        "Examples:\n"
        "  rackscope study sweep redis ycsb-a --vary value_size=64,1k,25k\n"
        "  rackscope study sweep memcached,cache ycsb-b --vary threads=1,2,4 --vary value_size=64,1k --repeat 5\n"
        "  rackscope study sweep memcached,redis,cache --preset issa-figure-11"
    ),
    conduct=later("sweep.conduct:conduct"),
    subject="optional",
    options=(
        Option("vary", "text", "a setting and its values; may be repeated", repeated=True, metavar="NAME=A,B,..."),
        Option(
            "preset",
            "text",
            "repeat the measurement of a figure or table of a paper, with its workload",
            choices=tuple(load_presets()),
        ),
        Option("repeat", "count", "runs of each combination, each a fresh start", "3"),
        Option("duration", "duration", "measured time of a run, per stage", "2s"),
        Option("warm-up", "duration", "unmeasured time before it", "500ms"),
        Option("rate", "rate", "open loop at this rate, in operations a second (default: closed loop)", metavar="N"),
        Option("resume", "text", "continue a sweep that was stopped", metavar="DIR"),
    ),
    title=later("sweep.conduct:title"),
    check=later("sweep.conduct:build_plan"),
    resumable=True,
)
