"""Calibration with kernels that answer at once: what is asked for, what is kept, what is said when something fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from host_kernels import FakeKernels, setting
from host_trees import amd_bare_metal, arm_guest, container, small_guest
from rackscope.errors import UsageError
from rackscope.host.calibration import CalibrationOptions, Missing, calibrate, groups, run_step
from rackscope.host.ceilings import CalibrationError, Ceiling, Ceilings, ceilings_path, load_ceilings
from rackscope.host.cpu_time import CpuTime, read_cpu_time
from rackscope.host.inventory import Inventory, read_inventory
from rackscope.host.measurements.memory import chase_bytes, rungs, stream_buffer, thread_counts
from rackscope.host.measurements.processor import measure_instructions
from rackscope.host.measurements.setting import Setting, choose_cores, spread
from rackscope.host.steps import STEPS, Step
from rackscope.host.tree import Tree

QUICK_NAMES = {
    "instructions_per_second",
    "dram_read_bytes_per_second",
    "dram_write_bytes_per_second",
    "dram_copy_bytes_per_second",
    "dram_latency_seconds",
    "loopback_bytes_per_second",
    "loopback_requests_per_second",
    'network_bytes_per_second{interface="eno1"}',
}


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def no_steal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What neighbours take of the host that tests run on is not what they are about."""

    def read(tree: Tree) -> CpuTime | None:
        return None if tree.root == Path("/") else read_cpu_time(tree)

    monkeypatch.setattr("rackscope.host.calibration.read_cpu_time", read)


@pytest.fixture
def amd(tmp_path: Path) -> Inventory:
    return read_inventory(amd_bare_metal(tmp_path / "amd"), Path("/"))


def run(options: CalibrationOptions, inventory: Inventory, kernels: FakeKernels) -> Ceilings:
    return calibrate(options, lambda *_: None, inventory=inventory, kernels=kernels)


def test_a_quick_calibration_measures_what_runs_are_judged_by(amd: Inventory) -> None:
    kernels = FakeKernels()
    found = run(CalibrationOptions(quick=True), amd, kernels)
    assert found.values().keys() == QUICK_NAMES
    assert found.values()["dram_read_bytes_per_second"] == 1.0e10
    assert found.values()["dram_latency_seconds"] == pytest.approx(1e-10)
    assert found.values()['network_bytes_per_second{interface="eno1"}'] == 25e9 / 8
    assert load_ceilings(amd.identity) == found
    assert not any(call[0] == "sampler" for call in kernels.calls)


def test_a_full_one_also_checks_counters_and_says_why_disks_are_missing(amd: Inventory) -> None:
    found = run(CalibrationOptions(), amd, FakeKernels())
    assert {check.status for check in found.counters} == {"missing"}
    assert "fio" in found.missing["disk_sequential_read_bytes_per_second"]


def test_progress_only_grows_and_ends_at_one(amd: Inventory) -> None:
    seen: dict[str, float] = {}
    fractions: list[float] = []

    def note(activity: str, fraction: float) -> None:
        seen[activity] = fraction
        fractions.append(fraction)

    calibrate(CalibrationOptions(quick=True), note, inventory=amd, kernels=FakeKernels())
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1.0)
    assert {"instructions per second", "DRAM read", "DRAM latency", "loopback requests"} <= seen.keys()


