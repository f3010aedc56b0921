"""``study peers`` with a bench that measures nothing: what is asked, in which order, and what is said of it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackscope.errors import LoadError, SystemUnderTestError, UsageError
from rackscope.host.cpu_time import process_cpu_seconds
from rackscope.runs.options import Progress, RunOptions
from rackscope.runs.study import StudyRecord
from rackscope.studies import conduct as conducting
from rackscope.studies.base import Request
from rackscope.studies.bench.figures import Figures, figures_of
from rackscope.studies.bench.interference import Interference
from rackscope.studies.bench.loading import on_one_core, refuse_errors
from rackscope.studies.bench.turns import Steps
from rackscope.studies.peers import study as peers
from rackscope.studies.peers.conduct import build_plan, conduct_peers, congestion_control
from rackscope.studies.peers.findings import describe
from rackscope.studies.peers.measure import (
    MemoryUse,
    Outcome,
    Work,
    carry_out,
    resident_bytes,
    run_options,
)
from rackscope.studies.peers.plan import CURVE, SETTINGS, Plan, Setting
from rackscope.studies.peers.summary import scaled

NAMES = [setting.name for setting in SETTINGS]
UNPIPELINED, DEEP = SETTINGS[0], next(one for one in SETTINGS if one.name == "50-deep")
PLAN = Plan(
    systems=("cache", "memcached", "redis"),
    missing={"valkey": "valkey is not on this machine: no valkey-server on PATH", "garnet": "it does not run"},
    settings=(UNPIPELINED, CURVE, DEEP),
    loads=(0.5, 0.9),
    keys=10_000,
    memory_items=1_000_000,
    seconds=1.0,
    repetitions=6,
    budget_seconds=900.0,
)
#: Operations a second that the systems do.
SPEEDS = {"cache": 140e3, "memcached": 100e3, "redis": 80e3}


def request(out: Path | None = None, system: str = "cache", **others: Any) -> Request:
    values = {
        "peers": None,
        "settings": None,
        "repetitions": 6,
        "window": 1.0,
        "loads": "25,50,75,90",
        "keys": 100_000,
        "memory": 1_250_000,
        "budget": 900.0,
    }
    return Request(RunOptions(system, ""), {**values, **others}, out)


class FakeBench:
    """Systems with the rates of SPEEDS, fifteen times as fast where they are deep except for memcached."""

    def __init__(self, absent: Sequence[str] = (), breaks: str = "", stop_after: int | None = None) -> None:
        self.absent = absent
        self.breaks = breaks
        self.stop_after = stop_after
        self.asked: list[tuple[str, str, float | None]] = []
        self.noise = random.Random(1)

    def side_by_side(self, setting: Setting, systems: Sequence[str], work: Work) -> dict[str, str]:
        def measure(name: str, rate: float | None, activity: str) -> Figures:
            if self.stop_after is not None and len(self.asked) >= self.stop_after:
                raise KeyboardInterrupt
            self.asked.append((setting.name, name, rate))
            if name == self.breaks and setting == DEEP:
                raise LoadError("the server closed connection 3")
            return self.figures(setting, name, rate)

        work([name for name in systems if name not in self.absent], measure)
        return {name: f"{name} does not listen on unix" for name in systems if name in self.absent}

    def figures(self, setting: Setting, name: str, rate: float | None) -> Figures:
        most = SPEEDS[name] * (15 if setting == DEEP and name != "memcached" else 1)
        done = min(rate or most, most) * (1 + 0.004 * self.noise.random())
        busy = min((rate or most) / most, 1.0)
        return Figures(
            rate=done,
            offered=rate,
            p50_seconds=1e-4 / (1.05 - busy),
            p99_seconds=3e-4 / (1.05 - busy) * (1 + 0.01 * self.noise.random()),
            cores=done / most * (1 + 0.01 * self.noise.random()),
            client_cores=6e-6 * done,
            idle_ratio=0.01 if setting == DEEP and name == "cache" else 0.4,
            hit_ratio=1.0,
        )

    def memory(self, system: str, items: int) -> MemoryUse:
        if system == "redis":
            raise LoadError("redis refused 3 of 10 values")
        each = {"cache": 100, "memcached": 200}[system]
        return MemoryUse(items, 5_000_000, 5_000_000 + each * items, 1.0)


def ignore(progress: Progress) -> None:
    del progress


def carried_out(
    folder: Path, bench: FakeBench | None = None, plan: Plan = PLAN, clock: Callable[[], float] | None = None
) -> StudyRecord:
    under_way = conducting.begin(peers.STUDY, request(folder / "study"), ignore)
    outcome = Outcome(Interference())
    try:
        if clock is None:
            conduct_peers(under_way, plan, bench or FakeBench(), outcome, Steps(ignore))
        else:
            carry_out(
                plan,
                bench or FakeBench(),
                outcome,
                Steps(ignore),
                lambda: describe(under_way.record, plan, outcome),
                clock,
            )
    except KeyboardInterrupt:
        under_way.record.status = "interrupted"
    return StudyRecord.model_validate_json(under_way.record.model_dump_json())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> StudyRecord:
    """The record of a study in which nothing went wrong."""
    return carried_out(tmp_path_factory.mktemp("whole"))


def sentences(record: StudyRecord) -> str:
    return "\n".join(finding.sentence for finding in record.findings)


# What is asked


def test_every_setting_is_a_run_that_systems_have() -> None:
    assert {"unpipelined", "16-deep", "50-deep", "multi-get", "large", "unix", "large-mixed"} <= set(NAMES)
    base = RunOptions("cache", "", cores=(0,))
    for setting in SETTINGS:
        options = run_options(base, "memcached", setting, 100_000, 2**30)
        options.check()
        assert options.settings["threads"] == "1"
        assert options.settings["memory"] == str(2**30)
        assert (options.workload == "ycsb-b") == setting.name.endswith("-mixed")
    assert "threads" not in run_options(base, "redis", UNPIPELINED, 100, 2**30).settings
    large = run_options(base, "cache", next(one for one in SETTINGS if one.name == "large"), 100_000, 2**30).settings
    assert (large["keys"], large["value_size"]) == ("4000", str(25 * 1024))
    assert (
        run_options(base, "cache", next(one for one in SETTINGS if one.name == "multi-get"), 500, 1).settings[
            "multiget"
        ]
        == "100"
    )
    assert run_options(replace(base, cores=(0, 1)), "cache", UNPIPELINED, 500, 1).settings["threads"] == "2"


def test_all_systems_have_the_host_s_congestion_control_and_it_is_said(tmp_path: Path) -> None:
    base = RunOptions("cache", "", cores=(0,))
    assert run_options(base, "cache", UNPIPELINED, 500, 1).settings["congestion_control"] == "system"
    assert "congestion_control" not in run_options(base, "memcached", UNPIPELINED, 500, 1).settings
    assert congestion_control(tmp_path) is None
    file = tmp_path / "proc/sys/net/ipv4/tcp_congestion_control"
    file.parent.mkdir(parents=True)
    file.write_text("cubic\n")
    assert congestion_control(tmp_path) == "cubic"
    plan = replace(PLAN, congestion_control="cubic")
    record = carried_out(tmp_path, plan=plan)
    assert any("congestion control, cubic." in line for line in record.method)


def test_settings_peers_and_loads_are_chosen_by_name() -> None:
    plan = build_plan(request(peers="redis,memcached", settings="multi-get,unix", loads="none"))
    assert plan.systems == ("cache", "redis", "memcached")
    assert [setting.name for setting in plan.settings] == ["multi-get", "unix"]
    assert plan.loads == ()
    assert plan.baseline == "memcached"
    everything = build_plan(request())
    assert everything.settings == SETTINGS
    assert everything.peers[:2] == ("memcached", "redis")
    assert everything.loads == (0.25, 0.5, 0.75, 0.9)
    assert build_plan(request(peers="redis", loads="none")).baseline == "redis"
    # Loads are told in one setting, which is then measured, too.
    assert CURVE in build_plan(request(settings="unix")).settings


def test_another_system_can_be_the_one_that_is_compared() -> None:
    plan = build_plan(request(system="memcached", peers="cache,redis"))
    assert plan.systems == ("memcached", "cache", "redis")
    assert "memcached" not in build_plan(request(system="memcached")).peers


@pytest.mark.parametrize(
    ("asked", "clear"),
    [
        ({"peers": "memcache"}, "there is no peer 'memcache'. Did you mean memcached"),
        ({"peers": "cache"}, "cache cannot be compared with itself"),
        ({"settings": "multiget"}, "there is no setting 'multiget'. Did you mean multi-get?"),
        ({"loads": "half"}, "invalid --loads half: expected numbers"),
        ({"loads": "500"}, "out of bounds"),
        ({"repetitions": 0}, "0 repetitions"),
        ({"window": 0.001}, "at least 50 ms"),
        ({"keys": 10}, "10 keys are out of bounds"),
        ({"memory": 10}, "10 items are too few"),
    ],
)
def test_nonsense_is_refused_before_a_directory_is_made(asked: dict[str, Any], clear: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        conducting.begin(peers.STUDY, request(tmp_path / "study", **asked), ignore)
    assert clear in str(caught.value)
    assert not (tmp_path / "study").exists()


def test_a_system_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no system 'cash'"):
        conducting.begin(peers.STUDY, request(tmp_path / "study", system="cash"), ignore)


def test_one_core_serves_unless_more_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert on_one_core(RunOptions("cache", "")).cores == (0,)
    assert on_one_core(RunOptions("cache", "")).client_cores == (3,)
    assert on_one_core(RunOptions("cache", "", client_cores=(0,))).cores == (1,)
    assert on_one_core(RunOptions("cache", "", cores=(0, 1))).cores == (0, 1)


# What is measured


def test_everybody_takes_turns_in_every_setting(tmp_path: Path) -> None:
    bench = FakeBench()
    carried_out(tmp_path, bench)
    closed = [(setting, name) for setting, name, rate in bench.asked if rate is None]
    assert closed[:3] != closed[3:6]
    assert closed[:3] == closed[3:6][::-1]
    assert all(closed.count((setting.name, name)) == 6 for setting in PLAN.settings for name in PLAN.systems)
    # Loads are shares of memcached's best, and come when that is known.
    loads = {round(rate / 100e3, 2) for setting, _, rate in bench.asked if rate is not None}
    assert loads == {0.5, 0.9}
    assert all(setting == CURVE.name for setting, _, rate in bench.asked if rate is not None)
    assert len([one for one in bench.asked if one[2] is not None]) == 2 * 3 * 6


def test_a_budget_ends_rounds_early_but_never_leaves_one(tmp_path: Path) -> None:
    ticks = iter(range(0, 10**6, 30))
    bench = FakeBench()
    record = carried_out(tmp_path, bench, clock=lambda: float(next(ticks)))
    for setting in PLAN.settings:
        counts = {sum(1 for one in bench.asked if one == (setting.name, name, None)) for name in PLAN.systems}
        assert len(counts) == 1
        assert 2 <= counts.pop() <= 6
    assert "rounds fitted into the budget" in sentences(record)


# What is said


def test_it_is_said_where_the_subject_is_ahead_with_intervals(whole: StudyRecord) -> None:
    record = whole
    against = record.findings[0]
    assert re.fullmatch(
        r"cache is ahead of memcached in 3 of 3 settings, with 1\.(39|40) to 2[01]\.\d\d times its throughput\.",
        against.sentence,
    )
    assert re.search(r"50 deep: x2[01]\.", against.evidence)
    assert "Intervals hold for all 6 comparisons together" in against.evidence
    result = record.result["settings"][0]["systems"]["memcached"]
    assert result["ratio"]["low"] < 1.4 < result["ratio"]["high"]
    assert result["outcome"] == "different"
    assert len(result["rates_operations_per_second"]) == 6
    assert record.result["settings"][0]["systems"]["cache"]["server_cpu_seconds_per_million"]["estimate"] > 7


def test_what_is_only_estimated_to_be_ahead_is_not_said_to_be(tmp_path: Path) -> None:
    """A verdict needs the corrected test, not only the side of 1 on which the estimate lies."""

    class Equals(FakeBench):
        def figures(self, setting: Setting, name: str, rate: float | None) -> Figures:
            found = super().figures(setting, "memcached", rate)
            return replace(found, rate=found.rate * (1.0006 if name == "cache" else 1.0))

    record = carried_out(tmp_path, Equals(), replace(PLAN, settings=(UNPIPELINED,), loads=()))
    ratios = [setting["systems"]["memcached"]["ratio"]["estimate"] for setting in record.result["settings"]]
    assert max(ratios) > 1
    assert record.findings[0].sentence == "cache is not shown to differ from memcached in any of 1 settings."


def test_cpu_time_of_both_ends_is_told_together_and_apart(whole: StudyRecord) -> None:
    record = whole
    cpu = next(one for one in record.findings if one.sentence.startswith("CPU time of both ends"))
    assert "unpipelined: cache 13.2 s (7.16 s the server), memcached 16.0 s (10.0 s the server)" in cpu.sentence
    assert "cache over memcached x0.71" in cpu.evidence
    columns = [column.name for column in record.tables[0].columns]
    assert columns[-3:] == ["server", "client", "both"]
    for row in record.tables[0].rows:
        assert row[-1] == pytest.approx(float(str(row[-2])) + float(str(row[-3])))


def test_latency_is_told_at_half_of_the_baselines_best(whole: StudyRecord) -> None:
    record = whole
    tail = next(
        one for one in record.findings if one.sentence.startswith("p99 at 50 % of memcached's highest throughput")
    )
    assert "(50.1 k operations/s): cache " in tail.sentence or "(50.0 k operations/s): cache " in tail.sentence
    assert "cache over memcached x0.7" in tail.evidence
    # Redis does 80 thousand a second and cannot keep up with 90.
    rows = {(row[0], row[1]): row[-1] for row in record.tables[1].rows}
    assert rows["90 %", "redis"] is False
    assert rows["90 %", "cache"] is True
    chart = next(one for one in record.charts if one.identifier == "load-p99")
    assert {series.label: len(series.x) for series in chart.series} == {"cache": 2, "memcached": 2, "redis": 1}


def test_memory_of_fewer_items_is_scaled_and_said_to_be(whole: StudyRecord) -> None:
    record = whole
    told = next(one for one in record.findings if one.sentence.startswith("Memory that holds 10 M items"))
    assert "scaled: cache 958 MiB and memcached 1.87 GiB" in told.sentence
    assert "0.50 times memcached's" in told.evidence
    assert "Scaled from 1,000,000 items" in told.evidence
    assert record.result["memory"]["cache"]["scaled"] is True
    assert scaled(MemoryUse(10_000_000, 1, 11, 1.0)) == (11.0, True)
    assert scaled(MemoryUse(1_250_000, 1000, 2000, 1.0)) == (1000 + 8 * 1000, False)


class Missing(FakeBench):
    """Of memcached's reads in the deep setting so many find their value."""

    def __init__(self, hit_ratio: float) -> None:
        super().__init__()
        self.hit_ratio = hit_ratio

    def figures(self, setting: Setting, name: str, rate: float | None) -> Figures:
        found = super().figures(setting, name, rate)
        return replace(found, hit_ratio=self.hit_ratio) if (setting, name) == (DEEP, "memcached") else found


