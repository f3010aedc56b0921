"""``study peers`` through the command, with real servers: short, and about structure rather than speed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Rackscope, interrupt_study, process_exists

#: A host that is busy with other things measures each window up to three times.
SECONDS = 240.0
SHORT = ("--keys", "1000", "--window", "100ms", "--no-fetch", "--out", "study", "--json")


def manifests_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in folder.glob("runs/*/manifest.json")]


@pytest.mark.alone
@pytest.mark.parametrize(
    ("peers", "settings"),
    [
        (["memcached"], ["unix"]),
        pytest.param(["memcached", "redis", "segcache"], ["unix", "multi-get"], marks=pytest.mark.long),
    ],
)
def test_a_cache_is_measured_beside_its_peers(rackscope: Rackscope, peers: list[str], settings: list[str]) -> None:
    done = rackscope.process(
        *("study", "peers", "cache", "--peers", ",".join(peers), "--settings", ",".join(settings)),
        *("--repetitions", "2", "--loads", "50", "--memory", "2000", "--budget", "60s", *SHORT),
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["status"] == "complete"
    result = told["result"]
    # What is not fetched may be missing, and is named.
    there = [name for name in ("cache", *peers) if name != "segcache"]
    assert set(there) <= set(result["versions"])
    assert ("segcache" in result["versions"]) == (
        "segcache" in peers
        and not any(finding["sentence"] == "Not found on PATH: segcache." for finding in told["findings"])
    )
    # The setting that loads are told in is measured without being asked for.
    assert [one["name"] for one in result["settings"]] == [*settings, "unpipelined-mixed"]
    for setting in result["settings"]:
        for name in there:
            system = setting["systems"][name]
            assert len(system["rates_operations_per_second"]) == 2
            assert system["rate"]["estimate"] > 0
            assert system["server_cpu_seconds_per_million"]["estimate"] > 0
            assert system["client_cpu_seconds_per_million"]["estimate"] > 0
            assert ("ratio" in system) == (name != "cache")
    [load] = result["loads"]
    assert load["load"] == 0.5
    assert load["systems"][there[-1]]["p99_seconds"]["estimate"] > 0
    assert all(use["full_bytes"] > 0 and use["hit_ratio"] == 1.0 for use in result["memory"].values())
    folder = rackscope.folder / "study"
    assert (folder / "report.html").stat().st_size > 10_000
    manifests = manifests_of(folder)
    assert {manifest["status"] for manifest in manifests} == {"complete"}
    assert len({tuple(manifest["system"]["cores"]) for manifest in manifests}) == 1
    assert {len(manifest["system"]["cores"]) for manifest in manifests} == {1}
    assert not any(process_exists(manifest["system"]["pid"]) for manifest in manifests)


def test_ctrl_c_stops_all_systems_and_keeps_what_there_is(rackscope: Rackscope) -> None:
    running = rackscope.start(
        *("study", "peers", "cache", "--peers", "memcached", "--settings", "unpipelined", "--repetitions", "1000"),
        *("--loads", "none", "--memory", "0", "--budget", "1h", *SHORT),
    )
    folder = rackscope.folder / "study"

    def measured() -> bool:
        phases = [phase["name"] for manifest in manifests_of(folder) for phase in manifest["phases"]]
        # Two systems, and each window up to three times: the first round is over.
        return phases.count("measure") > 6

    interrupt_study(running, measured, "some windows")
    kept = json.loads((folder / "study.json").read_text())
    assert kept["status"] == "interrupted"
    [setting] = kept["result"]["settings"]
    assert setting["systems"]["cache"]["rates_operations_per_second"]
    assert (folder / "report.html").exists()
    manifests = manifests_of(folder)
    assert len(manifests) == 2
    assert not any(process_exists(manifest["system"]["pid"]) for manifest in manifests)


def test_a_peer_that_is_nowhere_leaves_nothing_to_compare_with(
    rackscope: Rackscope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(rackscope.folder))
    done = rackscope("study", "peers", "cache", "--peers", "garnet", *SHORT)
    assert done.returncode == 2
    assert "there is nothing to compare cache with: garnet could not be found" in done.stderr
