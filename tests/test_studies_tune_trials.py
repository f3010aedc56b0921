"""``study tune`` over a made-up server: from what is asked to what is measured, a session a trial, and what counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackscope.errors import LoadError, StudyError, UsageError
from rackscope.runs.options import Loop, Progress, RunOptions
from rackscope.runs.study import read_study
from rackscope.studies import conduct as conducting
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench.bounds import parse_bound
from rackscope.studies.tune import conduct as tune
from rackscope.studies.tune.conduct import Trials
from rackscope.studies.tune.search import Budget
from rackscope.studies.tune.study import STUDY
from rackscope.systems import find_system, resolve_knobs

ASKED = RunOptions("memcached", "ycsb-b")
START_SECONDS = 8.0


def ignore(_step: Progress) -> None:
    """Nobody looks."""


class MadeUp:
    """Sessions of a server whose throughput is ``effect`` of its knobs, by turns 1 % more and less, in no time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.effect: Callable[[Mapping[str, str]], float] = lambda _: 1.0
        self.stages = [SimpleNamespace(name="measure", share=1.0)]
        self.row: dict[str, Any] = {}
        self.now = 0.0
        self.log: list[str] = []
        self.seconds: list[float] = []
        self.sessions = 0
        monkeypatch.setattr(tune, "prepare", self.prepare)
        monkeypatch.setattr(tune, "behind_the_generator", self.behind)
        monkeypatch.setattr(tune, "Session", self.session)
        monkeypatch.setattr(tune, "Budget", lambda seconds: Budget(seconds, lambda: self.now))

    def prepare(self, options: RunOptions, _progress: Any) -> Any:
        system = find_system(options.system)
        chosen = {name: value for name, value in options.settings.items() if name != "keys"}
        knobs = resolve_knobs(system, chosen, tuned=options.tuned, cores=(0,))
        plan, placement = SimpleNamespace(workload=options.workload, stages=self.stages), SimpleNamespace(system=(0,))
        return SimpleNamespace(options=options, system=system, knobs=knobs, plan=plan, placement=placement)

    @contextmanager
    def behind(self, _session: Any) -> Iterator[None]:
        self.log.append("steps back")
        yield

    def session(self, prepared: Any, progress: Any, folder: Path) -> Any:
        self.sessions += 1
        self.log.append(f"{folder.parent.name}/{folder.name}")
        return FakeSession(self, prepared, progress)


class FakeSession:
    def __init__(self, world: MadeUp, prepared: Any, progress: Any) -> None:
        self.world, self.prepared, self.progress = world, prepared, progress

    def run(self, work: Callable[[Any], None]) -> None:
        self.world.now += START_SECONDS
        try:
            work(self)
        finally:
            self.world.log.append("stopped")

    def preload(self) -> None:
        self.world.log.append("data")

    def warm_up(self, loop: Loop) -> None:
        self.world.log.append("warm")

    def phase(self, stage: Any, loop: Loop, seconds: float, number: int, **others: Any) -> dict[str, Any]:
        """A closed loop gives all there is; at a rate, responses are late as that comes near."""
        world, rate = self.world, loop.rate_per_second
        world.log.append(f"{stage.name} {'closed' if rate is None else 'open'}")
        world.seconds.append(seconds)
        world.now += seconds
        most = 1e5 * stage.share * world.effect(self.prepared.knobs.values) * (1 + 0.01 * (-1) ** world.sessions)
        done = most if rate is None else min(rate, most)
        row: dict[str, Any] = {
            "throughput_operations_per_second": done,
            "offered_operations_per_second": rate,
            "operations": int(done * seconds),
            "errors": 0,
            "hits": 0,
            "misses": 0,
            "duration_seconds": seconds,
            "system_cpu_seconds": 0.1,
            "response_p99_seconds": 1e-4 / max(1 - done / most, 1e-6),
        }
        return {**row, **world.row}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    return MadeUp(monkeypatch)


