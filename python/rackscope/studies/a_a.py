"""``study a-a``: how often rackscope calls a thing different from itself.

``StudyRecord.result``::

    {"comparisons", "different", "share", "low", "high", "ratios": [{"estimate", "low", "high", "different"}],
     "windows", "discarded", "disturbed"}

``share`` is that of the comparisons called different, with its exact 95 % interval. ``discarded`` windows were
measured again because others took part of the host; ``disturbed`` ones count all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rackscope.errors import UsageError
from rackscope.studies.base import Conduct, Option, Request, Study
from rackscope.studies.kit import axis, chart, finding, reference, warning

if TYPE_CHECKING:
    from rackscope.analysis.multiple import Comparison
    from rackscope.runs.session import Session
    from rackscope.runs.study import Chart
    from rackscope.studies.bench.interference import Interference

_LABELS = ("A", "B")
#: What the rule that is put to the test allows.
_ALLOWED_SHARE = 0.05
_FEWEST_PAIRS = 3
_SHORTEST_SECONDS = 0.05


def compare_with_itself(
    measure: Callable[[str], float], comparisons: int, pairs: int, seed: int
) -> Iterator[Comparison]:
    """Comparisons of two labels for one thing, one after the other; ``measure`` gives the throughput of a window.

    Labels take turns as the two sides of any comparison should (``interleave``).
    """
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

    request = conduct.request
    assert request.run is not None
    values = request.values
    prepared = prepare(request.run, conduct.progress)
    stage = prepared.plan.stages[0]
    subject = f"{prepared.system.name} under {prepared.plan.workload}"
    interference = Interference()
    made: list[Comparison] = []

    def work(session: Session) -> None:
        loop = prepared.options.loop
        session.preload()
        session.warm_up(loop)
        numbers = iter(range(1, 1_000_000_000))

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
    interval = f"95 % interval {100 * share.low:.1f} to {100 * share.high:.1f} %"
    too_many = share.low > _ALLOWED_SHARE
    record = conduct.record
    record.findings = [
        finding(
            f"{subject} was called different from itself in {different} of {len(made)} comparisons: "
            f"{100 * share.estimate:.1f} %, {'more than' if too_many else 'where'} {100 * _ALLOWED_SHARE:.0f} % "
            f"{'may be' if too_many else 'at most are allowed'}",
            f"{interval} (Clopper and Pearson 1934)",
            "serious" if too_many else "finding",
        )
    ]
    if interference.kept:
        record.findings.append(
            warning(
                f"the host was busy with other things in {interference.kept} of the "
                f"{interference.windows - interference.discarded} windows that count",
                ", ".join(sorted(interference.reasons)),
            )
        )
    record.charts = [_chart(made)]
    record.method = [
        f"One session of stage {stage}; {conduct.request.values['pairs']} windows a label and comparison, labels in "
        "an order of ABBA or BAAB drawn from the seed, judged by the rule that compares any two repeated measurements.",
        f"{interference.discarded} windows were discarded and measured again because others took part of the host.",
    ]
    record.result = {
        "comparisons": len(made),
        "different": different,
        "share": share.estimate,
        "low": share.low,
        "high": share.high,
        "ratios": [
            {
                "estimate": one.ratio.estimate,
                "low": one.ratio.low,
                "high": one.ratio.high,
                "different": one.different,
            }
            for one in made
        ],
        "windows": interference.windows,
        "discarded": interference.discarded,
        "disturbed": interference.kept,
    }
    conduct.save()


def _chart(made: list[Comparison]) -> Chart:
    from rackscope.runs.study import Series

    series = []
    for label, different in (("no difference found", False), ("called different", True)):
        shown = [(number, one.ratio) for number, one in enumerate(made, 1) if one.different is different]
        if shown:
            series.append(
                Series(
                    label=label,
                    kind="points",
                    x=[float(number) for number, _ in shown],
                    y=[ratio.estimate for _, ratio in shown],
                    low=[ratio.low for _, ratio in shown],
                    high=[ratio.high for _, ratio in shown],
                )
            )
    return chart(
        "ratios",
        "A over B, which are the same",
        axis("comparison", "count"),
        axis("throughput of A over that of B", "ratio"),
        series,
        caption="Ratio of mean throughputs, with 95 % intervals.",
        references=[reference("the same", 1.0)],
    )


def _check(request: Request) -> None:
    if request.values["comparisons"] < 1:
        raise UsageError("there must be a comparison at least", "Choose --comparisons 100.")
    if request.values["pairs"] < _FEWEST_PAIRS:
        raise UsageError(
            f"{request.values['pairs']} windows a label cannot be compared",
            f"Choose --pairs {_FEWEST_PAIRS} or more.",
        )
    if request.values["window"] < _SHORTEST_SECONDS:
        raise UsageError(f"a window must last at least {1000 * _SHORTEST_SECONDS:.0f} ms", "Choose --window 250ms.")


STUDY = Study(
    name="a-a",
    help="compare a thing with itself, to see how often it is called different",
    description=(
        "Runs the workload once and compares windows of it, labelled A and B, with each other, again and again.\n"
        "There is nothing to find: what is called different shows how often comparisons on this host mislead.\n\n"
        "Example:\n"
        "  rackscope study a-a cache ycsb-b"
    ),
    conduct=_conduct,
    check=_check,
    options=(
        Option("comparisons", "count", "how many comparisons", "100"),
        Option("pairs", "count", "windows of each label in a comparison", "6"),
        Option("window", "duration", "length of one window", "250ms"),
    ),
    run_defaults={"warm_up_seconds": 2.0, "sample_interval_seconds": 0.05, "repetitions": 1},
)
