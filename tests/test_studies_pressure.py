"""The pressure study on a system whose truth is a formula: verdicts, slack, what is measured and what is written."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pressure_bench import (
    BUSY_HOST,
    STAGE,
    FakeSqueeze,
    NoSqueeze,
    World,
    bench_of,
    elastic,
    enough_above,
)
from rackscope.analysis.pressure import judge_phase
from rackscope.errors import UsageError
from rackscope.runs.options import Loop
from rackscope.runs.study import StudyRecord
from rackscope.squeezes.provision import Limits
from rackscope.studies.base import Conduct, Request
from rackscope.studies.bench import interference
from rackscope.studies.bench.interference import Taken
from rackscope.studies.bench.session import Bench
from rackscope.studies.pressure import measure
from rackscope.studies.pressure import study as pressure
from rackscope.studies.pressure.measure import MeasuredPhase, Plan, measure_phase
from rackscope.studies.pressure.record import Account

PLAN = Plan(fractions=(0.8, 0.4), window_seconds=0.4, blocks=4, budget_seconds=1e6, seed=7)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A world whose clock is the study's, and on whose host nobody else is unless a test says so."""
    made = World({"cpu_share": elastic(1.0), "network_out": elastic(0.0), "dram_capacity": enough_above(0.1)})
    monkeypatch.setattr(measure, "time", SimpleNamespace(monotonic=lambda: made.now))
    monkeypatch.setattr(interference, "Watch", made.watch)
    return made


def three_squeezes(world: World) -> list[FakeSqueeze]:
    return [
        FakeSqueeze(world, "cpu_share", "cpu"),
        FakeSqueeze(world, "network_out", "network"),
        FakeSqueeze(world, "dram_capacity", "dram_capacity"),
    ]


def measured(bench: Bench, **plan: Any) -> MeasuredPhase:
    return measure_phase(bench, STAGE, Loop(), dataclasses.replace(PLAN, **plan))


def levels_of(phase: MeasuredPhase, squeeze: str) -> list[float]:
    return [one.requested_fraction for one in phase.estimates if one.squeeze == squeeze]


def blocks_of(phase: MeasuredPhase, condition: str) -> int:
    return sum(window.condition == condition for window in phase.windows)


@pytest.mark.parametrize("seed", range(5))
def test_what_limits_is_told_from_what_does_not(world: World, seed: int) -> None:
    bench = bench_of(world, *three_squeezes(world))
    found = judge_phase(measured(bench, seeks_slack=False, seed=seed).estimates)
    assert found.limits == ("cpu_share",)
    assert {one.resource: one.verdict for one in found.resources} == {
        "cpu_share": "limits",
        "network_out": "does not limit",
        "dram_capacity": "does not limit",
    }
    assert not world.held


def test_when_nothing_matters_none_of_these_is_the_verdict(world: World) -> None:
    world.answers = dict.fromkeys(world.answers, elastic(0.0))
    found = judge_phase(measured(bench_of(world, *three_squeezes(world))).estimates)
    assert found.none_limits
    assert found.limits == ()


def test_slack_is_sought_deeper_until_throughput_is_lost(world: World) -> None:
    bench = bench_of(world, *three_squeezes(world))
    phase = measured(bench)
    # Nothing is lost above a tenth: 0.16 can be had, and 0.064 cannot.
    assert levels_of(phase, "dram_capacity") == [0.8, 0.4, 0.16, 0.064]
    assert levels_of(phase, "cpu_share") == [0.8, 0.4]
    slack = {one.resource: one.slack for one in judge_phase(phase.estimates).resources}
    assert slack["dram_capacity"] == pytest.approx(0.84)
    assert slack["cpu_share"] is None


def test_slack_is_sought_no_deeper_than_the_floor(world: World) -> None:
    # FakeSqueeze refuses to go below its floor.
    squeeze = FakeSqueeze(world, "network_out", "network", floor=0.3)
    phase = measured(bench_of(world, squeeze))
    assert levels_of(phase, "network_out") == [0.8, 0.4]
    [found] = judge_phase(phase.estimates).resources
    assert found.slack == pytest.approx(0.6)


