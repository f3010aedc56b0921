"""``study colocate`` with a bench that measures nothing, and ``advise colocate`` on what it and others leave."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from rackscope.advice.colocate import advise_colocation, read_source
from rackscope.analysis.elasticity import estimate_levels
from rackscope.analysis.windows import FREE, Window
from rackscope.errors import LoadError, RackscopeError, RunDirectoryError, UsageError
from rackscope.runs.options import Progress, RunOptions
from rackscope.runs.study import StudyRecord, read_study, write_study
from rackscope.studies import conduct as conducting
from rackscope.studies.base import Request
from rackscope.studies.bench.figures import Figures, figures_of
from rackscope.studies.bench.interference import Interference
from rackscope.studies.bench.turns import Steps
from rackscope.studies.colocate import conduct as colocate
from rackscope.studies.colocate.findings import describe
from rackscope.studies.colocate.measure import Outcome, Squeezed, carry_out, disk_bytes
from rackscope.studies.colocate.plan import EXAMPLES, parse_pairs, parse_workloads, run_options
from rackscope.studies.colocate.study import STUDY
from report_example import Example, write_example
from shared_core import kept
from study_example import pressure_study, write_example_study

#: Cores that each uses of the one that there is, and its elasticity to CPU time.
WORLD = {"greedy": (1.0, 1.0), "half": (0.45, 1.0), "small": (0.02, 0.3), "lazy": (0.1, 0.1), "big": (0.9, 0.9)}
TEXTS = tuple(f"synthetic:synthetic-read,name={name}" for name in WORLD)
LEVELS = (0.8, 0.5)


def request(out: Path | None = None, workloads: Sequence[str] = TEXTS, **others: Any) -> Request:
    values = {
        "workloads": tuple(workloads),
        "pairs": None,
        "slowdown": "5%",
        "rounds": 6,
        "window": 0.6,
        "levels": "0.8,0.5",
        "budget": 720.0,
    }
    return Request(RunOptions("", "", cores=(0,)), {**values, **others}, out)


class FakeBench:
    """Works of WORLD, whose pairs share a core slice by slice, with some noise."""

    def __init__(self, absent: Sequence[str] = (), breaks: str = "", stop_after: int | None = None) -> None:
        self.absent, self.breaks, self.stop_after = absent, breaks, stop_after
        self.asked: list[tuple[str, ...]] = []
        self.noise = random.Random(1)
        self.blind: set[str] = set()
        self.idle = 0.5
        self.generator = 0.1

    def side_by_side(self, work: Callable[[Sequence[str]], None]) -> dict[str, str]:
        work([name for name in WORLD if name not in self.absent])
        return {name: f"{name} is not on this machine" for name in self.absent}

    def squeeze(self, name: str, budget_seconds: float, uses_disk: bool, after: Callable[[Squeezed], None]) -> Squeezed:
        self._ask("squeeze", name)
        # What is left of the budget: nothing, where it is over.
        assert budget_seconds >= 0
        assert not uses_disk
        cores, elasticity = WORLD[name]
        windows = []
        for block in range(1, 5):
            windows.append(Window(block, FREE, 1000.0, 1e-5))
            for level in LEVELS:
                rate = 1000 * level**elasticity * self._noise()
                windows += [
                    Window(block, f"cpu_share@{level}", rate, 0.01 / rate, level),
                    Window(block, FREE, 1e3, 1e-5),
                ]
        refused = {"last_level_cache": "no resctrl here"}
        if name in self.blind:
            refused["cpu_share"] = "the quota was not kept"
            windows = []
        capacities = {} if name in self.blind else {"cpu_share": cores}
        found = Squeezed(tuple(estimate_levels(windows)), capacities, refused)
        after(found)
        return found

    def alone(self, name: str, seconds: float, activity: str) -> Figures:
        self._ask(name)
        return self._figures(name, 1.0)

    def together(self, first: str, second: str, seconds: float, activity: str) -> tuple[Figures, Figures]:
        self._ask(first, second)
        if self.breaks in (first, second):
            raise LoadError("the server closed connection 3")
        return (
            self._figures(first, kept(*WORLD[first], beside=WORLD[second][0])),
            self._figures(second, kept(*WORLD[second], beside=WORLD[first][0])),
        )

    def _ask(self, *names: str) -> None:
        if self.stop_after is not None and len(self.asked) >= self.stop_after:
            raise KeyboardInterrupt
        self.asked.append(names)

    def _noise(self) -> float:
        return 1 + self.noise.gauss(0, 0.004)

    def _figures(self, name: str, kept: float) -> Figures:
        rate = 1000 * kept * self._noise()
        return Figures(
            rate,
            p99_seconds=1 / rate,
            cores=WORLD[name][0] * kept * self._noise(),
            disk_bytes_per_second=0.0,
            network_bytes_per_second=1e6,
            client_cores=self.generator,
            idle_ratio=self.idle,
        )


def ignore(progress: Progress) -> None:
    del progress


def conducted(
    folder: Path,
    bench: FakeBench | None = None,
    clock: Callable[[], float] | None = None,
    client_cores: int | None = 1,
    **asked: Any,
) -> StudyRecord:
    """The record of a study, which is in ``folder``, too."""
    under_way = conducting.begin(STUDY, request(folder, **asked), ignore)
    plan = colocate.build_plan(under_way.request)
    outcome = Outcome(Interference(), client_cores=client_cores)
    under_way.record.status = "complete"
    try:
        if clock is None:
            colocate.conduct_colocate(under_way, plan, bench or FakeBench(), outcome, Steps(ignore), 1)
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
        under_way.record.status, under_way.record.status_reason = "interrupted", "stopped by Ctrl-C"
    under_way.save()
    return read_study(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a study in which nothing went wrong."""
    folder = tmp_path_factory.mktemp("whole") / "study"
    conducted(folder)
    return folder


