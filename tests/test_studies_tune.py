"""``study tune``: what it searches, what it claims of a made-up system, and one short real study."""

from __future__ import annotations

import importlib.util
import json
import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from conftest import Rackscope
from rackscope.cli import main
from rackscope.errors import StudyError, SystemUnderTestError, UsageError
from rackscope.runs.study import StudyRecord
from rackscope.studies.tune.knob_space import KnobSpace, knob_space
from rackscope.studies.tune.record import Aim, answer_changes, fill
from rackscope.studies.tune.search import ANSWER, BEST, DEFAULT, Budget, Tuned, Tuning
from rackscope.systems import find_system, resolve_knobs
from rackscope.systems.base import Knob

AIM = Aim("memcached", "ycsb-b", ("rackscope", "run", "memcached", "ycsb-b"), "throughput", start_is_tuned=False)
TRIAL_SECONDS = 5.0


def knobs_of(name: str, cores: int = 2, **more: Any) -> KnobSpace:
    system = find_system(name)
    start = resolve_knobs(system, {}, tuned=False, cores=range(cores)).values
    return knob_space(system.knobs, start, {}, cores=cores, **more)


SPACE = knob_space(
    (
        Knob("threads", "integer", "4", "1", "", minimum=1, maximum=64),
        Knob("lru", "choice", "segmented", None, "", choices=("segmented", "flat")),
        Knob("cas", "flag", "yes", None, ""),
        Knob("batch", "integer", "16", None, "", minimum=1, maximum=1000),
        Knob("pages", "flag", "no", None, ""),
    ),
    {"threads": "4", "lru": "segmented", "cas": "yes", "batch": "16", "pages": "no"},
    {"threads": "1"},
    cores=1,
)


class MadeUp:
    """A system whose throughput is known, with noise; every trial takes five seconds of its own clock."""

    def __init__(self, effect: Callable[[Mapping[str, str]], float], noise: float = 0.01, seed: int = 1) -> None:
        self.effect, self.noise = effect, noise
        self.random = random.Random(seed)
        self.now = 0.0
        self.measured: list[tuple[str, Mapping[str, str]]] = []

    def measure(self, configuration: Mapping[str, str], purpose: str) -> float:
        self.now += TRIAL_SECONDS
        self.measured.append((purpose, dict(configuration)))
        return 100e3 * self.effect(configuration) * math.exp(self.random.gauss(0, self.noise))

    def tuning(self, seed: int = 1, seconds: float = 600.0, space: KnobSpace = SPACE) -> Tuning:
        first = [{**space.default, "threads": "1"}] if "threads" in space.default else []
        return Tuning(space, self.measure, Budget(seconds, lambda: self.now), first=first, seed=seed)


def helpful(configuration: Mapping[str, str]) -> float:
    """Fewer threads help, the flat list helps; cas and batch make no difference."""
    threads = {"1": 1.25, "2": 1.15}.get(configuration["threads"], 1.0)
    return threads * (1.12 if configuration["lru"] == "flat" else 1.0)


def nothing(configuration: Mapping[str, str]) -> float:
    return 1.0


def record_of(found: Tuned) -> StudyRecord:
    record = StudyRecord(rackscope_version="0", kind="tune", title="", started_at="")
    fill(record, found, AIM)
    return record


def sentences(found: Tuned) -> str:
    return " ".join(finding.sentence for finding in record_of(found).findings)


def test_what_changes_the_measurement_is_left_alone() -> None:
    space = knobs_of("memcached")
    searched = {dimension.name for dimension in space.dimensions}
    assert {"threads", "lru", "cas", "hash_power"} <= searched
    assert not searched & {"memory", "connections", "evict", "item_size_max", "backlog"}
    assert space.left_alone["memory"] and space.left_alone["evict"]
    redis = {dimension.name for dimension in knobs_of("redis").dimensions}
    assert "io_threads" in redis and not redis & {"append_only", "append_sync", "save", "eviction", "open_files"}


