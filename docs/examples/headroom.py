"""How p99 grows as the load comes close to the highest throughput: rackscope study headroom.py cache ycsb-b"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rackscope.analysis.intervals import median_interval
from rackscope.studies import kit
from rackscope.studies.base import Conduct, Option, Request, Study
from rackscope.studies.bench.interference import Interference

if TYPE_CHECKING:  # heavy ones are imported where they are used: studies are listed by importing them
    from rackscope.runs.study import StudyRecord
    from rackscope.studies.bench.windows import Load

FRACTIONS = (0.25, 0.5, 0.75, 0.9)


# The plan and the measuring: rounds that each hold every load once, in an order in which drift cancels.
def measure(load: Load, seconds: float, rounds: int, seed: int) -> dict[float, list[float]]:
    """p99 in seconds, one a round, by the fraction of the highest throughput."""
    from rackscope.studies.bench.turns import rounds_of

    highest = load.closed(seconds, "highest throughput").achieved_per_second
    found: dict[float, list[float]] = {fraction: [] for fraction in FRACTIONS}
    for number, order in enumerate(rounds_of(FRACTIONS, rounds, seed), 1):
        for fraction in order:
            window = load.open(fraction * highest, seconds, f"round {number} of {rounds}: {fraction:.0%}")
            found[fraction].append(window.response_seconds["p99"] or 0.0)
    return found


# The findings: a sentence that answers the question, a table, a chart, and the same for programs.
def describe(record: StudyRecord, found: dict[float, list[float]], interference: Interference) -> None:
    """Put what was found into the record."""
    medians = {fraction: median_interval(values) for fraction, values in found.items()}
    times = medians[FRACTIONS[-1]].estimate / medians[FRACTIONS[0]].estimate
    record.findings = [
        kit.finding(f"p99 at {FRACTIONS[-1]:.0%} of the highest throughput is {times:.1f} times that at 25 %."),
        *kit.interference_findings(interference),
    ]
    rows = [[f"{fraction:.0%}", one.estimate, one.low, one.high] for fraction, one in medians.items()]
    columns = ["load", ("p99", "seconds"), ("from", "seconds"), ("to", "seconds", "ends of the 95 % interval")]
    record.tables = kit.table("loads", "Latency over load", columns, rows, "Medians over rounds.")
    x, y = kit.axis("fraction of the highest throughput", "ratio"), kit.axis("p99", "seconds", logarithmic=True)
    record.charts = [kit.chart("loads", "Latency over load", x, y, [kit.estimates("p99", medians.items(), "line")])]
    record.method = ["Poisson arrivals; loads in turns, round after round.", kit.measured_again(interference)]
    record.result = {"p99_seconds": {str(fraction): kit.interval_result(one) for fraction, one in medians.items()}}


def conduct(study: Conduct) -> None:
    """Start the system, measure, describe."""
    from rackscope.studies.bench.windows import in_one_session

    values, interference = study.request.values, Interference()

    def work(load: Load) -> None:
        found = measure(load, values["window"], values["rounds"], study.request.asked.seed)
        describe(study.record, found, interference)

    in_one_session(study, work, interference)


def check(request: Request) -> None:
    """Refuse what cannot be measured, before anything is started."""
    from rackscope.studies.bench.loading import check_count, check_window

    check_window(request.values["window"], "1s")
    check_count(request.values["rounds"], "rounds")


STUDY = Study(
    name="headroom",
    help="p99 at fractions of the highest throughput",
    description="Measures the highest throughput in a closed loop, then p99 in open loops at 25 to 90 % of it.",
    conduct=conduct,
    check=check,
    options=(Option("window", "duration", "length of a window", "1s"), Option("rounds", "count", "rounds", "5")),
)
