"""Two runs side by side: what differs, by how much, and what forbids to say so."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from rackscope.analysis.comparison import Comparison, ComparisonRow, compare
from rackscope.analysis.wording import numbers


def results(throughputs: list[float], phase: str = "measure", **columns: Any) -> pl.DataFrame:
    rows = [
        {
            "phase": phase, "kind": "measure", "repetition": number, "operations": round(5 * throughput),
            "throughput_operations_per_second": throughput, "response_p99_seconds": 50 / throughput,
            "system_cpu_seconds": 5.0, "errors": 0, "hits": 100, "misses": 0, "discarded": None,
            **{name: value[number] if isinstance(value, list) else value for name, value in columns.items()},
        }
        for number, throughput in enumerate(throughputs)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"discarded": pl.String})


A = results([100e3, 101e3, 99e3, 100.5e3])
B = results([120e3, 121e3, 119e3, 120.5e3])


def row(comparison: Comparison, metric: str) -> ComparisonRow:
    return next(one for one in comparison.rows if one.metric == metric)


def test_a_difference_is_named_with_its_interval_and_direction() -> None:
    found = row(compare(A, B), "throughput_operations_per_second")
    assert found.verdict == "higher"
    assert found.b_is_better is True
    assert found.ratio is not None
    assert found.ratio.estimate == pytest.approx(480.5 / 400.5)
    assert found.ratio.low is not None
    assert 1.15 < found.ratio.low < found.ratio.estimate
    assert found.difference is not None
    assert found.difference.estimate == pytest.approx(20e3)
    assert found.sentence.startswith("Throughput: B is +20.0 %, better (95 % interval +")


def test_lower_latency_is_better_and_the_other_way_round_mirrors() -> None:
    forward, backward = compare(A, B), compare(B, A)
    assert row(forward, "response_p99_seconds").verdict == "lower"
    assert row(forward, "response_p99_seconds").b_is_better is True
    assert row(backward, "response_p99_seconds").b_is_better is False
    assert "worse" in row(backward, "throughput_operations_per_second").sentence


def test_cpu_time_of_an_operation_is_worked_out() -> None:
    found = row(compare(A, B), "cpu_seconds_per_operation")
    assert found.a.estimate == pytest.approx(1e-5, rel=0.01)
    assert found.verdict == "lower"


def test_hits_are_a_part_of_all_reads() -> None:
    found = row(compare(A, results([100e3, 101e3, 99e3, 100.5e3], misses=300)), "hit_ratio")
    assert (found.a.estimate, found.b.estimate) == (1.0, 0.25)
    assert found.b_is_better is False


@pytest.mark.parametrize(
    ("factor", "said"),
    [(1.123, "+12.3 %"), (2.99, "+199.0 %"), (3.0, "3.00 times"), (9.5, "9.50 times"), (12.5, "12.5 times")],
)
def test_a_change_is_in_percent_until_factors_read_better(factor: float, said: str) -> None:
    b = A.with_columns(pl.col("throughput_operations_per_second") * factor)
    (row,) = [one for one in compare(A, b).rows if one.metric == "throughput_operations_per_second"]
    assert f": B is {said}" in row.sentence


def test_noise_is_not_a_difference() -> None:
    found = row(
        compare(results([100.0, 110.0, 95.0]), results([104.0, 96.0, 112.0])), "throughput_operations_per_second"
    )
    assert found.verdict == "no difference seen"
    assert found.b_is_better is None
    assert "no difference seen" in found.sentence


def test_a_difference_too_small_to_mean_something() -> None:
    a, b = results([100_000.0, 100_001.0, 99_999.0]), results([100_300.0, 100_301.0, 100_299.0])
    found = row(compare(a, b), "throughput_operations_per_second")
    assert found.verdict == "no difference seen"
    assert "less than two runs of the same thing may differ by" in found.sentence


def test_single_repetitions_say_nothing() -> None:
    found = row(compare(results([100.0]), results([200.0])), "throughput_operations_per_second")
    assert found.verdict == "too few repetitions"
    assert "2.00 times" in found.sentence


def test_metrics_that_start_at_zero_are_compared_by_difference() -> None:
    broken = results([100e3, 101e3, 99e3], errors=[1000, 1100, 900])
    found = row(compare(A, broken), "error_ratio")
    assert found.ratio is None
    assert found.verdict == "higher"
    assert found.b_is_better is False
    assert not [one for one in compare(A, B).rows if one.metric == "error_ratio"]


def test_what_is_zero_on_both_sides_does_not_differ() -> None:
    found = row(
        compare(*(results([100e3, 101e3, 99e3], system_cpu_seconds=0.0) for _ in "ab")), "cpu_seconds_per_operation"
    )
    assert found.verdict == "no difference seen"
    assert "by 0 s to 0 s" in found.sentence


def test_columns_that_a_run_lacks_are_left_out() -> None:
    assert not [one for one in compare(A, B).rows if one.metric == "response_p50_seconds"]
    assert not [one for one in compare(A, B.drop("system_cpu_seconds")).rows if "cpu" in one.metric]


def test_discarded_repetitions_do_not_count() -> None:
    spoiled = pl.concat([A, results([1.0]).with_columns(pl.lit("suspended").alias("discarded"))])
    assert row(compare(spoiled, B), "throughput_operations_per_second").a.count == 4


def test_intervals_are_wider_when_repetition_looked_at_results() -> None:
    looked = row(compare(A, B), "throughput_operations_per_second").ratio
    fixed = row(compare(A, B, sequential=False), "throughput_operations_per_second").ratio
    assert looked is not None
    assert fixed is not None
    assert looked.low is not None
    assert fixed.low is not None
    assert looked.low < fixed.low


def test_stages_are_compared_with_their_namesakes() -> None:
    a = pl.concat([results([1.0, 1.0, 1.0], "lpush"), results([5.0, 5.0, 5.0], "zadd")])
    b = pl.concat([results([2.0, 2.0, 2.0], "lpush"), results([3.0, 3.0, 3.0], "sadd")])
    found = compare(a, b)
    assert {one.phase for one in found.rows} == {"lpush"}
    assert any("'zadd' and 'sadd'" in warning for warning in found.warnings)


def test_single_phases_of_other_names_are_set_beside_each_other() -> None:
    found = compare(A, results([120e3, 121e3, 119e3], "lpush"))
    assert found.rows
    assert "'measure' is compared with 'lpush'" in found.warnings[0]


def test_nothing_in_common() -> None:
    a = pl.concat([A, results([1.0], "x")])
    found = compare(a, results([1.0], "y"))
    assert found.rows == ()
    assert "no measured phase in common" in found.warnings[0]
    assert compare(pl.DataFrame(), pl.DataFrame()).rows == ()


SETTINGS = {
    "host": "box-1",
    "system": "memcached",
    "system version": "1.6.18",
    "workload": "ycsb-b",
    "client cores": [1],
    "protocol": "memcached_text",
    "connections": 50,
    "rate": None,
    "knob threads": "1",
}


def setting_warnings(**changes: Any) -> list[str]:
    other = SETTINGS | {name.replace("_", " "): value for name, value in changes.items()}
    return list(compare(A, B, settings_a=SETTINGS, settings_b=other).warnings)[:-1]


def test_what_is_compared_is_no_fault() -> None:
    assert setting_warnings() == []
    assert setting_warnings(knob_threads="4") == []
    assert setting_warnings(system_version="1.6.30") == []
    assert setting_warnings(system="redis", system_version="7.0", protocol="resp", knob_threads=None) == []


def test_settings_that_forbid_a_comparison_are_named() -> None:
    assert setting_warnings(host="box-2")[0] == "Not the same host: box-1 and box-2."
    assert setting_warnings(workload="ycsb-a")[0] == "Not the same workload: ycsb-b and ycsb-a."
    assert setting_warnings(rate=20_000)[0] == "Not the same rate: not set and 20000."
    assert setting_warnings(client_cores=[1, 2])[0] == "Not the same client cores: 1 and 1, 2."
    assert "may come from any of these" in setting_warnings(connections=100)[-1]


def test_two_knobs_at_once_are_pointed_out() -> None:
    assert "differ at once" in setting_warnings(knob_threads="4", system_version="1.6.30")[-1]


def test_a_comparison_becomes_json() -> None:
    shown = json.loads(json.dumps(compare(A, B).to_dict(), allow_nan=False))
    assert shown["rows"][0]["verdict"] == "higher"


def test_no_interval_of_a_time_begins_below_zero() -> None:
    noisy = pl.DataFrame(
        {
            "phase": ["measure"] * 3,
            "kind": ["measure"] * 3,
            "repetition": [1, 2, 3],
            "response_p99_seconds": [0.0001, 0.0002, 0.004],
        }
    )
    (row,) = compare(noisy, noisy).rows
    assert row.a.low == row.b.low == 0.0 and row.a.high is not None and row.a.high > row.a.estimate


@pytest.mark.parametrize(
    ("cores", "written"), [([0, 1, 2, 3, 8], "0-3,8"), ([5, 0, 2, 1, 4, 5, 7], "0-2,4-5,7"), ([3], "3"), ([], "")]
)
def test_core_numbers_are_written_as_users_do(cores: list[int], written: str) -> None:
    assert numbers(cores) == written
