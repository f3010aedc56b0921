"""How far ratios of redis between made-up servers are off, by each way: which are held out, what comes out."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rackscope.cli import main
from rackscope.errors import ModelError
from rackscope.models.trained import pair_validation
from rackscope.models.trained.pair_validation import WAYS, PairScore, validate_pairs
from rackscope.models.trained.redis_elsewhere import PARTS
from trained_model_tables import cloud_tables

ANSWERED = "those that throughput_ratio answers"
BY_PROCESSOR, BY_CALIBRATION, BY_RATIO = WAYS
PROCESSORS = 32
Tables = dict[str, pl.DataFrame]


def tables(processors: int = PROCESSORS, **others: float) -> Tables:
    """Of each processor, servers of 4, 8 and 16 hardware threads."""
    frames = cloud_tables(processors, **others)
    servers = frames["sparecores-servers"].filter(pl.col("vcpus") > 2)
    cache = pl.Series("l3", [f"{4 * 2**20 * threads} (1 instance)" for threads in servers["vcpus"]])
    return {name: frames[name] for name in ("sparecores-core-scaling",)} | {
        "sparecores-servers": servers.with_columns(cache)
    }


@pytest.fixture(autouse=True)
def few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as decide what is asked here, and a second of work."""
    monkeypatch.setattr(pair_validation, "_PAIRS", 60)
    monkeypatch.setattr(pair_validation, "_PAIRS_TO_FIT", 500)
    monkeypatch.setattr(pair_validation, "_DRAWS", 60)


def by_name(scores: list[PairScore]) -> dict[tuple[str, str, str], PairScore]:
    return {(one.way, one.part, one.of): one for one in scores}


@pytest.fixture(scope="module")
def quiet() -> Tables:
    return tables(noise=0.005)


def test_each_way_is_judged_on_all_pairs_and_on_those_that_elasticities_answer(quiet: Tables) -> None:
    told: list[str] = []
    scores = validate_pairs(quiet, 2, told.append)
    expected = [
        (way, part, of)
        for part in PARTS
        for of, ways in (("all", (BY_PROCESSOR, BY_CALIBRATION)), (ANSWERED, WAYS))
        for way in ways
    ]
    assert list(by_name(scores)) == expected
    assert told == [f"{part}: a quarter of the processors held out, {turn} of 2" for part in PARTS for turn in (1, 2)]
    found = by_name(scores)
    for part in PARTS:
        answered = {found[way, part, ANSWERED].pairs for way in WAYS}
        assert len(answered) == 1 and 0 < answered.pop() < found[BY_PROCESSOR, part, "all"].pairs == 120
        assert found[BY_RATIO, part, ANSWERED].answered == 1.0


def test_without_stress_ng_there_are_two_ways(quiet: Tables) -> None:
    scores = validate_pairs({"sparecores-servers": quiet["sparecores-servers"]}, 1)
    assert [(one.way, one.of) for one in scores] == 2 * [(BY_PROCESSOR, "all"), (BY_CALIBRATION, "all")]


def test_errors_are_those_that_the_tables_have(quiet: Tables) -> None:
    """Servers with one processor do alike but for noise, which is drawn anew for each."""
    found = by_name(validate_pairs(quiet, 1))
    noisy = by_name(validate_pairs(tables(noise=0.05), 1))
    for part in PARTS:
        little, much = (some[BY_PROCESSOR, part, "all"] for some in (found, noisy))
        # Half are within 0.67 deviations: of two servers and what is said of each by two others, 1.7 times the noise.
        assert little.median_error == pytest.approx(0.67 * 1.7 * 0.005, rel=0.4)
        assert much.median_error == pytest.approx(10 * little.median_error, rel=0.1)
        assert little.median_error < little.p90_error < math.expm1(4 * 1.7 * 0.005)
        for one in (little, much):
            assert 0.75 <= one.coverage <= 1.0
        # Nine of ten within 1.64 deviations on either side.
        assert math.log(little.interval_ratio) == pytest.approx(2 * 1.64 * 1.7 * 0.005, rel=0.4)
        # Calibration measures the same speeds, each with noise of its own, and a fit says by how much it errs.
        little, much = (some[BY_CALIBRATION, part, "all"] for some in (found, noisy))
        assert 0.5 * 0.005 < little.median_error < 0.03 < much.median_error < 0.15
        assert much.coverage > 0.75
        assert 1.05 < little.interval_ratio < much.interval_ratio < 2.5
        # stress-ng of these servers is redis but for noise; its interval is for real ones.
        ratio = found[BY_RATIO, part, ANSWERED]
        assert ratio.median_error < 0.2 and ratio.coverage == 1.0 and ratio.interval_ratio > 2


