"""Projections by models that are trained on the user's tables: which is used, what it says, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from projection_example import noisy, server, write_pressure, write_run, write_servers
from public_data import public_table
from rackscope.advice.catalogue import read_servers
from rackscope.advice.measured_runs import read_measurements
from rackscope.advice.projecting.answers import Answer, ServerProjection
from rackscope.advice.projecting.project import project
from rackscope.advice.projecting.trained import Trained
from rackscope.cli import main
from rackscope.errors import ModelError, RackscopeError
from rackscope.models.catalogue import CatalogueError
from rackscope.models.catalogue_text import catalogue_text
from rackscope.models.trained import list_models
from rackscope.models.trained.model import Model
from rackscope.models.trained.pair_validation import validate_pairs
from rackscope.models.trained.redis_elsewhere import PARTS, Side, fit_redis_elsewhere
from trained_model_tables import CLOUD, SERVER, cloud_tables, power_table

#: Of the tables' processors: the host's, and another of a different maker.
HERE, THERE = "AMD EPYC 5107 32-Core Processor", "Neoverse-N5114"
SHEET = {"chips": 1, "year": 2014, "frequency_hertz": 2.42e9}


def tables() -> dict[str, pl.DataFrame]:
    frames = cloud_tables()
    servers = frames["sparecores-servers"]
    cache = [f"{4 * 2**20 * threads} (1 instance)" for threads in servers["vcpus"]]
    return {"sparecores-servers": servers.with_columns(pl.Series("l3", cache)), "specpower-servers": power_table()}


@pytest.fixture(scope="module")
def trained() -> Trained:
    return Trained("tables", tables())


def redis_run(path: Path, system: str = "redis") -> Path:
    """On four of the eight hardware threads of four cores."""
    host = {
        "host__cpu_model": HERE,
        "host__online_cores": 8,
        "host__processor": {
            "physical_cores": 4,
            "caches": [{"level": 3, "kind": "unified", "size_bytes": 32 * 2**20, "instances": 1}],
        },
    }
    return write_run(path, noisy(100_000), cores=4, system__name=system, **host)


def each(processor: str) -> float:
    """Requests/s a hardware thread of redis without pipelining, of the tables' servers with the processor."""
    servers = tables()["sparecores-servers"].filter(pl.col("cpu_model").str.starts_with(processor))
    return float(np.median((servers["redis_rps_pipeline1"] / servers["vcpus"]).to_numpy()))


def known(name: str = "other", processor: str = THERE, **keys: object) -> str:
    """A server of eight hardware threads as the tables have them."""
    ceilings = keys.pop("ceilings", "dram_read_bytes_per_second = 100e9")
    values = {"cores": 8, "threads": 8, "last_level_cache_bytes": 32 * 2**20, **keys}
    return server(name, str(ceilings), processor=processor, **values)


def projected(tmp_path: Path, trained: Trained | None, entry: str, *runs: Path) -> ServerProjection:
    measured = read_measurements(runs or [redis_run(tmp_path / "run")])
    file = write_servers(tmp_path / "servers.toml", entry)
    return project(measured, read_servers(file), trained=trained).servers[0]


def throughput(one: ServerProjection) -> Answer:
    answer = one.answer("throughput")
    assert answer is not None and answer.prediction is not None
    return answer


def test_redis_goes_to_a_processor_of_the_tables_without_any_study(tmp_path: Path, trained: Trained) -> None:
    answer = throughput(projected(tmp_path, trained, known()))
    assert answer.prediction is not None
    true = 100_000 * each(THERE) / each(HERE)
    assert answer.prediction.value == pytest.approx(true, rel=0.1)
    assert answer.prediction.low < true < answer.prediction.high
    assert answer.prediction.high / answer.prediction.low < 1.5
    assert "redis by processor" in answer.stands_on and "tables" in answer.stands_on
    assert "throughput_ratio was not used" in answer.changes_if and "% off" in answer.changes_if
    with pytest.raises(RackscopeError, match=r"no ceilings\.instructions_per_second"):
        projected(tmp_path, None, known(), tmp_path / "run")


def test_what_elasticities_say_is_set_beside_it(tmp_path: Path, trained: Trained) -> None:
    runs = [redis_run(tmp_path / "run")]
    answer = throughput(projected(tmp_path, trained, known(ceilings="instructions_per_second = 2.8e10"), *runs))
    assert "throughput_ratio, not used, says" in answer.changes_if
    assert "redis by processor" in answer.stands_on and "throughput_ratio" not in answer.stands_on


def test_without_the_processor_elasticities_are_used_and_it_says_what_is_lacking(
    tmp_path: Path, trained: Trained
) -> None:
    entry = known(processor="AMD EPYC 9999", ceilings="instructions_per_second = 2.8e10")
    with_tables = throughput(projected(tmp_path, trained, entry))
    without = throughput(projected(tmp_path, None, entry, tmp_path / "run"))
    assert with_tables.prediction == without.prediction
    assert "no server with 'AMD EPYC 9999'" in with_tables.changes_if and "surer" not in without.changes_if


