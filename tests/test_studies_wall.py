"""The wall study: which sizes are measured in which order, how the end of memory is seen, and what is said of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackscope.errors import SqueezeError, UsageError
from rackscope.runs.options import Progress, ProgressCallback, RunOptions
from rackscope.runs.study import StudyRecord
from rackscope.squeezes.base import Applied
from rackscope.squeezes.groups import Group
from rackscope.squeezes.journal import Journal
from rackscope.studies.base import Request
from rackscope.studies.wall.bench import MemoryRanOutError, MemoryWatch, how_memory_ran_out, limit_group
from rackscope.studies.wall.findings import describe
from rackscope.studies.wall.growth import Growth, Point, RanOut, Setting, grow, sizes_in_keys
from rackscope.studies.wall.study import STUDY

MEBIBYTE = 1024**2
ITEM = 1024


class FakeGrower:
    """Holds ``most_bytes``; ``seconds_per_byte`` says how long a byte takes at a size."""

    def __init__(
        self, seconds_per_byte: Callable[[float], float] = lambda _: 1e-9, most_bytes: float = float("inf")
    ) -> None:
        self.seconds_per_byte = seconds_per_byte
        self.most_bytes = most_bytes
        self.tried: list[int] = []
        self.now = 0.0

    def measure(self, keys: int, label: str) -> Point | RanOut:
        del label
        self.tried.append(keys)
        self.now += 10.0
        size = float(keys * ITEM)
        if size > self.most_bytes:
            return RanOut(keys, size, self.most_bytes, "the control group was full")
        misses = max(0.0, 1 - 64 * MEBIBYTE / size)
        # A little apart in each run, so that intervals exist.
        wobble = 1 + 0.001 * (len(self.tried) % 3)
        return Point(
            keys, size, self.seconds_per_byte(size) * wobble, 1e5, 1 - misses, {"misses per read": misses}, size
        )


def setting(**others: Any) -> Setting:
    values: dict[str, Any] = {
        "system": "cache",
        "workload": "ycsb-b",
        "limit_bytes": 64 * MEBIBYTE,
        "item_bytes": ITEM,
        "by_group": True,
        "why_not_group": "",
        "swap_bytes": 0,
        "rounds": 2,
        "duration_seconds": 1.0,
    }
    return Setting(**{**values, **others})


def grown(grower: FakeGrower, rounds: int = 2, budget: float = 1e9, most: float = float("inf")) -> Growth:
    growth = Growth()
    sizes = sizes_in_keys(64 * MEBIBYTE, ITEM, most)
    grow(grower.measure, sizes, ITEM, rounds, budget, growth, lambda: grower.now)
    return growth


def record_of(growth: Growth, what: Setting) -> StudyRecord:
    record = StudyRecord(rackscope_version="0", kind="wall", title="wall", started_at="now")
    describe(record, what, growth)
    return record


def sentences(record: StudyRecord) -> str:
    return " | ".join(finding.sentence for finding in record.findings)


# Growing


def test_sizes_go_from_an_eighth_of_the_limit_to_four_times_it() -> None:
    sizes = sizes_in_keys(64 * MEBIBYTE, ITEM, float("inf"))
    assert sizes == sorted(set(sizes))
    assert sizes[0] * ITEM == 8 * MEBIBYTE
    assert sizes[-1] * ITEM == pytest.approx(256 * MEBIBYTE, rel=0.001)
    assert len(sizes) == 11
    assert sizes_in_keys(64 * MEBIBYTE, ITEM, 40 * MEBIBYTE)[-1] * ITEM <= 40 * MEBIBYTE


def test_the_first_round_goes_up_and_the_second_down() -> None:
    grower = FakeGrower()
    growth = grown(grower)
    assert grower.tried[:11] == sorted(grower.tried[:11])
    assert grower.tried[11:] == grower.tried[:11][::-1]
    assert len(growth.points) == 22


def test_nothing_larger_is_tried_than_the_first_size_that_cannot_be_held() -> None:
    grower = FakeGrower(most_bytes=50 * MEBIBYTE)
    growth = grown(grower, rounds=3)
    largest = max(grower.tried)
    assert largest * ITEM == pytest.approx(64 * MEBIBYTE)
    assert [one.keys for one in growth.ran_out] == [largest] * 3
    assert max(one.data_bytes for one in growth.points) < 50 * MEBIBYTE


def test_later_rounds_stay_within_the_budget_and_the_first_is_never_cut() -> None:
    grower = FakeGrower()
    growth = grown(grower, rounds=2, budget=130.0)
    assert len(grower.tried) == 13
    assert len(growth.skipped) == 9
    assert len(grown(FakeGrower(), rounds=2, budget=1.0).points) == 11


def test_what_was_measured_is_kept_when_the_study_is_stopped() -> None:
    class Stopped(FakeGrower):
        def measure(self, keys: int, label: str) -> Point | RanOut:
            if len(self.tried) == 4:
                raise KeyboardInterrupt
            return super().measure(keys, label)

    growth = Growth()
    with pytest.raises(KeyboardInterrupt):
        grow(Stopped().measure, sizes_in_keys(64 * MEBIBYTE, ITEM, float("inf")), ITEM, 1, 1e9, growth)
    assert len(growth.points) == 4
    assert sentences(record_of(growth, setting()))


# Seeing the end of memory


def version_1(folder: Path, under_oom: int, disabled: int = 0) -> Group:
    (folder / "memory.oom_control").write_text(f"oom_kill_disable {disabled}\nunder_oom {under_oom}\noom_kill 0\n")
    (folder / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    return Group(folder, 1)


def version_2(folder: Path, high: str, anonymous: int, cached: int) -> Group:
    (folder / "memory.high").write_text(f"{high}\n")
    (folder / "memory.current").write_text(f"{anonymous + cached}\n")
    (folder / "memory.stat").write_text(f"anon {anonymous}\nfile {cached}\nshmem 0\nunevictable 0\nkernel 0\n")
    (folder / "memory.swap.max").write_text("0\n")
    return Group(folder, 2)


def test_in_version_1_the_group_itself_says_that_memory_ran_out(tmp_path: Path) -> None:
    assert how_memory_ran_out(version_1(tmp_path, under_oom=0)) == ""
    assert how_memory_ran_out(version_1(tmp_path, under_oom=1)) != ""


@pytest.mark.parametrize(
    ("high", "anonymous", "cached", "out"),
    [
        ("max", 500, 0, False),
        ("100000000", 50_000_000, 0, False),
        # Full of what can be given up is not out of memory.
        ("100000000", 50_000_000, 50_000_000, False),
        ("100000000", 98_000_000, 1_000_000, True),
        ("100000000", 120_000_000, 0, True),
    ],
)
def test_in_version_2_memory_has_run_out_when_nothing_can_be_given_up(
    high: str, anonymous: int, cached: int, out: bool, tmp_path: Path
) -> None:
    assert bool(how_memory_ran_out(version_2(tmp_path, high, anonymous, cached))) == out


def test_version_1_switches_the_killer_off_before_the_limit_and_on_after_it(tmp_path: Path) -> None:
    killer, limit = limit_group(version_1(tmp_path, under_oom=0), 64 * MEBIBYTE)
    assert (killer.path.name, killer.content, killer.restore) == ("memory.oom_control", "1", "0")
    assert (limit.path.name, limit.content, limit.restore) == ("memory.limit_in_bytes", str(64 * MEBIBYTE), "-1")
    assert limit_group(version_1(tmp_path, under_oom=0, disabled=1), 1)[0].restore == "1"


def test_version_2_is_limited_where_nothing_is_killed(tmp_path: Path) -> None:
    [limit] = limit_group(version_2(tmp_path, "max", 0, 0), 64 * MEBIBYTE)
    assert (limit.path.name, limit.restore) == ("memory.high", "max")


def test_without_the_killers_switch_there_is_no_limit(tmp_path: Path) -> None:
    with pytest.raises(SqueezeError, match="would kill the system"):
        limit_group(Group(tmp_path, 1), 64 * MEBIBYTE)


def watching(group: Group, progress: ProgressCallback, now: list[float]) -> MemoryWatch:
    return MemoryWatch(group, 64 * MEBIBYTE, cast(Journal, None), progress, lambda: now[0])


def test_the_watch_lifts_the_limit_before_it_stops_the_run_and_stops_it_once(tmp_path: Path) -> None:
    events: list[str] = []
    now = [0.0]
    group = version_1(tmp_path, under_oom=1)
    watch = watching(group, lambda progress: events.append(progress.activity), now)
    watch(Progress("starting"))
    now[0] = 10.0
    watch(Progress("starting"))
    assert "lifted" not in events, "a group without its limit is not looked at"
    watch.held = cast(Applied, SimpleNamespace(release=lambda: events.append("lifted")))
    watch.limited = True
    watch(Progress("loading", 0.4))
    now[0] += 0.3
    watch(Progress("loading", 0.5))
    now[0] += 0.4
    with pytest.raises(MemoryRanOutError):
        watch(Progress("loading"))
    assert events[-2:] == ["loading", "lifted"]
    watch(Progress("writing the run directory", 0.9))
    assert events[-1] == "writing the run directory"
    assert watch.loaded_share == 0.5


def test_a_shortage_that_passes_is_not_the_end(tmp_path: Path) -> None:
    now = [0.0]
    watch = watching(version_1(tmp_path, under_oom=1), lambda _: None, now)
    watch.limited = True
    for under_oom in (1, 0, 1, 0, 1):
        version_1(tmp_path, under_oom)
        watch(Progress("loading"))
        now[0] += 0.5


# What is said


def test_memory_that_ran_out_is_the_wall_and_says_what_an_item_takes() -> None:
    record = record_of(grown(FakeGrower(most_bytes=50 * MEBIBYTE)), setting())
    assert "The wall is at 50.0 MiB of data: cache ran out of the 64.0 MiB" in sentences(record)
    assert "no swap" in record.findings[0].evidence
    assert "1,311 bytes of memory for an item of 1,024" in sentences(record)
    assert record.result["held_bytes"]["estimate"] == 50 * MEBIBYTE
    assert record.result["limited_by"] == "control group"
    assert any(reference.label == "memory ran out" for reference in record.charts[0].references)


def test_a_change_in_time_per_byte_is_found_with_what_broke_there() -> None:
    grower = FakeGrower(lambda size: 1e-9 * max(1.0, size / (64 * MEBIBYTE)) ** 2)
    record = record_of(grown(grower), setting(by_group=False))
    at = record.result["wall"]["at_bytes"]
    assert at["low"] <= 64 * MEBIBYTE <= at["high"]
    assert "above it time per byte found" in sentences(record)
    [the_wall] = [one for one in record.findings if one.sentence.startswith("The wall is at")]
    assert re.match(r"95 % interval [\d.]+ MiB to [\d.]+ MiB, over \d+ runs\.", the_wall.evidence)
    assert [one["resource"] for one in record.result["wall"]["broke"]] == ["misses per read"]
    assert "began to miss" in sentences(record)


def test_misses_tell_where_a_system_gives_items_up_even_where_time_does_not() -> None:
    record = record_of(grown(FakeGrower()), setting(by_group=False))
    low, high = record.result["misses_begin_bytes"]
    assert low <= 64 * MEBIBYTE <= high
    assert "begins to evict items" in sentences(record)
    assert "75% of reads miss" in sentences(record)


def test_a_system_that_never_breaks_has_no_wall() -> None:
    growth = grown(FakeGrower(), most=60 * MEBIBYTE)
    record = record_of(growth, setting())
    assert "no wall up to 45.3 MiB" in sentences(record)
    assert record.result["wall"]["at_bytes"] is None
    assert record.result["ran_out"] == []


def test_the_reader_is_told_that_the_knob_stood_in_for_the_group() -> None:
    record = record_of(grown(FakeGrower()), setting(by_group=False, why_not_group="no right to make groups"))
    [told] = [finding for finding in record.findings if finding.severity == "warning"]
    assert "own knob, not by a control group: no right to make groups" in told.sentence


# What is asked


def request(
    workload: str = "ycsb-b", system: str = "cache", settings: dict[str, str] | None = None, **others: Any
) -> Request:
    values = {"memory": 256 * MEBIBYTE, "by": "auto", "repeat": 2, "duration": 1.0, "warm_up": 0.3, "budget": 150.0}
    return Request(RunOptions(system, workload, settings or {}), {**values, **others})


@pytest.mark.parametrize(
    ("asked", "clear"),
    [
        (request("redis-stages", "redis"), "no data set"),
        (request("etc"), "no fixed size"),
        (request(settings={"keys": "10"}), "number of keys is what grows"),
        (request(settings={"memory": "64m"}, by="knob"), "--memory sets the memory knob"),
        (request(memory=2**60), "leaves too little of the"),
        (request(memory=MEBIBYTE), "full before any data is in"),
        (request(settings={"value_size": "1m"}), "fewer than 1000 items"),
        (request(repeat=0), "0 rounds are out of bounds"),
        (request(duration=0.01), "at least 0.1 s"),
        (request(system="cash"), "cash"),
        (request("ycsb-e"), "scan"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_starts(asked: Request, clear: str) -> None:
    assert STUDY.check is not None
    with pytest.raises(UsageError, match=clear):
        STUDY.check(asked)


def test_the_default_can_be_asked_of_every_system() -> None:
    assert STUDY.check is not None
    for system in ("cache", "redis", "memcached"):
        STUDY.check(request(system=system))