def sentences(record: StudyRecord) -> str:
    return "\n".join(finding.sentence for finding in record.findings)


# What is asked


def test_a_workload_is_written_in_a_word() -> None:
    [one, other, third] = parse_workloads(
        ["memcached:ycsb-b,cpu=0.4,threads=1,connections=20", "redis:ycsb-a,rate=20k", "redis:ycsb-b"]
    )
    assert (one.name, one.system, one.workload, one.cpu_cores) == ("memcached", "memcached", "ycsb-b", 0.4)
    assert (dict(one.settings), one.connections, one.quantity) == ({"threads": "1"}, 20, "throughput")
    assert (other.name, other.rate_per_second, other.quantity) == ("redis-1", 20_000, "p99")
    assert third.name == "redis-2"
    assert "at most 0.4 cores" in one.label
    options = run_options(RunOptions("", "", cores=(0,)), one)
    options.check()
    assert options.cores == (0,)
    assert options.verify
    assert not run_options(RunOptions("", ""), parse_workloads(TEXTS)[0]).verify


def test_the_examples_can_be_asked_for() -> None:
    plan = colocate.build_plan(request(workloads=()))
    assert len(plan.workloads) == len(EXAMPLES) == 6
    assert len(plan.pairs) == 15


@pytest.mark.parametrize(
    ("asked", "clear"),
    [
        ({"workloads": ["redis:ycsb-b"]}, "there is only one workload"),
        ({"workloads": ["redis", "redis:ycsb-b"]}, "got 'redis'"),
        ({"workloads": ["redis:ycsb-b", "redsi:ycsb-b"]}, "there is no system 'redsi'"),
        ({"workloads": ["redis:ycsb-b", "redis:ycsb-z"]}, "there is no workload 'ycsb-z'"),
        ({"workloads": ["redis:ycsb-b,cpu=much", "redis:ycsb-a"]}, "invalid cpu=much of redis:ycsb-b"),
        ({"workloads": ["redis:ycsb-b,cpu=7", "redis:ycsb-a"]}, "cpu=7, and the number of shared cores is 1"),
        (
            {"workloads": ["redis:ycsb-b,keys", "redis:ycsb-a"]},
            "invalid setting of redis:ycsb-b: expected NAME=VALUE, got 'keys'",
        ),
        (
            {"workloads": ["redis:ycsb-b,name=a", "redis:ycsb-a,name=a-1", "redis:ycsb-a,name=a"]},
            "two workloads are called",
        ),
        ({"workloads": ["redis:ycsb-b,name=a/b", "redis:ycsb-a"]}, "invalid name 'a/b'"),
        ({"pairs": "greedy"}, "expected A+B, got 'greedy'"),
        ({"pairs": "greedy+tiny"}, "there is no workload 'tiny'"),
        ({"pairs": "half+half"}, "half beside itself"),
        ({"slowdown": "five"}, "'five' is not a percentage"),
        ({"slowdown": "150%"}, "'150%' is not a percentage"),
        ({"rounds": 0}, "0 rounds"),
        ({"window": 0.001}, "at least 50 ms"),
        ({"levels": "0.8"}, "invalid --levels"),
    ],
)
def test_nonsense_is_refused_before_a_directory_is_made(asked: dict[str, Any], clear: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        conducting.begin(STUDY, request(tmp_path / "study", **asked), ignore)
    assert clear in str(caught.value)
    assert not (tmp_path / "study").exists()


def test_pairs_are_chosen_by_name() -> None:
    workloads = parse_workloads(TEXTS)
    assert parse_pairs("half+small,small+half,big+lazy", workloads) == (("half", "small"), ("big", "lazy"))


# What is measured


def test_each_pair_is_measured_between_its_workloads_alone_forth_and_back(tmp_path: Path) -> None:
    bench = FakeBench()
    conducted(tmp_path / "study", bench, rounds=2)
    assert [one[1] for one in bench.asked if one[0] == "squeeze"] == list(WORLD)
    first_pair = next(at for at, one in enumerate(bench.asked) if len(one) == 2 and one[0] != "squeeze")
    measured = bench.asked[first_pair - 1 :]
    triples = [measured[at : at + 3] for at in range(0, len(measured), 3)]
    assert len(triples) == 20
    for before, both, after in triples:
        assert {*before, *after} == set(both)
    assert [one[1] for one in triples[:10]] == [one[1] for one in triples[10:]][::-1]
    assert triples[0][0] == triples[-1][2]


def test_a_budget_ends_rounds_early_but_leaves_two(tmp_path: Path) -> None:
    ticks = iter(range(0, 10**6, 90))
    record = conducted(tmp_path / "study", clock=lambda: float(next(ticks)))
    assert " of 6 rounds fitted into the budget." in sentences(record)
    assert {len(side["values"]) for side in record.result["sides"]} < {2, 3, 4, 5}


def test_what_a_row_says_of_a_work() -> None:
    row = {"duration_seconds": 2.0, "operations": 100, "bytes_sent": 10, "bytes_received": 30}
    figures = figures_of([row], 0.5, disk_bytes=1000.0)
    assert (figures.rate, figures.cores, figures.disk_bytes_per_second) == (50.0, 0.25, 500.0)
    assert figures.network_bytes_per_second == 20
    assert figures_of([row]).cores is None
    with pytest.raises(LoadError, match="no operation"):
        figures_of([{**row, "operations": 0}], 0.5)


def test_disk_use_is_read_where_it_can_be(tmp_path: Path) -> None:
    folder = tmp_path / "proc" / "7"
    folder.mkdir(parents=True)
    (folder / "io").write_text("rchar: 99\nread_bytes: 4096\nwrite_bytes: 100\n")
    assert disk_bytes(7, tmp_path) == 4196
    assert disk_bytes(8, tmp_path) is None


# What is said


def test_pairs_are_predicted_from_the_others_and_set_beside_what_was_measured(whole: Path) -> None:
    record = read_study(whole)
    told = record.result["validation"]["throughput"]
    assert told["sides"] == 20
    assert told["mean_error"] < 0.03
    assert told["wrongly_safe"] == 0
    assert 0.8 <= told["coverage"] <= 1
    assert "Predictions of pairs that were left out of the fit have a mean error of" in sentences(record)
    tables = {table.identifier: table for table in record.tables}
    assert len(tables["pairs"].rows) == 20
    beside = next(row for row in tables["pairs"].rows if row[:2] == ["greedy", "big"])
    assert beside[4] == pytest.approx(0.5, abs=0.02)
    assert beside[7] == "not safe"
    chart = record.charts[0]
    assert len(chart.series[0].x) == 20


def test_a_workload_with_a_rate_is_judged_by_its_p99(tmp_path: Path) -> None:
    workloads = [f"{TEXTS[0]},rate=500", *TEXTS[1:]]
    record = conducted(tmp_path / "study", workloads=workloads)
    greedy = [side for side in record.result["sides"] if side["workload"] == "greedy"]
    assert {side["quantity"] for side in greedy} == {"p99"}
    assert set(record.result["validation"]) == {"throughput", "p99"}
    assert record.result["validation"]["p99"]["sides"] == 4
    assert record.result["validation"]["p99"]["mean_error"] < 0.1
    assert "of the p99 kept" in sentences(record)
    advised = advise_colocation([tmp_path / "study"])
    assert any("the p99 of greedy rises" in pair.advice.sentence for pair in advised.pairs)


def test_pairs_that_fit_are_named(whole: Path) -> None:
    first = read_study(whole).findings[0]
    assert "pairs fit on the same cores" in first.sentence
    assert "lazy + small" in first.evidence
    assert "big + greedy" not in first.evidence


def test_what_was_measured_before_ctrl_c_is_said(tmp_path: Path) -> None:
    # Five workloads squeezed after three windows each, and a round of pairs.
    record = conducted(tmp_path / "study", FakeBench(stop_after=5 * 4 + 3 * 10 + 7))
    assert record.status == "interrupted"
    assert len(record.result["sides"]) == 20
    assert record.result["validation"]["throughput"]["sides"] == 20
    assert record.charts
    assert len(advise_colocation([tmp_path / "study"]).remarks) == 1


def test_stopped_while_it_squeezed_there_are_workloads_and_no_pairs(tmp_path: Path) -> None:
    record = conducted(tmp_path / "study", FakeBench(stop_after=9))
    assert [one["name"] for one in record.result["workloads"]] == ["greedy", "half", "small"]
    assert record.result["sides"] == []
    # Two of them were squeezed: textbook sharing tells of these.
    advised = advise_colocation([tmp_path / "study"])
    assert [(pair.first.workload, pair.first.neighbour) for pair in advised.pairs] == [("greedy", "half")]
    assert "textbook" in advised.pairs[0].advice.stands_on
    assert len(advised.refused) == 2


def test_workloads_that_are_missing_or_break_are_left_out(tmp_path: Path) -> None:
    record = conducted(tmp_path / "study", FakeBench(absent=["big"], breaks="lazy"))
    said = sentences(record)
    assert "big is missing: big is not on this machine." in said
    assert "the server closed connection 3" in said
    assert record.result["failures"]


def test_a_workload_that_could_not_be_squeezed_is_a_neighbour_only(tmp_path: Path) -> None:
    bench = FakeBench()
    bench.blind = {"half"}
    record = conducted(tmp_path / "study", bench)
    half = next(one for one in record.result["workloads"] if one["name"] == "half")
    assert half["unknown"]["cpu"] == "the quota was not kept"
    assert record.result["validation"]["throughput"]["sides"] == 16
    assert any(side["workload"] == "half" and side["predicted"] is None for side in record.result["sides"])


def test_a_generator_without_time_says_nothing_of_workloads(tmp_path: Path) -> None:
    bench = FakeBench()
    bench.idle = 0.01
    record = conducted(tmp_path / "study", bench)
    assert "The load generators were fully busy with" in sentences(record)
    assert record.result["validation"] == {}


@pytest.mark.parametrize(("each", "client_cores", "counts"), [(0.5, 1, False), (0.5, 2, True), (0.5, None, True)])
def test_generators_that_filled_their_cores_say_nothing_of_workloads(
    tmp_path: Path, each: float, client_cores: int | None, counts: bool
) -> None:
    bench = FakeBench()
    bench.generator = each
    record = conducted(tmp_path / "study", bench, client_cores=client_cores)
    assert ("The load generators were fully busy with" not in sentences(record)) is counts
    assert ("throughput" in record.result["validation"]) is counts


class OvershootingBench(FakeBench):
    """Squeezes that seem to cost half as much again as was taken: noise, as throughput cannot."""

    def squeeze(self, name: str, budget_seconds: float, uses_disk: bool, after: Callable[[Squeezed], None]) -> Squeezed:
        found = super().squeeze(name, budget_seconds, uses_disk, after)
        steep = tuple(
            replace(one, log_ratio=replace(one.log_ratio, estimate=1.5 * one.log_ratio.estimate))
            for one in found.estimates
        )
        return replace(found, estimates=steep)


def test_throughput_loses_no_more_than_is_missing(tmp_path: Path) -> None:
    workloads = conducted(tmp_path / "study", OvershootingBench()).result["workloads"]
    greedy = next(one for one in workloads if one["name"] == "greedy")["sensitivities"]["cpu"]
    for point in greedy["points"]:
        assert point["log_kept"] == pytest.approx(math.log(point["left"] / min(greedy["use"], 1.0)), abs=1e-9)


# What is advised


def test_advice_names_what_it_stands_on_and_what_would_change_it(whole: Path) -> None:
    found = advise_colocation([whole])
    assert len(found.pairs) == 10
    assert [pair.fits for pair in found.pairs] == sorted([pair.fits for pair in found.pairs], reverse=True)
    fitting, failing = found.pairs[0], found.pairs[-1]
    assert "fit on the same cores" in fitting.advice.sentence
    assert "It changes if" in fitting.advice.changes_if or "does not change it" in fitting.advice.changes_if
    assert "do not fit" in failing.advice.sentence
    assert "is held to" in failing.advice.changes_if
    for pair in found.pairs:
        assert str(whole) in pair.advice.stands_on
        assert "modelled" in pair.advice.stands_on
        assert "measured" in pair.advice.sentence
        assert pair.fits == (pair.first.high < 0.05 and pair.second.high < 0.05)
    json.dumps(asdict(found))


def test_what_was_measured_goes_before_what_the_model_says(whole: Path, tmp_path: Path) -> None:
    fitting = advise_colocation([whole]).pairs[0]
    assert fitting.fits
    names = (fitting.first.workload, fitting.first.neighbour)

    def lost_more(record: StudyRecord) -> None:
        side = next(one for one in record.result["sides"] if (one["workload"], one["neighbour"]) == names)
        # So uncertain that the model hardly follows it.
        side["log_kept"], side["error"] = math.log(0.9), 1.0

    other = advise_colocation([changed(whole, tmp_path / "other", lost_more)])
    pair = next(one for one in other.pairs if (one.first.workload, one.first.neighbour) == names)
    assert pair.first.high < 0.05
    assert pair.second.high < 0.05
    assert not pair.fits
    assert "not shown to fit" in pair.advice.sentence
    assert "measured to lose more than the model says" in pair.advice.changes_if


def test_what_it_takes_to_fit_is_enough(whole: Path, tmp_path: Path) -> None:
    """A neighbour that is held to the cores that are named is one that fits."""

    def unpaired(record: StudyRecord) -> None:
        record.result["sides"] = []

    def greedy_beside_half(folder: Path) -> Any:
        pairs = advise_colocation([folder], 0.2).pairs
        pair = next(pair for pair in pairs if {pair.first.workload, pair.second.workload} == {"greedy", "half"})
        return pair, pair.first if pair.first.workload == "greedy" else pair.second

    folder = changed(whole, tmp_path / "unpaired", unpaired)
    pair, slowdown = greedy_beside_half(folder)
    assert not slowdown.is_safe(0.2)
    [cores] = re.findall(r"half is held to ([\d.]+) cores", pair.advice.changes_if)

    def held(record: StudyRecord) -> None:
        half = next(workload for workload in record.result["workloads"] if workload["name"] == "half")
        half["demands"]["cpu"] = {"amount": float(cores), "error": 0.0}

    assert greedy_beside_half(changed(folder, tmp_path / "held", held))[1].is_safe(0.2)


def test_more_may_be_lost_where_more_is_allowed(whole: Path) -> None:
    fitting = [sum(pair.fits for pair in advise_colocation([whole], bound).pairs) for bound in (0.01, 0.05, 0.7)]
    assert fitting == sorted(fitting)
    assert fitting[-1] == 10


def changed(source: Path, folder: Path, change: Callable[[StudyRecord], None]) -> Path:
    """A copy of a study with something else in it."""
    shutil.copytree(source, folder)
    record = read_study(folder)
    change(record)
    write_study(folder, record)
    return folder


def test_a_study_of_an_earlier_version_is_read_alike(whole: Path, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    shutil.copytree(whole, earlier)
    record = read_study(earlier)
    record.result["works"] = record.result.pop("workloads")
    for side in record.result["sides"]:
        side["work"] = side.pop("workload")
    write_study(earlier, record)
    assert read_source(earlier) == replace(read_source(whole), path=earlier)


def test_workloads_of_different_hosts_are_not_put_together(whole: Path, tmp_path: Path) -> None:
    def elsewhere(record: StudyRecord) -> None:
        record.host = {**record.host, "identity": "another"}

    other = changed(whole, tmp_path / "other", elsewhere)
    with pytest.raises(RackscopeError, match="were measured on different hosts"):
        advise_colocation([whole, other])


def test_workloads_of_other_numbers_of_cores_are_not_put_together(whole: Path, tmp_path: Path) -> None:
    other = changed(whole, tmp_path / "other", lambda record: record.result.update(cores=4))
    with pytest.raises(RackscopeError, match=r"on 1 cores, .* on 4"):
        advise_colocation([whole, other])


@pytest.mark.parametrize(
    ("change", "clear"),
    [
        (lambda record: record.result.update(workloads=[]), "measured no workload"),
        (
            lambda record: record.result.update(workloads=[{"name": "a"}]),
            "is damaged: result.workloads.0.sensitivities",
        ),
        (lambda record: record.result.update(sides=[{"workload": "nobody"}]), "names a workload that there is not"),
        (lambda record: record.result.update(cores="many"), "not a number of cores"),
        (lambda record: setattr(record, "kind", "slo"), "a study of another kind"),
        (lambda record: setattr(record, "kind", "pressure"), "has no elasticities"),
    ],
)
def test_directories_that_say_nothing_of_workloads_are_refused(
    whole: Path, tmp_path: Path, change: Callable[[StudyRecord], None], clear: str
) -> None:
    with pytest.raises(RunDirectoryError) as caught:
        advise_colocation([changed(whole, tmp_path / "other", change)])
    assert clear in str(caught.value)


def test_one_workload_alone_has_nothing_beside_it(whole: Path, tmp_path: Path) -> None:
    def one_only(record: StudyRecord) -> None:
        record.result.update(workloads=record.result["workloads"][:1], sides=[])

    with pytest.raises(RackscopeError, match="there is no second workload beside greedy"):
        advise_colocation([changed(whole, tmp_path / "one", one_only)])


def test_workloads_without_elasticities_are_refused_in_a_line(whole: Path, tmp_path: Path) -> None:
    def without(record: StudyRecord) -> None:
        for workload in record.result["workloads"]:
            workload["sensitivities"] = {}

    with pytest.raises(RackscopeError, match=r"no pair can be compared: .* no resource of it was squeezed"):
        advise_colocation([changed(whole, tmp_path / "blind", without)])


def test_a_folder_of_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="neither a study nor a run"):
        read_source(tmp_path)


# Pressure studies and runs


def pressure_directory(folder: Path, system: str, elasticity: float, limit: float | None = None) -> Path:
    """A pressure study of ``system`` whose member run used 0.94 of a core."""
    study = pressure_study()
    study.host = {"identity": "x"}
    study.result["system"] = system
    if limit is not None:
        study.result["capacities"] = {"cpu_share": {"resource": "cpu", "value": limit, "unit": "cores"}}
    cpu = study.result["phases"][0]["resources"][0]
    cpu["levels"] = [
        {
            "asked_fraction": left,
            "left_fraction": left,
            "throughput_ratio": {
                "estimate": left**elasticity, "low": 0.98 * left**elasticity, "high": 1.02 * left**elasticity
            },
            "loss_bound": None,
            "blocks": 4,
        }
        for left in (0.8, 0.5)
    ]  # fmt: skip
    write_example_study(folder, study)
    write_example(folder / "runs" / "free", Example())
    change_manifest(folder / "runs" / "free", lambda content: content["system"].update(name=system, cores=[0]))
    return folder


def change_manifest(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    file = folder / "manifest.json"
    content = json.loads(file.read_text())
    change(content)
    content["host"]["identity"] = "x"
    file.write_text(json.dumps(content))


def test_pressure_studies_are_enough_for_textbook_sharing(tmp_path: Path) -> None:
    paths = [
        pressure_directory(tmp_path / "a", "memcached", 1.0),
        pressure_directory(tmp_path / "b", "redis", 1.0, 0.94),
    ]
    found = advise_colocation(paths)
    [pair] = found.pairs
    assert (pair.first.workload, pair.second.workload) == ("memcached under ycsb-b", "redis under ycsb-b")
    # The neighbour wants nearly all of the one core, and gets half: what is left is half of what each used.
    assert pair.first.value == pytest.approx(1 - 0.5 / 0.94, abs=0.05)
    assert not pair.fits
    assert all(str(path) in pair.advice.stands_on for path in paths)
    assert "textbook" in pair.advice.stands_on
    assert "last level cache" in pair.advice.stands_on


def test_a_run_beside_a_pressure_study_is_a_neighbour_of_which_one_side_is_missing(tmp_path: Path) -> None:
    study = pressure_directory(tmp_path / "a", "memcached", 1.0)
    run = tmp_path / "run"
    write_example(run, Example())
    change_manifest(run, lambda content: content["system"].update(name="redis", cores=[0]))
    with pytest.raises(RackscopeError, match=r"sensitivity of redis under .* is not known"):
        advise_colocation([study, run])


def test_two_studies_of_one_workload_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    paths = [pressure_directory(tmp_path / name, "memcached", 1.0) for name in ("first", "second")]
    [pair] = advise_colocation(paths).pairs
    assert pair.first.workload == "memcached under ycsb-b (first)"
    assert pair.second.workload == "memcached under ycsb-b (second)"


def test_a_pressure_study_whose_run_is_gone_is_refused(tmp_path: Path) -> None:
    study = pressure_directory(tmp_path / "a", "memcached", 1.0)
    shutil.rmtree(study / "runs" / "free")
    with pytest.raises(RunDirectoryError):
        read_source(study)


class HinderedBench(FakeBench):
    """Others use the host all the time, and a workload that wants it all gets a fifth of the core."""

    interference: Interference

    def alone(self, name: str, seconds: float, activity: str) -> Figures:
        self.interference.kept += 1
        return replace(super().alone(name, seconds, activity), cores=0.2)


def test_use_that_others_hindered_is_not_taken_for_what_a_workload_can_do_without(tmp_path: Path) -> None:
    under_way = conducting.begin(STUDY, request(tmp_path / "study", rounds=1), ignore)
    bench, outcome = HinderedBench(), Outcome(Interference())
    bench.interference = outcome.interference
    plan = colocate.build_plan(under_way.request)
    colocate.conduct_colocate(under_way, plan, bench, outcome, Steps(ignore), 1)
    greedy = under_way.record.result["workloads"][0]
    assert greedy["demands"]["cpu"]["amount"] == pytest.approx(0.2)
    assert greedy["sensitivities"]["cpu"]["use"] is None