def test_reads_that_missed_are_said_where_they_did(whole: StudyRecord, tmp_path: Path) -> None:
    said = sentences(carried_out(tmp_path / "some", Missing(0.98)))
    assert "Reads missed with 50 deep, memcached (98.0% hits)." in said
    assert "Reads missed" not in sentences(carried_out(tmp_path / "few", Missing(0.99995)))
    assert "Reads missed" not in sentences(whole)


def test_what_is_missing_and_why_is_said(tmp_path: Path) -> None:
    record = carried_out(tmp_path, FakeBench(absent=["redis"]))
    said = sentences(record)
    assert "Not found on PATH: valkey." in said
    assert "garnet is left out: it does not run." in said
    assert "redis is missing from unpipelined, 50 deep, unpipelined mixed: redis does not listen on unix." in said
    assert "redis is missing from memory: redis refused 3 of 10 values." in said
    assert "The load generator was fully busy with 50 deep (cache)" in said
    assert not any(finding.sentence.startswith("cache is ahead of redis") for finding in record.findings)


def test_one_that_breaks_is_left_out_and_the_others_go_on(tmp_path: Path) -> None:
    bench = FakeBench(breaks="memcached")
    record = carried_out(tmp_path, bench)
    assert "memcached is missing from 50 deep: the server closed connection 3." in sentences(record)
    deep = next(one for one in record.result["settings"] if one["name"] == "50-deep")
    assert set(deep["systems"]) == {"cache", "redis"}
    assert sum(1 for one in bench.asked if one[:2] == ("50-deep", "memcached")) == 1