def test_ctrl_c_keeps_what_was_measured(amd: Inventory) -> None:
    kernels = FakeKernels()
    kernels.fail["latency"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        run(CalibrationOptions(quick=True), amd, kernels)
    kept = load_ceilings(amd.identity)
    assert kept is not None
    assert kept.values().keys() == {
        "instructions_per_second",
        "dram_read_bytes_per_second",
        "dram_write_bytes_per_second",
        "dram_copy_bytes_per_second",
    }


def test_ctrl_c_loses_nothing_of_an_earlier_calibration(amd: Inventory) -> None:
    run(CalibrationOptions(quick=True), amd, FakeKernels())
    kernels = FakeKernels()
    kernels.fail["read"] = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        run(CalibrationOptions(quick=True), amd, kernels)
    kept = load_ceilings(amd.identity)
    assert kept is not None
    assert kept.values().keys() == QUICK_NAMES


def test_one_failure_does_not_end_the_others(amd: Inventory) -> None:
    kernels = FakeKernels()
    kernels.fail["read"] = OSError("core 3 cannot be used by this process: Invalid argument")
    kernels.fail["phase"] = RuntimeError("the server closed connection 3")
    found = run(CalibrationOptions(quick=True), amd, kernels)
    assert found.missing["dram_read_bytes_per_second"].startswith("core 3 cannot be used")
    assert found.missing["loopback_requests_per_second"] == "the server closed connection 3"
    assert found.values().keys() == QUICK_NAMES - {"dram_read_bytes_per_second", "loopback_requests_per_second"}
    # What was started for the failing phase is gone.
    assert kernels.closed == ["client", "responder"]


def test_nothing_measured_is_an_error_with_the_reasons(amd: Inventory) -> None:
    kernels = FakeKernels()
    kernels.fail["instructions"] = kernels.fail["clock"] = OSError("no core")
    with pytest.raises(CalibrationError, match="nothing could be measured: no core"):
        run(CalibrationOptions(only=frozenset({"cpu"})), amd, kernels)


def test_a_damaged_file_is_replaced_and_that_is_said(amd: Inventory) -> None:
    path = ceilings_path(amd.identity)
    path.parent.mkdir(parents=True)
    path.write_text("{")
    found = run(CalibrationOptions(only=frozenset({"cpu"})), amd, FakeKernels())
    assert any("damaged" in note for note in found.notes)
    assert load_ceilings(amd.identity) == found


def test_a_ceiling_far_from_the_earlier_one_is_remarked_on(amd: Inventory) -> None:
    run(CalibrationOptions(only=frozenset({"cpu"})), amd, FakeKernels())
    earlier = load_ceilings(amd.identity)
    assert earlier is not None
    doubled = replace(earlier, ceilings=(replace(earlier.ceilings[0], value=2.0e10, maximum=2.0e10),))

    kept: list[Ceilings] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rackscope.host.calibration.load_ceilings", lambda _: doubled)
        found = calibrate(
            CalibrationOptions(only=frozenset({"cpu"})),
            lambda *_: None,
            inventory=amd,
            kernels=FakeKernels(),
            keep=kept.append,
        )
    assert any("instructions_per_second" in note and "50% below" in note for note in found.notes)
    assert kept[-1] == found


@pytest.mark.parametrize("only", sorted(groups()))
def test_groups_can_be_measured_alone(amd: Inventory, only: str) -> None:
    if only == "disk":
        with pytest.raises(CalibrationError, match="fio"):
            run(CalibrationOptions(only=frozenset({only})), amd, FakeKernels())
    else:
        found = run(CalibrationOptions(only=frozenset({only})), amd, FakeKernels())
        assert found.ceilings or found.counters


def test_unknown_groups_and_cores_are_mistakes(amd: Inventory) -> None:
    with pytest.raises(UsageError, match="gpu"):
        run(CalibrationOptions(only=frozenset({"gpu"})), amd, FakeKernels())
    with pytest.raises(UsageError, match="core 9"):
        run(CalibrationOptions(cores=(0, 9)), amd, FakeKernels())


def test_threads_take_physical_cores_first_and_nodes_in_turn(amd: Inventory) -> None:
    assert spread(range(8), amd.processor) == (0, 2, 1, 3, 4, 6, 5, 7)
    assert spread((4, 5, 0), amd.processor) == (0, 5, 4)


def test_cores_default_to_those_that_may_be_used(tmp_path: Path) -> None:
    assert choose_cores(read_inventory(arm_guest(tmp_path), Path("/")), None) == (0, 2)


def test_the_chosen_cores_are_the_ones_measured(amd: Inventory) -> None:
    kernels = FakeKernels()
    run(CalibrationOptions(quick=True, cores=(2, 3)), amd, kernels)
    used = [call[2] for call in kernels.calls if call[0] == "instructions"]
    assert used == [(2,), (2, 3)]
    assert [call[1:] for call in kernels.calls if call[0] == "loopback"] == [(2, 3)] * 4


def test_one_core_for_both_ends_is_not_trusted(tmp_path: Path) -> None:
    inventory = read_inventory(container(tmp_path), Path("/"))
    found = run(CalibrationOptions(quick=True), inventory, FakeKernels())
    assert set(found.untrusted()) == {"loopback_bytes_per_second", "loopback_requests_per_second"}


def test_buffers_are_four_times_the_last_level_cache(amd: Inventory, tmp_path: Path) -> None:
    assert stream_buffer(setting(amd, FakeKernels(), tmp_path)) == (4 * 64 * 1024**2, None)


def test_an_unknown_cache_means_large_buffers(tmp_path: Path) -> None:
    inventory = read_inventory(small_guest(tmp_path), Path("/"))
    size, distrust = stream_buffer(setting(inventory, FakeKernels(), tmp_path))
    assert (size, distrust) == (1024**3, None)
    assert chase_bytes(setting(inventory, FakeKernels(), tmp_path)) == (1024**3, None)


def test_too_little_memory_is_said(amd: Inventory, tmp_path: Path) -> None:
    tight = replace(amd, memory=replace(amd.memory, available_bytes=300 * 1024**2))
    size, distrust = stream_buffer(setting(tight, FakeKernels(), tmp_path))
    assert size == int(0.4 * 300 * 1024**2)
    assert "last-level cache" in (distrust or "")
    limited = replace(amd, cgroup=replace(amd.cgroup, memory_limit_bytes=8 * 1024**2))
    with pytest.raises(CalibrationError, match="too little memory"):
        stream_buffer(setting(limited, FakeKernels(), tmp_path))


def test_the_cache_ladder_stays_below_the_largest_working_set(amd: Inventory, tmp_path: Path) -> None:
    quick = setting(amd, FakeKernels(), tmp_path)
    assert list(rungs(quick, 1 << 30)) == [16 << 10, 256 << 10, 16 << 20]
    full = replace(quick, quick=False)
    sizes = list(rungs(full, 100 << 20))
    assert sizes[0] == 16 << 10
    assert sizes[-1] == 64 << 20
    assert all(later == 2 * earlier for earlier, later in pairwise(sizes))


@pytest.mark.parametrize(
    ("cores", "quick", "counts"),
    [(1, False, [1]), (2, False, [1, 2]), (6, False, [1, 2, 4, 6]), (64, True, [1, 64])],
)
def test_thread_counts(cores: int, quick: bool, counts: list[int]) -> None:
    assert thread_counts(cores, quick=quick) == counts


def test_bandwidth_is_that_of_the_best_number_of_threads(amd: Inventory) -> None:
    kernels = FakeKernels()
    found = run(CalibrationOptions(quick=True), amd, kernels)
    read = found.get("dram_read_bytes_per_second")
    assert read is not None
    assert read.detail["threads"] == 8
    assert read.detail["bytes_per_second_by_threads"] == {"1": 1.0e10, "8": 8.0e10}
    assert [call[1:] for call in kernels.calls if call[0] == "read"] == [
        (1, 256 * 1024**2, (0,)),
        (8, 32 * 1024**2, (0, 2, 1, 3, 4, 6, 5, 7)),
    ]


def test_steal_during_a_step_is_recorded_and_doubted(tmp_path: Path) -> None:
    root = small_guest(tmp_path)
    kernels = FakeKernels()
    circumstances = setting(read_inventory(root, Path("/")), kernels, root)

    def neighbour(_: str) -> None:
        (root / "proc/stat").write_text("cpu  100 0 100 850 0 0 0 50 0 0\n")

    kernels.after = neighbour
    (found,) = run_step(STEPS[0], circumstances, lambda *_: None)
    assert isinstance(found, Ceiling)
    assert found.detail["steal_ratio"] == 0.5
    assert "50%" in (found.distrust or "")


def test_a_step_that_fails_half_way_keeps_its_first_half(tmp_path: Path) -> None:
    root = small_guest(tmp_path)
    good = measure_instructions(setting(read_inventory(root, Path("/")), FakeKernels(), root))[0]

    def measure(_setting: Setting, _say: object) -> Iterator[Ceiling]:
        yield good
        raise OSError("the disk went away")

    step = Step("disk", "disk", (good.name, "disk_random_read_operations_per_second"), measure, 1.0)
    found = list(run_step(step, setting(read_inventory(root, Path("/")), FakeKernels(), root), lambda *_: None))
    assert isinstance(found[0], Ceiling)
    assert found[1:] == [Missing(("disk_random_read_operations_per_second",), "the disk went away")]


def test_a_result_that_cannot_be_kept_is_an_error_not_a_missing_ceiling(amd: Inventory) -> None:
    def full(_: Ceilings) -> None:
        raise CalibrationError("the ceilings could not be kept: No space left on device")

    with pytest.raises(CalibrationError, match="could not be kept"):
        calibrate(CalibrationOptions(quick=True), lambda *_: None, inventory=amd, kernels=FakeKernels(), keep=full)


def test_the_real_kernels_answer_in_the_expected_shape(tmp_path: Path) -> None:
    native = pytest.importorskip("rackscope._native")
    inventory = read_inventory()
    found = calibrate(
        CalibrationOptions(quick=True, only=frozenset({"cpu"})), lambda *_: None, inventory=inventory, kernels=native
    )
    (ceiling,) = found.ceilings
    assert 0 < ceiling.minimum <= ceiling.median <= ceiling.value
    moved = native.measure_dram_bandwidth("copy", 1, 1 << 20, 0.0)
    assert moved["bytes_moved"] == (1 << 20) * len(moved["rates_per_second"])
    with pytest.raises(ValueError, match="'scale'"):
        native.measure_dram_bandwidth("scale", 1, 1 << 20, 0.0)
    with pytest.raises(ValueError, match="is not possible"):
        native.measure_dram_latency(1 << 20, float("nan"))
    with pytest.raises(OSError, match="core 1000"):
        native.measure_instruction_rate(0.0, [1000])


def test_the_real_load_generator_answers_in_the_expected_shape() -> None:
    native = pytest.importorskip("rackscope._native")
    network = CalibrationOptions(quick=True, only=frozenset({"network"}))
    found = calibrate(network, lambda *_: None, kernels=native)
    assert found.values()["loopback_bytes_per_second"] > 0
    assert found.values()["loopback_requests_per_second"] > 0
