"""The bench of ``study colocate`` over made-up sessions: who runs when, what counts, and what an error leaves."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from conftest import wait_until
from pressure_bench import STAGE, FakeSqueeze, NoSqueeze, World, bench_of, elastic
from rackscope.errors import LoadError, SystemUnderTestError
from rackscope.runs.options import Loop, Progress, RunOptions
from rackscope.squeezes.provision import Limits
from rackscope.studies.bench import interference as interfering
from rackscope.studies.bench import turns
from rackscope.studies.bench.interference import Interference, Taken
from rackscope.studies.colocate import measure
from rackscope.studies.colocate.measure import SHARED_SQUEEZES, Bench, Squeezed
from rackscope.studies.colocate.plan import Plan, parse_workloads

PLAN = Plan(
    workloads=parse_workloads(["memcached:ycsb-b,name=a,cpu=0.4", "redis:ycsb-b,name=b", "cache:ycsb-b,name=c"]),
    pairs=(("a", "b"),),
    levels=(0.8, 0.5),
    window_seconds=0.6,
    repetitions=2,
    budget_seconds=60.0,
    bound=0.05,
)
STEAL, QUIET = Taken(steal_ratio=0.5), Taken()
SECOND = 10**9


class FakeSession:
    """Windows of a second that take no time. ``spans`` are when those to come run, in seconds of the clock."""

    def __init__(self, name: str, pid: int, log: list[str]) -> None:
        self.name, self.log = name, log
        self.system = SimpleNamespace(pid=pid)
        self.prepared = SimpleNamespace(
            options=SimpleNamespace(loop=Loop()),
            plan=SimpleNamespace(stages=[STAGE]),
            placement=SimpleNamespace(system=(0,), client=(1,)),
        )
        self.progress: Callable[[Progress], None] = lambda _: None
        self.spans: list[tuple[float, float]] = []
        self.numbers: list[int] = []
        self.before_window: Callable[[], None] = lambda: None
        self.within_window: Callable[[], None] = lambda: None

    def ramp(self, plan: Any, loop: Any, seconds: float) -> None:
        assert seconds > 0
        self.before_window()

    def phase(
        self, plan: Any, loop: Any, seconds: float, number: int, *, activity: str, discard: Callable[[Any], str]
    ) -> dict[str, Any]:
        self.within_window()
        self.log.append(f"{self.name}: {plan.name} ({plan.kind})")
        self.numbers.append(number)
        start, end = self.spans.pop(0) if self.spans else (0.0, 1.0)
        row: dict[str, Any] = {
            "operations": 1000 * self.system.pid,
            "duration_seconds": 1.0,
            "system_cpu_seconds": None,
            "start_ns": int(start * SECOND),
            "end_ns": int(end * SECOND),
        }
        return {**row, "discarded": discard(row) or None}


class Host:
    """What the host tells of itself: others take what ``others`` says, window by window; each look costs CPU time."""

    def __init__(self) -> None:
        self.others: list[Taken] = []
        self.judged: list[float | None] = []
        self.cpu_seconds: dict[int, Iterator[float]] = {}
        self.disk: dict[int, Iterator[float | None]] = {}

    def watch(self, beside: Callable[[], float]) -> SimpleNamespace:
        def taken(system_seconds: float | None) -> Taken:
            self.judged.append(system_seconds)
            return self.others.pop(0) if self.others else QUIET

        return SimpleNamespace(taken=taken)

    def process_cpu_seconds(self, pid: int) -> float:
        """System 1 uses 0.1 s in each window, system 2 0.2 s."""
        return next(self.cpu_seconds.setdefault(pid, itertools.count(0.0, 0.1 * pid)))

    def disk_bytes(self, pid: int) -> float | None:
        return next(self.disk.get(pid, itertools.repeat(0.0)))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setattr(interfering, "Watch", made.watch)
    monkeypatch.setattr(turns, "process_cpu_seconds", made.process_cpu_seconds)
    monkeypatch.setattr(measure, "disk_bytes", made.disk_bytes)
    return made


def bench_with(*sessions: FakeSession) -> Bench:
    bench = Bench(RunOptions("", "", cores=(0,)), PLAN, cast(Any, None), lambda _: None, Interference(), [])
    for session in sessions:
        bench.benches[session.name] = cast(Any, SimpleNamespace(session=session))
    return bench


@pytest.fixture
def pair(host: Host) -> tuple[Bench, FakeSession, FakeSession]:
    """Two systems that are up, ``a`` with process 1 and ``b`` with process 2."""
    log: list[str] = []
    first, second = FakeSession("a", 1, log), FakeSession("b", 2, log)
    return bench_with(first, second), first, second


# Windows


def test_a_window_alone_tells_what_the_system_and_its_disk_did(
    host: Host, pair: tuple[Bench, FakeSession, FakeSession]
) -> None:
    bench, _, second = pair
    host.disk[2] = iter([5e6, 7e6])
    found = bench.alone("b", 0.6, "b alone")
    assert (found.rate, found.disk_bytes_per_second) == (2000.0, 2e6)
    assert found.cores == pytest.approx(0.2)
    assert second.log == ["b: measure (measure)"]
    for hidden in ([1e6, None], [None, 1e6]):
        host.disk[2] = iter(hidden)
        assert bench.alone("b", 0.6, "b alone").disk_bytes_per_second is None
    # Rows of a run are told apart by their number.
    assert second.numbers == [1, 2, 3]


def test_a_window_that_others_disturbed_is_measured_again(
    host: Host, pair: tuple[Bench, FakeSession, FakeSession]
) -> None:
    bench, first, _ = pair
    host.others = [STEAL]
    bench.alone("a", 0.6, "a alone")
    assert first.log == ["a: measure (measure)"] * 2
    assert (bench.interference.windows, bench.interference.discarded) == (2, 1)


def test_two_at_once_are_judged_together_by_what_both_used(
    host: Host, pair: tuple[Bench, FakeSession, FakeSession]
) -> None:
    bench, first, second = pair
    one, other = bench.together("a", "b", 0.6, "a beside b")
    assert (one.rate, other.rate) == (1000.0, 2000.0)
    assert sorted(first.log) == ["a: measure beside b (squeezed)", "b: measure beside a (squeezed)"]
    assert first.numbers == second.numbers == [1]
    assert host.judged == [pytest.approx(0.3)]
    assert bench.interference.windows == 1


def test_both_are_measured_again_where_one_was_disturbed(
    host: Host, pair: tuple[Bench, FakeSession, FakeSession]
) -> None:
    bench, first, second = pair
    host.others = [STEAL]
    bench.together("a", "b", 0.6, "a beside b")
    assert len(first.numbers) == len(second.numbers) == 2
    assert bench.interference.discarded == 1


def test_use_of_both_is_not_known_where_one_hides_it(
    host: Host, pair: tuple[Bench, FakeSession, FakeSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "process_cpu_seconds", lambda pid: None if pid == 2 else host.process_cpu_seconds(pid))
    bench, *_ = pair
    assert bench.together("a", "b", 0.6, "")[1].cores is None
    assert host.judged == [None]


@pytest.mark.parametrize(
    ("spans", "counts"),
    [
        (((0.0, 1.0), (0.0, 1.0)), True),
        (((0.0, 1.0), (0.04, 1.04)), True),
        (((0.06, 1.06), (0.0, 1.0)), False),
        (((0.0, 1.0), (0.06, 0.9)), False),
        (((0.0, 1.0), (2.0, 3.0)), False),
        # Of longer windows, a part as well.
        (((0.0, 10.0), (0.4, 10.4)), True),
        (((0.0, 10.0), (0.6, 10.6)), False),
    ],
)
def test_windows_that_did_not_run_at_once_are_tried_again(
    host: Host, pair: tuple[Bench, FakeSession, FakeSession], spans: tuple[tuple[float, float], ...], counts: bool
) -> None:
    bench, first, second = pair
    first.spans, second.spans = [spans[0]], [spans[1]]
    bench.together("a", "b", 0.6, "a beside b")
    assert len(first.numbers) == len(second.numbers) == (1 if counts else 2)
    # What does not count was not looked at for interference either.
    assert bench.interference.windows == 1


def test_a_pair_that_never_runs_at_once_is_given_up(host: Host, pair: tuple[Bench, FakeSession, FakeSession]) -> None:
    bench, first, second = pair
    second.spans = [(5.0, 6.0)] * 100
    with pytest.raises(LoadError, match="a and b could not be measured at the same time"):
        bench.together("a", "b", 0.6, "a beside b")
    assert len(first.numbers) == 12
    assert bench.interference.windows == 0


# One of two goes wrong


def fail(error: BaseException) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it


class Barrier(threading.Barrier):
    """Remembers that it was given up: those that wait for the other would find out only by waiting long."""

    given_up: ClassVar[list[threading.Barrier]] = []

    def abort(self) -> None:
        self.given_up.append(self)
        super().abort()


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> list[threading.Barrier]:
    monkeypatch.setattr(threading, "Barrier", Barrier)
    Barrier.given_up.clear()
    return Barrier.given_up


@pytest.mark.parametrize("when", ["before_window", "within_window"])
def test_the_second_one_s_error_ends_both_and_is_the_one_that_is_said(
    pair: tuple[Bench, FakeSession, FakeSession], given_up: list[threading.Barrier], when: str
) -> None:
    bench, first, second = pair
    before = second.progress
    setattr(second, when, fail(LoadError("the server closed connection 3")))
    with pytest.raises(LoadError, match="closed connection 3"):
        bench.together("a", "b", 0.6, "a beside b")
    assert len(first.numbers) == (0 if when == "before_window" else 1)
    assert given_up
    assert second.progress is before


@pytest.mark.parametrize("error", [LoadError("the server closed a connection"), KeyboardInterrupt("by SIGTERM")])
def test_an_error_or_ctrl_c_in_the_first_ends_the_second_s_window(
    pair: tuple[Bench, FakeSession, FakeSession], error: BaseException
) -> None:
    bench, first, second = pair
    before, begun = second.progress, threading.Event()
    ends: list[str] = []

    def last_until_told() -> None:
        """As long as telling its progress does not end it."""

        def tell() -> bool:
            second.progress(Progress("b"))
            return False

        begun.set()
        try:
            wait_until(tell, "being told to end")
        except BaseException as ended:
            ends.append(type(ended).__name__)
            raise

    def fail_once_both_run() -> None:
        assert begun.wait(30)
        raise error

    first.within_window, second.within_window = fail_once_both_run, last_until_told
    threads = threading.active_count()
    with pytest.raises(type(error)) as raised:
        bench.together("a", "b", 0.6, "a beside b")
    assert raised.value is error
    assert ends == ["_Ended"]
    assert second.progress is before
    assert threading.active_count() == threads


def test_the_first_one_s_error_before_the_window_leaves_nobody_waiting(
    pair: tuple[Bench, FakeSession, FakeSession], given_up: list[threading.Barrier]
) -> None:
    bench, first, second = pair
    first.before_window = fail(LoadError("no port is left"))
    with pytest.raises(LoadError, match="no port is left"):
        bench.together("a", "b", 0.6, "a beside b")
    assert given_up and second.numbers == []


# Squeezing one alone


@pytest.fixture
def squeezed_bench(monkeypatch: pytest.MonkeyPatch) -> tuple[Bench, World]:
    """``a`` with a squeeze of its CPU, one of its disk, and one that cannot be used here."""
    world = World({"cpu_share": elastic(1.0), "disk_bandwidth": elastic(0.0)})
    monkeypatch.setattr(interfering, "Watch", world.watch)
    cast(Any, world).prepared = FakeSession("a", 1, []).prepared
    bench = bench_with()
    bench.benches["a"] = bench_of(
        world,
        FakeSqueeze(world, "cpu_share", "cpu"),
        FakeSqueeze(world, "disk_bandwidth", "disk"),
        NoSqueeze(world, "last_level_cache", "last_level_cache"),
    )
    return bench, world


def test_what_is_squeezed_tells_elasticity_capacity_and_what_could_not_be(squeezed_bench: tuple[Bench, World]) -> None:
    bench, world = squeezed_bench
    told: list[Squeezed] = []
    found = bench.squeeze("a", 0.0, True, told.append)
    by_level = {(one.squeeze, one.requested_fraction): one for one in found.estimates}
    assert set(by_level) == set(itertools.product(("cpu_share", "disk_bandwidth"), PLAN.levels))
    assert by_level["cpu_share", 0.5].elasticity.estimate == pytest.approx(1.0, abs=0.02)
    assert by_level["disk_bandwidth", 0.5].elasticity.estimate == pytest.approx(0.0, abs=0.02)
    assert found.capacities == {"cpu_share": 1.0, "disk_bandwidth": 1.0}
    assert found.refused == {"last_level_cache": "this host has none"}
    # What there is so far is told after each of the three blocks, as the study may be stopped in the next.
    assert len(told) == 3 and told[-1] == found
    assert [len(one.estimates[0].values) for one in told] == [1, 2, 3]
    assert world.now == pytest.approx(0.4 * len(world.log))
    assert not world.held


def test_the_disk_of_one_that_does_not_use_it_is_not_squeezed(squeezed_bench: tuple[Bench, World]) -> None:
    bench, world = squeezed_bench
    found = bench.squeeze("a", 0.0, False, lambda _: None)
    assert {one.squeeze for one in found.estimates} == {"cpu_share"} == set(found.capacities)
    assert not any("disk" in line for line in world.log)


# Starting and stopping


class Starting:
    """In place of what starts systems and keeps cores awake; the order of it all is in ``log``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[str] = []
        self.absent: Mapping[str, str] = {}
        self.broken: Mapping[str, str] = {}
        self.refuses: set[str] = set()
        self.limits: dict[str, Limits] = {}
        self.squeezes: dict[str, set[str]] = {}
        self.speeds: set[int] = set()
        self.names: Iterator[str] = iter(())
        monkeypatch.setattr(turns, "prepare", self.prepare)
        monkeypatch.setattr(measure, "Journal", lambda: self.within("journal"))
        monkeypatch.setattr(measure, "CoreSpeeds", lambda system, client: self.within("meters"))
        monkeypatch.setattr(measure, "kept_awake", self.kept_awake)
        monkeypatch.setattr(measure, "on_the_bench", self.on_the_bench)
        monkeypatch.setattr(measure, "make_ready", self.make_ready)

    @contextmanager
    def within(self, name: str, given: Any = None) -> Iterator[Any]:
        self.log.append(f"{name} begins")
        try:
            yield given if given is not None else self
        finally:
            self.log.append(f"{name} ends")

    def kept_awake(self, system: Any, client: Any, journal: Any) -> Any:
        assert (system, client) == ((0,), (1,))
        return self.within("awake", SimpleNamespace(cpu_seconds=lambda: 1.25, sentence="The cores were kept awake."))

    def prepare(self, options: RunOptions, _progress: Any) -> Any:
        if options.system in self.absent:
            raise SystemUnderTestError(self.absent[options.system])
        return FakeSession(options.system, 1, self.log).prepared

    def on_the_bench(
        self, prepared: Any, folder: Path, limits: Limits, work: Any, progress: Any, squeezes: Any, speeds: Any
    ) -> None:
        name = folder.name
        self.limits[name], self.squeezes[name] = limits, {one.name for one in squeezes}
        self.speeds.add(id(speeds))
        if name in self.broken:
            raise SystemUnderTestError(self.broken[name])
        with self.within(name):
            work(SimpleNamespace(session=SimpleNamespace(name=name), interference=None))

    def make_ready(self, session: Any) -> None:
        self.log.append(f"{session.name} is ready")
        if session.name in self.refuses:
            raise LoadError("it refused 3 of 10 values")

    def bench(self, told: list[str]) -> Bench:
        options = RunOptions("", "", cores=(0,))
        return Bench(
            options, PLAN, lambda name, _: Path(name), lambda step: told.append(step.activity), Interference(), []
        )


