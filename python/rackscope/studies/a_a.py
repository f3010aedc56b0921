"""``study a-a``: how often a system is called different from itself."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rackscope.studies import kit
from rackscope.studies.base import Conduct, Option, Request, Study

if TYPE_CHECKING:
    from rackscope.analysis.multiple import Comparison
    from rackscope.runs.session import Session
    from rackscope.runs.study import Chart
    from rackscope.studies.bench.interference import Interference

_LABELS = ("A", "B")
#: How many false differences the tested rule allows.
_ALLOWED = 0.05
_FEWEST_PAIRS = 3


def compare_with_itself(
    measure: Callable[[str], float], comparisons: int, pairs: int, seed: int
) -> Iterator[Comparison]:
    """Comparisons of two labels for one thing, in turns; ``measure`` gives the throughput of a window."""
    from rackscope.analysis.multiple import compare_repeated, interleave

    for number in range(comparisons):
        values: dict[str, list[float]] = {label: [] for label in _LABELS}
        for label in interleave(_LABELS, pairs, seed + number):
            values[label].append(measure(f"comparison {number + 1} of {comparisons}: {label}"))
        yield compare_repeated(values["A"], values["B"])


def _conduct(conduct: Conduct) -> None:
    from rackscope.runs.prepare import prepare
    from rackscope.runs.session import Session
    from rackscope.studies.bench.interference import Interference

    values = conduct.request.values
    prepared = prepare(conduct.request.asked, conduct.progress)
    stage, loop = prepared.plan.stages[0], prepared.options.loop
    subject = f"{prepared.system.name} under {prepared.plan.workload}"
    interference = Interference()
    made: list[Comparison] = []

    def work(session: Session) -> None:
        session.preload()
        session.warm_up(loop)
        numbers = itertools.count(1)

        def measure(activity: str) -> float:
            row = interference.measure(
                lambda begin: session.phase(
                    stage, loop, values["window"], next(numbers), activity=activity, discard=begin()
                )
            )
            return row["throughput_operations_per_second"] or 0.0

        for comparison in compare_with_itself(measure, values["comparisons"], values["pairs"], prepared.options.seed):
            made.append(comparison)
            write(conduct, subject, stage.name, made, interference)

    Session(prepared, conduct.progress, conduct.member("windows", "windows labelled A and B")).run(work)


def write(conduct: Conduct, subject: str, stage: str, made: list[Comparison], interference: Interference) -> None:
    """Put what is known after these comparisons into the record, and on disk."""
    from rackscope.analysis.proportions import proportion_interval

    different = sum(one.different for one in made)
    share = proportion_interval(different, len(made))
    assert share.low is not None
    assert share.high is not None
    too_many = share.low > _ALLOWED
    record = conduct.record
    record.findings = [
        kit.finding(
            f"{subject} was called different from itself in {different} of {len(made)} comparisons: "
            f"{100 * share.estimate:.1f} %, {'more than the' if too_many else 'with'} {100 * _ALLOWED:.0f} % allowed",
            f"95 % interval {100 * share.low:.1f} to {100 * share.high:.1f} % (Clopper and Pearson 1934)",
            "serious" if too_many else "finding",
        ),
        *kit.interference_findings(interference),
    ]
    record.charts = [_chart(made)]
    record.method = [
        f"One session of stage {stage}; {conduct.request.values['pairs']} windows a label and comparison, labels in "
        "an order of ABBA or BAAB drawn from the seed, judged by the rule that compares any two repeated measurements.",
        kit.measured_again(interference),
    ]
    record.result = {
        "comparisons": len(made),
        "different": different,
        "share": share.estimate,
        **kit.picked(share, "low", "high"),
        "ratios": [{**(kit.plain(one.ratio) or {}), "different": one.different} for one in made],
        **kit.picked(interference, "windows", "discarded"),
        "disturbed": interference.kept,
    }
    conduct.save()


def _chart(made: list[Comparison]) -> Chart:
    kinds = {False: "no difference found", True: "called different"}
    series = kit.estimates_by(
        kinds,
        {number: float(number) for number in range(1, len(made) + 1)},
        lambda different, number: made[number - 1].ratio if made[number - 1].different is different else None,
    )
    return kit.chart(
        "ratios",
        "A / B, which are the same",
        kit.axis("comparison", "count"),
        kit.axis("throughput of A / throughput of B", "ratio"),
        [one for one in series if one.x],
        caption="Ratio of mean throughputs, with 95 % intervals.",
        references=[kit.reference("the same", 1.0)],
    )


def _check(request: Request) -> None:
    from rackscope.studies.bench.loading import check_count, check_window

    check_count(request.values["comparisons"], "comparisons", most=1_000_000)
    check_count(request.values["pairs"], "windows a label", _FEWEST_PAIRS)
    check_window(request.values["window"], "250ms")


STUDY = Study(
    name="a-a",
    help="compare a system with itself, to see how often differences are reported falsely",
    description=(
        "Runs the workload once and compares windows of it, labelled A and B, with each other, again and again.\n"
        "There is no real difference: every difference reported is a false one.\n\n"
        "Example:\n"
        "  rackscope study a-a cache ycsb-b"
    ),
    conduct=_conduct,
    check=_check,
    options=(
        Option("comparisons", "count", "number of comparisons", "100"),
        Option("pairs", "count", "windows of each label in a comparison", "6"),
        Option("window", "duration", "length of one window", "250ms"),
    ),
    run_defaults={"warm_up_seconds": 2.0, "sample_interval_seconds": 0.05, "repetitions": 1},
)