def test_without_a_baseline_there_is_no_load(tmp_path: Path) -> None:
    record = carried_out(tmp_path, FakeBench(absent=["memcached"]))
    assert "No latency over load: there is no throughput of memcached." in sentences(record)
    assert not any(chart.identifier.startswith("load") for chart in record.charts)


def test_what_was_measured_before_ctrl_c_is_said(tmp_path: Path) -> None:
    record = carried_out(tmp_path, FakeBench(stop_after=20))
    assert record.status == "interrupted"
    assert [one["name"] for one in record.result["settings"]] == ["unpipelined", "50-deep"]
    assert record.charts


def test_nothing_measured_is_a_record_without_answers(tmp_path: Path) -> None:
    record = carried_out(tmp_path, FakeBench(stop_after=0))
    assert record.tables == []
    assert record.charts == []


def test_pictures_have_a_place_for_every_setting(whole: StudyRecord) -> None:
    charts = {chart.identifier: chart for chart in whole.charts}
    assert set(charts) == {"ratios", "load-p99", "load-p50", "cpu-server", "cpu-client", "memory"}
    ratios = charts["ratios"]
    assert ratios.y.categories == ["unpipelined", "unpipelined mixed", "50 deep"]
    assert [series.label for series in ratios.series] == ["cache", "over memcached", "over redis"]
    assert ratios.series[1].x[2] == pytest.approx(21.0, abs=0.1)


