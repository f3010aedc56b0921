"""``study colocate`` and ``advise colocate`` through the command, with real servers: short, about structure."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import Rackscope, interrupt_study, process_exists

#: A host that is busy with other things measures each window up to three times.
SECONDS = 240.0
WORKS = (
    "synthetic:synthetic-read,name=compute,on_read=cpu:100",
    "synthetic:synthetic-read,name=bounded,on_read=cpu:100,cpu=0.3",
)
SHORT = ("--window", "200ms", "--no-fetch", "--out", "study", "--json")


def manifests_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in folder.glob("runs/*/manifest.json")]


@pytest.mark.alone
@pytest.mark.long
def test_two_workloads_are_measured_alone_and_together(rackscope: Rackscope) -> None:
    done = rackscope.process("study", "colocate", *WORKS, "--rounds", "2", "--budget", "12s", *SHORT, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["status"] == "complete"
    result = told["result"]
    assert [one["name"] for one in result["workloads"]] == ["compute", "bounded"]
    assert {(side["workload"], side["neighbour"]) for side in result["sides"]} == {
        ("compute", "bounded"),
        ("bounded", "compute"),
    }
    assert all(len(side["values"]) == 2 for side in result["sides"])
    for workload in result["workloads"]:
        assert 0 < workload["demands"]["cpu"]["amount"] < 1.1
        assert "cpu" in workload["sensitivities"] or "cpu" in workload["unknown"]
    manifests = manifests_of(rackscope.folder / "study")
    assert {manifest["status"] for manifest in manifests} == {"complete"}
    assert len({tuple(manifest["system"]["cores"]) for manifest in manifests}) == 1
    phases = {phase["name"] for manifest in manifests for phase in manifest["phases"]}
    assert {"measure beside bounded", "measure beside compute"} <= phases
    assert not any(process_exists(manifest["system"]["pid"]) for manifest in manifests)
    assert (rackscope.folder / "study" / "report.html").stat().st_size > 5_000
    advised = rackscope.process("advise", "colocate", "study", timeout=SECONDS)
    # On a host where no squeeze could be held there is nothing to advise, and that is said.
    if all("cpu" in workload["sensitivities"] for workload in result["workloads"]):
        assert advised.returncode == 0, advised.stderr
        assert "compute and bounded" in advised.stdout
        assert "Evidence: study; modelled" in advised.stdout
    else:
        assert advised.returncode == 1
        assert "is not known" in advised.stderr


@pytest.mark.alone
@pytest.mark.long
def test_ctrl_c_while_two_run_at_once_stops_both(rackscope: Rackscope) -> None:
    running = rackscope.start(
        *("study", "colocate", *WORKS, "--rounds", "1000", "--budget", "2s"),
        *("--window", "300ms", "--no-fetch", "--out", "study", "--json"),
    )
    folder = rackscope.folder / "study"

    def together() -> bool:
        phases = [phase["name"] for manifest in manifests_of(folder) for phase in manifest["phases"]]
        return any(name.startswith("measure beside") for name in phases)

    interrupt_study(running, together, "a pair")
    kept = json.loads((folder / "study.json").read_text())
    assert kept["status"] == "interrupted"
    assert kept["result"]["workloads"]
    assert (folder / "report.html").exists()
    assert not any(process_exists(manifest["system"]["pid"]) for manifest in manifests_of(folder))


@pytest.mark.parametrize(
    ("arguments", "clear"),
    [
        (("study", "colocate", WORKS[0]), "there is only one workload"),
        (("study", "colocate", "redis", "memcached"), "got 'redis'"),
        (("advise", "colocate", "nowhere"), "nowhere"),
        (("advise", "colocate", ".", "--slowdown", "lots"), "'lots' is not a percentage"),
    ],
)
def test_nonsense_is_refused_in_a_line(rackscope: Rackscope, arguments: tuple[str, ...], clear: str) -> None:
    done = rackscope(*arguments)
    assert done.returncode in (1, 2)
    assert clear in done.stderr
    assert "Traceback" not in done.stderr
    assert not (rackscope.folder / "runs").exists()


def test_a_run_says_what_a_workload_takes_and_not_how_it_suffers(rackscope: Rackscope, finished_run: Path) -> None:
    for number in ("1", "2"):
        shutil.copytree(finished_run, rackscope.folder / f"run{number}")
    done = rackscope("advise", "colocate", "run1", "run2")
    assert done.returncode == 1
    assert "no pair can be compared" in done.stderr
    assert "no resource of it was squeezed" in done.stderr