@pytest.mark.parametrize("system", ["memcached", "redis", "cache"])
def test_every_value_that_is_tried_would_be_taken(system: str) -> None:
    for dimension in knobs_of(system, cores=4).dimensions:
        assert dimension.default in dimension.values
        assert len(dimension.values) == len(set(dimension.values)) >= 2
        for value in dimension.values:
            resolved = resolve_knobs(find_system(system), {dimension.name: value}, tuned=False, cores=range(4))
            assert resolved.values[dimension.name] == value


def test_threads_are_searched_up_to_a_few_for_each_core() -> None:
    (threads,) = knobs_of("memcached", cores=8, named=("threads",)).dimensions
    assert {"1", "4", "8", "16", "32"} <= set(threads.values)
    assert max(map(int, threads.values)) == 32
    assert [int(value) for value in threads.values] == sorted(int(value) for value in threads.values)


def test_an_exponent_is_walked_evenly() -> None:
    (power,) = knobs_of("memcached", named=("hash_power",)).dimensions
    assert max(map(int, power.values)) <= 22


def test_knobs_can_be_named_and_pinned() -> None:
    assert [d.name for d in knobs_of("memcached", named=("connections",)).dimensions] == ["connections"]
    assert "threads" in knobs_of("memcached", pinned=("threads",)).left_alone
    with pytest.raises(UsageError, match="threads"):
        knobs_of("memcached", named=("thread",))
    with pytest.raises(UsageError, match="both set and to be searched"):
        knobs_of("memcached", named=("threads",), pinned=("threads",))
    with pytest.raises(UsageError, match="no knob to search"):
        knobs_of("cache", pinned=("threads", "access", "event_loop", "request_direction"))


def test_what_helps_is_found_and_what_does_not_is_left_out() -> None:
    system = MadeUp(helpful, noise=0.002)
    found = system.tuning().run()
    assert answer_changes(found) == {"threads": "1", "lru": "flat"}
    label = BEST if found.answer == found.best else ANSWER
    ratio = found.claim.ratio(label, DEFAULT)
    assert ratio.low is not None and ratio.high is not None
    assert ratio.low <= 1.4 <= ratio.high and ratio.low > 1.3
    assert {one.knob for one in found.worths() if one.worth == "better"} == {"threads", "lru"}
    result = record_of(found).result
    assert result["command"] == "rackscope run memcached ycsb-b --set threads=1 --set lru=flat"
    assert system.now <= 600 + TRIAL_SECONDS


def test_where_nothing_helps_nothing_is_claimed() -> None:
    claimed = 0
    for seed in range(8):
        found = MadeUp(nothing, noise=0.03, seed=seed).tuning(seed=seed).run()
        claimed += bool(answer_changes(found))
    # The best of some fifty noisy trials looks several percent better than the default, each time.
    assert claimed <= 1


def test_nothing_helped_is_an_answer() -> None:
    found = MadeUp(nothing, noise=0.004).tuning().run()
    assert answer_changes(found) == {}
    assert "Nothing that was tried makes memcached better" in sentences(found)
    assert record_of(found).result["answer"] == {}


def test_what_is_too_noisy_to_tell_is_not_called_useless() -> None:
    # 30 % of noise hides a gain of 5 %.
    found = MadeUp(lambda c: 1.05 if c["lru"] == "flat" else 1.0, noise=0.3).tuning().run()
    if not answer_changes(found):
        assert "No change was shown" in sentences(found)


def test_the_claim_rests_on_its_own_rounds_in_turns() -> None:
    system = MadeUp(helpful)
    found = system.tuning().run()
    confirming = [purpose for purpose, _ in system.measured if purpose.startswith("confirming")]
    labels = [purpose.removeprefix("confirming: ").partition(",")[0] for purpose in confirming]
    size = len(set(labels))
    rounds = [labels[place : place + size] for place in range(0, len(labels), size)]
    assert len(rounds) >= 3 and all(set(one) == set(labels) for one in rounds)
    assert rounds[1] == rounds[0][::-1]
    assert found.claim.count == len(rounds)