@pytest.fixture
def starting(monkeypatch: pytest.MonkeyPatch) -> Starting:
    return Starting(monkeypatch)


BEFORE, AFTER = ["journal begins", "awake begins", "meters begins"], ["meters ends", "awake ends", "journal ends"]


def test_all_are_up_and_ready_before_the_work_and_stopped_after_it(starting: Starting) -> None:
    told: list[str] = []
    bench = starting.bench(told)

    def work(names: Any) -> None:
        starting.log.append(f"work with {' '.join(names)}")
        assert all(one.interference is bench.interference for one in bench.benches.values())

    assert bench.side_by_side(work) == {}
    up = [line for name in "abc" for line in (f"{name} begins", f"{name} is ready")]
    assert starting.log == [*BEFORE, *up, "work with a b c", "c ends", "b ends", "a ends", *AFTER]
    assert told == ["starting a", "starting b", "starting c"]
    assert starting.limits == {"a": Limits(cpu_cores=0.4), "b": Limits(), "c": Limits()}
    assert set.union(*starting.squeezes.values()) == set(SHARED_SQUEEZES)
    # All have the same meters: they are on the same cores.
    assert starting.speeds == {id(bench.speeds)}
    assert bench.conditions == ["The cores were kept awake."]
    assert bench.interference.beside() == 1.25


