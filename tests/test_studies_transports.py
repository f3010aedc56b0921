"""``study transports`` with a bench that measures nothing: what is asked, in which order, and what is said of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackscope.errors import LoadError, UsageError
from rackscope.runs.options import Progress, RunOptions
from rackscope.runs.study import StudyRecord
from rackscope.studies import conduct as conducting
from rackscope.studies.base import Request
from rackscope.studies.bench.figures import Figures
from rackscope.studies.bench.interference import Interference
from rackscope.studies.bench.turns import Steps
from rackscope.studies.transports import study as transports
from rackscope.studies.transports.conduct import build_plan, conduct_transports
from rackscope.studies.transports.findings import describe
from rackscope.studies.transports.measure import Outcome, Work, carry_out, placed, run_options
from rackscope.studies.transports.plan import BASE, CONDITIONS, MODES, PAIRS, TRANSPORTS, Condition, Contender, Plan
from rackscope.systems import find_system, resolve_knobs
from rackscope.workloads import find_workload
from rackscope.workloads import plan as plan_workload

PLAN = Plan(TRANSPORTS, MODES, (0.5, 0.9), 10_000, 0.4, 6, 300.0)
#: Operations a second of those that differ from a million.
SPEEDS = {
    "tcp": 0.1e6,
    "udp-batch": 4e6,
    "af_xdp": 4e6,
    "udp-batch-veth": 4e6,
    "memcached-udp": 0.2e6,
    "crcw": 0.5e6,
    "erew-forwarded": 0.25e6,
}


def request(out: Path | None = None, **others: Any) -> Request:
    values = {"transports": None, "modes": None, "repetitions": 6, "window": 0.4, "loads": "30,60,90"}
    values |= {"keys": 100_000, "no_fetch": False, "budget": 300.0}
    return Request(None, {**values, **others}, out)


class FakeBench:
    """Contenders with the rates of SPEEDS, of which the first of a pair takes half of the CPU time with batches."""

    def __init__(
        self, absent: Sequence[str] = (), breaks: str = "", stop_after: int | None = None, noise: float = 0.004
    ) -> None:
        self.absent = absent
        self.breaks = breaks
        self.stop_after = stop_after
        self.noise = noise
        self.random = random.Random(1)
        self.asked: list[tuple[str, str, float | None]] = []

    def cores(self, workers: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        return placed(workers, (0, 1))

    def side_by_side(self, contenders: Sequence[Contender], work: Work) -> dict[str, str]:
        def measure(name: str, condition: Condition, rate: float | None, activity: str) -> Figures:
            if self.stop_after is not None and len(self.asked) >= self.stop_after:
                raise KeyboardInterrupt
            self.asked.append((name, condition.name, rate))
            if name == self.breaks and condition.name == "uniform":
                raise LoadError("3 of 10 operations failed")
            return self.figures(name, condition, rate)

        names = [one.name for one in contenders]
        work([name for name in names if name not in self.absent], measure)
        return {name: "it takes root" for name in names if name in self.absent}

    def figures(self, name: str, condition: Condition, rate: float | None) -> Figures:
        most = SPEEDS.get(name, 1e6) * (0.5 if condition.reads_percent == 50 else 1)
        done = min(rate or most, most * 0.8) if rate else most
        return Figures(
            rate=done * (1 + self.noise * self.random.random()),
            offered=rate,
            p50_seconds=1e-4,
            p99_seconds=3e-4,
            cores=(0.5 if name == "af_xdp" else 1.0) * (1 + 0.01 * self.random.random()),
            client_cores=0.9,
            idle_ratio=0.4,
            hit_ratio=1.0,
            failed_ratio=0.0002 if name == "memcached-udp" else 0.0,
        )


def ignore(progress: Progress) -> None:
    del progress


def carried_out(
    folder: Path, bench: FakeBench | None = None, plan: Plan = PLAN, clock: Callable[[], float] | None = None
) -> StudyRecord:
    under_way = conducting.begin(transports.STUDY, request(folder / "study"), ignore)
    outcome, bench = Outcome(Interference()), bench or FakeBench()
    try:
        if clock is None:
            conduct_transports(under_way, plan, bench, outcome, Steps(ignore))
        else:
            carry_out(plan, bench, outcome, Steps(ignore), lambda: None, clock)
            describe(under_way.record, plan, outcome)
    except KeyboardInterrupt:
        under_way.record.status = "interrupted"
    return StudyRecord.model_validate_json(under_way.record.model_dump_json())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> StudyRecord:
    """The record of a study in which nothing went wrong."""
    return carried_out(tmp_path_factory.mktemp("whole"))


def sentence(record: StudyRecord, start: str) -> str:
    return next(one.sentence for one in record.findings if one.sentence.startswith(start))


# What is asked


def test_every_contender_is_a_run_that_its_system_has() -> None:
    for one in (*TRANSPORTS, *MODES):
        options = run_options(RunOptions("cache", "ycsb-b"), one, 1000, ((0,) * one.workers, (1,)))
        options.check()
        system, workload = find_system(one.system), find_workload("ycsb-b")
        names = {parameter.name for parameter in workload.parameters}
        settled = plan_workload(
            workload,
            {name: value for name, value in options.settings.items() if name in names},
            operations=system.operations,
            protocols=system.protocols,
            system=system.name,
        )
        knobs = {name: value for name, value in options.settings.items() if name not in names}
        values = resolve_knobs(system, knobs, tuned=False, cores=options.cores or ()).values
        system.check_knobs(values)
        assert values["threads"] == str(one.workers)
        assert one.endpoint_kind in system.endpoint_kinds
        # Over TCP and UDP alike as many requests are outstanding.
        assert one.connections * settled.pipeline * settled.batch == one.outstanding
        assert one.outstanding == (512 if one.name not in ("tcp", "udp", "memcached-udp") else one.outstanding)


def test_what_is_compared_differs_in_one_thing_and_is_measured() -> None:
    names = {one.name for one in PLAN.contenders}
    assert all({pair.first, pair.second} <= names for pair in PAIRS)
    assert [(one.theta != BASE.theta) + (one.reads_percent != BASE.reads_percent) for one in CONDITIONS] == [0, 1, 1]
    udp, memcached = (next(one for one in TRANSPORTS if one.name == name) for name in ("udp", "memcached-udp"))
    assert (udp.connections, udp.depth, udp.batch) == (memcached.connections, memcached.depth, memcached.batch)


def test_workers_have_cores_of_their_own_and_share_them_with_the_client_only_where_they_must() -> None:
    assert placed(1, (0, 1)) == ((0,), (1,))
    assert placed(1, (3,)) == ((3,), (3,))
    assert placed(2, (0, 1)) == ((0, 1), (0, 1))
    assert placed(2, (0, 1, 2, 3)) == ((0, 1), (3,))
    assert placed(2, (0,)) is None


def test_transports_modes_and_loads_are_chosen_by_name() -> None:
    plan = build_plan(request(transports="af_xdp,udp-batch", modes="none", loads="none"))
    assert [one.name for one in plan.contenders] == ["af_xdp", "udp-batch"]
    assert [pair.label for pair in plan.pairs] == ["af_xdp / udp-batch"]
    assert plan.loads == ()
    assert build_plan(request()).contenders == (*TRANSPORTS, *MODES)


@pytest.mark.parametrize(
    ("asked", "clear"),
    [
        ({"transports": "udp-bach"}, "--transports: there is no 'udp-bach'. Did you mean udp-batch"),
        ({"modes": "ereww"}, "--modes: there is no 'ereww'. Did you mean erew"),
        ({"transports": "none", "modes": "none"}, "there is nothing to measure"),
        ({"loads": "half"}, "invalid --loads half"),
        ({"repetitions": 0}, "0 repetitions"),
        ({"window": 0.001}, "at least 50 ms"),
        ({"keys": 10}, "10 keys are out of bounds"),
        ({"budget": 0.1}, "too short"),
    ],
)
def test_nonsense_is_refused_before_a_directory_is_made(asked: dict[str, Any], clear: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        conducting.begin(transports.STUDY, request(tmp_path / "study", **asked), ignore)
    assert clear in str(caught.value)
    assert not (tmp_path / "study").exists()


# What is measured


def test_everybody_takes_turns_under_every_condition_and_loads_are_of_its_own_best(tmp_path: Path) -> None:
    bench = FakeBench()
    carried_out(tmp_path, bench)
    closed = [(name, condition) for name, condition, rate in bench.asked if rate is None]
    first = len(TRANSPORTS) * len(CONDITIONS)
    assert closed[:first] == closed[first : 2 * first][::-1]
    assert all(closed.count((one.name, condition.name)) == 6 for one in PLAN.contenders for condition in CONDITIONS)
    loads = {(name, round(rate / SPEEDS.get(name, 1e6), 2)) for name, _, rate in bench.asked if rate is not None}
    assert loads == {(one.name, load) for one in TRANSPORTS for load in (0.5, 0.9)}


def test_a_budget_ends_rounds_early_but_never_leaves_one(tmp_path: Path) -> None:
    ticks = iter(range(0, 10**6, 20))
    bench = FakeBench()
    record = carried_out(tmp_path, bench, clock=lambda: float(next(ticks)))
    counts = {sum(1 for one in bench.asked if one == ("udp", name.name, None)) for name in CONDITIONS}
    assert len(counts) == 1
    assert 2 <= counts.pop() <= 6
    assert "rounds fitted into the budget" in "\n".join(one.sentence for one in record.findings)


# What is said


def test_each_step_is_told_with_its_interval_and_what_it_costs_the_server(whole: StudyRecord) -> None:
    batch = next(one for one in whole.findings if one.sentence.startswith("32 requests a datagram instead of one"))
    assert batch.sentence.startswith("32 requests a datagram instead of one: 4.00 times the throughput, and 0.25 times")
    assert "uniform, 95 % reads x4.00 (3.9" in batch.evidence
    assert "Intervals hold for all 36 comparisons together" in whole.findings[0].evidence
    bypass = sentence(whole, "AF_XDP instead of the kernel's UDP, both over a veth")
    assert "no difference in throughput is shown, but 0.50 times the server's CPU time" in bypass
    assert sentence(whole, "A unix socket").endswith(": unix-deep and tcp-deep are not shown to differ.")
    assert "4.00 times the throughput" in sentence(whole, "Requests sent to the worker that owns the key")
    assert "2.00 times the throughput" in sentence(whole, "EREW instead of CRCW")


def test_a_difference_under_some_loads_alone_is_not_told_of_all(tmp_path: Path) -> None:
    class Skewed(FakeBench):
        def figures(self, name: str, condition: Condition, rate: float | None) -> Figures:
            found = super().figures(name, condition, rate)
            slowed = name == "udp-deep" and condition.theta is None
            return replace(found, rate=found.rate / 2, cores=found.cores) if slowed else found

    plan = replace(PLAN, modes=(), loads=())
    said = sentence(carried_out(tmp_path, Skewed(), plan), "UDP with one request")
    assert "throughput is shown to be lower with uniform, 95 % reads (1.00 times with zipfian, 95 % reads)" in said


def test_what_only_seems_to_differ_is_not_said_to(tmp_path: Path) -> None:
    record = carried_out(tmp_path, FakeBench(noise=6.0), replace(PLAN, loads=()))
    assert "are not shown to differ" in sentence(record, "EREW instead of CRCW") or (
        "no difference in throughput" in sentence(record, "EREW instead of CRCW")
    )


def test_latency_and_cpu_time_are_told_of_every_transport(whole: StudyRecord) -> None:
    assert "tcp 100 µs / 300 µs" in sentence(whole, "p50 / p99 at 50 % of each one's own highest throughput")
    assert "memcached-udp 5.0" in sentence(whole, "CPU time of server + client for a request")
    rows = {(row[0], row[1]): row[-1] for row in next(t for t in whole.tables if t.identifier == "loads").rows}
    assert rows["udp", "50 %"] is True
    assert rows["udp", "90 %"] is False
    chart = next(one for one in whole.charts if one.identifier == "load-p99")
    assert {series.label: len(series.x) for series in chart.series} == {one.name: 1 for one in TRANSPORTS}


def test_pictures_have_a_place_for_every_pair_and_contender(whole: StudyRecord) -> None:
    charts = {chart.identifier: chart for chart in whole.charts}
    assert set(charts) == {"ratios", "load-p99", "load-p50", "cpu-server", "cpu-client"}
    ratios = charts["ratios"]
    assert ratios.y.categories == [pair.label for pair in PAIRS]
    assert [series.label for series in ratios.series] == [one.label for one in CONDITIONS]
    batch = next(at for at, pair in enumerate(PAIRS) if pair.first == "udp-batch")
    assert ratios.series[0].x[batch] == pytest.approx(4.0, abs=0.05)
    assert charts["cpu-server"].y.categories == [one.name for one in PLAN.contenders]


def test_a_program_gets_all_of_it(whole: StudyRecord) -> None:
    result = whole.result
    assert len(result["cells"]) == len(PLAN.contenders) * len(CONDITIONS)
    assert {len(cell["rates_operations_per_second"]) for cell in result["cells"]} == {6}
    first = next(one for one in result["comparisons"] if one["first"] == "udp-batch")
    assert (first["second"], first["condition"], first["outcome"]) == ("udp-deep", "base", "different")
    assert first["ratio"]["low"] < 4.0 < first["ratio"]["high"]
    assert len(result["loads"]) == len(TRANSPORTS) * 2
    assert {one["name"]: one["lost_ratio"] for one in result["contenders"]}["memcached-udp"] == 0.0002


def test_cores_that_are_shared_and_requests_that_are_lost_are_said(whole: StudyRecord) -> None:
    assert sentence(whole, "With 2 workers the client shares cores 0-1 with the server")
    assert sentence(whole, "Datagrams were lost: at most memcached-udp 0.020% of the requests of a window.")


def test_what_this_host_cannot_do_is_left_out_with_the_reason(tmp_path: Path) -> None:
    record = carried_out(tmp_path, FakeBench(absent=["af_xdp", "erew"], breaks="udp-batch"))
    said = "\n".join(one.sentence for one in record.findings)
    assert "af_xdp, erew could not be measured: it takes root." in said
    assert "udp-batch (uniform, 95 % reads) could not be measured: 3 of 10 operations failed." in said
    assert "AF_XDP instead" not in said
    assert {one["name"] for one in record.result["contenders"]} == {
        one.name for one in PLAN.contenders if one.name not in ("af_xdp", "erew")
    }


def test_what_was_measured_before_ctrl_c_is_said(tmp_path: Path) -> None:
    record = carried_out(tmp_path, FakeBench(stop_after=60))
    assert record.status == "interrupted"
    assert sum(len(cell["rates_operations_per_second"]) for cell in record.result["cells"]) == 60
    assert record.charts
    nothing = carried_out(tmp_path / "nothing", FakeBench(stop_after=0))
    assert (nothing.tables, nothing.charts) == ([], [])