def test_the_regression_answers_where_elasticities_refuse(tmp_path: Path, trained: Trained) -> None:
    """Of a processor that no table has: half the threads a core, and the bandwidth of a fast one."""
    answer = throughput(projected(tmp_path, trained, known(processor="AMD EPYC 9999", cores=4)))
    assert answer.prediction is not None
    assert "redis by calibration" in answer.stands_on
    assert "throughput_ratio was not used" in answer.changes_if and "no server with" in answer.changes_if
    wide = answer.prediction.high / answer.prediction.low
    assert wide > 1.2


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"last_level_cache_bytes": None}, "last_level_cache_bytes of other is not known"),
        ({"ceilings": ""}, "dram_read_bytes_per_second of other is not known"),
        ({"ceilings": "dram_read_bytes_per_second = 9e12"}, "far outside"),
        ({"cores": None}, "hardware threads a core of other has is not known"),
    ],
)
def test_what_is_not_known_or_far_off_is_refused(
    tmp_path: Path, trained: Trained, keys: dict[str, object], words: str
) -> None:
    with pytest.raises(RackscopeError, match=words) as raised:
        projected(tmp_path, trained, known(processor="AMD EPYC 9999", **keys))
    assert "no server with 'AMD EPYC 9999'" in str(raised.value)


def test_other_systems_have_no_table(tmp_path: Path, trained: Trained) -> None:
    run = redis_run(tmp_path / "run", "memcached")
    answer = throughput(projected(tmp_path, trained, known(ceilings="instructions_per_second = 2.8e10"), run))
    assert "throughput_ratio" in answer.stands_on
    assert "the tables have no memcached" in answer.changes_if


def test_more_cores_than_measured_need_a_study(tmp_path: Path, trained: Trained) -> None:
    """Redis on twice the cores is not twice as fast because a table's servers ran a process a thread."""
    run = redis_run(tmp_path / "run")
    larger = known(threads=16, cores=16)
    with pytest.raises(RackscopeError, match=r"2\.00 times of the cores' speed, which was never squeezed"):
        projected(tmp_path, trained, larger, run)


@pytest.mark.parametrize("name", ["xeon", "AMD EPYC-Milan Processor", "Intel(R) Xeon(R) CPU @ 2.80GHz", ""])
def test_a_name_that_hides_the_chip_is_not_looked_up(name: str) -> None:
    side = Side("it", name, 8, 2.0)
    with pytest.raises(ModelError, match="names no one processor"):
        fit_redis_elsewhere(tables()).by_processor("pipelined, best", side, side)


def test_sizes_far_from_the_tables_are_refused() -> None:
    model = fit_redis_elsewhere(tables())
    here = Side("this host", HERE, 8, 2.0)
    assert model.by_processor("pipelined, best", here, here).value == pytest.approx(1.0)
    with pytest.raises(ModelError, match="of 2, 4, 8, 16 hardware threads, and large has 64"):
        model.by_processor("pipelined, best", here, Side("large", THERE, 64, 1.0))


def test_how_far_pairs_of_servers_are_apart_is_what_a_look_up_may_be_wrong_by() -> None:
    model = fit_redis_elsewhere(tables())
    for part in ("pipelined, best", "one request at a time"):
        found = model.by_processor(part, Side("here", HERE, 8, 2.0), Side("there", THERE, 8, 1.0))
        assert found.low < found.value < found.high
        # Of the made-up tables, whose noise is known, neither all nor nothing.
        assert 1.005 < found.high / found.value < 2


def test_a_table_in_other_units_or_without_columns_is_one_line() -> None:
    servers = tables()["sparecores-servers"]
    with pytest.raises(ModelError, match="lacks the column 'l3'"):
        fit_redis_elsewhere({"sparecores-servers": servers.drop("l3")})
    with pytest.raises(ModelError, match="cannot be MB/s"):
        fit_redis_elsewhere({"sparecores-servers": servers.with_columns(pl.col("read_bandwidth_dram_mb_s") * 1e6)})
    with pytest.raises(ModelError, match="too few"):
        few = fit_redis_elsewhere({"sparecores-servers": servers.filter(pl.col("cpu_model").str.contains("N51"))})
        few.by_processor("pipelined, best", Side("a", "Neoverse-N5114", 8, 1.0), Side("b", "Neoverse-N5135", 8, 1.0))
    with pytest.raises(ModelError, match="no file sparecores-servers"):
        fit_redis_elsewhere({})


