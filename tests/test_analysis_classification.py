"""Scores of found labels against true ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rackscope.analysis.classification import macro_f1, score_labels

LABELS = st.frozensets(st.sampled_from(["cpu", "disk", "network", "none"]))


def test_a_label_that_is_missed_and_one_that_is_made_up_both_cost() -> None:
    scores = {
        score.label: score for score in score_labels([({"cpu"}, {"cpu"}), ({"disk"}, {"cpu"}), ({"disk"}, {"disk"})])
    }
    assert (scores["cpu"].precision, scores["cpu"].recall) == (0.5, 1.0)
    assert (scores["disk"].precision, scores["disk"].recall) == (1.0, 0.5)
    assert macro_f1(list(scores.values())) == (2 / 3 + 2 / 3) / 2


def test_a_label_that_is_only_made_up_pulls_the_mean_down() -> None:
    assert macro_f1(score_labels([({"cpu"}, {"cpu", "disk"})])) == 0.5


def test_nothing_judged_has_no_score() -> None:
    assert macro_f1(score_labels([])) is None


@given(st.lists(LABELS, min_size=1))
def test_agreement_is_one_and_only_agreement_is(truth: list[frozenset[str]]) -> None:
    perfect = macro_f1(score_labels([(true, true) for true in truth]))
    assert perfect == (1.0 if any(truth) else None)
    others = [(true, true ^ {"cpu"}) for true in truth]
    assert (macro_f1(score_labels(others)) or 0.0) < 1.0
