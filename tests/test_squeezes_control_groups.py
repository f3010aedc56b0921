"""Control groups: where this process's are on hosts of every kind, and making one below them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from control_group_kernel import UnifiedKernel
from rackscope.errors import SqueezeError
from rackscope.squeezes import control_groups, removal
from rackscope.squeezes.control_groups import find_own_groups, make_control_group
from rackscope.squeezes.held import Changes
from rackscope.squeezes.journal import Journal
from rackscope.squeezes.removal import remove_control_group
from rackscope.squeezes.undo import RestoreFile

V1_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:4 - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 {root} /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 {root} /sys/fs/cgroup/memory\\040here rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def record(root: Path, mounts: str, membership: str) -> Path:
    folder = root / "proc/self"
    folder.mkdir(parents=True)
    (folder / "mountinfo").write_text(mounts)
    (folder / "cgroup").write_text(membership)
    return root


def folders(root: Path, *names: str) -> None:
    for name in names:
        (root / "sys/fs/cgroup" / name).mkdir(parents=True)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "state", roots=[tmp_path / "sys/fs/cgroup"]) as journal:
        yield journal


def test_version_1_with_controllers_mounted_together_apart_and_not_at_all(tmp_path: Path) -> None:
    record(tmp_path, V1_MOUNTS.format(root="/"), "4:memory:/job\n3:cpuset:/\n1:cpu,cpuacct:/job\n0::/\n")
    folders(tmp_path, "cpu,cpuacct/job", "cpuset", "memory here/job", "unified")
    own = find_own_groups(tmp_path)
    base = tmp_path / "sys/fs/cgroup"
    assert own.version == 1
    assert own.folders == {
        "cpu": base / "cpu,cpuacct/job",
        "cpuset": base / "cpuset",
        "memory": base / "memory here/job",
    }
    assert own.missing == {"blkio": "the 'blkio' controller is not mounted here"}


def test_a_container_sees_its_own_part_of_a_hierarchy(tmp_path: Path) -> None:
    record(tmp_path, V1_MOUNTS.format(root="/docker/c1"), "4:memory:/docker/c1/x\n3:cpuset:/other\n1:cpu:/docker/c1\n")
    folders(tmp_path, "cpu,cpuacct", "cpuset", "memory here/x")
    own = find_own_groups(tmp_path)
    base = tmp_path / "sys/fs/cgroup"
    assert own.folders == {"cpu": base / "cpu,cpuacct", "memory": base / "memory here/x"}
    assert "/other is outside of what is mounted" in own.missing["cpuset"]


def test_no_control_groups_at_all_is_a_reason_and_no_error(tmp_path: Path, journal: Journal) -> None:
    group, missing = make_control_group("x", find_own_groups(tmp_path), Changes(journal))
    assert group is None
    assert set(missing) == {"cpu", "cpuset", "memory", "blkio", "io"}
    assert all("mountinfo" in reason for reason in missing.values())


def test_version_1_groups_are_nested_below_our_own_and_removed(tmp_path: Path, journal: Journal) -> None:
    record(tmp_path, V1_MOUNTS.format(root="/"), "4:memory:/job\n1:cpu,cpuacct:/job\n")
    folders(tmp_path, "cpu,cpuacct/job", "memory here/job", "unified")
    changes = Changes(journal)
    group, missing = make_control_group("one", find_own_groups(tmp_path), changes)
    other, _ = make_control_group("two", find_own_groups(tmp_path), Changes(journal))
    base = tmp_path / "sys/fs/cgroup"
    assert group is not None
    assert other is not None
    assert group.folders == {
        "cpu": base / "cpu,cpuacct/job/rackscope/one",
        "memory": base / "memory here/job/rackscope/one",
    }
    assert all(folder.is_dir() for folder in group.folders.values())
    assert set(missing) == {"cpuset", "blkio"}
    changes.undo_to(0)
    assert not any(folder.exists() for folder in group.folders.values())
    assert all(folder.is_dir() for folder in other.folders.values())
    journal.close()
    assert not list(base.glob("**/rackscope"))


def test_a_right_that_is_missing_is_told_and_leaves_nothing(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, os.strerror(13))

    record(tmp_path, V1_MOUNTS.format(root="/"), "4:memory:/job\n")
    folders(tmp_path, "memory here/job")
    monkeypatch.setattr(control_groups, "_make_folder", refuse)
    changes = Changes(journal)
    group, missing = make_control_group("one", find_own_groups(tmp_path), changes)
    assert group is None
    assert "Permission denied" in missing["memory"]
    assert "takes root" in missing["memory"]
    assert len(changes) == 0
    assert journal.pending == ()


class TestUnified:
    """Version 2, against a model of its rules."""

    @pytest.fixture
    def kernel(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UnifiedKernel:
        kernel = UnifiedKernel(tmp_path, "cpuset cpu io memory pids")
        kernel.install(monkeypatch)
        return kernel

    def test_the_root_group_may_hold_processes_and_pass_controllers_on(
        self, tmp_path: Path, kernel: UnifiedKernel, journal: Journal
    ) -> None:
        record(tmp_path, V2_MOUNT, "0::/\n")
        (kernel.mount / "cgroup.procs").write_text("1\n2\n")
        (kernel.mount / "cgroup.subtree_control").write_text("memory pids")
        changes = Changes(journal)
        group, missing = make_control_group("one", find_own_groups(tmp_path), changes)
        assert group is not None
        folder = kernel.mount / "rackscope/one"
        assert group.folders == dict.fromkeys(("cpu", "cpuset", "memory", "io"), folder)
        assert missing == {}
        assert set((folder / "cgroup.controllers").read_text().split()) == {"cpu", "cpuset", "memory", "io"}
        changes.undo_to(0)
        assert not (kernel.mount / "rackscope").exists()
        # Those that were on before are still on, and no others.
        assert (kernel.mount / "cgroup.subtree_control").read_text().split() == ["memory", "pids"]

    def test_a_delegated_slice_above_takes_what_our_own_group_cannot(
        self, tmp_path: Path, kernel: UnifiedKernel, journal: Journal
    ) -> None:
        (kernel.mount / "cgroup.subtree_control").write_text("cpu memory")
        kernel.group("user", enabled="cpu memory")
        kernel.group("user/app", enabled="")
        kernel.group("user/app/shell", members="77\n")
        kernel.read_only = {kernel.mount, kernel.mount / "user"}
        record(tmp_path, V2_MOUNT, "0::/user/app/shell\n")
        group, missing = make_control_group("one", find_own_groups(tmp_path), Changes(journal))
        assert group is not None
        assert group.folders == dict.fromkeys(("cpu", "memory"), kernel.mount / "user/app/rackscope/one")
        assert set(missing) == {"cpuset", "io"}
        journal.close()
        assert (kernel.mount / "user/app/cgroup.subtree_control").read_text() == ""
        assert not (kernel.mount / "user/app/rackscope").exists()

    def test_nothing_delegated_is_a_reason_and_changes_nothing(
        self, tmp_path: Path, kernel: UnifiedKernel, journal: Journal
    ) -> None:
        (kernel.mount / "cgroup.subtree_control").write_text("cpu cpuset io memory")
        own = kernel.group("session", members="77\n")
        kernel.read_only = {kernel.mount}
        record(tmp_path, V2_MOUNT, "0::/session\n")
        group, missing = make_control_group("one", find_own_groups(tmp_path), Changes(journal))
        assert group is None
        assert "holds processes" in missing["cpu"]
        assert journal.pending == ()
        assert (own / "cgroup.subtree_control").read_text() == ""

    def test_what_stays_in_a_group_is_killed_as_one(
        self, tmp_path: Path, kernel: UnifiedKernel, journal: Journal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(removal, "_LEAVING_SECONDS", 0.0)
        record(tmp_path, V2_MOUNT, "0::/\n")
        group, _ = make_control_group("one", find_own_groups(tmp_path), Changes(journal))
        assert group is not None
        (group.folders["cpu"] / "cgroup.procs").write_text("77\n")
        remove_control_group(group.folders["cpu"])
        assert not group.folders["cpu"].exists()


@pytest.mark.parametrize("path", ["/sys/fs/cgroup/memory/system.slice", "/sys/fs/cgroup/rackscope-not"])
def test_a_group_that_is_not_ours_is_never_removed(path: str) -> None:
    with pytest.raises(SqueezeError, match="not a control group of rackscope's"):
        remove_control_group(Path(path))


def test_here_a_process_that_stays_is_killed_and_the_group_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_LEAVING_SECONDS", 0.0)
    with Journal(tmp_path) as journal:
        changes = Changes(journal)
        group, missing = make_control_group(f"test-{os.getpid()}", find_own_groups(), changes)
        if group is None:
            pytest.skip(f"no control group can be made here: {missing}")
        with subprocess.Popen(["sleep", "1000"]) as process:
            for folder in set(group.folders.values()):
                (folder / "cgroup.procs").write_text(str(process.pid))
            changes.undo_to(0)
            assert process.wait(timeout=30) == -signal.SIGKILL
        assert not any(folder.exists() for folder in group.folders.values())
        assert not any(isinstance(step, RestoreFile) for step in journal.pending)
