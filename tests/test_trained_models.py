"""Models: what they predict of made-up servers whose law is known, and what they say of tables that cannot serve."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackscope.cli import main
from rackscope.errors import ModelError, UsageError
from rackscope.models.trained import find_model, list_models
from rackscope.models.trained.ask import TrainedModel, train
from rackscope.models.trained.cloud_servers import points
from rackscope.models.trained.conformal import calibrate, weighted_quantile
from rackscope.models.trained.grouped_regression import fit_grouped_regression
from rackscope.models.trained.processor_generation import generation_year
from rackscope.models.trained.processor_names import parse_processor_name
from rackscope.models.trained.scaling_curve import Belief, relative_throughput, update
from rackscope.models.trained.thermal_design_power import thermal_design_watts
from rackscope.models.trained.validation import hold_out, judge, validate
from trained_model_tables import CLOUD, SERVER, cloud_tables, power_table


@pytest.fixture(scope="module")
def tables() -> dict[str, pl.DataFrame]:
    return {**cloud_tables(), "specpower-servers": power_table()}


def test_every_model_is_found_by_name_and_says_what_it_needs() -> None:
    for model in list_models():
        assert find_model(model.name) is model
        assert model.measured and model.predicted and model.tables and model.unit
    with pytest.raises(UsageError, match="there is no model 'guess'"):
        find_model("guess")


@pytest.fixture(scope="module")
def trained(tables: dict[str, pl.DataFrame]) -> Callable[[str], TrainedModel]:
    return cache(lambda name: train(name, tables))


@pytest.mark.parametrize(
    "name", ["core-count", "core-count-few-points", "redis", "redis-anchored", "web", "web-anchored"]
)
def test_other_processors_are_predicted(
    tables: dict[str, pl.DataFrame], trained: Callable[[str], TrainedModel], name: str
) -> None:
    model, other = find_model(name), cloud_tables(processors=12, seed=9)
    scores = judge(model, model.examples(tables), model.examples(other), trained(name).fitted)
    assert scores[0].processors == 12
    assert scores[0].median_error < 0.1
    assert 0.75 <= scores[0].coverage <= 1.0
    assert scores[0].interval_ratio < 2.5


def test_processors_and_providers_are_left_out_whole(tables: dict[str, pl.DataFrame]) -> None:
    model = find_model("redis")
    examples = model.examples(tables)
    asked = examples.take(examples.parts == "pipelined, best")
    scores = validate(model, asked)
    assert [score.split for score in scores] == ["CPU model left out", "provider left out"]
    # Left out, the one at the edge of what the others are is far outside, and is refused as a user would be.
    assert scores[0].predictions + scores[0].refused == len(asked)
    assert scores[0].processors >= 23 and scores[0].processors_seen == 0
    assert scores[0].median_error < 0.08 and scores[0].reaches_aims


def test_of_two_providers_each_is_left_out(tables: dict[str, pl.DataFrame]) -> None:
    model = find_model("redis")
    examples = model.examples(tables)
    asked = examples.take((examples.parts == "pipelined, best") & (examples.splits["provider"] != "gamma"))
    assert len(np.unique(asked.splits["provider"])) == 2
    assert [score.split for score in validate(model, asked)] == ["CPU model left out", "provider left out"]


def test_quarters_of_the_processors_are_held_out_and_averaged(tables: dict[str, pl.DataFrame]) -> None:
    model = find_model("redis")
    examples = model.examples(tables)
    (score,) = hold_out(model, examples.take(examples.parts == "pipelined, best"), 2)
    assert score.processors == 6 and score.processors_seen == 0 and score.predictions == 24
    assert score.median_error < 0.1


def test_watts_of_other_processors_and_of_later_years(trained: Callable[[str], TrainedModel]) -> None:
    model = find_model("full-load-watts")
    other = model.examples({"specpower-servers": power_table(processors=20, seed=5)})
    scores = judge(model, other, other, trained("full-load-watts").fitted)
    assert scores[0].median_error < 0.10
    everything = model.examples({"specpower-servers": power_table()})
    assert everything.years is not None
    before = everything.years < 2019
    scores = judge(model, everything.take(before), everything.take(~before))
    assert scores[0].processors_seen == 0
    assert scores[0].coverage > 0.8


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


def test_workers_beyond_the_cores_are_told_apart_where_threads_share_them(tables: dict[str, pl.DataFrame]) -> None:
    model = find_model("core-count")
    examples = model.examples(tables)
    located = model.fit(examples, None).locate(examples)
    beyond = examples.extra["workers"] > examples.extra["cores"]
    assert set(located.names[beyond]) == {"beyond"} and set(located.names[~beyond]) == {"within"}
    assert (~beyond & (examples.extra["threads"] > examples.extra["cores"])).any()


def test_nothing_that_is_predicted_is_looked_at(tables: dict[str, pl.DataFrame]) -> None:
    """Predictions of servers stay the same when what is predicted of them changes."""
    model = find_model("redis")
    examples = model.examples(tables)
    fitted = model.fit(examples, None)
    changed = tables["sparecores-servers"].with_columns(pl.col("redis_rps_best") * 3)
    again = model.examples({**tables, "sparecores-servers": changed})
    np.testing.assert_allclose(fitted.predict(examples).estimate, fitted.predict(again).estimate)


def test_the_most_of_a_web_server_is_not_below_its_light_load(trained: Callable[[str], TrainedModel]) -> None:
    """Also where this lies beyond anything that was fitted on: the interval then begins at it."""
    model = trained("web-anchored")
    light = {"1k": 200_000.0, "16k": 120_000.0, "256k": 20_000.0}
    asked = {one.name: CLOUD[one.name] for one in model.model.inputs} | {"web_requests_per_second": light}
    for part, answer in model.predict(asked).items():
        assert light[part.removeprefix("responses of ")] <= answer.low <= answer.value <= answer.high


def test_where_a_fit_would_say_less_than_the_light_load_that_is_what_it_says(
    tables: dict[str, pl.DataFrame], trained: Callable[[str], TrainedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    examples, fitted = find_model("web-anchored").examples(tables), trained("web-anchored").fitted
    located = fitted.locate(examples)
    monkeypatch.setattr(type(fitted), "locate", lambda *_: replace(located, centre=located.centre - 9.0))
    found = fitted.predict(examples)
    for one in (found.estimate, found.low, found.high):
        np.testing.assert_array_equal(one, located.anchor)


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


def test_a_server_of_one_core_says_nothing_of_what_more_cores_cost(tables: dict[str, pl.DataFrame]) -> None:
    model = find_model("core-count")
    examples = model.examples(tables)
    assert (examples.extra["cores"] == 1).any()
    fitted = model.fit(examples, None).regressions
    cores = {name: np.exp((one.features * one.spread + one.mean)[:, 0]) for name, one in fitted.items()}
    assert cores["slowdown"].min() == pytest.approx(2)
    # Of what its second thread gains it says as much as others.
    assert cores["gain"].min() == pytest.approx(1)


def test_leaving_a_group_out_is_what_fitting_without_it_gives() -> None:
    random = np.random.default_rng(3)
    groups = np.repeat([f"g{number}" for number in range(20)], 4)
    features = random.normal(size=(80, 2))
    target = features[:, 0] + 0.1 * random.normal(size=80)
    fitted = fit_grouped_regression(features, target, groups)
    left = fitted.leave_out(features, target, groups)
    gone = groups == "g7"
    # What the rows that are left out were measured at is not looked at.
    changed = fitted.leave_out(features, np.where(gone, target + 5.0, target), groups)
    np.testing.assert_allclose(changed.residual[gone] - 5.0, left.residual[gone], atol=1e-9)
    rest = fit_grouped_regression(features[~gone], target[~gone], groups[~gone], scales=fitted.scales)
    estimate, deviation = rest.predict(features[gone])
    # Not to the last digit: scaling and the weights of odd rows are found anew.
    np.testing.assert_allclose(target[gone] - left.residual[gone], estimate, atol=0.03)
    np.testing.assert_allclose(left.deviation[gone], deviation, rtol=0.15)


def test_the_intervals_hold_nine_times_of_ten_on_groups_never_seen() -> None:
    """Simulated: a line, a deviation of each group, noise with heavy tails. 8 draws of 40 groups each."""
    held, total = 0, 0
    for seed in range(8):
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


@pytest.mark.parametrize(
    ("description", "year"),
    [
        ("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz|board", 2021.0),
        ("INTEL(R) XEON(R) PLATINUM 8573C|INTEL(R) XEON(R) PLATINUM 8573C None CPU @ 2.3GHz", 2024.0),
        ("Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz", 2019.0),
        ("Intel(R) Xeon(R) 6973P-C", 2024.7),
        ("Intel(R) Xeon(R) E-2388G CPU @ 3.20GHz", 2021.0),
        ("Intel(R) Xeon(R) CPU E5-2670 v2 @ 2.50GHz", 2013.0),
        ("Intel Xeon E5-2690", 2012.0),
        ("Intel Core Processor (Broadwell, no TSX, IBRS)|pc-q35-8.2", 2016.0),
        ("Intel Xeon Processor (Sapphire Rapids)", 2023.0),
        ("AMD EPYC 7763 64-Core Processor", 2021.0),
        ("AMD EPYC 9R45|AMD EPYC Processor", 2024.8),
        ("AMD EPYC-Milan Processor|pc-q35-8.2", 2021.0),
        ("Neoverse-V2|AWS Graviton4", 2023.0),
        ("Intel(R) Xeon(R) CPU @ 2.30GHz|Broadwell on the board", None),
        ("AMD EPYC Processor|NotSpecified", None),
        ("Brand New Chip 8375", None),
    ],
)
def test_the_generation_is_read_off_the_name(description: str, year: float | None) -> None:
    assert generation_year(description) == year


@pytest.mark.parametrize(
    ("description", "watts"),
    [
        ("AMD EPYC 9654P 96-Core Processor", 360),
        ("Intel(R) Xeon(R) Platinum 8490H", 350),
        ("Intel Xeon E5-2660V2", 95),
        ("AMD EPYC 9754 2.25GHz", 360),
        ("Xeon L5420", 50),
        ("Intel Xeon processor", None),
        ("Brand New 1", None),
    ],
)
def test_thermal_design_power_is_looked_up_by_name(description: str, watts: float | None) -> None:
    assert thermal_design_watts(description) == watts


#: Requests or operations/s by the law of ``cloud_tables``: 1500 a core, four cores, nothing by their second threads.
TRUTH = {
    "core-count": {"operations/s": 6000.0},
    "core-count-few-points": {"operations/s": 6000.0},
    "redis": {"pipelined, best": 2_400_000.0, "one request at a time": 240_000.0},
    "redis-anchored": {"pipelined, best": 2_400_000.0, "one request at a time": 240_000.0},
    "web-anchored": {"responses of 1k": 144_000.0, "responses of 16k": 86_400.0, "responses of 256k": 14_400.0},
}


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_one_described_server_is_predicted_with_an_interval(trained: Callable[[str], TrainedModel], name: str) -> None:
    model = trained(name)
    answers = model.predict({one.name: CLOUD[one.name] for one in model.model.inputs})
    assert set(answers) == set(TRUTH[name])
    for part, true in TRUTH[name].items():
        assert answers[part].low < answers[part].value < answers[part].high
        assert answers[part].value == pytest.approx(true, rel=0.2)
        assert answers[part].unit == model.model.unit and "conformal" in answers[part].basis


def test_watts_of_a_described_server(trained: Callable[[str], TrainedModel]) -> None:
    (answer,) = trained("full-load-watts").predict(SERVER).values()
    assert answer.low < 2 * (40 + 6 * 8 + 0.3 * 16) < answer.high
    assert not answer.extrapolated
    (later,) = trained("full-load-watts").predict({**SERVER, "year": 2024}).values()
    assert later.extrapolated and "year" in later.basis


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"year": 2040}, "far outside"),
        ({"cores": 4000}, "far outside"),
        ({"mhz": 2.42}, "cannot be MHz"),
        ({"mhz": float("nan")}, "no number above zero"),
        ({"memory_gb": -4}, "no number above zero"),
        ({"cores": "many"}, "no number above zero"),
        ({"sockets": 2}, "does not ask for 'sockets'"),
    ],
)
def test_a_server_unlike_those_fitted_gives_a_line(
    trained: Callable[[str], TrainedModel], change: dict[str, float | str], says: str
) -> None:
    with pytest.raises(ModelError, match=says):
        trained("full-load-watts").predict({**SERVER, **change})


def test_what_is_not_said_of_a_server_gives_a_line(trained: Callable[[str], TrainedModel]) -> None:
    with pytest.raises(ModelError, match="needs 'chips'"):
        trained("full-load-watts").predict({name: value for name, value in SERVER.items() if name != "chips"})
    with pytest.raises(ModelError, match="not numbers by number"):
        trained("redis").predict(
            {one.name: CLOUD[one.name] for one in trained("redis").model.inputs} | {"operations_per_second": 3.0}
        )
    with pytest.raises(ModelError, match="between 2 and the 8"):
        trained("core-count").predict(
            {one.name: CLOUD[one.name] for one in trained("core-count").model.inputs} | {"workers": 9}
        )
    with pytest.raises(ModelError, match="which is not given"):
        train("redis", {})


def test_columns_that_never_change_and_cells_that_are_no_numbers_leave_the_rest_usable() -> None:
    made = cloud_tables(processors=12)
    servers = made["sparecores-servers"].with_columns(
        pl.lit(1).alias("threads_per_core"),
        pl.when(pl.col("server").str.contains("p3"))
        .then(float("nan"))
        .otherwise(pl.col("redis_rps_best"))
        .alias("redis_rps_best"),
    )
    model = find_model("redis")
    examples = model.examples({**made, "sparecores-servers": servers})
    assert examples.incomplete == 4
    answers = model.fit(examples, None).predict(examples)
    assert np.isfinite(answers.low).all() and np.isfinite(answers.high).all()


def test_one_processor_only_is_refused(tables: dict[str, pl.DataFrame]) -> None:
    servers = tables["sparecores-servers"].with_columns(pl.lit("AMD EPYC 1").alias("cpu_model"))
    model = find_model("redis")
    with pytest.raises(ModelError, match="of 1 processors are too few"):
        model.fit(model.examples({**tables, "sparecores-servers": servers}), None)


@pytest.fixture(scope="module")
def folder(tables: dict[str, pl.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tables")
    for name, frame in tables.items():
        frame.write_csv(made / f"{name}.csv")
    return made


def test_a_folder_with_one_table_is_judged_as_far_as_it_goes(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = power_table(processors=20, seed=5).drop("avg. watts @ active idle").write_csv()
    with gzip.open(tmp_path / "specpower-servers-2023.csv.gz", "wt") as file:
        file.write(newer)
    arguments = ["models", "validate", "--fit", str(folder), "--on", str(tmp_path), "--json"]
    assert main([*arguments, "--only", "full-load-watts"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["scores"][0]["model"] == "full-load-watts" and printed["scores"][0]["predictions"] == 40
    assert main([*arguments, "--only", "full-load-watts", "--only", "idle-watts"]) == 1
    captured = capsys.readouterr()
    assert "lacks the column 'avg. watts @ active idle'" in json.loads(captured.out)["not_judged"]["idle-watts"]
    assert "idle-watts was not judged" in captured.err


def test_a_folder_without_any_table_gives_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    assert main(["models", "validate", "--on", str(tmp_path)]) == 2
    assert "holds none of the tables" in capsys.readouterr().err
    (tmp_path / "specpower-servers.csv").mkdir()
    assert main(["models", "validate", "--on", str(tmp_path), "--only", "idle-watts"]) == 2
    assert "holds no table specpower-servers" in capsys.readouterr().err
    assert main(["models", "validate", "--on", str(tmp_path), "--hold-out", "0"]) == 2
    assert main(["models", "validate", "--on", str(tmp_path / "gone")]) == 2
    (tmp_path / "specpower-servers.csv.gz").write_bytes(b"\x00\x01 no table")
    assert main(["models", "validate", "--on", str(tmp_path)]) == 1
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("said", [{}, {1: -1500.0}, {0: 1500.0}, {1: math.inf}, {"one": 1.0}, 3.0])
def test_numbers_by_number_are_above_zero(said: object) -> None:
    with pytest.raises(ModelError, match="'operations_per_second' is not numbers by number"):
        points({"operations_per_second": said}, "operations_per_second")