def begun(folder: Path, asked: RunOptions = ASKED, budget: float = 240.0, **others: Any) -> Conduct:
    values = {"budget": budget, "slo": None, "knobs": (), **others}
    return conducting.begin(STUDY, Request(asked, values, folder / "study"), ignore)


def trials(folder: Path, **others: Any) -> Trials:
    slo = others.get("slo")
    return Trials(begun(folder, **others), None if slo is None else parse_bound(slo))


# One trial


def test_each_trial_is_a_fresh_start_loaded_and_warmed_in_a_folder_of_its_own(world: MadeUp, tmp_path: Path) -> None:
    world.effect = lambda knobs: 2.0 if knobs["threads"] == "2" else 1.0
    some = trials(tmp_path)
    slow, fast = (some.measure({"threads": count, "cas": "no"}, "search, trial 1") for count in ("1", "2"))
    assert (slow, fast) == (pytest.approx(0.99e5), pytest.approx(2.02e5))
    once = ["data", "warm", "steps back", "measure closed", "stopped"]
    assert world.log == ["runs/trial-0001", *once, "runs/trial-0002", *once]
    members = read_study(tmp_path / "study").members
    assert [(one.folder, one.label, one.discarded) for one in members] == [
        ("trial-0001", "search, trial 1: threads=1, cas=no", ""),
        ("trial-0002", "search, trial 1: threads=2, cas=no", ""),
    ]


def test_stages_count_alike_and_share_the_time(world: MadeUp, tmp_path: Path) -> None:
    world.stages = [SimpleNamespace(name=f"stage {share}", share=share) for share in (0.1, 0.4)]
    assert trials(tmp_path).measure({}, "search") == pytest.approx(0.99 * 2e4)
    assert world.seconds == [0.6, 0.6]


@pytest.mark.parametrize(
    ("budget", "slo", "seconds"),
    [
        (30.0, None, 0.5),
        (240.0, None, 1.2),
        (600.0, None, 2.0),
        (60.0, "p99<1ms", 2.5),
        (300.0, "p99<1ms", 5.0),
        (3600.0, "p99<1ms", 8.0),
    ],
)
def test_a_measurement_takes_its_share_of_the_budget_within_bounds(
    world: MadeUp, tmp_path: Path, budget: float, slo: str | None, seconds: float
) -> None:
    assert trials(tmp_path, budget=budget, slo=slo).seconds == seconds


@pytest.mark.parametrize("value", [0.0, None])
def test_nothing_done_is_a_value_of_nothing(world: MadeUp, tmp_path: Path, value: float | None) -> None:
    world.row = {"throughput_operations_per_second": value}
    assert trials(tmp_path).measure({}, "search") == 0.0


def test_under_a_bound_it_is_the_rate_that_crosses_it(world: MadeUp, tmp_path: Path) -> None:
    # 1e-4 / (1 - rate / most) is a millisecond at nine tenths of the most.
    found = trials(tmp_path, budget=300.0, slo="p99<1ms").measure({}, "search")
    assert found == pytest.approx(0.9 * 0.99e5, rel=0.03)
    assert world.log[3] == "measure closed" and set(world.log[4:-1]) == {"measure open"}
    assert sum(world.seconds) <= 5.0


def test_a_bound_that_is_never_met_is_a_rate_of_nothing(world: MadeUp, tmp_path: Path) -> None:
    world.row = {"response_p99_seconds": 0.5}
    assert trials(tmp_path, slo="p99<1ms").measure({}, "search") == 0.0


# Trials that do not count


def test_a_trial_with_errors_does_not_count_and_says_why(world: MadeUp, tmp_path: Path) -> None:
    some = trials(tmp_path)
    world.row = {"operations": 900, "errors": 100}
    with pytest.raises(LoadError, match="100 of 1,000 operations failed"):
        some.measure({"threads": "1"}, "search")
    world.row = {}
    some.measure({"threads": "1"}, "search")
    discarded = [member.discarded for member in some.conduct.record.members]
    assert discarded == ["100 of 1,000 operations failed: the system replied with an error.", ""]
    assert world.log[5:7] == ["stopped", "runs/trial-0002"]