def test_only_what_is_open_is_measured_after_the_first_blocks(world: World) -> None:
    world.reseed(3)
    world.answers = {**world.answers, "network_out": elastic(0.25)}
    phase = measured(bench_of(world, *three_squeezes(world)), seeks_slack=False)
    # An elasticity on the line is decided by chance alone: ten looks end it, of 4, 5, 7, 9, 12 ... blocks.
    assert max(window.block for window in phase.windows) == 38
    asked = [blocks_of(phase, f"network_out@{fraction}") for fraction in (0.8, 0.4)]
    assert sum(asked) == 38 + PLAN.blocks
    assert blocks_of(phase, "cpu_share@0.8") == blocks_of(phase, "cpu_share@0.4") == PLAN.blocks


def test_the_budget_is_kept(world: World) -> None:
    world.answers = {**world.answers, "network_out": elastic(0.25)}
    measured(bench_of(world, *three_squeezes(world)), budget_seconds=30)
    assert world.now <= 30


def test_the_first_blocks_are_measured_whatever_the_budget(world: World) -> None:
    phase = measured(bench_of(world, *three_squeezes(world)), budget_seconds=0.001)
    assert blocks_of(phase, "cpu_share@0.8") == PLAN.blocks
    assert max(window.block for window in phase.windows) == PLAN.blocks


