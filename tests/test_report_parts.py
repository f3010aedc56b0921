"""The pieces under the report: buckets, distributions, numbers in words, safe JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis_frames import histogram_of
from rackscope.report.charts import embed_json, significant
from rackscope.report.clock import Buckets, Clock
from rackscope.report.distribution import distribution_of
from rackscope.report.notices import findings_of
from rackscope.report.quantities import format_clock, format_quantity
from rackscope.report.window import groups_of, origin_ns, windows_of
from rackscope.runs.manifest import Manifest
from rackscope.runs.tables import latency_frame

JSON = st.recursive(
    st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)
VALUES = st.lists(st.floats(-1e9, 1e9) | st.just(math.nan), min_size=2, max_size=300)


@given(JSON)
def test_embedded_json_cannot_leave_its_element(data: object) -> None:
    text = embed_json(data)
    assert not set(text) & {"<", ">", "&", "\u2028", "\u2029"}
    assert json.loads(text) == data


def test_embedded_json_refuses_what_browsers_cannot_read() -> None:
    with pytest.raises(ValueError, match="JSON"):
        embed_json([math.nan])


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.integers(1, 9))
def test_rounding_keeps_the_digits_it_promises(value: float, digits: int) -> None:
    rounded = significant(value, digits)
    assert rounded is not None
    assert abs(rounded - value) <= abs(value) * 0.5 * 10.0 ** (1 - digits) * 1.0001


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_null(value: float) -> None:
    assert significant(value, 4) is None


@given(VALUES, st.integers(1, 50))
def test_buckets_keep_extremes_and_lose_nothing(values: list[float], points: int) -> None:
    array = np.array(values)
    buckets = Buckets.of(np.arange(len(values), dtype=np.float64), points)
    assert len(buckets.seconds) <= max(points, 1) or buckets.width_seconds is None
    known = array[~np.isnan(array)]
    for aggregate, extreme in (("maximum", np.max), ("minimum", np.min)):
        gathered = buckets.gather(array, aggregate)
        assert len(gathered) == len(buckets.seconds)
        if len(known):
            assert extreme(gathered[~np.isnan(gathered)]) == extreme(known)
        else:
            assert np.isnan(gathered).all()
    means = buckets.gather(array, "mean")
    assert np.all(np.isnan(means) == np.isnan(buckets.gather(array, "maximum")))
    if len(known):
        assert known.min() - 1e-3 <= np.nanmin(means) <= np.nanmax(means) <= known.max() + 1e-3


def test_a_bucket_mean_weighs_what_was_read_only() -> None:
    buckets = Buckets.of(np.arange(4.0), 2)
    assert buckets.gather(np.array([1.0, np.nan, 3.0, 5.0])).tolist() == [1.0, 4.0]


def test_values_land_on_their_own_rows() -> None:
    clock = Clock(np.array([1, 4, 6]), np.array([0.1, 0.4, 0.6]))
    placed = clock.place(np.array([4, 5, 9]), np.array([40.0, 50.0, 90.0]))
    assert placed.tolist()[1] == 40.0
    assert np.isnan(placed[[0, 2]]).all()


def test_a_row_speaks_for_the_interval_that_it_ends() -> None:
    clock = Clock(np.arange(4), np.array([0.0, 1.0, 2.0, 3.0]))
    assert clock.inside([(0.0, 2.0)]).tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (None, "bytes", "–"),
        (math.nan, "percent", "–"),
        (0.0, "percent", "0 %"),
        (0.583, "ratio", "58.3 %"),
        (0.99984, "ratio", "99.984 %"),
        (99.9999, "percent", "99.999 %"),
        (1.2e9, "bytes", "1.12 GiB"),
        (5 * 1024**2, "bytes/s", "5.00 MiB/s"),
        (101_326.4, "operations/s", "101,326/s"),
        (12_345_678.0, "operations/s", "12.3 M/s"),
        (0.00108, "seconds", "1.08 ms"),
        (0.94, "cores", "0.94 cores"),
        (1.6123, "cycles", "1.61"),
        (7.0, "tasks", "7 tasks"),
    ],
)
def test_quantities_read_like_people_write_them(value: float | None, unit: str, shown: str) -> None:
    assert format_quantity(value, unit) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0.0 s"),
        (35.25, "35.2 s"),
        (119.96, "2:00"),
        (125.0, "2:05"),
        (3725.0, "1:02:05"),
        (-2.0, "-2.0 s"),
        (-125.0, "-2:05"),
    ],
)
def test_moments_read_like_a_clock(seconds: float, shown: str) -> None:
    assert format_clock(seconds) == shown


def latency_rows(counts: dict[int | None, int]) -> pl.DataFrame:
    rows = []
    for repetition, count in counts.items():
        histogram = histogram_of(7, 40, [1_000_000] * count)
        rows.append(
            {
                "phase": "measure",
                "repetition": repetition,
                "operation": "read",
                "kind": "response",
                "grouping_power": 7,
                "max_value_power": 40,
                "index": histogram.index.tolist(),
                "count": histogram.count.tolist(),
            }
        )
    return latency_frame(rows)


def test_repetitions_add_up_without_the_discarded() -> None:
    _, rows = distribution_of(latency_rows({1: 100, 2: 50, 3: 1000}), ["measure"], {("measure", 3)})
    assert [row.count for row in rows] == [150]


def test_a_thin_tail_has_no_percentile() -> None:
    distribution, rows = distribution_of(latency_rows({1: 600}), ["measure"], set())
    p50, p90, p99, p999, p9999 = rows[0].percentiles
    assert p50 == p90 == p99 == pytest.approx(1e-3, rel=0.01)
    assert math.isnan(p999)
    assert math.isnan(p9999)
    assert max(distribution.percentiles) < 0.999


def test_other_phases_and_damaged_rows_are_left_out() -> None:
    frame = latency_rows({1: 10})
    damaged = frame.with_columns(
        index=pl.lit([9_999_999], dtype=pl.List(pl.UInt32)), count=pl.lit([1], dtype=pl.List(pl.UInt64))
    )
    _, rows = distribution_of(pl.concat([frame, damaged]), ["measure"], set())
    assert [row.count for row in rows] == [10]
    assert distribution_of(frame, ["other"], set())[1] == ()
    assert distribution_of(pl.DataFrame(), ["measure"], set())[1] == ()


def described(phases: list[dict[str, object]]) -> Manifest:
    return Manifest.model_validate(
        {
            "rackscope_version": "0",
            "started_at": "2025-01-01T00:00:00+00:00",
            "system": {"name": "s"},
            "workload": {"name": "w"},
            "client": {"protocol": "resp", "connections": 1},
            "repetition": {"duration_seconds": 1.0, "minimum": 1},
            "phases": phases,
        }
    )


def test_phases_are_placed_on_the_runs_own_clock() -> None:
    second = 10**9
    manifest = described(
        [
            {"name": "load", "kind": "load", "start_ns": 5 * second, "end_ns": 7 * second},
            {"name": "measure", "kind": "measure", "repetition": 1, "start_ns": 8 * second, "end_ns": 9 * second},
            {"name": "measure", "kind": "measure", "repetition": 2, "start_ns": 9 * second, "end_ns": None},
        ]
    )
    origin = origin_ns(manifest, 4 * second)
    windows = windows_of(manifest, origin, last_seconds=4.5)
    assert [(window.label, window.start_seconds, window.end_seconds) for window in windows] == [
        ("load", 0.0, 2.0),
        ("measure 1", 3.0, 4.0),
        ("measure 2 (cut short)", 4.0, 4.5),
    ]
    assert [window.cut_short for window in windows] == [False, False, True]
    assert [(group.name, group.spans) for group in groups_of(windows)] == [
        ("load", ((0.0, 2.0),)),
        ("measure", ((3.0, 4.0), (4.0, 4.5))),
    ]
    assert groups_of(windows, {("measure", 1)})[1].spans == ((4.0, 4.5),)
    assert groups_of(windows, {("measure", 1), ("measure", 2)})[1].spans == ((3.0, 4.0), (4.0, 4.5))


def test_findings_put_what_was_measured_first_and_cite_below() -> None:
    from rackscope.analysis.findings import Characterisation, Evidence, Finding, PhaseCharacterisation, Verdict

    evidence = Evidence(("cpu_seconds_total",), ((1.0, 2.0),), "cpu_busy_ratio", 0.9, "ratio")
    verdict = Verdict("none_near", (), "x")
    characterisation = Characterisation(
        findings=(
            Finding("insight", 10, "measure", "Small thing."),
            Finding("verdict", 90, "load", "Loading was slow."),
            Finding("verdict", 90, "measure", f"CPU [0] limits. Much. [{evidence.describe()}]", (evidence,)),
        ),
        warnings=(),
        phases=tuple(PhaseCharacterisation(kind, kind, 1, (), (), verdict) for kind in ("load", "measure")),
    )
    found = findings_of(characterisation)
    assert [group.phase for group in found.groups] == ["measure"]
    assert [(finding.lead, finding.rest) for finding in found.groups[0].shown] == [
        ("CPU [0] limits.", "Much."),
        ("Small thing.", ""),
    ]
    assert [finding.lead for finding in found.preparations] == ["Loading was slow."]


def test_several_measured_phases_keep_their_verdicts_in_sight() -> None:
    from rackscope.analysis.findings import Characterisation, Finding, PhaseCharacterisation, Verdict

    verdict = Verdict("none_near", (), "x")
    characterisation = Characterisation(
        findings=(
            Finding("verdict", 90, "lpush", "Push limits."),
            Finding("verdict", 80, "lpop", "Pop limits."),
            Finding("insight", 50, "lpush", "Push detail."),
            Finding("insight", 99, None, "About the run."),
        ),
        warnings=(),
        phases=tuple(PhaseCharacterisation(name, "measure", 1, (), (), verdict) for name in ("lpush", "lpop")),
    )
    shown = [
        (group.phase, [one.lead for one in group.shown], [one.lead for one in group.folded])
        for group in findings_of(characterisation).groups
    ]
    assert shown == [
        (None, ["About the run."], []),
        ("lpush", ["Push limits."], ["Push detail."]),
        ("lpop", ["Pop limits."], []),
    ]
