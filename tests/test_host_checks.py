"""The doctor: what is missing is found, with what that disables and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from host_trees import amd_bare_metal, arm_guest, container, small_guest, write_tree
from rackscope.host.ceilings import Ceiling, Ceilings, ceilings_path, save_ceilings
from rackscope.host.checks import Check, run_checks
from rackscope.host.checks.own import leftover_processes
from rackscope.host.inventory import read_inventory
from rackscope.host.tree import Tree


@pytest.fixture(autouse=True)
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def no_probes(_: str) -> Sequence[Mapping[str, Any]]:
    return []


def examine(root: Path, probes: Any = no_probes, pause: Any = lambda _: None) -> dict[str, Check]:
    return {check.name: check for check in run_checks(root, Path("/"), pause=pause, probes=probes)}


def as_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)


BUILDERS = [amd_bare_metal, arm_guest, container, small_guest]


@pytest.mark.parametrize("build", BUILDERS)
def test_every_lack_says_what_it_costs(tmp_path: Path, build: Any) -> None:
    checks = run_checks(build(tmp_path / "root"), Path("/"), pause=lambda _: None, probes=no_probes)
    names = [check.name for check in checks]
    assert len(names) == len(set(names))
    for check in checks:
        assert check.what
        assert check.status == "ok" or check.effect, check.name
        assert "\n" not in check.what + check.effect + check.advice


def test_an_empty_tree_is_examined_too(tmp_path: Path) -> None:
    checks = examine(tmp_path)
    assert checks["kernel"].status == checks["memory"].status == checks["cores"].status == "limited"


def test_this_host_can_be_examined() -> None:
    assert len(run_checks(pause=lambda _: None)) > 10


def test_a_server_with_everything_switched_the_wrong_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_user(monkeypatch)
    checks = examine(amd_bare_metal(tmp_path / "root"))
    assert checks["cores"].status == "ok"
    assert "2 of them isolated" in checks["cores"].what
    assert checks["virtual machine"].what == "bare metal"
    assert checks["frequency"].status == "limited"
    assert "schedutil" in checks["frequency"].what
    assert checks["turbo"].status == "limited"
    assert checks["swap"].status == "limited"
    assert checks["huge pages"].status == "limited"
    assert "hpet" in checks["clock"].what
    assert checks["processes"].status == "limited"
    assert "hidepid=invisible" in checks["processes"].what
    assert checks["pressure"].status == "ok"


@pytest.mark.parametrize(
    ("paranoia", "user", "status", "says"),
    [
        ("3", 1000, "limited", "forbidden"),
        ("2", 1000, "limited", "own processes only"),
        ("0", 1000, "ok", "whole host"),
        ("3", 0, "ok", "whole host"),
    ],
)
def test_perf_events_as_far_as_they_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paranoia: str, user: int, status: str, says: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: user)
    root = amd_bare_metal(tmp_path / "root")
    write_tree(root, {"proc/sys/kernel/perf_event_paranoid": paranoia})
    found = examine(root)["perf events"]
    assert found.status == status
    assert says in found.what


def test_a_guest_without_counters_is_told_where_to_get_them(tmp_path: Path) -> None:
    found = examine(small_guest(tmp_path / "root"))["perf events"]
    assert found.status == "limited"
    assert "guest" in found.what
    assert "pmu=on" in found.advice


def power_probe(name: str, status: str, reason: str, domain: str) -> dict[str, Any]:
    column = f'power_watts{{domain="{domain}",meter="{name}"}}'
    return {"name": f"power:{name}", "status": status, "reason": reason, "needs": "a right", "columns": [column]}


def test_power_meters_are_told_with_the_right_that_each_needs(tmp_path: Path) -> None:
    absent = power_probe("nvml", "missing", "not present: no NVIDIA driver", "gpu-0")
    forbidden = power_probe("ipmi_dcmi", "missing", "cannot open /dev/ipmi0; run as root", "server")
    working = power_probe("hwmon", "ok", "", "server")
    doubtful = power_probe("file:x", "untrusted", "2 of 3 readings failed", "x")
    root = small_guest(tmp_path / "root")
    checks = examine(root, probes=lambda _: [absent, forbidden, working, doubtful])
    assert checks["power meters"].status == "ok"
    assert checks["power meters"].what == "hwmon (server); file:x (x)"
    assert checks["power meter ipmi_dcmi"].status == "limited"
    assert "a right" in checks["power meter ipmi_dcmi"].advice
    assert "not trusted" in checks["power meter file:x"].effect
    assert not any("nvml" in name or name.startswith("probe power") for name in checks)
    checks = examine(root, probes=lambda _: [absent, forbidden])
    assert checks["power meters"].status == "limited"
    assert "nvml: no NVIDIA driver" in checks["power meters"].what
    assert "modelled" in checks["power meters"].effect
    assert "--meter" in checks["power meters"].advice


def test_a_container_with_half_a_core(tmp_path: Path) -> None:
    checks = examine(container(tmp_path / "root"))
    assert checks["cores"].status == "limited"
    assert "1 core" in checks["cores"].what
    assert "0.5 cores" in checks["CPU limit"].what
    assert checks["memory"].status == "limited"
    assert "512 MiB" in checks["memory"].what
    assert checks["container"].status == "limited"


def test_two_threads_of_one_core_are_not_two_cores(tmp_path: Path) -> None:
    root = amd_bare_metal(tmp_path / "root")
    write_tree(root, {"proc/self/status": "Cpus_allowed_list:\t0,4\n"})
    assert "one physical core" in examine(root)["cores"].what


@pytest.mark.parametrize(("release", "status"), [("4.18.0-553.el8", "limited"), ("5.10.0", "ok"), ("x", "limited")])
def test_kernels(tmp_path: Path, release: str, status: str) -> None:
    root = write_tree(small_guest(tmp_path / "root"), {"proc/sys/kernel/osrelease": release})
    assert examine(root)["kernel"].status == status


@pytest.mark.parametrize(("stolen", "status"), [(0, "ok"), (3, "limited"), (50, "bad")])
def test_steal_of_the_second_that_was_watched(tmp_path: Path, stolen: int, status: str) -> None:
    root = small_guest(tmp_path / "root")

    def neighbour(_: float) -> None:
        (root / "proc/stat").write_text(f"cpu  100 0 100 {900 - stolen} 0 0 0 {stolen} 0 0\n")

    assert examine(root, pause=neighbour)["steal"].status == status


def test_probes_that_cannot_read_are_listed_with_their_needs(tmp_path: Path) -> None:
    probes = [
        {"name": "cpu", "status": "ok", "reason": "", "needs": "/proc/stat"},
        {"name": "cgroup", "status": "missing", "reason": "no such group", "needs": "a control group"},
        {"name": "disk", "status": "untrusted", "reason": "counters go backwards", "needs": ""},
        {"name": "perf:host", "status": "missing", "reason": "no counters", "needs": "hardware counters"},
    ]
    checks = examine(small_guest(tmp_path / "root"), probes=lambda _: probes)
    assert checks["probes"].what == "cpu can be read"
    assert checks["probe cgroup"].advice == "It needs a control group."
    assert "not trusted" in checks["probe disk"].effect
    assert "probe perf:host" not in checks


def test_a_native_module_that_is_missing_is_bad(tmp_path: Path) -> None:
    def absent(_: str) -> Sequence[Mapping[str, Any]]:
        raise ImportError("no module named _native")

    checks = examine(small_guest(tmp_path / "root"), probes=absent)
    assert checks["native module"].status == "bad"
    assert "no module named" in checks["native module"].what


def calibrated(root: Path, measured_at: str, distrust: str | None = None) -> None:
    ceiling = Ceiling.of("a", [1.0], "bytes/s", measured_at=measured_at, method="", distrust=distrust)
    identity = read_inventory(root, Path("/")).identity
    save_ceilings(Ceilings(identity, measured_at, quick=False, ceilings=(ceiling,)))


def test_calibration_never_old_recent_and_damaged(tmp_path: Path) -> None:
    from datetime import datetime, timedelta

    root = small_guest(tmp_path / "root")
    assert "never calibrated" in examine(root)["calibration"].what
    now = datetime.now().astimezone()
    calibrated(root, (now - timedelta(days=3)).isoformat(), distrust="page cache")
    found = examine(root)["calibration"]
    assert found.status == "ok"
    assert "1 of them not trusted" in found.what
    assert "3 days ago" in found.what
    calibrated(root, (now - timedelta(days=100)).isoformat())
    assert examine(root)["calibration"].status == "limited"
    calibrated(root, "yesterday")
    assert "unknown age" in examine(root)["calibration"].what
    ceilings_path(read_inventory(root, Path("/")).identity).write_text("{")
    assert examine(root)["calibration"].status == "bad"


def process(pid: int, name: str, parent: int, command: str = "") -> dict[str, str]:
    return {
        f"proc/{pid}/comm": f"{name}\n",
        f"proc/{pid}/stat": f"{pid} ({name}) S {parent} {pid} {pid} 0 -1\n",
        f"proc/{pid}/cmdline": command,
    }


def test_leftovers_are_those_whose_parent_is_gone(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path,
        process(1, "systemd", 0)
        | process(50, "systemd", 1)
        | process(100, "python3", 50, "python3\0-m\0rackscope")
        | process(101, "rackscope-keepe", 100)
        | process(102, "rackscope-keepe", 101)
        | process(103, "rackscope-cache", 102)
        | process(200, "rackscope-keepe", 1)
        | process(201, "rackscope-cache", 50)
        | process(300, "bash) S 1 (", 50),
    )
    assert leftover_processes(Tree(root)) == [200, 201]
    found = examine(root)["leftovers"]
    assert found.status == "bad"
    assert "kill 200 201" in found.advice


def test_rackscope_as_the_first_process_of_a_container_leaves_nothing(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path, process(1, "python3", 0, "python3\0/usr/bin/rackscope\0run") | process(9, "rackscope-keepe", 1)
    )
    assert leftover_processes(Tree(root)) == []


def test_a_folder_that_is_gone_is_bad(tmp_path: Path) -> None:
    checks = run_checks(small_guest(tmp_path / "root"), tmp_path / "absent", pause=lambda _: None, probes=no_probes)
    assert {check.name: check.status for check in checks}["disk space"] == "bad"