def test_each_squeezed_window_has_free_ones_and_its_control_in_its_block(world: World) -> None:
    # A interference that costs a tenth and takes nothing away: without its control it would look like a limit.
    world.answers = {
        "dram_bandwidth": lambda fraction: 0.9,
        "control:dram_bandwidth": lambda fraction: 0.9,
        "network_out": elastic(0.25),
    }
    squeezes = [
        FakeSqueeze(world, "dram_bandwidth", "dram_bandwidth", control=True),
        FakeSqueeze(world, "network_out", "network"),
    ]
    phase = measured(bench_of(world, *squeezes), seeks_slack=False, budget_seconds=60)
    blocks: dict[int, list[str]] = {}
    for window in phase.windows:
        blocks.setdefault(window.block, []).append(window.condition)
    for conditions in blocks.values():
        assert conditions[::2] == ["free"] * (len(conditions) // 2 + 1)
        for condition in conditions[1::2]:
            if condition.startswith("dram_bandwidth@"):
                assert f"control:{condition}" in conditions
    found = {one.resource: one.verdict for one in judge_phase(phase.estimates).resources}
    assert found["dram_bandwidth"] == "does not limit"


def test_a_squeeze_without_effect_is_not_used(world: World) -> None:
    squeezes = [*three_squeezes(world)[:2], FakeSqueeze(world, "dram_capacity", "dram_capacity", works=False)]
    bench = bench_of(world, *squeezes)
    phase = measured(bench)
    assert set(bench.refused) == {"dram_capacity"}
    assert levels_of(phase, "dram_capacity") == []


def test_a_disturbed_window_is_measured_again_at_most_twice_and_counted(world: World) -> None:
    bench = bench_of(world, *three_squeezes(world))
    world.others = [BUSY_HOST]
    bench.window(STAGE, {}, 0.4, "free", 1)
    assert len(world.log) == 2
    assert (bench.interference.discarded, bench.interference.kept) == (1, 0)
    world.others = [BUSY_HOST] * 10
    bench.window(STAGE, {}, 0.4, "cpu_share@0.8", 1)
    assert len(world.log) == 5
    assert (bench.interference.windows, bench.interference.discarded, bench.interference.kept) == (5, 3, 1)
    assert bench.interference.reasons == {"the hypervisor gave the cores to other guests (steal)"}


def test_a_burst_of_others_is_waited_for_as_long_as_patience_lasts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(seconds: float) -> None:
        world.now += seconds
        paused.append(seconds)

    paused: list[float] = []
    monkeypatch.setattr(interference, "time", SimpleNamespace(monotonic=lambda: world.now, sleep=sleep))
    bench = bench_of(world, *three_squeezes(world))
    bench.interference.patience_seconds = 5.0
    world.others = [BUSY_HOST] * 6
    bench.window(STAGE, {}, 0.4, "free", 1)
    assert (bench.interference.discarded, bench.interference.kept) == (6, 0)
    assert paused == [0.25, 0.5, 1.0, 2.0]
    assert bench.interference.waited_seconds == pytest.approx(6 * 0.4 + 3.75)
    # Patience is spent: as without any from now on.
    world.others = [BUSY_HOST] * 3
    bench.window(STAGE, {}, 0.4, "free", 1)
    assert (bench.interference.discarded, bench.interference.kept) == (8, 1)


def test_waiting_for_a_quiet_host_does_not_cost_the_phase_its_blocks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(seconds: float) -> None:
        world.now += seconds

    monkeypatch.setattr(interference, "time", SimpleNamespace(monotonic=lambda: world.now, sleep=sleep))
    world.noise = 0.1
    quiet = measured(bench_of(world, *three_squeezes(world)), budget_seconds=40.0)
    world.reseed(1)
    world.others = [Taken(), BUSY_HOST] * 10 + [BUSY_HOST] * 12
    busy = measured(bench_of(world, *three_squeezes(world)), budget_seconds=40.0)
    assert world.others == []
    assert len(busy.windows) >= len(quiet.windows)


def test_what_is_known_is_told_after_every_block(world: World) -> None:
    told: list[MeasuredPhase] = []
    bench = bench_of(world, *three_squeezes(world))
    last = measure_phase(bench, STAGE, {}, dataclasses.replace(PLAN, seeks_slack=False), told.append)
    assert [max(window.block for window in one.windows) for one in told] == list(range(1, len(told) + 1))
    assert told[-1] == last


def test_without_any_squeeze_nothing_is_claimed(world: World) -> None:
    phase = measured(bench_of(world))
    found = judge_phase(phase.estimates)
    assert found.limits == ()
    assert not found.none_limits


class Saved:
    """A conduct whose ``save`` counts."""

    def __init__(self, folder: Path) -> None:
        self.times = 0
        record = StudyRecord(rackscope_version="0", kind="pressure", title="pressure", started_at="now")
        self.conduct = Conduct(folder, record, cast(Request, None), print, self.save, lambda name, label: folder / name)

    def save(self) -> None:
        self.times += 1
        StudyRecord.model_validate_json(self.conduct.record.model_dump_json())


def account_of(saved: Saved) -> Account:
    prepared = SimpleNamespace(
        system=SimpleNamespace(name="cache"), plan=SimpleNamespace(workload="ycsb-c", stages=[STAGE])
    )
    return Account(saved.conduct, cast(Any, prepared), Limits(cpu_cores=1.5))


def characterised(*resources: tuple[str, str]) -> Any:
    found = [
        SimpleNamespace(
            resource=name, status=status, label=name, intensity=0.9, intensity_reason="", saturation="strong"
        )
        for name, status in resources
    ]
    phase = SimpleNamespace(phase="measure", kind="measure", resources=found)
    return SimpleNamespace(phases=[phase], warnings=[])


def test_the_record_holds_what_its_contract_says(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = bench_of(
        world,
        *three_squeezes(world),
        NoSqueeze(world, "disk_bandwidth", "disk"),
        NoSqueeze(world, "last_level_cache", "last_level_cache"),
    )
    saved = Saved(tmp_path)
    account = account_of(saved)
    # A figure of elsewhere on a resource that was squeezed must not be used.
    monkeypatch.setattr(account, "_characterise", lambda: characterised(("disk", "limits"), ("network", "limits")))
    told: list[int] = []

    def after_block(phase: MeasuredPhase) -> None:
        account.update(phase, bench)
        told.append(len(saved.conduct.record.result["phases"]))

    phase = measure_phase(bench, STAGE, {}, PLAN, after_block)
    account.finish(cast(Any, SimpleNamespace(missing={"network": "it takes root"})))
    assert set(told) == {1}
    assert saved.times == len(told) + 1

    record = saved.conduct.record
    result = record.result
    assert (result["system"], result["workload"], result["limits"]) == ("cache", "ycsb-c", {"cpu_cores": 1.5})
    [shown] = result["phases"]
    assert shown["phase"] == "measure"
    assert shown["limits"] == ["cpu"]
    assert shown["none_of_these"] is False
    assert shown["blocks"] == max(window.block for window in phase.windows)
    assert shown["throughput_operations_per_second"]["estimate"] == pytest.approx(10_000, rel=0.01)
    by_squeeze = {one["squeeze"]: one for one in shown["resources"]}
    cpu, disk, cache = (by_squeeze[name] for name in ("cpu_share", "disk_bandwidth", "last_level_cache"))
    assert (cpu["resource"], cpu["status"], cpu["evidence"]) == ("cpu", "limits", "experiment")
    assert cpu["elasticity"]["low"] < 1 < cpu["elasticity"]["high"]
    assert cpu["p99_elasticity"]["estimate"] == pytest.approx(-1, abs=0.1)
    assert [level["asked_fraction"] for level in cpu["levels"]] == [0.8, 0.4]
    assert cpu["levels"][0]["throughput_ratio"]["estimate"] == pytest.approx(0.8, rel=0.02)
    assert by_squeeze["dram_capacity"]["slack"] == pytest.approx(0.84)
    assert by_squeeze["network_out"]["status"] == "does_not_limit"
    assert (disk["status"], disk["evidence"], disk["weaker_status"]) == ("not_squeezable", "intensity", "limits")
    assert "this host has none" in disk["sentence"]
    assert (cache["status"], cache["evidence"]) == ("not_squeezable", "none")

    assert record.findings[0].sentence.startswith("cache under ycsb-c is limited by CPU")
    assert "disk is not proven, for want of a squeeze" in record.findings[0].sentence
    assert "84 % of its DRAM capacity" in record.findings[1].sentence
    assert any("it takes root" in finding.sentence for finding in record.findings)
    assert {table.identifier for table in record.tables} == {"pressure", "levels", "capacities", "not-squeezable"}


def test_a_busy_host_is_said_to_be_one(world: World, tmp_path: Path) -> None:
    bench = bench_of(world, *three_squeezes(world))
    saved = Saved(tmp_path)
    world.others = [BUSY_HOST] * 10_000
    phase = measured(bench, budget_seconds=1)
    account_of(saved).update(phase, bench)
    [warning] = [finding for finding in saved.conduct.record.findings if finding.severity == "warning"]
    assert f"in {len(phase.windows)} of the {len(phase.windows)} windows" in warning.sentence
    assert any("discarded and measured again" in line for line in saved.conduct.record.method)


def test_without_a_verdict_the_record_says_so(world: World, tmp_path: Path) -> None:
    bench = bench_of(world, NoSqueeze(world, "cpu_share", "cpu"))
    saved = Saved(tmp_path)
    account_of(saved).update(measured(bench), bench)
    record = saved.conduct.record
    assert "inconclusive" in record.findings[0].sentence
    [phase] = record.result["phases"]
    assert phase["limits"] == []
    assert [one["status"] for one in phase["resources"]] == ["not_squeezable"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"levels": "0.8"}, "levels"),
        ({"levels": "0.8,0"}, "levels"),
        ({"levels": "0.8,nan"}, "levels"),
        ({"levels": "much,little"}, "levels"),
        ({"limit": ("cpu=none",)}, "cores"),
        ({"squeeze": ("cpu_share", "wings")}, "no squeeze 'wings'"),
        ({"window": 0.001}, "window"),
        ({"blocks": 0}, "block"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_made(changes: dict[str, Any], words: str) -> None:
    values = {"levels": "0.8,0.4", "limit": (), "squeeze": (), "window": 0.4, "blocks": 4, "budget": 120.0}
    check = pressure.STUDY.check
    assert check is not None
    check(Request(None, values))
    with pytest.raises(UsageError, match=words):
        check(Request(None, {**values, **changes}))