def test_one_request_at_a_time_is_less_certain_by_elasticities(quiet: Tables) -> None:
    found = by_name(validate_pairs(quiet, 1))
    pipelined, one_by_one = (found[BY_RATIO, part, ANSWERED].interval_ratio for part in PARTS)
    assert one_by_one > 1.2 * pipelined


def test_what_is_predicted_was_in_no_fit(quiet: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, draw = pair_validation.fit_calibrated, pair_validation.draw_pairs
    fitted: list[set[str]] = []
    drawn: list[tuple[int, set[str]]] = []

    def fit_seen(servers: Any, part: str, rows: Any) -> Any:
        fitted.append(set(servers.groups[rows]))
        return fit(servers, part, rows)

    def draw_seen(groups: Any, usable: Any, count: int, seed: int = 1) -> Any:
        pairs = draw(groups, usable, count, seed)
        drawn.append((count, set(groups[pairs].ravel())))
        return pairs

    monkeypatch.setattr(pair_validation, "fit_calibrated", fit_seen)
    monkeypatch.setattr(pair_validation, "draw_pairs", draw_seen)
    validate_pairs({"sparecores-servers": quiet["sparecores-servers"]}, 2)
    judged = [groups for count, groups in drawn if count == 60]
    looked_up = [groups for count, groups in drawn if count == 500]
    assert len(judged) == len(looked_up) == len(fitted) == 4
    for out, seen, rows in zip(judged, looked_up, fitted, strict=True):
        assert len(out) == PROCESSORS // 4
        assert not out & rows and not out & seen
        assert len(rows) == PROCESSORS - PROCESSORS // 4
    # Another quarter each time, the same for both parts.
    assert judged[0] != judged[1] and judged[:2] == judged[2:]


def test_servers_that_elasticities_know_nothing_of_are_not_asked_of_them(quiet: Tables) -> None:
    scaling = quiet["sparecores-core-scaling"]
    gone = scaling.filter(~pl.col("server").str.ends_with(".16"))
    found = by_name(validate_pairs({**quiet, "sparecores-core-scaling": gone}, 1))
    all_known = by_name(validate_pairs(quiet, 1))
    for part in PARTS:
        assert 0 < found[BY_RATIO, part, ANSWERED].pairs < all_known[BY_RATIO, part, ANSWERED].pairs
        assert found[BY_PROCESSOR, part, "all"] == all_known[BY_PROCESSOR, part, "all"]


def test_too_few_processors_are_refused() -> None:
    with pytest.raises(ModelError, match="servers with 6 processors are too few"):
        validate_pairs(tables(24), 1)


def test_where_elasticities_answer_for_none_it_is_said(quiet: Tables) -> None:
    others = quiet["sparecores-core-scaling"].with_columns(pl.col("server") + ".other")
    with pytest.raises(ModelError, match="throughput_ratio answers for none of the pairs"):
        validate_pairs({**quiet, "sparecores-core-scaling": others}, 1)


def test_scores_are_what_they_say() -> None:
    # Twice too much, exact, a fifth too little, a tenth too much, and one that was refused.
    missed = [math.log(2), 0.0, math.log(0.8), math.log(1.1), math.nan]
    below = [math.log(2.5), 0.1, 0.1, 0.05, math.nan]
    above = [0.1, 0.1, 0.3, 0.5, math.nan]
    score = pair_validation._score(BY_RATIO, "a part", "all", np.array([missed, below, above]))
    assert (score.pairs, score.answered) == (5, 0.8)
    assert score.median_error == pytest.approx(0.15)
    assert score.p90_error == pytest.approx(0.2 + 0.7 * 0.8)
    # What was predicted too high is held by the lower end, too low by the upper: all but the fourth.
    assert score.coverage == 0.75
    ends = sorted((2.5 * math.exp(0.1), math.exp(0.2), math.exp(0.4), math.exp(0.55)))
    assert score.interval_ratio == pytest.approx((ends[1] + ends[2]) / 2)


def test_the_command_says_it_in_a_table_and_for_programs(
    quiet: Tables, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet["sparecores-servers"].write_csv(tmp_path / "sparecores-servers.csv")
    asked = ["models", "validate", "--pairs", "--on", str(tmp_path), "--hold-out", "1"]
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    scores = validate_pairs({"sparecores-servers": quiet["sparecores-servers"]}, 1)
    assert told["scores"] == [asdict(one) for one in scores]
    assert main(asked) == 0
    printed = capsys.readouterr()
    assert "pairs of redis: pipelined, best: a quarter of the processors held out, 1 of 1" in printed.err
    assert f"{100 * scores[0].median_error:.1f} %" in printed.out and BY_CALIBRATION in printed.out
    assert main([*asked, "--only", "watts"]) == 2
    assert "--pairs judges the one model of redis on one folder" in capsys.readouterr().err
