"""A sweep's logic, with a bench that measures nothing: grids, order, failures, going on, and what is said of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from rackscope.errors import LoadError, RackscopeError, UsageError
from rackscope.runs.options import Progress, RunOptions
from rackscope.runs.study import StudyRecord, read_study
from rackscope.studies import conduct as conducting
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.figures import Figures
from rackscope.studies.sweep import conduct as sweep
from rackscope.studies.sweep.grid import cell_options, make_cells, make_factors, parse_vary
from rackscope.studies.sweep.plan import SweepPlan
from rackscope.studies.sweep.presets import load_presets
from rackscope.studies.sweep.study import STUDY

Response = Callable[[RunOptions], float]


def request(
    *vary: str, system: str = "cache", workload: str = "ycsb-b", out: Path | None = None, **others: Any
) -> Request:
    values: dict[str, Any] = {
        "vary": vary,
        "preset": None,
        "repeat": 3,
        "duration": 2.0,
        "warm_up": 0.5,
        "rate": None,
        "resume": None,
    }
    run = {name: others.pop(name) for name in ("settings", "tuned", "connections", "seed") if name in others}
    return Request(RunOptions(system=system, workload=workload, **run), {**values, **others}, out)


def by_value_size(options: RunOptions) -> float:
    return 1e6 / (1 + int(options.settings.get("value_size", "1")))


class FakeBench:
    """Writes what a run gave into its folder; ``response`` says what that is, ``stop_after`` interrupts."""

    def __init__(self, response: Response = by_value_size, stop_after: int | None = None) -> None:
        self.response = response
        self.stop_after = stop_after
        self.measured: list[str] = []
        self.noise = random.Random(1)

    def check(self, options: RunOptions) -> str:
        if options.settings.get("threads") == "0":
            raise UsageError("cache takes no threads below 1, so not '0'")
        return f"{options.system} 1.0"

    def measure(self, options: RunOptions, folder: Path, progress: Callable[[Progress], None]) -> Figures:
        if self.stop_after is not None and len(self.measured) >= self.stop_after:
            folder.mkdir(parents=True)
            raise KeyboardInterrupt
        progress(Progress("measuring", 0.5))
        self.measured.append(folder.name)
        # Repetitions differ a little, the same in every test.
        value = self.response(options) * (1 + 0.002 * self.noise.random())
        figures = Figures(value, 1e-3, 1e-3, 2e-3, 1.0, 0.5, 0.0, options.duration_seconds)
        folder.mkdir(parents=True)
        (folder / "figures.json").write_text(json.dumps(asdict(figures)))
        return figures

    def recall(self, folder: Path) -> Figures | None:
        file = folder / "figures.json"
        return Figures(**json.loads(file.read_text())) if file.is_file() else None


def ignore(progress: Progress) -> None:
    del progress


def carry_out(asked: Request, bench: FakeBench) -> tuple[Conduct, StudyRecord]:
    under_way = conducting.begin(STUDY, asked, ignore)
    plan = sweep.build_plan(asked)
    try:
        sweep.conduct_sweep(under_way, plan, bench)
        under_way.record.status = "complete"
    except KeyboardInterrupt:
        under_way.record.status = "interrupted"
    finally:
        under_way.save()
    return under_way, under_way.record


# What is asked


def test_a_grid_has_every_combination_once() -> None:
    factors = make_factors(parse_vary(["threads=1,2", "value_size=64,1k,25k"]), ["cache"], ["ycsb-b"])
    cells = make_cells(factors)
    assert len({cell.label for cell in cells}) == len(cells) == 6
    assert cells[0].label == "threads=1 value_size=64"


@pytest.mark.parametrize(
    ("vary", "clear"),
    [
        (["value_size"], "names nothing to vary"),
        (["=1,2"], "names nothing to vary"),
        (["value_size="], "empty value"),
        (["value_size=1,,2"], "empty value"),
        (["value_size=64,64"], "'64' twice"),
        (["value_size=1k,1024"], "1k and 1024, which is one value"),
        (["tuned=yes,on"], "yes and on, which is one value"),
        (["value_size=64", "value_size=1k"], "given twice"),
        (["value_size=big"], "--vary value_size: 'big' is not a size"),
        (["connections=many"], "--vary connections: 'many' is not a count"),
        (["tuned=maybe"], "neither yes nor no"),
        (["theta=x"], "'x' is not a number"),
        (["thraeds=1,2"], "nothing has a setting 'thraeds'"),
        (["threads=" + ",".join(map(str, range(1, 60)))], "lists 59 values"),
        ([], "nothing to vary"),
    ],
)
def test_nonsense_is_refused_before_a_directory_is_made(vary: list[str], clear: str, tmp_path: Path) -> None:
    out = tmp_path / "study"
    with pytest.raises(UsageError, match=clear.replace("(", r"\(")):
        conducting.begin(STUDY, request(*vary, out=out), ignore)
    assert not out.exists()


@pytest.mark.parametrize(
    ("asked", "clear"),
    [
        (request("value_size=64,1k", system="cache,cache"), "named twice"),
        (request("value_size=64,1k", system="cache,,redis"), "empty name"),
        (request("value_size=64,1k", system=""), "no system is named"),
        (request("value_size=64,1k", workload=""), "no workload is named"),
        (request("value_size=64,1k", system="cash"), "cash"),
        (request("system=redis,memcached"), "and --vary system"),
        (request("value_size=64,1k", settings={"value_size": "9"}), "both varied and set"),
        (request("tuned=no,yes", tuned=True), "--tuned fixes it"),
        (request("rate=1k,2k", rate=5.0), "--rate fixes it"),
        (request("value_size=64,1k", repeat=0), "at least once"),
        (request("value_size=64,1k", repeat=501), "1002 runs"),
        (request(preset="issa-figure-9"), "brings its own workload"),
        (request(system="redis", workload="", preset="issa-figure-10"), "no partitions"),
    ],
)
def test_what_cannot_be_asked_is_one_clear_line(asked: Request, clear: str) -> None:
    with pytest.raises(UsageError, match=clear):
        sweep.build_plan(asked)


def test_levels_reach_the_run_as_settings_or_as_load() -> None:
    varied = parse_vary(
        ["system=cache,redis", "connections=7", "rate=2k", "tuned=yes", "value_size=1k", "endpoint=unix"]
    )
    factors = make_factors(varied, ["cache", "redis"], ["ycsb-b"])
    cell = make_cells(factors)[1]
    options = cell_options(RunOptions("cache", "ycsb-b"), factors, cell, [0, 1])
    assert options.system == "redis"
    assert (options.connections, options.rate_per_second, options.tuned) == (7, 2000.0, True)
    assert options.endpoint_kind == "unix"
    assert dict(options.settings) == {"value_size": "1k"}


def test_client_threads_take_cores_beside_the_same_cores_of_the_system() -> None:
    factors = make_factors(parse_vary(["client_threads=1,2,9"]), ["cache"], ["ycsb-b"])
    one, two, nine = make_cells(factors)
    base = RunOptions("cache", "ycsb-b")
    first, second = (cell_options(base, factors, cell, range(6)) for cell in (one, two))
    assert first.cores == second.cores == (0, 1, 2, 3)
    assert (first.client_cores, second.client_cores) == ((5,), (4, 5))
    with pytest.raises(UsageError, match="there are 5"):
        cell_options(base, factors, nine, range(6))


def test_a_system_that_calls_it_otherwise_gets_its_own_name() -> None:
    factors = make_factors({"threads": ("1", "2")}, ["redis"], ["ycsb-b"], {"threads": {"redis": "io_threads"}})
    options = cell_options(RunOptions("redis", "ycsb-b"), factors, make_cells(factors)[1], [0])
    assert dict(options.settings) == {"io_threads": "2"}


# How it is done


def test_rounds_hold_every_cell_once_and_go_back_and_forth() -> None:
    plan = sweep.build_plan(request("value_size=1,2,3,4,5,6,7,8", repeat=4))
    order = plan.order()
    rounds = [[cell for cell, repetition in order if repetition == number] for number in (1, 2, 3, 4)]
    assert [repetition for _, repetition in order] == sorted(repetition for _, repetition in order)
    for one in rounds:
        assert sorted(one) == list(range(8))
    assert rounds[1] == rounds[0][::-1]
    assert rounds[3] == rounds[2][::-1]
    assert rounds[0] != rounds[2]
    assert order == sweep.build_plan(request("value_size=1,2,3,4,5,6,7,8", repeat=4)).order()
    assert order != sweep.build_plan(request("value_size=1,2,3,4,5,6,7,8", repeat=4, seed=7)).order()


def test_a_finished_sweep_says_what_matters_and_what_is_best(tmp_path: Path) -> None:
    _, record = carry_out(request("value_size=64,1000", "connections=1,2", out=tmp_path / "study"), FakeBench())
    sentences = [finding.sentence for finding in record.findings]
    assert any(sentence.startswith("value_size matters most") for sentence in sentences)
    assert any("connections is not shown to matter" in sentence for sentence in sentences)
    assert any("The highest throughput" in one and "value_size=64" in one for one in sentences)
    assert any(one.startswith("The lowest 99th percentile is 2.00 ms") for one in sentences)
    assert "001-value_size=64-connections=1-1" in {member.folder for member in record.members}
    assert {chart.identifier for chart in record.charts} == {"throughput", "p99"}
    assert record.charts[0].x.unit == "bytes"
    assert len(record.charts[0].series) == 2
    assert len(record.tables[0].rows) == 4
    outcomes = {cell["label"]: cell["against_baseline"] for cell in record.result["cells"]}
    assert outcomes["value_size=1000 connections=1"]["outcome"] == "different"
    assert outcomes["value_size=64 connections=2"]["outcome"] != "different"


@pytest.mark.parametrize(
    ("factor", "repeat", "percent"),
    [
        # Threads double throughput with small values only: a third of what cells differ by is in the combinations.
        (lambda size, threads: 2.0 if (size, threads) == ("64", "2") else 1.0, 3, 33),
        # The size matters far more, and still one in sixteen parts is in the combinations.
        (
            lambda size, threads: (4.0 if size == "64" else 1.0) * (2.66 if (size, threads) == ("64", "2") else 1.0),
            3,
            6,
        ),
        # It is there, and nobody needs to look at single cells for it.
        (
            lambda size, threads: {"64": 4.0, "1000": 1.0}[size] * (1.05 if (size, threads) == ("64", "2") else 1.0),
            3,
            None,
        ),
        (lambda size, threads: {"64": 4.0, "1000": 1.0}[size] * {"1": 1.0, "2": 1.5}[threads], 3, None),
        # Without repetitions nobody knows.
        (lambda size, threads: 2.0 if (size, threads) == ("64", "2") else 1.0, 1, None),
    ],
)
def test_factors_that_depend_on_each_other_are_said_to(
    factor: Callable[[str, str], float], repeat: int, percent: int | None, tmp_path: Path
) -> None:
    bench = FakeBench(lambda options: 1000.0 * factor(options.settings["value_size"], options.settings["threads"]))
    _, record = carry_out(request("value_size=64,1000", "threads=1,2", repeat=repeat, out=tmp_path / "study"), bench)
    told = [one for one in record.findings if "depends on the others" in one.sentence]
    assert len(told) == (percent is not None)
    if percent is not None:
        assert f"{percent}% of the variation between cells is in their combinations" in told[0].sentence
        assert told[0].evidence.startswith("p = ")


def test_a_cell_that_cannot_run_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    bench = FakeBench(lambda options: 1000.0 * int(options.settings["threads"]))
    _, record = carry_out(request("threads=0,1,2", out=tmp_path / "study"), bench)
    assert len(bench.measured) == 6
    [failure] = record.result["failures"]
    assert failure["label"] == "threads=0"
    [told] = [finding for finding in record.findings if "could not be measured" in finding.sentence]
    assert "threads=0" in told.sentence
    assert "below 1" in told.sentence


def test_a_cell_that_fails_while_running_is_tried_once_more_and_then_left_out(tmp_path: Path) -> None:
    tries: list[str] = []

    def response(options: RunOptions) -> float:
        if options.settings["value_size"] == "2m":
            tries.append("2m")
            raise LoadError("cache refused 10 of 10 values")
        return 1000.0

    _, record = carry_out(request("value_size=64,2m", repeat=4, out=tmp_path / "study"), FakeBench(response))
    assert len(tries) == 2
    assert record.result["failures"][0]["reason"] == "cache refused 10 of 10 values"
    discarded = [member for member in record.members if member.discarded]
    assert len(discarded) == 2
    assert record.result["cells"][0]["repetitions"] == 4


def test_a_failure_that_does_not_come_again_costs_one_repetition(tmp_path: Path) -> None:
    failed: list[str] = []

    def response(options: RunOptions) -> float:
        if options.settings["value_size"] == "64" and not failed:
            failed.append("64")
            raise LoadError("the port was taken")
        return 1000.0

    _, record = carry_out(request("value_size=64,128", out=tmp_path / "study"), FakeBench(response))
    assert record.result["failures"] == []
    assert [cell["repetitions"] for cell in record.result["cells"]] == [2, 3]
    assert any("the port was taken" in finding.sentence for finding in record.findings)


def test_a_sweep_of_which_no_cell_can_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="none of the 1 cells can run"):
        carry_out(request("threads=0", out=tmp_path / "study"), FakeBench())


def test_no_more_is_claimed_of_one_repetition_than_it_can_show(tmp_path: Path) -> None:
    _, record = carry_out(request("value_size=64,1000", repeat=1, out=tmp_path / "study"), FakeBench())
    assert any("With one repetition no effect can be shown" in finding.sentence for finding in record.findings)
    assert not any("matters" in finding.sentence for finding in record.findings)


# Going on with it


def test_a_sweep_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    out = tmp_path / "study"
    first = FakeBench(stop_after=4)
    _, stopped = carry_out(request("value_size=64,1000", out=out), first)
    assert any("2 of 6 runs are missing" in finding.sentence for finding in stopped.findings)

    second = FakeBench()
    _, record = carry_out(request(system="", workload="", resume=str(out)), second)
    assert len(second.measured) == 2
    assert not set(second.measured) & set(first.measured)
    assert [cell["repetitions"] for cell in record.result["cells"]] == [3, 3]
    assert not any("missing" in finding.sentence for finding in record.findings)
    assert any("4 runs were kept" in line for line in record.method)

    whole = tmp_path / "whole"
    _, uninterrupted = carry_out(request("value_size=64,1000", out=whole), FakeBench())
    order = [(run["cell"], run["repetition"]) for run in uninterrupted.result["runs"]]
    done = [(run["cell"], run["repetition"]) for run in record.result["runs"]]
    assert [one for place, one in enumerate(done) if one not in done[:place]] == order


def test_a_finished_sweep_that_is_taken_up_measures_nothing(tmp_path: Path) -> None:
    out = tmp_path / "study"
    carry_out(request("value_size=64,1000", out=out), FakeBench())
    again = FakeBench()
    _, record = carry_out(request("value_size=64,1000", resume=str(out)), again)
    assert again.measured == []
    assert len(record.result["cells"]) == 2


@pytest.mark.parametrize(
    ("changed", "clear"),
    [
        (request("value_size=64,25k"), "varying"),
        (request("value_size=64,1000", repeat=5), "5 repetitions instead of 3"),
        (request("value_size=64,1000", connections=9), "connections 9 instead of 50"),
        (request("value_size=64,1000", system="redis"), "system redis instead of cache"),
        (request("value_size=64,1000", duration=9.0), "duration seconds 9.0 instead of 2.0"),
    ],
)
def test_another_configuration_is_refused_and_changes_nothing(changed: Request, clear: str, tmp_path: Path) -> None:
    out = tmp_path / "study"
    carry_out(request("value_size=64,1000", out=out), FakeBench(stop_after=3))
    before = (out / "study.json").read_bytes()
    asked = Request(changed.run, {**changed.values, "resume": str(out)})
    with pytest.raises(UsageError, match=clear):
        conducting.begin(STUDY, asked, ignore)
    assert (out / "study.json").read_bytes() == before


def test_another_version_of_the_system_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "study"
    carry_out(request("value_size=64,1000", out=out), FakeBench(stop_after=3))

    class Newer(FakeBench):
        def check(self, options: RunOptions) -> str:
            return f"{options.system} 2.0"

    with pytest.raises(UsageError, match=r"measured cache 1\.0, and this is cache 2\.0"):
        carry_out(request(system="", workload="", resume=str(out)), Newer())


@pytest.mark.parametrize(
    "damage", [{"plan": 3}, {"plan": {"options": {}}}, {}, {"plan": {"options": {"system": "cache"}, "factors": [1]}}]
)
def test_a_damaged_plan_is_one_clear_line(damage: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "study"
    carry_out(request("value_size=64,1000", out=out), FakeBench(stop_after=1))
    content = json.loads((out / "study.json").read_text())
    content["result"] = damage
    (out / "study.json").write_text(json.dumps(content))
    with pytest.raises(RackscopeError):
        sweep.build_plan(request(system="", workload="", resume=str(out)))


def test_a_plan_survives_the_file(tmp_path: Path) -> None:
    asked = request("value_size=64,1k", "tuned=no,yes", system="cache,redis", settings={"keys": "10"}, connections=3)
    out = tmp_path / "study"
    under_way, _ = carry_out(Request(asked.run, asked.values, out), FakeBench(lambda _: 5.0))
    plan = sweep.build_plan(asked)
    restored = SweepPlan.from_dict(read_study(under_way.folder).result["plan"])
    assert restored.differences(plan) == []
    assert restored.to_dict() == plan.to_dict()


# Presets


@pytest.mark.parametrize("name", sorted(load_presets()))
@pytest.mark.parametrize("cores", [1, 4, 64])
def test_presets_make_sense_on_hosts_of_any_size(name: str, cores: int) -> None:
    preset = load_presets()[name]
    for factor in preset.factors:
        scaled = factor.scaled(cores)
        assert len(scaled) >= 2
        assert set(scaled) <= set(factor.values)
        assert factor.scaled(10_000) == factor.values
    for claim in preset.claims:
        factor = next(one for one in preset.factors if one.name == claim.factor)
        assert {claim.start, claim.end} <= set(factor.values)


@pytest.mark.parametrize("name", sorted(load_presets()))
def test_presets_can_be_asked_of_all_three_systems(name: str) -> None:
    plan = sweep.build_plan(request(system="memcached,redis,cache", workload="", preset=name))
    systems = next(factor.levels for factor in plan.factors if factor.name == "system")
    assert ("threads is io_threads of redis." in plan.notes) == (name in ("awasthi-figure-2", "issa-figure-9"))
    left_out = {"memcached", "redis", "cache"} - set(systems)
    assert left_out == ({"redis"} if name == "issa-figure-10" else set())
    for system in left_out:
        assert any(note.startswith(f"{system} is left out") for note in plan.notes)
    for cell in plan.cells:
        assert cell_options(plan.options, plan.factors, cell, [0, 1]).workload == load_presets()[name].workload


def test_the_options_offer_the_presets_that_there_are() -> None:
    [option] = [option for option in STUDY.options if option.name == "preset"]
    assert set(option.choices) == set(load_presets())


def test_a_preset_is_compared_with_what_its_paper_found(tmp_path: Path) -> None:
    asked = request(system="cache", workload="", preset="issa-figure-11", out=tmp_path / "study")
    _, record = carry_out(asked, FakeBench())
    claims = {claim["said"]: claim for claim in record.result["claims"]}
    # The bench answers in a millisecond whatever the size.
    assert claims["latency grows little up to 2,048 bytes"]["agrees"] is True
    assert claims["latency grows steeply beyond 2,048 bytes"]["agrees"] is False
    assert claims["latency grows steeply beyond 2,048 bytes"]["here"] == "flat"
    assert any("unlike in the paper" in finding.sentence for finding in record.findings)


@pytest.mark.parametrize(("cores", "said"), [(3, True), (4, False), (8, False)])
def test_fewer_cores_than_the_paper_had_are_said_beside_what_is_unlike_it(
    cores: int, said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "_system_cores", lambda run: cores)
    _, record = carry_out(request(workload="", preset="issa-figure-9", out=tmp_path / "study"), FakeBench())
    words = f"the system has {cores} cores here, and the paper's had 4 hardware threads"
    claims = [finding.sentence for finding in record.findings if "throughput is flat beyond" in finding.sentence]
    assert claims
    assert any(words in sentence for sentence in claims) is said
