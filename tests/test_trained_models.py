"""Models: what they predict of made-up servers whose law is known, and what they say of tables that cannot serve."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.errors import ModelError, UsageError
from rackscope.models.trained import find_model, list_models
from rackscope.models.trained.conformal import calibrate, weighted_quantile
from rackscope.models.trained.grouped_regression import fit_grouped_regression
from rackscope.models.trained.processor_names import parse_processor_name
from rackscope.models.trained.scaling_curve import Belief, relative_throughput, update
from rackscope.models.trained.validation import judge, validate
from trained_model_tables import cloud_tables, power_table


@pytest.fixture(scope="module")
def tables() -> dict[str, pl.DataFrame]:
    return {**cloud_tables(), "specpower-servers": power_table()}


def test_every_model_is_found_by_name_and_says_what_it_needs() -> None:
    for model in list_models():
        assert find_model(model.name) is model
        assert model.measured and model.predicted and model.tables and model.unit
    with pytest.raises(UsageError, match="there is no model 'guess'"):
        find_model("guess")


@pytest.mark.parametrize("name", ["core-count", "core-count-few-points", "redis", "redis-anchored", "web-anchored"])
def test_processors_left_out_are_predicted(tables: dict[str, pl.DataFrame], name: str) -> None:
    model = find_model(name)
    scores = validate(model, model.examples({table: tables[table] for table in model.tables}))
    left_out = scores[0]
    assert left_out.split == "CPU model left out"
    assert left_out.processors == 24
    assert left_out.processors_seen == 0
    assert left_out.median_error < 0.08
    assert 0.75 <= left_out.coverage <= 1.0
    assert left_out.interval_ratio < 2.5


def test_watts_of_processors_left_out_and_of_later_years(tables: dict[str, pl.DataFrame]) -> None:
    model = find_model("full-load-watts")
    scores = validate(model, model.examples(tables))
    assert scores[0].median_error < 0.10
    assert scores[0].reaches_aims
    assert {"CPU model left out", "server left out", "2019 to 2021 from before"} <= {score.split for score in scores}


def test_a_model_fitted_on_one_table_is_judged_on_another(tables: dict[str, pl.DataFrame]) -> None:
    model = find_model("redis")
    other = cloud_tables(processors=12, seed=9)
    scores = judge(model, model.examples(tables), model.examples(other))
    assert scores[0].predictions == 2 * len(other["sparecores-servers"])
    assert scores[0].median_error < 0.1


def test_measured_points_tell_what_a_second_thread_brings() -> None:
    """Where no table shows it, one point between the cores and all hardware threads does."""
    different = cloud_tables(gains=0.2)
    left_out = {}
    for name in ("core-count", "core-count-few-points"):
        model = find_model(name)
        examples = model.examples(different)
        # Two hardware threads leave nothing to measure between one worker and all.
        larger = examples.take((examples.extra["threads"] > 4) & (examples.extra["threads"] > examples.extra["cores"]))
        fitted = model.fit(examples.take(examples.groups != larger.groups[0]), None)
        unseen = fitted.predict(larger.take(larger.groups == larger.groups[0]))
        left_out[name] = float(np.median(unseen.high / unseen.low))
    assert left_out["core-count-few-points"] - 1 < 0.5 * (left_out["core-count"] - 1)


def test_nothing_that_is_predicted_is_looked_at(tables: dict[str, pl.DataFrame]) -> None:
    """Predictions of servers stay the same when what is predicted of them changes."""
    model = find_model("redis")
    examples = model.examples(tables)
    fitted = model.fit(examples, None)
    changed = tables["sparecores-servers"].with_columns(pl.col("redis_rps_best") * 3)
    again = model.examples({**tables, "sparecores-servers": changed})
    np.testing.assert_allclose(fitted.predict(examples).estimate, fitted.predict(again).estimate)


@pytest.mark.parametrize(
    ("table", "change", "says"),
    [
        ("sparecores-servers", lambda frame: frame.drop("vcpus"), "lacks the column 'vcpus'"),
        ("sparecores-servers", lambda frame: frame.head(3), "too few"),
        (
            "sparecores-servers",
            lambda frame: frame.with_columns(pl.col("read_bandwidth_dram_mb_s") * 1e6),
            "cannot be MB/s",
        ),
        ("sparecores-servers", lambda frame: frame.clear(), "has no rows"),
        (
            "sparecores-core-scaling",
            lambda frame: frame.with_columns(pl.lit("fast").alias("ops_per_second")),
            "holds no number above zero",
        ),
        ("sparecores-core-scaling", lambda frame: frame.filter(pl.col("workers") > 1), "no server has all"),
    ],
)
def test_tables_that_cannot_serve_give_a_line(tables: dict[str, pl.DataFrame], table: str, change, says: str) -> None:
    model = find_model("core-count")
    with pytest.raises(ModelError, match=says):
        model.fit(model.examples({**tables, table: change(tables[table])}), None)


def test_watts_in_wrong_units_or_columns_swapped_give_a_line(tables: dict[str, pl.DataFrame]) -> None:
    model, table = find_model("idle-watts"), tables["specpower-servers"]
    full, idle = "avg. watts @ 100%", "avg. watts @ active idle"
    with pytest.raises(ModelError, match="cannot be MHz"):
        model.examples({"specpower-servers": table.with_columns(pl.col("Processor MHz") / 1000)})
    with pytest.raises(ModelError, match="Swap"):
        model.examples({"specpower-servers": table.rename({full: "x"}).rename({idle: full}).rename({"x": idle})})


def test_colinear_features_still_predict() -> None:
    random = np.random.default_rng(1)
    one = random.normal(size=200)
    groups = np.repeat([f"g{number}" for number in range(40)], 5)
    fitted = fit_grouped_regression(np.column_stack([one, 2 * one, -one]), 1 + one, groups)
    estimate, _ = fitted.predict(np.column_stack([[0.5], [1.0], [-0.5]]))
    assert estimate[0] == pytest.approx(1.5, abs=0.05)


def test_leaving_a_group_out_is_what_fitting_without_it_gives() -> None:
    random = np.random.default_rng(3)
    groups = np.repeat([f"g{number}" for number in range(20)], 4)
    features = random.normal(size=(80, 2))
    target = features[:, 0] + 0.1 * random.normal(size=80)
    fitted = fit_grouped_regression(features, target, groups)
    left = fitted.leave_out(features, target, groups)
    gone = groups == "g7"
    rest = fit_grouped_regression(features[~gone], target[~gone], groups[~gone], scales=fitted.scales)
    estimate, deviation = rest.predict(features[gone])
    # Not to the last digit: scaling and the weights of odd rows are found anew.
    np.testing.assert_allclose(target[gone] - left.residual[gone], estimate, atol=0.03)
    np.testing.assert_allclose(left.deviation[gone], deviation, rtol=0.15)


def test_the_intervals_hold_nine_times_of_ten_on_groups_never_seen() -> None:
    """Simulated: a line, a deviation of each group, noise with heavy tails. 30 draws of 40 groups each."""
    held, total = 0, 0
    for seed in range(30):
        random = np.random.default_rng(seed)
        groups = np.repeat([f"g{number:02d}" for number in range(80)], 4)
        features = random.normal(size=(320, 2))
        own = np.repeat(random.normal(0, 0.2, 80), 4)
        target = features @ np.array([0.5, -0.3]) + own + 0.1 * random.standard_t(4, 320)
        fitted = fit_grouped_regression(features[:160], target[:160], groups[:160])
        left = fitted.leave_out(features[:160], target[:160], groups[:160])
        ends = calibrate(left.residual / left.deviation, left.groups)
        estimate, deviation = fitted.predict(features[160:])
        missed = (target[160:] - estimate) / deviation
        held, total = held + int(((missed >= ends.below) & (missed <= ends.above)).sum()), total + 160
    assert 0.86 <= held / total <= 0.94


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30),
    st.floats(0.01, 1.0),
)
def test_a_weighted_quantile_has_its_share_at_or_below(values: list[float], level: float) -> None:
    numbers, weights = np.array(values), np.linspace(1.0, 2.0, len(values))
    found = weighted_quantile(numbers, weights, level)
    assert weights[numbers <= found].sum() / weights.sum() >= level - 1e-9
    assert weights[numbers < found].sum() / weights.sum() < level + 1e-9


@settings(max_examples=50)
@given(st.integers(2, 64), st.floats(-0.5, 0.0), st.floats(0.0, 0.7))
def test_points_without_noise_give_back_the_curve(cores: int, slowdown: float, gain: float) -> None:
    threads = np.array([2.0 * cores])
    gain += slowdown
    at = np.array([[float(cores), 1.5 * cores]])
    seen = relative_throughput(at, np.array([[cores]]), threads[:, None], np.array([[slowdown]]), np.array([[gain]]))
    thought = Belief(*(np.array([value]) for value in (0.0, 0.2, 0.3, 0.4)))
    found = update(thought, at, seen, np.array([float(cores)]), threads)
    assert found.slowdown[0] == pytest.approx(slowdown, abs=0.02)
    assert found.gain[0] == pytest.approx(gain, abs=0.03)
    assert found.gain_deviation[0] < 0.1


def test_a_curve_starts_at_one_and_does_not_break_at_the_cores() -> None:
    cores, threads = np.array([8.0]), np.array([16.0])
    before, after = (
        relative_throughput(np.array([workers]), cores, threads, np.array([-0.1]), np.array([0.2]))
        for workers in (8.0, 8.000001)
    )
    assert before[0] == pytest.approx(after[0], abs=1e-5)
    assert relative_throughput(np.array([1.0]), cores, threads, np.array([-0.1]), np.array([0.2]))[0] == 0.0


@pytest.mark.parametrize(
    ("description", "model", "kinds"),
    [
        ("Intel(R) Xeon(R) CPU E5-2670 v2 @ 2.50GHz|  CPU @ 2.4GHz", "e5-2670v2", ()),
        ("Intel Xeon E5-2670 v2", "e5-2670v2", ()),
        ("Intel Xeon L5420", "l5420", ("low_power",)),
        ("Intel Xeon E5-2650L v3", "e5-2650lv3", ("low_power",)),
        ("Intel Xeon X5670", "x5670", ("high_power",)),
        ("AMD Opteron 2376 HE", "opteron 2376he", ("amd", "low_power")),
        ("AMD EPYC 7R13 48-Core Processor|AMD EPYC 7R13", "epyc 7r13", ("amd",)),
        ("AMD EPYC 9R45|AMD EPYC Processor", "epyc 9r45", ("amd",)),
        ("Neoverse-V2|AWS Graviton4 AWS Graviton4 CPU @ 2.8GHz", "neoverse-v2", ("arm",)),
        ("Brand New Chip 1", "brand new chip 1", ()),
    ],
)
def test_names_of_processors_are_read(description: str, model: str, kinds: tuple[str, ...]) -> None:
    name = parse_processor_name(description)
    assert name.model == model
    for kind in ("amd", "arm", "low_power", "high_power"):
        assert getattr(name, kind) == (kind in kinds), kind