# How it is measured


def test_a_read_of_many_keys_counts_as_many() -> None:
    row = {
        "operations": 1000,
        "hits": 99_990,
        "misses": 10,
        "errors": 0,
        "duration_seconds": 2.0,
        "generator_cpu_seconds": 0.5,
    }
    figures = figures_of([row], 1.5, keys_each=100)
    assert figures.rate == 50_000
    assert figures.cpu_per_million(figures.cores) == pytest.approx(15.0)
    assert figures.cpu_per_million(figures.client_cores) == pytest.approx(5.0)
    assert figures.hit_ratio == pytest.approx(0.9999)
    assert figures_of([row]).rate == 500


def test_a_window_of_nothing_or_of_errors_is_no_measurement() -> None:
    with pytest.raises(LoadError, match="no operation succeeded"):
        figures_of([{"operations": 0, "duration_seconds": 1.0}], 1.0)
    with pytest.raises(LoadError, match="3 of 13 operations failed"):
        refuse_errors({"operations": 10, "errors": 3, "duration_seconds": 1.0})


def test_cpu_time_and_memory_are_those_of_all_threads(tmp_path: Path) -> None:
    for thread, text in (("10", "1500000000 3 4\n"), ("11", "500000000 3 4\n")):
        folder = tmp_path / "proc/10/task" / thread
        folder.mkdir(parents=True)
        (folder / "schedstat").write_text(text)
    (tmp_path / "proc/10/statm").write_text("1000 250 100 1 0 200 0\n")
    assert process_cpu_seconds(10, tmp_path) == pytest.approx(2.0)
    assert process_cpu_seconds(11, tmp_path) is None
    assert resident_bytes(10, tmp_path) % 250 == 0
    with pytest.raises(LoadError, match="process 11"):
        resident_bytes(11, tmp_path)


def test_a_subject_that_is_not_here_ends_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    under_way = conducting.begin(peers.STUDY, request(tmp_path / "study", system="pogocache"), ignore)
    with pytest.raises(SystemUnderTestError, match="pogocache is not on this machine"):
        peers.STUDY.conduct(under_way)