def test_those_that_cannot_be_started_are_left_out_with_the_reason(starting: Starting) -> None:
    starting.absent = {"memcached": "memcached is not on this machine"}
    starting.broken = {"b": "redis ended at once"}
    seen: list[Any] = []
    failures = starting.bench([]).side_by_side(seen.append)
    assert seen == [["c"]]
    assert failures == {"a": "memcached is not on this machine", "b": "redis ended at once"}
    assert starting.log == [*BEFORE, "c begins", "c is ready", "c ends", *AFTER]


def test_one_that_refuses_its_data_is_stopped_and_the_others_go_on(starting: Starting) -> None:
    starting.refuses = {"a"}
    seen: list[Any] = []
    assert starting.bench([]).side_by_side(seen.append) == {"a": "it refused 3 of 10 values"}
    assert seen == [["b", "c"]]
    assert starting.log.index("a ends") < starting.log.index("b begins")


def test_without_any_nothing_is_measured_and_no_core_is_kept_awake(starting: Starting) -> None:
    starting.absent = dict.fromkeys(("memcached", "redis", "cache"), "it is not here")
    assert set(starting.bench([]).side_by_side(lambda _: pytest.fail("nothing is up"))) == {"a", "b", "c"}
    assert starting.log == []
    starting.absent, starting.broken = {}, dict.fromkeys("abc", "it ended at once")
    assert set(starting.bench([]).side_by_side(lambda _: pytest.fail("nothing is up"))) == {"a", "b", "c"}
    assert starting.log == [*BEFORE, *AFTER]


@pytest.mark.parametrize("error", [LoadError("the generator broke"), KeyboardInterrupt()])
def test_however_the_work_ends_all_are_stopped_and_it_is_raised(starting: Starting, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        starting.bench([]).side_by_side(lambda _: fail(error)())
    assert raised.value is error
    assert starting.log[-6:] == ["c ends", "b ends", "a ends", *AFTER]
