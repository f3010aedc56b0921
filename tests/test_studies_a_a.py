"""A thing compared with itself: the order, what is counted, and what is said of the count."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from rackscope.analysis.intervals import Interval
from rackscope.analysis.multiple import Comparison
from rackscope.analysis.proportions import proportion_interval
from rackscope.errors import UsageError
from rackscope.runs.study import StudyRecord
from rackscope.studies.a_a import STUDY, compare_with_itself, write
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.interference import Interference

VALUES = {"comparisons": 20, "pairs": 6, "window": 0.25}


def test_each_comparison_has_both_labels_in_turns() -> None:
    activities: list[str] = []

    def measure(activity: str) -> float:
        activities.append(activity)
        return 100.0 + len(activities) % 3

    made = list(compare_with_itself(measure, 3, 6, seed=1))
    assert len(made) == 3
    labels = [activity[-1] for activity in activities]
    assert Counter(activity[:-3] for activity in activities) == {
        f"comparison {number} of 3": 12 for number in (1, 2, 3)
    }
    for start in range(0, len(labels), 4):
        assert "".join(labels[start : start + 4]) in ("ABBA", "BAAB")


def test_steady_drift_is_not_called_a_difference() -> None:
    clock = iter(range(10_000))
    made = list(compare_with_itself(lambda _: 1000.0 * 1.002 ** next(clock), 50, 6, seed=1))
    assert not any(one.different for one in made)


def test_noise_is_called_a_difference_no_more_often_than_the_rule_allows() -> None:
    noise = random.Random(5)
    made = list(compare_with_itself(lambda _: noise.lognormvariate(8, 0.05), 400, 6, seed=1))
    share = proportion_interval(sum(one.different for one in made), len(made))
    assert share.low is not None
    assert share.low <= 0.05


def test_a_difference_between_the_labels_would_be_seen() -> None:
    noise = random.Random(5)
    labelled = {"A": 1.0, "B": 1.2}
    made = list(compare_with_itself(lambda what: labelled[what[-1]] * noise.lognormvariate(8, 0.02), 10, 6, seed=1))
    assert all(one.different for one in made)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    # Clopper and Pearson's limits, from R's binom.test.
    [(0, 100, 0.0, 0.0362167), (5, 100, 0.0164319, 0.1128349), (10, 10, 0.6915029, 1.0), (1, 2, 0.0125791, 0.9874209)],
)
def test_the_interval_of_a_share_is_the_exact_one(successes: int, trials: int, low: float, high: float) -> None:
    interval = proportion_interval(successes, trials)
    assert interval.estimate == successes / trials
    assert interval.low == pytest.approx(low, abs=1e-6)
    assert interval.high == pytest.approx(high, abs=1e-6)


@pytest.mark.parametrize(("successes", "trials"), [(1, 0), (0, 0), (3, 2), (-1, 2)])
def test_counts_that_cannot_be_are_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="trials"):
        proportion_interval(successes, trials)


def compared(different: bool) -> Comparison:
    outcome = "different" if different else "no difference seen"
    return Comparison("a", "b", Interval(1.01, 0.98, 1.04, 0.95, 6), 0.3, outcome)


def written(made: list[Comparison], interference: Interference, folder: Path) -> StudyRecord:
    record = StudyRecord(rackscope_version="0", kind="a-a", title="a-a", started_at="now")
    conduct = Conduct(
        folder, record, Request(None, VALUES), print, lambda: None, lambda name, label: cast(Path, folder / name)
    )
    write(conduct, "cache under ycsb-c", "measure", made, interference)
    return StudyRecord.model_validate_json(record.model_dump_json())


def test_the_record_counts_what_was_called_different(tmp_path: Path) -> None:
    record = written([compared(number == 3) for number in range(20)], Interference(), tmp_path)
    result = record.result
    assert (result["comparisons"], result["different"], result["share"]) == (20, 1, 0.05)
    assert (result["low"], result["high"]) == (pytest.approx(0.00127, abs=1e-4), pytest.approx(0.24873, abs=1e-4))
    assert [ratio["different"] for ratio in result["ratios"]].index(True) == 3
    assert record.findings[0].severity == "finding"
    assert "1 of 20 comparisons" in record.findings[0].sentence
    [chart] = record.charts
    assert {series.label: series.x for series in chart.series}["called different"] == [4.0]


def test_too_many_differences_are_a_serious_finding(tmp_path: Path) -> None:
    record = written([compared(number < 6) for number in range(20)], Interference(), tmp_path)
    assert record.findings[0].severity == "serious"


def test_a_busy_host_is_said(tmp_path: Path) -> None:
    seen = Interference(windows=30, discarded=10, kept=3, reasons={"other processes ran"})
    record = written([compared(False)], seen, tmp_path)
    assert "3 of the 20 windows" in record.findings[1].sentence
    assert (record.result["discarded"], record.result["disturbed"]) == (10, 3)


@pytest.mark.parametrize("changes", [{"comparisons": 0}, {"pairs": 2}, {"window": 0.01}])
def test_what_cannot_be_compared_is_refused(changes: dict[str, float]) -> None:
    assert STUDY.check is not None
    STUDY.check(Request(None, VALUES))
    with pytest.raises(UsageError):
        STUDY.check(Request(None, {**VALUES, **changes}))
