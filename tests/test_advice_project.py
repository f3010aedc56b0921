"""From run directories to servers that are not here: the model follows from the runs, or a line says why not."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from projection_example import (
    CEILINGS,
    HEAD,
    IDENTITY,
    PROCESSOR,
    noisy,
    server,
    squeeze,
    write_pressure,
    write_run,
    write_servers,
)
from rackscope.advice.catalogue import read_catalogue, read_servers
from rackscope.advice.cost import compare_costs
from rackscope.advice.cost_charts import pareto_charts
from rackscope.advice.measured_runs import read_measurements
from rackscope.advice.projecting.answers import ServerProjection
from rackscope.advice.projecting.charts import charts_of, core_scaling_chart
from rackscope.advice.projecting.describe import describe_source, projected_catalogue
from rackscope.advice.projecting.project import Projection, project
from rackscope.cli import main
from rackscope.errors import RackscopeError
from rackscope.models.estimates import Prediction
from rackscope.report.study import render_study
from rackscope.report.svg import write_chart_svg


def projected(tmp_path: Path, runs: list[Path], *servers: str, **options: float) -> Projection:
    file = write_servers(tmp_path / "servers.toml", *servers)
    cores = options.pop("cores", None)
    return project(
        read_measurements(runs), read_servers(file), cores=None if cores is None else int(cores),
        rate_per_second=options.pop("rate", None),
    )  # fmt: skip


def figure(one: ServerProjection, name: str) -> Prediction:
    answer = one.answer(name)
    assert answer is not None and answer.prediction is not None, answer
    assert answer.stands_on and answer.changes_if and answer.prediction.basis
    assert answer.prediction.low <= answer.prediction.value <= answer.prediction.high
    return answer.prediction


def usl(cores: int) -> float:
    return 100_000 * cores / (1 + 0.05 * (cores - 1) + 0.002 * cores * (cores - 1))


def core_runs(tmp_path: Path, counts: tuple[int, ...] = (1, 2, 3, 4)) -> list[Path]:
    return [
        write_run(tmp_path / f"cores-{count}", noisy(usl(count), 3, seed=count, deviation=0.003), cores=count)
        for count in counts
    ]


def load_runs(tmp_path: Path, watts: float | None = None) -> list[Path]:
    noise = noisy(1.0, 7, seed=4, deviation=0.02)
    rates = [20_000, 35_000, 50_000, 62_000, 74_000, 84_000, 90_000]
    return [
        write_run(
            tmp_path / f"rate-{rate}",
            [rate, rate * 0.999],
            rate=rate,
            mean_seconds=(40e-6 + 10e-6 / (1 - rate / 101_000)) * one,
            p99_seconds=(100e-6 + 60e-6 / (1 - rate / 101_000)) * one,
            watts=None if watts is None else watts * (0.5 + 0.5 * rate / 100_000) * one,
        )
        for rate, one in zip(rates, noise, strict=True)
    ]


def test_the_host_itself_gives_back_what_was_measured(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", noisy(100_000))
    file = tmp_path / "self.toml"
    file.write_text(describe_source(read_measurements([run])), encoding="utf-8")
    found = project(read_measurements([run]), read_servers(file)).servers[0]
    throughput = figure(found, "throughput")
    assert throughput.value == pytest.approx(100_000, rel=0.01)
    assert throughput.contains(100_000)
    assert throughput.high / throughput.low < 1.1
    assert "modelled" not in throughput.unit
    assert figure(found, "mean_response_closed_loop_seconds").value == pytest.approx(50 / 100_000, rel=0.01)


def test_elasticity_and_ceilings_take_it_to_another_server(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "run", noisy(100_000)), write_pressure(tmp_path / "pressure")]
    found = projected(tmp_path, runs, server(processor=PROCESSOR), rate=50_000).servers[0]
    throughput = figure(found, "throughput")
    # 1.25 times the speed, elasticity 0.97, of which nothing to all may wait for memory.
    assert 100_000 < throughput.value < 125_000
    assert throughput.contains(102_000) and throughput.contains(120_000)
    assert "cpu_share 0.97" in found.answers[0].stands_on
    assert "throughput_ratio" in found.answers[0].stands_on
    other = projected(tmp_path, runs, server()).servers[0]
    wide = figure(other, "throughput")
    assert wide.high / wide.low > throughput.high / throughput.low
    assert "calibration says" in other.answers[0].changes_if


@pytest.mark.parametrize(
    ("of_clock", "least", "most"),
    [
        # What less time costs a slower clock costs too: nothing waits for memory, which is no faster there.
        (0.97, 118_000, 128_000),
        # Less than half of it: the rest waits for memory.
        (0.40, 104_000, 114_000),
        (0.0, 97_000, 104_000),
    ],
)
def test_a_squeezed_clock_tells_what_waits_for_memory(
    tmp_path: Path, of_clock: float, least: float, most: float
) -> None:
    levels = [squeeze("cpu_share", "cpu", 0.97, 0.01), squeeze("core_frequency", "cpu", of_clock, 0.01)]
    phase = {
        "phase": "measure",
        "throughput_operations_per_second": {"estimate": 100_000, "low": 99_000, "high": 101_000},
        "resources": levels,
    }
    pressure = write_pressure(tmp_path / "pressure", phases=[phase])
    runs = [write_run(tmp_path / "run", noisy(100_000)), pressure]
    throughput = figure(projected(tmp_path, runs, server(processor=PROCESSOR)).servers[0], "throughput")
    assert least < throughput.value < most


def test_a_cache_that_was_not_squeezed_is_assumed_as_here_though_its_size_is_known(tmp_path: Path) -> None:
    caches = [{"level": 3, "kind": "unified", "size_bytes": 32 * 2**20, "instances": 1}]
    runs = [
        write_run(tmp_path / "run", noisy(100_000), host__processor={"physical_cores": 4, "caches": caches}),
        write_pressure(tmp_path / "pressure"),
    ]
    answers = [
        projected(tmp_path, runs, server(processor=PROCESSOR, last_level_cache_bytes=size)).servers[0]
        for size in (16 * 2**20, 64 * 2**20)
    ]
    assert figure(answers[0], "throughput") == figure(answers[1], "throughput")
    assert all(any("its last-level cache" in note for note in one.notes) for one in answers)


def test_power_is_modelled_and_shared_out(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "run", noisy(100_000)), write_pressure(tmp_path / "pressure")]
    found = projected(tmp_path, runs, server(processor=PROCESSOR), rate=50_000).servers[0]
    watts = figure(found, "watts")
    # One of four threads, about half busy.
    assert 55 < watts.value < 85
    assert "modelled" in watts.unit
    per_joule = figure(found, "operations_per_joule")
    assert per_joule.value == pytest.approx(50_000 / watts.value, rel=0.05)
    assert figure(found, "operations_per_second_per_price").value == pytest.approx(25)
    assert figure(found, "operations_per_cost").value > 0
    assert "no run" not in str(found.to_dict())


def test_runs_over_cores_follow_their_law_to_the_knee(tmp_path: Path) -> None:
    runs = core_runs(tmp_path)
    twin = server(name=IDENTITY, processor=PROCESSOR, ceilings="", threads=8, cores=8)
    found = projected(tmp_path, runs, twin, cores=6)
    prediction = figure(found.servers[0], "throughput")
    assert prediction.contains(usl(6))
    assert "core_scaling" in found.servers[0].answers[0].stands_on
    chart = core_scaling_chart(found.measured, found.models[0])
    assert chart is not None
    line = next(one for one in chart.series if one.kind == "line")
    assert line.level == 0.90 and max(line.x) <= 8 and len(line.low) == len(line.x)


def test_more_core_counts_than_it_takes_serve_as_well(tmp_path: Path) -> None:
    found = projected(
        tmp_path, core_runs(tmp_path, (1, 2, 3, 4, 5)),
        server(name=IDENTITY, processor=PROCESSOR, ceilings="", threads=8, cores=8), cores=6,
    )  # fmt: skip
    assert figure(found.servers[0], "throughput").contains(usl(6))
    assert "core_scaling" in found.servers[0].answers[0].stands_on


@pytest.mark.parametrize(("cores", "words"), [(12, "more than 2 times"), (8, "past the knee")])
def test_core_counts_too_far_are_refused(tmp_path: Path, cores: int, words: str) -> None:
    def rate(count: int) -> float:
        peak = 0.03 if cores == 8 else 0.0
        return 100_000 * count / (1 + 0.05 * (count - 1) + peak * count * (count - 1))

    runs = [
        write_run(tmp_path / f"{count}", noisy(rate(count), 3, seed=count, deviation=0.002), cores=count)
        for count in (1, 2, 3, 4)
    ]
    with pytest.raises(RackscopeError, match=words):
        projected(tmp_path, runs, server(name=IDENTITY, processor=PROCESSOR, threads=16, ceilings=""), cores=cores)


def test_three_frequencies_give_time_at_another(tmp_path: Path) -> None:
    def rate(hertz: float) -> float:
        return 1 / (20_000 / hertz + 4e-6)

    runs = [
        write_run(
            tmp_path / f"{hertz:g}",
            noisy(rate(hertz), 3, seed=int(hertz / 1e8), deviation=0.002),
            hertz=hertz,
            instructions=15_000,
            watts=20 + 10 * (hertz / 2e9) ** 2,
        )
        for hertz in (1.6e9, 2.0e9, 2.4e9, 2.8e9)
    ]
    twin = server(name=IDENTITY, processor=PROCESSOR, frequency_hertz=3.1e9, ceilings="")
    found = projected(tmp_path, runs, twin)
    prediction = figure(found.servers[0], "throughput")
    assert prediction.contains(rate(3.1e9)) and prediction.high / prediction.low < 1.05
    assert "execution_time" in found.servers[0].answers[0].stands_on
    assert {"frequency", "efficiency-frequency"} <= {chart.identifier for chart in charts_of(found)}
    with pytest.raises(RackscopeError, match="too far"):
        projected(tmp_path, runs, server(name=IDENTITY, processor=PROCESSOR, frequency_hertz=5.5e9, ceilings=""))
    with pytest.raises(RackscopeError, match="2 frequencies of at least 3"):
        projected(tmp_path, runs[:2], twin)


def test_drifting_instructions_are_refused(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / f"{count}", noisy(usl(count), 3), cores=count, instructions=10_000 * 1.2**count)
        for count in (1, 2, 3, 4)
    ]
    with pytest.raises(RackscopeError, match="instructions per operation change"):
        projected(tmp_path, runs, server(name=IDENTITY, processor=PROCESSOR, ceilings=""), cores=4)


def test_runs_that_break_littles_law_are_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", noisy(100_000), mean_seconds=3e-3)
    with pytest.raises(RackscopeError, match="Little"):
        projected(tmp_path, [run], server())


def test_loads_give_response_times_at_the_rate(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "run", noisy(100_000)), *load_runs(tmp_path)]
    twin = server(name=IDENTITY, processor=PROCESSOR, ceilings="")
    found = projected(tmp_path, runs, twin, rate=70_000).servers[0]
    assert figure(found, "mean_response_seconds").contains(40e-6 + 10e-6 / (1 - 0.7 / 1.01))
    assert figure(found, "p99_response_seconds").contains(100e-6 + 60e-6 / (1 - 0.7 / 1.01))
    few = projected(tmp_path, runs[:3], twin, rate=70_000).servers[0].answer("p99_response_seconds")
    assert few is not None and few.prediction is None
    assert "2 different rates, and at least 4 are needed" in few.refused
    beyond = projected(tmp_path, runs, twin, rate=98_500).servers[0].answer("p99_response_seconds")
    assert beyond is not None and beyond.prediction is None and "not at 98,500" in beyond.refused


def test_more_cores_carry_the_load_further(tmp_path: Path) -> None:
    """Loads were offered on one core; on four, each is as busy at nearly four times the rate."""
    runs = [*core_runs(tmp_path), *load_runs(tmp_path)]
    found = projected(tmp_path, runs, server(name=IDENTITY, processor=PROCESSOR, ceilings=""), rate=200_000, cores=4)
    same_share = 200_000 * usl(1) / usl(4)
    prediction = figure(found.servers[0], "mean_response_seconds")
    assert prediction.value == pytest.approx(40e-6 + 10e-6 / (1 - same_share / 101_000), rel=0.1)
    beyond = projected(tmp_path, runs, server(name=IDENTITY, processor=PROCESSOR, ceilings=""), rate=400_000, cores=4)
    answer = beyond.servers[0].answer("mean_response_seconds")
    assert answer is not None and "beyond what the server does" in answer.refused


def test_a_slower_server_answers_later(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "run", noisy(100_000)),
        write_pressure(tmp_path / "pressure", 1.0, 0.02),
        *load_runs(tmp_path),
    ]
    slower = server(processor=PROCESSOR, ceilings="instructions_per_second = 2.2e10")
    here = projected(tmp_path, runs, server(name=IDENTITY, processor=PROCESSOR, ceilings=""), rate=40_000).servers[0]
    there = projected(tmp_path, runs, slower, rate=40_000).servers[0]
    assert figure(there, "mean_response_seconds").value > figure(here, "mean_response_seconds").value
    refused = projected(tmp_path, runs, slower, rate=95_000).servers[0].answer("mean_response_seconds")
    assert refused is not None and "beyond what the server does" in refused.refused


def test_metered_loads_give_power_at_the_rate(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "run", noisy(100_000), watts=40.0), *load_runs(tmp_path, watts=40.0)]
    twin = server(name=IDENTITY, processor=PROCESSOR, ceilings="", idle_watts=None, full_watts=None)
    found = projected(tmp_path, runs, twin, rate=60_000).servers[0]
    assert figure(found, "watts").contains(32.0)
    answer = found.answer("watts")
    assert (
        answer is not None
        and "power_over_load" in answer.stands_on
        and "package-0 of this host only" in answer.changes_if
    )


def test_a_meter_here_counts_for_the_host_itself_only(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", noisy(100_000), watts=42.0)
    twin = server(name=IDENTITY, processor=PROCESSOR, ceilings="", idle_watts=None, full_watts=None)
    watts = figure(projected(tmp_path, [run], twin).servers[0], "watts")
    assert watts.value == pytest.approx(42.0, rel=0.02)
    assert watts.unit == "watts"
    idling = projected(tmp_path, [run], twin, rate=10_000).servers[0].answer("watts")
    assert (
        idling is not None
        and idling.prediction is None
        and "different loads, and at least 4 are needed" in idling.refused
    )
    pressure = write_pressure(tmp_path / "pressure")
    foreign = projected(tmp_path, [run, pressure], server(idle_watts=None, full_watts=None)).servers[0].answer("watts")
    assert foreign is not None and "no idle_watts and full_watts" in foreign.refused


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        (server(full_watts=-150), "is negative"),
        (server(price=-1), "is negative"),
        (server(idle_watts=200), "is above full_watts"),
        (server(cores=-4), "a whole number"),
        (server(frequency_hertz=2400), "Write hertz, not MHz or GHz"),
        (server(ceilings="dram_latency_seconds = 95"), "Write seconds, not nanoseconds"),
        (server(ceilings="dram_read_bytes_per_second = 21.4"), "not MB/s or GB/s"),
        (server(ceilings="instructions_per_second = 28000"), "not MIPS"),
        (server(ceilings="instructions = 2e10"), "Did you mean instructions_per_second"),
        (server(ceilings=""), "no ceilings.instructions_per_second"),
        (server(cores=None, threads=None), "neither cores nor threads"),
        (server(memory_bytes="512MiB"), "does not hold"),
        (server(memory_bytes=384), "384 bytes, out of range"),
        (server(last_level_cache_bytes="32"), "is 32"),
        (server(cores=8, threads=4), "is below cores (4 < 8)"),
        (server(cores=10**18), "how many there are"),
        (server(ceilings="instructions_per_second = 2e11"), "what limits next is not known"),
        (server(ceilings="instructions_per_second = 4e9"), "squeezed to 0.40 only"),
    ],
)
def test_a_server_that_cannot_be_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], servers: str, words: str
) -> None:
    runs = [write_run(tmp_path / "run", noisy(100_000)), write_pressure(tmp_path / "pressure")]
    file = write_servers(tmp_path / "servers.toml", servers)
    assert main(["project", *map(str, runs), "--to", str(file)]) in (1, 2)
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and said.out == ""


def test_what_is_no_run_or_not_of_one_kind_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_servers(tmp_path / "servers.toml", server())
    run = write_run(tmp_path / "run", noisy(100_000))
    other = write_run(tmp_path / "other", noisy(90_000), workload__name="ycsb-a")
    elsewhere = write_run(tmp_path / "elsewhere", noisy(90_000), host__identity="0123")
    single = write_run(tmp_path / "single", [100_000.0])
    offered = write_run(tmp_path / "offered", [1_000.0, 1_000.0], rate=1_000.0)
    empty = write_run(tmp_path / "empty", [])
    uncalibrated = write_run(tmp_path / "uncalibrated", noisy(100_000), ceilings=False)
    (tmp_path / "nothing").mkdir()
    for runs, words in (
        ([tmp_path / "nothing"], "holds neither a study nor a run"),
        ([tmp_path / "absent"], "is not a folder"),
        ([run, other], "differ in workload (ycsb-b and ycsb-a)"),
        ([run, elsewhere], "differ in host"),
        ([single], "a single repetition"),
        ([offered], "only offered rates"),
        ([empty], "no measured phase"),
        ([uncalibrated], "know no instructions_per_second"),
        ([run], "never squeezed"),
    ):
        assert main(["project", *map(str, runs), "--to", str(file)]) in (1, 2)
        said = capsys.readouterr()
        assert words in said.err, words
        assert said.err.count("\n") == 1 and said.out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no run is named"),
        (("run",), "no server is named"),
    ],
)
def test_arguments_that_do_not_go_together(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str
) -> None:
    assert main(["project", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_killed_run_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", noisy(100_000), status="running")
    file = write_servers(tmp_path / "servers.toml", server(name=IDENTITY, processor=PROCESSOR, ceilings=""))
    assert main(["project", str(run), "--to", str(file)]) == 0
    assert "rackscope was killed before the run ended" in " ".join(capsys.readouterr().out.split())


def test_a_run_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    run, study = write_run(tmp_path / "run", noisy(100_000)), write_pressure(tmp_path / "pressure")
    again = read_measurements([run, tmp_path / "." / "run", study, study / "runs" / "squeezed"])
    once = read_measurements([run, study])
    assert [one.throughputs for one in again.points] == [one.throughputs for one in once.points]
    assert [remark for remark in again.remarks if "named twice" in remark] == [
        f"{tmp_path / '.' / 'run'} is named twice, and counts once",
        f"{study / 'runs' / 'squeezed'} is named twice, and counts once",
    ]
    assert not any("named twice" in remark for remark in once.remarks)


def test_two_repetitions_far_apart_give_numbers(tmp_path: Path) -> None:
    # Student's t of one degree of freedom has draws that no exponential holds.
    run = write_run(tmp_path / "run", [20_000, 60_000], mean_seconds=50 / 40_000)
    there = projected(tmp_path, [run], server(name=IDENTITY, processor=PROCESSOR, ceilings=""), rate=20_000)
    for answer in there.servers[0].answers:
        found = answer.prediction
        assert found is None or 0 < found.low <= found.value <= found.high < math.inf, answer.label
    watts = there.servers[0].answer("watts")
    assert watts is not None
    assert watts.prediction is not None


def test_a_catalogue_is_of_what_servers_can_do_whatever_the_rate(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", noisy(100_000))
    file = write_servers(tmp_path / "servers.toml", server(name=IDENTITY, processor=PROCESSOR, ceilings=""))
    written = []
    for rate in ([], ["--rate", "20k"]):
        out = tmp_path / "out.toml"
        assert main(["project", str(run), "--to", str(file), *rate, "--catalogue-out", str(out)]) == 0
        assert out.read_text().endswith("\n")
        written.append(read_catalogue(out).servers[0].measured[0])
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cores", "0"), "'0' is too few"),
        (("--cores", "-3"), "'-3' is not a count"),
        (("--describe",), "--to has no effect with --describe"),
        (("--catalogue-out", "nowhere/servers.toml"), "Name another file with --catalogue-out"),
        (("--cores", "9"), "it cannot be 9"),
        (("--rate", "-5"), "rate"),
        (("--server", "absent"), "has no server 'absent'"),
        (("--phase", "lpush"), "no phase 'lpush'"),
    ],
)
def test_what_cannot_be_asked_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], words: str
) -> None:
    run = write_run(tmp_path / "run", noisy(100_000))
    file = write_servers(tmp_path / "servers.toml", server(name=IDENTITY, processor=PROCESSOR, ceilings=""))
    assert main(["project", str(run), "--to", str(file), *options]) in (1, 2)
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and said.out == ""


def test_a_pressure_study_of_a_smaller_server_is_refused(tmp_path: Path) -> None:
    study = write_pressure(tmp_path / "pressure", limits={"cpu": 0.5})
    with pytest.raises(RackscopeError, match="made smaller"):
        read_measurements([study])


def test_a_damaged_study_names_its_place(tmp_path: Path) -> None:
    study = write_pressure(tmp_path / "pressure", phases=[{"phase": "measure", "resources": [{"levels": [{}]}]}])
    with pytest.raises(RackscopeError, match=r"study\.json is damaged"):
        read_measurements([study])


def test_the_command_prints_json_a_page_and_a_catalogue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [write_run(tmp_path / "run", noisy(100_000)), write_pressure(tmp_path / "pressure"), *load_runs(tmp_path)]
    small, large = server("small <b>", price=1500), server("large", "instructions_per_second = 4e10", full_watts=220)
    file = write_servers(tmp_path / "servers.toml", small, large, server("tiny", memory_bytes="64MiB"))
    page, catalogue = tmp_path / "page.html", tmp_path / "out.toml"
    arguments = ["project", *map(str, runs), "--to", str(file), "--rate", "30k"]
    assert main([*arguments, "--json", "--out", str(page), "--catalogue-out", str(catalogue)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [one["server"] for one in said["servers"]] == ["small <b>", "large"]
    assert "does not hold" in said["refused"][0]
    answers = {one["name"]: one for one in said["servers"][0]["answers"]}
    assert answers["throughput"]["low"] < answers["throughput"]["value"] < answers["throughput"]["high"]
    assert answers["throughput"]["level"] == 0.9
    html = page.read_text(encoding="utf-8")
    assert "90 % interval" in html and "modelled" in html and "<b>" not in html
    assert html.count("<svg") >= 8
    compared = compare_costs(read_catalogue(catalogue), "ycsb-b")
    assert {row.name for row in compared.rows} == {"small <b>", "large"}
    assert all("modelled: rackscope project" in row.stands_on for row in compared.rows)
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert "90 % interval" in printed.out and "not projected: tiny" in printed.err
    assert all(len(line) <= 80 for line in printed.out.splitlines())


def test_costs_have_a_pareto_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "cost.html"
    assert main(["cost", "hadoop word count", "--out", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] == str(page)
    assert "in the Pareto set" in page.read_text(encoding="utf-8")
    measured = '[[server.measured]]\nworkload = "get"\noperations_per_second = 1e5\nwatts = 90\nsource = "run"\n'
    file = write_servers(tmp_path / "two.toml", server("a") + measured, server("b", price=900) + measured)
    charts = pareto_charts(compare_costs(read_catalogue(file), "get"))
    assert [len(chart.series) for chart in charts] == [2, 2, 2]
    assert [one.label for one in charts[0].series] == ["a (0 % in the Pareto set)", "b (100 % in the Pareto set)"]
    # What a year costs is what is known least, and lies along the other axis.
    money = charts[0].series[0]
    assert money.x_low[0] < money.x[0] < money.x_high[0]
    write_chart_svg(charts[0], tmp_path / "pareto.svg")
    assert (tmp_path / "pareto.svg").read_text(encoding="utf-8").count('class="whisker') == 2
    jobs = measured.replace("operations_per_second = 1e5", "seconds_per_job = 400")
    file = write_servers(tmp_path / "jobs.toml", server("a") + jobs, server("b", price=900) + jobs)
    chart = pareto_charts(compare_costs(read_catalogue(file), "get"))[0]
    assert chart.y.label == "jobs for each kWh"
    assert chart.series[0].y[0] == pytest.approx(3.6e6 / (400 * 90))


def test_nothing_of_the_costs_is_cut_off_where_there_is_little_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["cost", "memcached get 64 B"]) == 0
    assert "…" not in capsys.readouterr().out


def test_a_described_server_reads_back(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", noisy(100_000))
    file = tmp_path / "self.toml"
    file.write_text(describe_source(read_measurements([run])), encoding="utf-8")
    found = read_servers(file).servers[0]
    assert (found.name, found.processor, found.threads) == (IDENTITY, PROCESSOR, 4)
    assert found.ceilings["instructions_per_second"].middle == CEILINGS["instructions_per_second"]
    assert found.ceilings["disk_random_read_operations_per_second"].middle == 60_000


def test_a_catalogue_of_before_still_reads_and_needs_its_site(tmp_path: Path) -> None:
    file = write_servers(tmp_path / "catalogue.toml", server(), head=HEAD)
    assert read_catalogue(file).servers[0].cores == 4
    bare = write_servers(tmp_path / "bare.toml", server(price=None), head="format_version = 1\n")
    assert read_servers(bare).site is None
    with pytest.raises(RackscopeError, match="currency is missing"):
        read_catalogue(bare)
    with pytest.raises(RackscopeError, match="currency is missing"):
        read_servers(write_servers(tmp_path / "priced.toml", server(), head="format_version = 1\n"))


def test_without_prices_or_watts_the_rest_stands(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "run", noisy(100_000)), write_pressure(tmp_path / "pressure")]
    found = projected(tmp_path, runs, server(price=None, idle_watts=None, full_watts=None))
    one = found.servers[0]
    assert figure(one, "throughput").value > 0
    assert {answer.name for answer in one.answers if answer.refused} == {
        "watts", "operations_per_joule", "operations_per_second_per_price",
    }  # fmt: skip
    text, left_out = projected_catalogue(found, read_servers(tmp_path / "servers.toml"))
    assert text == "" and "its power is not known" in left_out[0]
    assert math.isfinite(float(one.drawn.throughput.sum()))


def test_a_page_is_made_of_a_record(tmp_path: Path) -> None:
    from rackscope.advice.projecting.page import record_of

    found = projected(tmp_path, core_runs(tmp_path), server(name=IDENTITY, processor=PROCESSOR, ceilings=""), cores=4)
    html = render_study(record_of(found, ["rackscope", "project"]))
    assert "Throughput over cores" in html and "core_scaling" in html