def test_watts_come_from_the_data_sheet(tmp_path: Path, trained: Trained) -> None:
    bare = {"idle_watts": None, "full_watts": None, "memory_bytes": "32GiB"}
    entry = known(**bare, **SHEET, thermal_design_watts=110)
    watts = projected(tmp_path, trained, entry).answer("watts")
    assert watts is not None and watts.prediction is not None
    full = 40 + 6 * 8 + 0.3 * 32
    assert full / 4 < watts.prediction.value < full
    assert "modelled" in watts.what and "modelled idle" in watts.stands_on and "full-load-watts" in watts.stands_on
    lacking = projected(tmp_path, trained, known(**{**bare, "chips": 1}), tmp_path / "run").answer("watts")
    assert lacking is not None and lacking.prediction is None
    assert "has no frequency_hertz, year" in lacking.refused
    stated = projected(tmp_path, trained, known(**SHEET), tmp_path / "run").answer("watts")
    assert stated is not None and "idle_watts and full_watts of other" in stated.stands_on


def test_data_sheets_read_back_and_bad_ones_are_refused(tmp_path: Path) -> None:
    file = write_servers(tmp_path / "one.toml", known(**SHEET, thermal_design_watts=110))
    read = read_servers(file)
    (tmp_path / "again.toml").write_text(catalogue_text(read), encoding="utf-8")
    assert read_servers(tmp_path / "again.toml").servers == read.servers
    for keys, words in (({"year": 24}, "Write the year"), ({"chips": 0}, "a whole number")):
        with pytest.raises(CatalogueError, match=words):
            read_servers(write_servers(tmp_path / "bad.toml", known(**keys)))


def test_the_command_takes_a_folder_or_the_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    for name, frame in tables().items():
        frame.write_csv(folder / f"{name}.csv")
    run, file = redis_run(tmp_path / "run"), write_servers(tmp_path / "servers.toml", known())
    arguments = ["project", str(run), "--to", str(file)]
    monkeypatch.delenv("RACKSCOPE_DATA", raising=False)
    # Without tables, by the fits that come with the package, which look up no processor.
    assert main([*arguments, "--json"]) == 0
    (carried,) = json.loads(capsys.readouterr().out)["servers"]
    assert "redis by calibration" in json.dumps(carried) and "no servers to look processors up in" in json.dumps(
        carried
    )
    assert main([*arguments, "--fit", str(folder), "--json"]) == 0
    by_option = json.loads(capsys.readouterr().out)
    monkeypatch.setenv("RACKSCOPE_DATA", str(folder))
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == by_option
    assert main(arguments) == 0
    assert all(len(line) <= 80 for line in capsys.readouterr().out.splitlines())
    for bad, words in ((tmp_path / "gone", "is no folder"), (tmp_path / "run", "holds none of the tables")):
        assert main([*arguments, "--fit", str(bad)]) == 2
        said = capsys.readouterr()
        assert words in said.err and said.err.count("\n") == 1 and said.out == ""


@pytest.mark.parametrize("model", list_models(), ids=lambda model: model.name)
def test_a_described_server_has_no_answer_to_look_at(model: Model) -> None:
    said = SERVER if "watts" in model.name else CLOUD
    described = model.describe({one.name: said[one.name] for one in model.inputs if one.name in said})
    assert len(described) and np.isnan(described.target).all()
    assert np.isfinite(described.anchor).all()


def test_a_pressure_study_takes_the_tables_over_cores(tmp_path: Path, trained: Trained) -> None:
    """The processor by the tables, twice the cores by the elasticity to CPU time."""
    squeezed = read_measurements([write_pressure(tmp_path / "pressure", 0.9)]).squeezed
    measured = replace(read_measurements([redis_run(tmp_path / "run")]), squeezed=squeezed)
    file = write_servers(tmp_path / "servers.toml", known(threads=16, cores=16))
    answer = throughput(project(measured, read_servers(file), trained=trained).servers[0])
    assert answer.prediction is not None
    assert "redis by processor, throughput_ratio over cores" in answer.stands_on
    once = 100_000 * each(THERE) / each(HERE)
    assert 1.4 * once < answer.prediction.value < 2.0 * once


@pytest.mark.long
def test_pairs_of_public_servers_hold() -> None:
    """What docs/projection.md says of the ways: the tables are off by half of what elasticities are, and hold."""
    frames = {
        name: pl.read_csv(public_table(f"{name}.csv.gz"), infer_schema_length=None, null_values=["", "NA", "null"])
        for name in ("sparecores-servers", "sparecores-core-scaling")
    }
    scores = {(one.way, one.part, one.of): one for one in validate_pairs(frames, 3)}
    for part in PARTS:
        by_processor = scores["by processor", part, "all"]
        by_ratio = scores["throughput_ratio", part, "those that throughput_ratio answers"]
        assert by_processor.median_error < 0.14 and by_processor.median_error < 0.6 * by_ratio.median_error
        assert by_processor.coverage > 0.75
        assert scores["by calibration", part, "all"].coverage > 0.75