def test_losing_hits_is_not_being_faster(world: MadeUp, tmp_path: Path) -> None:
    some = trials(tmp_path)
    world.row = {"hits": 900, "misses": 100}
    some.measure({"threads": "1"}, "first trials")
    # Half a percent less is within what drawing keys varies by, and more hits are welcome.
    for hits in (896, 990):
        world.row = {"hits": hits, "misses": 1000 - hits}
        some.measure({"threads": "2"}, "search")
    world.row = {"hits": 890, "misses": 110}
    with pytest.raises(StudyError, match=r"^89\.0 % of reads found their key, and 90\.0 % with the defaults"):
        some.measure({"threads": "3"}, "search")
    # One without reads has no hits to lose.
    world.row = {}
    some.measure({"threads": "4"}, "search")
    assert [bool(member.discarded) for member in some.conduct.record.members] == [False, False, False, True, False]


def test_hits_of_all_stages_are_counted_together(world: MadeUp, tmp_path: Path) -> None:
    world.stages = [SimpleNamespace(name="reads", share=1.0), SimpleNamespace(name="writes", share=1.0)]
    world.row = {"hits": 3, "misses": None}
    some = trials(tmp_path)
    some.measure({}, "search")
    assert some.hit_ratio == 1.0


def test_ctrl_c_in_a_trial_leaves_it_discarded(world: MadeUp, tmp_path: Path) -> None:
    def interrupted(_knobs: Mapping[str, str]) -> float:
        raise KeyboardInterrupt

    world.effect = interrupted
    some = trials(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        some.measure({}, "search")
    assert some.conduct.record.members[-1].discarded == "KeyboardInterrupt"
    assert world.log[-1] == "stopped"


# The whole study


def helpful(knobs: Mapping[str, str]) -> float:
    """One thread is a third better than memcached's four; cas makes no difference."""
    return 4 / 3 if knobs["threads"] == "1" else 1.0


def test_a_study_of_two_knobs_finds_the_one_that_matters(world: MadeUp, tmp_path: Path) -> None:
    world.effect = helpful
    asked = RunOptions(
        "memcached", "ycsb-b", connections=20, cores=(0,), client_cores=(1, 2), endpoint_kind="unix",
        settings={"keys": "1000", "hash_power": "18"},
    )  # fmt: skip
    under_way = begun(tmp_path, asked, knobs=("threads, cas,",))
    conducting.conduct(STUDY, under_way)
    record = read_study(tmp_path / "study")
    assert record.status == "complete"
    assert record.title == "memcached under ycsb-b: which knobs matter"
    assert record.result["answer"] == {"threads": "1"}
    assert record.result["command"] == (
        "rackscope run memcached ycsb-b --connections 20 --cores 0 --client-cores 1,2 --endpoint unix "
        "--set keys=1000 --set hash_power=18 --set threads=1"
    )
    said = record.findings[0].sentence
    assert re.match(r"With threads=1 memcached gives .* of throughput against the defaults", said)
    # Everything that was not searched is named with the reason.
    [left] = [line for line in record.method if line.startswith("Left alone: ")]
    assert "hash_power (set on the command line)" in left and "lru" in left and "(not named by --knobs)" in left
    # The defaults first, then what a paper says, then the rest; each once until they are measured again.
    labels = [member.label for member in record.members]
    assert labels[:2] == ["first trials, trial 1: threads=4, cas=yes", "first trials, trial 2: threads=1, cas=yes"]
    searched = [label.partition(": ")[2] for label in labels if label.startswith(("first trials", "search"))]
    assert len(searched) == len(set(searched)) == 6
    assert len(labels) == world.sessions
    assert world.now <= 240.0 + 3 * 9.2


def test_the_papers_values_are_tried_together_and_one_by_one(world: MadeUp, tmp_path: Path) -> None:
    under_way = begun(tmp_path, budget=60.0, knobs=("threads,connections", "lru"))
    conducting.conduct(STUDY, under_way)
    labels = [member.label for member in under_way.record.members][:4]
    assert [label.partition(": ")[2] for label in labels] == [
        "threads=4, connections=200, lru=segmented",
        "threads=1, connections=4096, lru=segmented",
        "threads=1, connections=200, lru=segmented",
        "threads=4, connections=4096, lru=segmented",
    ]


def test_tuned_values_are_a_start_to_improve_on(world: MadeUp, tmp_path: Path) -> None:
    under_way = begun(tmp_path, RunOptions("memcached", "ycsb-b", tuned=True), budget=120.0, knobs=("threads", "cas"))
    conducting.conduct(STUDY, under_way)
    assert under_way.record.members[0].label == "first trials, trial 1: threads=1, cas=yes"
    assert under_way.record.members[1].label.startswith("search")
    assert under_way.record.result["command"] == "rackscope run memcached ycsb-b --tuned"
    assert "the papers' tuned values" in under_way.record.findings[0].sentence


def test_under_a_bound_the_rate_is_what_is_tuned(world: MadeUp, tmp_path: Path) -> None:
    world.effect = helpful
    under_way = begun(tmp_path, budget=300.0, slo="p99<1ms", knobs=("threads",))
    conducting.conduct(STUDY, under_way)
    assert under_way.record.result["answer"] == {"threads": "1"}
    assert "of the rate with p99 below 1 ms against" in under_way.record.findings[0].sentence


def test_a_study_that_is_stopped_says_what_it_has_and_that_it_is_not_confirmed(world: MadeUp, tmp_path: Path) -> None:
    def stopped_at_the_fourth(knobs: Mapping[str, str]) -> float:
        if world.sessions == 4:
            raise KeyboardInterrupt
        return helpful(knobs)

    world.effect = stopped_at_the_fourth
    with pytest.raises(KeyboardInterrupt):
        conducting.conduct(STUDY, begun(tmp_path, knobs=("threads", "cas")))
    record = read_study(tmp_path / "study")
    assert record.status == "interrupted"
    assert "threads=1" in record.findings[0].sentence and "not confirmed" in record.findings[0].sentence
    assert record.result["answer"] is None
    assert [bool(member.discarded) for member in record.members] == [False, False, False, True]


# What is refused


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"knobs": ("thread",)}, "this system has no knob 'thread'. Did you mean threads?"),
        ({"knobs": ("hash_power",)}, "knob hash_power is both set and to be searched"),
    ],
)
def test_knobs_that_cannot_be_searched_are_refused_before_anything_is_started(
    world: MadeUp, tmp_path: Path, asked: dict[str, Any], words: str
) -> None:
    run = RunOptions("memcached", "ycsb-b", settings={"hash_power": "18"})
    with pytest.raises(UsageError) as refused:
        conducting.conduct(STUDY, begun(tmp_path, run, **asked))
    assert words in str(refused.value)
    assert world.sessions == 0


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"budget": 29.9}, "29.9 s is too short for tuning. Choose a --budget of 30s or more."),
        ({"budget": 59.0, "slo": "p99<1ms"}, "Choose a --budget of 60s or more."),
        ({"slo": "p98<1ms"}, "'p98' in 'p98<1ms' is not one of the quantiles"),
    ],
)
def test_what_cannot_be_tuned_for_leaves_no_directory(tmp_path: Path, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        begun(tmp_path, **asked)
    assert words in str(refused.value)
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize(("budget", "slo"), [(30.0, None), (60.0, "p99.9<2ms")])
def test_the_shortest_budgets_are_taken(tmp_path: Path, budget: float, slo: str | None) -> None:
    assert cast(Any, begun(tmp_path, budget=budget, slo=slo)).record.kind == "tune"
