"""``study access`` with a bench that measures nothing: the order, what is compared, and what is said of it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackscope.errors import StudyError, UsageError
from rackscope.runs.options import Progress
from rackscope.runs.study import StudyRecord
from rackscope.studies import conduct as conducting
from rackscope.studies.access import study as access
from rackscope.studies.access.conduct import build_plan, conduct_access
from rackscope.studies.access.plan import ACCESS_MODES, PEERS, Plan, Setting
from rackscope.studies.access.program import Filled, Measured, program
from rackscope.studies.access.summary import balance
from rackscope.studies.base import Request
from rackscope.studies.bench.interference import Taken, Watch

Speed = Callable[[str, Setting], float]
PLAN = Plan(10_000, (1, 2), (None, 0.99), (0, 50), 0.4, 6, 600.0)


def request(out: Path | None = None, **others: Any) -> Request:
    values = {"items": None, "cores": None, "writes": "0,5,50,100", "window": 0.4, "repetitions": 7, "budget": 600.0}
    values["peers"] = False
    return Request(None, {**values, **others}, out)


def as_in_the_paper(mode: str, setting: Setting) -> float:
    """EREW scales, CREW does with reads, CRCW suffers from writes."""
    if mode == "EREW":
        return 10e6 * setting.cores
    if mode in PEERS:
        return {"papaya": 14e6, "masstree": 2e6}[mode] * setting.cores
    slowed = setting.writes_percent / 100 * (setting.cores - 1)
    return 8e6 * setting.cores * (1 - (0.4 if mode == "CREW" else 0.6) * slowed)


class FakeBench:
    """Rates of ``speed``, a little apart from round to round; ``stop_after`` measurements it is interrupted."""

    def __init__(self, speed: Speed = as_in_the_paper, stop_after: int | None = None) -> None:
        self.speed = speed
        self.stop_after = stop_after
        self.asked: list[tuple[str, Setting]] = []
        self.huge_page_bytes: dict[str, int | None] = {}
        self.noise = random.Random(1)

    def fill(self, access: str, cores: int, partitions: int) -> Filled:
        if access in PEERS:
            return Filled(None, None, None, 700_000, PLAN.items, 0, 60.0)
        huge = self.huge_page_bytes.get(access, 300_000)
        return Filled(partitions, 1 << 20, 80_000, huge, PLAN.items, 0, 15.4)

    def measure(self, access: str, setting: Setting, seconds: float) -> Measured:
        if self.stop_after is not None and len(self.asked) >= self.stop_after:
            raise KeyboardInterrupt
        self.asked.append((access, setting))
        operations = int(self.speed(access, setting) * seconds * (1 + 0.004 * self.noise.random()))
        each = operations // setting.cores
        uneven = (0.6, 0.4) if setting.theta and setting.cores == 2 else (1 / setting.cores,) * setting.cores
        return Measured(seconds, seconds, (each,) * setting.cores, 0, uneven if access in ("EREW", "CREW") else None)


@pytest.fixture(autouse=True)
def a_quiet_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Watch, "taken", lambda self, seconds: Taken())


def ignore(progress: Progress) -> None:
    del progress


def carried_out(folder: Path, plan: Plan = PLAN, bench: FakeBench | None = None) -> StudyRecord:
    under_way = conducting.begin(access.STUDY, request(folder / "study", items=10_000), ignore)
    try:
        conduct_access(under_way, plan, bench or FakeBench(), [])
    except KeyboardInterrupt:
        under_way.record.status = "interrupted"
    return StudyRecord.model_validate_json(under_way.record.model_dump_json())


def test_every_round_holds_every_cell_once_and_drift_cancels() -> None:
    rounds = PLAN.rounds()
    assert len(rounds) == 6
    assert all(sorted(map(str, one)) == sorted(map(str, PLAN.cells)) for one in rounds)
    assert len(PLAN.cells) == 2 * 2 * 2 * 3
    assert rounds[1] == rounds[0][::-1]
    assert rounds[2] != rounds[0]


def test_the_mode_that_wins_is_named_with_its_interval(tmp_path: Path) -> None:
    record = carried_out(tmp_path)
    first = record.findings[0].sentence
    # With 60 % of zipfian requests for one core its clients have 1 / 1.2 of EREW's 20 M/s: 16.7, and CREW has 16.
    assert first.startswith("On 2 cores EREW is fastest in 4 of 4 mixes, with 1.04 to 1.56 times the next one's rate")
    under_writes = next(one for one in record.findings if one.sentence.startswith("Under writes"))
    assert under_writes.sentence == (
        "Under writes EREW is shown to be faster than CRCW in all 2 mixes on 2 cores; over all of them its rate is "
        "1.49 (zipf 0.99 keys and 50 % writes) to 1.79 (uniform keys and 50 % writes) times CRCW's."
    )
    assert "x1.79 (1.7" in under_writes.evidence
    over_cores = next(one for one in record.findings if one.sentence.startswith("From 1 core to 2"))
    assert "EREW 2.00 times, CREW 1.60 times and CRCW 1.40 times" in over_cores.sentence
    table = record.tables[0]
    assert table.rows[0][0] == "2, uniform, 0 %"
    assert len(table.rows) == 8
    assert {row[4] for row in table.rows} == {"EREW"}


def test_a_mode_that_wins_once_is_told_with_that_one_ratio(tmp_path: Path) -> None:
    def speed(mode: str, setting: Setting) -> float:
        ahead = mode == "CREW" and (setting.theta, setting.writes_percent) == (None, 0)
        return as_in_the_paper(mode, setting) * (1.75 if ahead else 1.0)

    first = carried_out(tmp_path, bench=FakeBench(speed)).findings[0].sentence
    # 16 M/s times 1.75 beside EREW's 20.
    assert re.search(r"CREW is fastest in 1 of 4 mixes, with 1\.(39|40|41) times the next one's rate", first)
    assert "EREW is fastest in 3 of 4 mixes, with 1.04 to 1.56 times" in first


def test_all_modes_have_partitions_of_the_same_number(tmp_path: Path) -> None:
    plan = Plan(10_000, (1, 2, 4), (None,), (0,), 0.4, 1, 600.0)
    assert {plan.partitions(cores) for cores in plan.cores} == {16}
    assert Plan(10_000, (3, 8), (None,), (0,), 0.4, 1, 600.0).partitions(3) == 33
    layout = carried_out(tmp_path).tables[1]
    assert [row[:3] for row in layout.rows] == [
        [f"{cores}, {access}", 8, 1 << 20] for cores in (1, 2) for access in ACCESS_MODES
    ]


def test_structures_by_others_are_told_beside_the_modes_and_not_among_them(tmp_path: Path) -> None:
    alone, beside = carried_out(tmp_path / "a"), carried_out(tmp_path / "b", replace(PLAN, with_peers=True))
    assert [one.sentence for one in beside.findings[:1]] == [one.sentence for one in alone.findings[:1]]
    assert "papaya" not in str(alone.result)
    papaya, masstree = (one for one in beside.findings if one.sentence.startswith("Beside"))
    # Skewed keys: EREW's clients have 16.7 of its 20 M/s, papaya's 28.
    assert papaya.sentence.startswith(
        "Beside papaya, on 2 cores: EREW is shown to be faster in 0 and slower in 4 of 4 mixes, "
        "with 0.59 to 0.71 times its rate over all of them"
    )
    assert masstree.sentence.endswith(
        "CRCW is shown to be faster in 4 of 4 mixes, with 2.80 to 4.00 times its rate over all of them."
    )
    assert "an item takes 15.4 bytes in partitions and 60.0 in masstree" in masstree.evidence
    table = next(one for one in beside.tables if one.identifier == "beside-masstree")
    assert len(table.rows) == 8
    assert table.rows[0][0] == "2, uniform, 0 %"
    assert {one["second"] for one in beside.result["comparisons"]} == {"CREW", "CRCW", *PEERS}
    against = beside.charts[-1]
    assert [series.label for series in against.series] == [*ACCESS_MODES, *PEERS]
    assert all(len(series.y) == 4 for series in against.series)


@pytest.mark.parametrize(("crcw", "is_said"), [(300_000, False), (290_000, False), (0, True), (None, False)])
def test_stores_in_other_pages_than_those_they_are_compared_with_are_a_warning(
    tmp_path: Path, crcw: int | None, is_said: bool
) -> None:
    bench = FakeBench()
    bench.huge_page_bytes["CRCW"] = crcw
    record = carried_out(tmp_path, bench=bench)
    warnings = [one.sentence for one in record.findings if one.severity == "warning"]
    assert bool(warnings) == is_said
    assert all("EREW 96 %, CREW 96 % and CRCW 0 %" in one for one in warnings)


def test_equal_modes_are_not_told_apart(tmp_path: Path) -> None:
    noise = random.Random(3)
    record = carried_out(tmp_path, bench=FakeBench(lambda mode, setting: 1e7 * noise.lognormvariate(0, 0.05)))
    assert "no mode is shown to be faster" in record.findings[0].sentence
    assert {row[4] for row in record.tables[0].rows} <= {"inconclusive", "EREW or CREW", "EREW or CRCW", "CREW or CRCW"}


def test_the_busiest_core_bounds_what_clients_have() -> None:
    skewed = Setting(2, 0.99, 50)
    assert balance("EREW", skewed, (0.6, 0.4)) == pytest.approx(1 / 1.2)
    # Half of the requests write, and reads go to the core that has room.
    assert balance("CREW", skewed, (0.6, 0.4)) == 1.0
    assert balance("CREW", Setting(2, 0.99, 100), (0.6, 0.4)) == pytest.approx(1 / 1.2)
    assert balance("CREW", Setting(4, 0.99, 100), (0.7, 0.1, 0.1, 0.1)) == pytest.approx(1 / 2.8)
    assert balance("CREW", Setting(2, 0.99, 0), (0.6, 0.4)) == 1.0
    assert balance("CRCW", skewed, ()) == 1.0
    assert balance("EREW", Setting(1, 0.99, 50), (1.0,)) == 1.0


def test_pictures_have_every_mode_and_the_same_colours(tmp_path: Path) -> None:
    charts = carried_out(tmp_path).charts
    names = ["writes-uniform", "writes-zipf", "cores-uniform", "cores-zipf", "skew", "against-erew"]
    assert [chart.identifier for chart in charts] == names
    assert all([series.label for series in chart.series] == list(ACCESS_MODES) for chart in charts)
    against = charts[-1]
    assert against.x.categories == ["uniform 0%", "uniform 50%", "zipf 0%", "zipf 50%"]
    crcw = against.series[2]
    assert crcw.y[1] == pytest.approx(0.56, abs=0.01)
    assert crcw.low[1] is not None
    assert crcw.low[1] < 0.56 < (crcw.high[1] or 0)


def test_a_budget_ends_it_between_rounds(tmp_path: Path) -> None:
    bench = FakeBench()
    from rackscope.studies.access.measure import Outcome, carry_out
    from rackscope.studies.bench.interference import Interference

    outcome = Outcome(Interference())
    # Each look at the clock is 100 s later.
    carry_out(PLAN, bench, outcome, ignore, lambda: None, clock=iter(range(0, 10_000, 100)).__next__)
    assert outcome.rounds == 5
    assert len(bench.asked) == 5 * len(PLAN.cells)
    assert outcome.notes == ["5 of 6 rounds fitted into the budget of 600 s."]


def test_what_was_measured_before_ctrl_c_is_said(tmp_path: Path) -> None:
    record = carried_out(tmp_path, bench=FakeBench(stop_after=30))
    assert record.status == "interrupted"
    assert record.result["rounds"] == 1
    assert sum(len(cell["rates_operations_per_second"]) for cell in record.result["cells"]) == 30
    assert record.charts
    assert "With one round" in record.findings[0].sentence


def test_nothing_measured_is_a_record_without_answers(tmp_path: Path) -> None:
    record = carried_out(tmp_path, bench=FakeBench(stop_after=0))
    assert record.findings == []
    assert record.charts == []


def test_measurements_that_others_disturbed_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([0.9] + [0.0] * 10_000)
    monkeypatch.setattr(Watch, "taken", lambda self, seconds: Taken(0.0, next(looks)))
    bench = FakeBench()
    record = carried_out(tmp_path, bench=bench)
    assert len(bench.asked) == 6 * len(PLAN.cells) + 1
    assert sum(len(cell["rates_operations_per_second"]) for cell in record.result["cells"]) == 6 * len(PLAN.cells)
    assert any(line.startswith("1 measurements were discarded") for line in record.method)


@pytest.mark.parametrize(
    ("asked", "clear"),
    [
        ({"cores": "0"}, "0 is not between 1 and"),
        ({"cores": "two"}, "--cores two"),
        ({"cores": "100000"}, "100000 is not between 1 and"),
        ({"writes": "101"}, "101 is not between 0 and 100"),
        ({"items": 5}, "5 items fit into any CPU cache"),
        ({"items": 10**12}, "of memory are available"),
        ({"repetitions": 0}, "0 repetitions"),
        ({"window": 0.001}, "at least 20 ms"),
    ],
)
def test_nonsense_is_refused_before_a_directory_is_made(asked: dict[str, Any], clear: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=clear):
        conducting.begin(access.STUDY, request(tmp_path / "study", **asked), ignore)
    assert not (tmp_path / "study").exists()


def test_numbers_of_cores_and_writes_are_each_taken_once() -> None:
    plan, _ = build_plan(request(cores="1,1", writes="50, 5%,0,5", items=10_000))
    assert plan.cores == (1,)
    assert plan.writes == (0, 5, 50)


def test_the_program_says_why_it_cannot(tmp_path: Path) -> None:
    with program(10_000, tmp_path / "log") as bench:
        with pytest.raises(StudyError, match="EREW on 1 cores was not filled"):
            bench.measure("EREW", Setting(1, None, 50), 0.02)
        filled = {access: bench.fill(access, 1, 4) for access in ACCESS_MODES}
        assert {(one.partitions, one.log_bytes, one.index_bytes, one.lost) for one in filled.values()} == {
            (4, 1 << 20, filled["EREW"].index_bytes, 0)
        }
        for peer in PEERS:
            held = bench.fill(peer, 1, 4)
            assert (held.partitions, held.lost) == (None, 0)
            assert bench.measure(peer, Setting(1, 0.99, 50), 0.02).shares is None
        measured = bench.measure("EREW", Setting(1, 0.99, 50), 0.02)
        assert measured.rate > 0
        assert measured.shares == [1.0]
        bench.process.kill()
        with pytest.raises(StudyError, match=r"ended while it measured \(killed by signal 9\)"):
            bench.fill("EREW", 1, 4)
    assert not (tmp_path / "log").exists()
