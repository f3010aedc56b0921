"""Fits that come with the package: they load without tables, hold no row of one, and say what the tables would say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from public_data import public_table
from rackscope.api.outputs import ModelsFitOutput
from rackscope.cli import main
from rackscope.errors import ModelError
from rackscope.models.trained import find_model, list_models
from rackscope.models.trained.base import Examples, Floats
from rackscope.models.trained.redis_elsewhere import Side, read_redis_servers
from rackscope.models.trained.server_power import _with_rating, _without_rating
from rackscope.models.trained.shipped import REDIS_ELSEWHERE, cost_of, read_fit, restore, restore_redis_elsewhere
from trained_model_tables import CLOUD, SERVER, cloud_tables, power_table

NAMES = [*(model.name for model in list_models()), REDIS_ELSEWHERE]
FILES = {
    "sparecores-servers": "sparecores-servers.csv.gz",
    "sparecores-core-scaling": "sparecores-core-scaling.csv.gz",
    "sparecores-web-load": "sparecores-web-load.csv.gz",
    "specpower-servers": "specpower-servers-to-2022.csv",
}


def public_frames(tables: tuple[str, ...]) -> dict[str, pl.DataFrame]:
    return {
        table: pl.read_csv(public_table(FILES[table]), infer_schema_length=None, null_values=["", "NA", "null"])
        for table in tables
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_carried_fit_says_what_it_is(name: str) -> None:
    kept = read_fit(name)
    assert kept.made and kept.rows and kept.processors and kept.errors and kept.regressions
    for source in kept.sources:
        assert len(source.sha256) == 64 and source.rows and source.published and source.licence
    judged = kept.errors[0]
    assert judged.predictions and judged.median_error is not None and judged.p90_error is not None
    if judged.coverage is not None:
        assert 0.8 < judged.coverage < 1


def test_all_fits_together_are_small() -> None:
    folder = files("rackscope.models").joinpath("fitted")
    kept = {file.name: len(file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".json")}
    assert set(kept) == {f"{name}.json" for name in NAMES}
    assert sum(kept.values()) < 300 * 1024


def test_a_prediction_loads_neither_polars_nor_scipy() -> None:
    program = (
        "import sys\n"
        "from rackscope.models.trained.shipped import read_fit, restore\n"
        f"print(restore(read_fit('idle-watts')).predict({SERVER!r}))\n"
        "assert not {'polars', 'scipy'} & set(sys.modules), sorted(sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "avg. watts @ active idle" in found.stdout


def rows_of(name: str) -> dict[str, Floats]:
    """By regression, the rows of the public tables that it was fitted on."""
    if name == REDIS_ELSEWHERE:
        features = read_redis_servers(public_frames(("sparecores-servers",))).features
        return {part: features[np.isfinite(features).all(axis=1)] for part in read_fit(name).regressions}
    model = find_model(name)
    examples = model.examples(public_frames(model.tables))
    of: dict[str, Callable[[Examples], Floats]] = {
        "slowdown": lambda rows: rows.features[:, :7],
        "gain": lambda rows: rows.features,
        "rated": lambda rows: _with_rating(rows.take(np.isfinite(rows.features[:, -1]))).features,
        "unrated": lambda rows: _without_rating(rows).features,
    }
    return {
        part: of[part](examples) if part in of else examples.take(examples.parts == part).features
        for part in read_fit(name).regressions
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_carried_fit_holds_no_row_of_a_table(name: str) -> None:
    kept = read_fit(name)
    for part, rows in rows_of(name).items():
        regression = kept.regressions[part]
        spread, different = np.array(regression.spread), np.unique(rows, axis=0)
        for server in np.array(regression.servers):
            apart = np.abs(different - server)
            # In some column it is no server's: neither to its decimals, nor to a hundredth of how servers differ.
            assert (apart > 0.002).any(axis=1).all(), part
            assert (apart / spread > 0.01).any(axis=1).all(), part


@pytest.mark.parametrize("name", ["core-count", "full-load-watts", "redis"])
def test_a_carried_fit_says_what_a_fit_on_the_tables_says(name: str) -> None:
    """Within the cost that its file states."""
    model, kept = find_model(name), read_fit(name)
    examples = model.examples(public_frames(model.tables))
    assert len(examples) == kept.rows
    found = cost_of(
        restore(kept).fitted.predict(examples).estimate, model.fit(examples, None).predict(examples).estimate
    )
    assert found.median <= 1.2 * kept.cost.median + 0.002
    assert found.p90 <= 1.2 * kept.cost.p90 + 0.005


def test_ratios_of_redis_are_carried_and_a_look_up_is_not() -> None:
    model = restore_redis_elsewhere(read_fit(REDIS_ELSEWHERE))
    here = Side("here", "AMD EPYC 7763", 16, 2.0, 60e9, 32e6)
    there = Side("there", "AMD EPYC 9654", 16, 2.0, 120e9, 64e6)
    ratio = model.by_calibration("one request at a time", here, there)
    assert 0.1 < ratio.low < ratio.value < ratio.high < 10
    with pytest.raises(ModelError, match=r"no servers to look processors up in.*--fit"):
        model.by_processor("one request at a time", here, there)


def test_a_file_that_is_no_fit_is_one_line() -> None:
    kept = read_fit("redis")
    with pytest.raises(ModelError, match=r"rows: Input should be a valid integer"):
        read_fit("redis", kept.model_copy(update={"rows": "many"}).model_dump_json(warnings=False))
    with pytest.raises(ModelError, match="format 2 of a fit of redis, not format 1 of redis"):
        read_fit("redis", kept.model_copy(update={"format": 2}).model_dump_json())
    with pytest.raises(ModelError, match="carries no fit of guess"):
        read_fit("guess")


def test_what_models_fit_writes_predicts_what_it_was_fitted_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    for name, frame in {**cloud_tables(), "specpower-servers": power_table()}.items():
        frame.write_csv(tables / f"{name}.csv")
    assert main(["models", "fit", "--tables", str(tables), "--out", str(tmp_path), "--only", "redis"]) == 0
    assert "median error" in capsys.readouterr().out
    kept = read_fit("redis", (tmp_path / "redis.json").read_text())
    again = ["models", "fit", "--tables", str(tables), "--out", str(tmp_path), "--only", "full-load-watts", "--json"]
    assert main(again) == 0
    (written,) = ModelsFitOutput.model_validate_json(capsys.readouterr().out).fits
    assert Path(written.path).is_file() and written.errors
    assert [source.rows for source in kept.sources] == [96, len(cloud_tables()["sparecores-core-scaling"])]
    model = restore(kept)
    answers = model.predict({one.name: CLOUD[one.name] for one in model.model.inputs})
    assert answers["one request at a time"].value == pytest.approx(240_000, rel=0.2)


def test_the_command_predicts_what_the_description_suffices_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    says = [f"{name}={value}" for name, value in SERVER.items()]
    assert main(["models", "predict", *says]) == 0
    printed = capsys.readouterr()
    assert "full-load-watts: watts" in printed.out and "90 % interval" in printed.out
    assert "redis not predicted: needs hardware_threads" in printed.err
    Path("server.toml").write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in SERVER.items()))
    arguments = ["models", "predict", "--server", "server.toml", "--only", "idle-watts", "--json"]
    assert main(arguments) == 0
    (found,) = json.loads(capsys.readouterr().out)["predictions"]
    assert found["model"] == "idle-watts" and found["low"] < found["value"] < found["high"] and found["unit"] == "W"
    # The command line goes first; what a model refuses is said, and the status is 1.
    assert main([*arguments, "cores=4000"]) == 1
    assert "far outside" in json.loads(capsys.readouterr().out)["not_predicted"]["idle-watts"]


def test_numbers_by_number_are_given_in_one_argument(capsys: pytest.CaptureFixture[str]) -> None:
    given = {name: CLOUD[name] for name in ("processor", "hardware_threads", "threads_per_core", "workers")}
    bandwidths = ("read_bandwidth_dram_mb_s=48000", "read_bandwidth_l2_mb_s=300000")
    says = [*(f"{name}={value}" for name, value in given.items()), *bandwidths]
    arguments = ["models", "predict", "--only", "core-count", "--json", *says]
    assert main([*arguments, "operations_per_second=1:1500,8:6000"]) == 0
    assert len(json.loads(capsys.readouterr().out)["predictions"]) == 1
    assert main([*arguments, "operations_per_second=1:fast"]) == 1
    assert "not numbers by number" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no server is described"),
        (["sockets=2"], "no model asks for 'sockets'"),
        (["--server", "gone.toml"], "gone.toml"),
        (["--only", "guess", "cores=2"], "there is no model 'guess'"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["models", "predict", *arguments]) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1