def test_a_configuration_that_breaks_is_a_trial_that_failed() -> None:
    def breaks(configuration: Mapping[str, str]) -> float:
        if configuration["pages"] == "yes":
            raise SystemUnderTestError("memcached ended at once: no large pages")
        return helpful(configuration)

    found = MadeUp(breaks).tuning().run()
    failed = [trial for trial in found.trials if trial.failed]
    assert failed and all(trial.configuration["pages"] == "yes" for trial in failed)
    assert answer_changes(found)["threads"] == "1" and "pages" not in answer_changes(found)
    assert "pages=yes" in sentences(found) and "no large pages" in sentences(found)


def test_a_default_that_breaks_ends_it() -> None:
    def breaks(configuration: Mapping[str, str]) -> float:
        raise SystemUnderTestError("the port is taken")

    with pytest.raises(StudyError, match="the port is taken"):
        MadeUp(breaks).tuning().run()


def test_an_interrupt_leaves_the_best_so_far() -> None:
    system = MadeUp(helpful)
    tuning = system.tuning()

    def interrupted(configuration: Mapping[str, str], purpose: str) -> float:
        if len(system.measured) == 12:
            raise KeyboardInterrupt
        return system.measure(configuration, purpose)

    tuning.measure = interrupted
    with pytest.raises(KeyboardInterrupt):
        tuning.run()
    assert len(tuning.found.trials) == 12 and tuning.found.answer is None
    said = sentences(tuning.found)
    assert "of 12 trials so far" in said and "not confirmed" in said
    assert record_of(tuning.found).result["answer"] is None


def test_few_configurations_are_all_tried() -> None:
    space = knob_space((Knob("threads", "integer", "1", None, "", minimum=1),), {"threads": "1"}, {}, cores=1)
    system = MadeUp(lambda configuration: 1.0, noise=0.01)
    found = system.tuning(space=space).run()
    assert sorted(trial.configuration["threads"] for trial in found.trials) == ["1", "2", "4"]


def test_the_search_is_the_same_for_the_same_seed() -> None:
    runs = [MadeUp(helpful).tuning(seed=7).run() for _ in range(2)]
    assert [trial.configuration for trial in runs[0].trials] == [trial.configuration for trial in runs[1].trials]


def test_a_small_budget_keeps_room_for_the_claim() -> None:
    system = MadeUp(helpful)
    found = system.tuning(seconds=100.0).run()
    assert found.claim.count >= 3
    assert system.now <= 100 + 3 * TRIAL_SECONDS


def test_a_budget_for_nothing_but_the_default_is_said() -> None:
    system = MadeUp(helpful)
    tuning = system.tuning(seconds=6.0)
    tuning.first = []
    found = tuning.run()
    assert len(found.trials) == 1 and answer_changes(found) == {}
    assert "too short" in sentences(found) and "Nothing that was tried" not in sentences(found)


def test_a_command_repeats_what_was_asked() -> None:
    aim = Aim("redis", "ycsb-a", ("rackscope", "run", "redis", "ycsb-a", "--set", "keys=1000"), "throughput", False)
    assert aim.command({"save": "3600 1"}).endswith("--set keys=1000 --set 'save=3600 1'")


@pytest.mark.alone
@pytest.mark.long
def test_a_short_study_of_the_cache(rackscope: Rackscope) -> None:
    done = rackscope(
        "study", "tune", "cache", "ycsb-b", "--budget", "30s", "--set", "keys=1000", "--endpoint", "unix",
        "--cores", "0", "--json", "--out", "study",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["findings"] and content["result"]["trials"]
    assert content["result"]["command"].startswith("rackscope run cache ycsb-b --cores 0 --endpoint unix")
    assert (rackscope.folder / "study" / "report.html").exists()
    assert "optuna" not in done.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [(("--slo", "p99"), "'p99<1ms'"), (("--budget", "1s"), "--budget")],
)
def test_mistakes_leave_no_directory(rackscope: Rackscope, more: tuple[str, ...], said: str) -> None:
    done = rackscope("study", "tune", "cache", "ycsb-b", *more)
    assert done.returncode == 2
    assert said in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (rackscope.folder / "runs").exists()


def test_without_optuna_a_line_names_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *at: None if name == "optuna" else find(name, *at))
    assert main(["study", "tune", "cache", "ycsb-b"]) == 2
    assert "study tune needs optuna. Install rackscope[tune]." in capsys.readouterr().err
