"""Memory bandwidth and last-level cache: resctrl on a recorded tree, antagonists, the synthetic system's channel."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from conftest import wait_until
from rackscope import _native
from rackscope.errors import SqueezeError
from rackscope.squeezes import dram_bandwidth, find_squeezes, resctrl
from rackscope.squeezes.base import Capacity, Isolation, NotSqueezable, Subject
from rackscope.squeezes.dram_bandwidth import DramBandwidth, RegulatedChannel
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.last_level_cache import LastLevelCache
from rackscope.squeezes.resctrl import find_regulator
from rackscope.squeezes.undo import RemoveResctrlGroup, undo_from_json, undo_to_json

CORE = min(os.sched_getaffinity(0))


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A two-socket host with MBA and CAT; groups made in it have the files that the kernel would put there."""
    root = tmp_path / "resctrl"
    for path, text in {
        "schemata": "    MB:0=100;1=100\n    L3:0=7ff0;1=7ff0\n",
        "info/MB/min_bandwidth": "10\n",
        "info/MB/bandwidth_gran": "10\n",
        "info/L3/min_cbm_bits": "2\n",
        "info/last_cmd_status": "ok\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)

    def make_group(group: Path) -> None:
        group.mkdir()
        for name in ("schemata", "tasks"):
            (group / name).touch()

    monkeypatch.setattr(resctrl, "make_group", make_group)
    # The kernel removes a group with the files in it.
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    return root


def subject(**parts: object) -> Subject:
    return Subject(Isolation(), (CORE,), **parts)  # type: ignore[arg-type]


def own_threads() -> dict[int, str]:
    """Names of this process's threads."""
    return {int(task.name): (task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()}


def test_both_are_found_by_their_files():
    assert {"dram_bandwidth", "last_level_cache"} <= {squeeze.name for squeeze in find_squeezes()}
    assert "regulated_channel" not in {squeeze.name for squeeze in find_squeezes()}


@pytest.mark.parametrize(
    ("name", "fraction", "line"),
    [
        ("MB", 0.5, "MB:0=50;1=50\n"),
        ("MB", 0.62, "MB:0=60;1=60\n"),
        ("MB", 0.01, "MB:0=10;1=10\n"),
        ("L3", 1.0, "L3:0=7ff0;1=7ff0\n"),
        ("L3", 0.5, "L3:0=3f0;1=3f0\n"),
        ("L3", 0.01, "L3:0=30;1=30\n"),
    ],
)
def test_a_fraction_becomes_what_the_hardware_can(tree: Path, name, fraction: float, line: str):
    regulator = find_regulator(name, tree)
    assert regulator is not None
    assert regulator.schemata(fraction) == line


def test_a_domain_that_has_less_already_can_be_regulated(tree: Path):
    (tree / "schemata").write_text("MB:0=50;1=100\n")
    regulator = find_regulator("MB", tree)
    assert regulator is not None
    assert regulator.schemata(0.5) == "MB:0=50;1=50\n"


def test_what_is_not_percent_or_not_there_is_no_regulator(tree: Path, tmp_path: Path):
    assert find_regulator("MB", tmp_path / "nothing") is None
    for text in ("MB:0=2048;1=2048\n", "MB:0=\n", "MB:0=many\n", "MB:\n", "L3:0=0\n", "\n"):
        (tree / "schemata").write_text(text)
        assert find_regulator("MB", tree) is None
        assert find_regulator("L3", tree) is None


@pytest.mark.parametrize(("kind", "line"), [(DramBandwidth, "MB:0=40;1=40\n"), (LastLevelCache, "L3:0=f0;1=f0\n")])
def test_a_group_with_the_systems_threads_is_made_and_removed(tree: Path, tmp_path: Path, kind, line: str):
    squeeze = kind(tree)
    assert not squeeze.has_control
    with Journal(tmp_path / "journal", roots=(tree,)) as journal:
        held = squeeze.apply(subject(pid=os.getpid()), 0.4, journal)
        [step] = journal.pending
        assert isinstance(step, RemoveResctrlGroup)
        assert (step.path / "schemata").read_text() == line
        # The kernel's file takes one thread a write, so the recorded one holds the last.
        assert int((step.path / "tasks").read_text()) in own_threads()
        assert undo_from_json(json.loads(json.dumps(undo_to_json(step)))) == step
        held.release()
        held.release()
        assert not step.path.exists()
        assert not journal.pending


def test_a_group_that_cannot_be_made_leaves_nothing(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def no_space(group: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(resctrl, "make_group", no_space)
    with Journal(tmp_path / "journal", roots=(tree,)) as journal:
        with pytest.raises(SqueezeError, match="MB of resctrl could not be squeezed"):
            DramBandwidth(tree).apply(subject(pid=os.getpid()), 0.5, journal)
        assert not journal.pending


def test_only_groups_of_rackscopes_are_removed():
    for path in ("/sys/fs/resctrl/other", "/sys/fs/resctrl/rackscope-1/..", "/tmp/rackscope-1"):
        assert RemoveResctrlGroup(Path(path)).refusal((Path("/sys/fs/resctrl"),))
    assert RemoveResctrlGroup(Path("/sys/fs/resctrl/rackscope-1")).refusal((Path("/sys/fs/resctrl"),)) is None


@pytest.mark.parametrize("kind", [DramBandwidth, LastLevelCache])
def test_without_resctrl_and_spare_cores_it_says_what_is_missing(tmp_path: Path, kind):
    found = kind(tmp_path).capacity(subject())
    if isinstance(found, NotSqueezable):  # or the kernel does not tell the size of the cache
        assert found.needs
    assert not isinstance(found, Capacity)
    with (
        Journal(tmp_path / "journal") as journal,
        pytest.raises(SqueezeError, match="no core to spare"),
    ):
        kind(tmp_path).apply(subject(), 0.5, journal)


def test_antagonists_read_memory_and_their_placebo_none_until_released(tmp_path: Path, monkeypatch):
    started = []

    def start(kind: str, cores: list[int], **options: float) -> _native.Antagonist:
        started.append(native(kind, cores, **options))
        return started[-1]

    native = _native.Antagonist
    monkeypatch.setattr(_native, "Antagonist", start)
    squeeze = DramBandwidth(tmp_path)
    assert squeeze.has_control
    with Journal(tmp_path / "journal") as journal:
        with squeeze.apply(subject(spare_cores=(CORE,)), 0.5, journal) as held:
            wait_until(lambda: started[0].moved_bytes > 64 << 20, "bytes to be read", seconds=120)
            with squeeze.apply_control(subject(spare_cores=(CORE,)), 0.5, journal):
                wait_until(lambda: started[1].busy_seconds > 0.02, "the placebo to be busy", seconds=120)
                assert started[1].moved_bytes == 0
        held.release()
        assert not journal.pending
    assert f"antagonist-{CORE}" not in own_threads().values()


@pytest.mark.parametrize(
    ("rates", "left", "effective"),
    [
        # Beside the placebo, beside the antagonists.
        ([8e9, 4e9], 0.5, True),
        ([8e9, 7.9e9], 0.9875, False),
        ([4e9, 4e9], 1.0, False),
    ],
)
def test_what_antagonists_take_is_measured_beside_the_placebo(tmp_path: Path, monkeypatch, rates, left, effective):
    beside = []
    following = iter(rates)

    def read(_subject: Subject) -> float:
        beside.append([kind for kind, antagonist in started if antagonist.runs])
        return next(following)

    class Fake:
        runs = True

        def __init__(self, kind: str, _cores: list[int], duty: float) -> None:
            assert duty == pytest.approx(0.5)
            started.append((kind, self))

        def stop(self) -> None:
            self.runs = False

    started: list[tuple[str, Fake]] = []
    monkeypatch.setattr(_native, "Antagonist", Fake)
    monkeypatch.setattr(dram_bandwidth, "_read", read)
    with Journal(tmp_path / "journal") as journal:
        achieved = DramBandwidth(tmp_path).verify(subject(spare_cores=(CORE,)), 0.5, journal)
    assert beside == [["placebo"], ["dram_bandwidth"]]
    assert achieved.fraction == pytest.approx(left)
    assert achieved.effective == effective


def test_the_native_antagonist_counts_and_stops():
    antagonist = _native.Antagonist("last_level_cache", [CORE], duty=0.5, buffer_bytes=1 << 20, nice=19)
    wait_until(lambda: antagonist.moved_bytes > 1 << 20, "bytes to be moved")
    antagonist.stop()
    moved = antagonist.moved_bytes
    assert antagonist.busy_seconds > 0
    antagonist.stop()
    assert antagonist.moved_bytes == moved
    with pytest.raises(ValueError, match="'gpu'"):
        _native.Antagonist("gpu", [CORE])
    with pytest.raises(OSError, match="core 100000"):
        _native.Antagonist("placebo", [100000])


def test_a_folder_without_a_channel_has_none(tmp_path: Path):
    assert isinstance(RegulatedChannel().capacity(subject(folder=tmp_path)), NotSqueezable)
    (tmp_path / "regulated-channel").write_bytes(b"something else")
    found = RegulatedChannel().capacity(subject(folder=tmp_path))
    assert isinstance(found, NotSqueezable)
    assert "is not a regulated channel" in found.reason
