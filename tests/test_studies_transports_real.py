"""``study transports`` through the command, with real servers: short, and about structure rather than speed."""

from __future__ import annotations

import json

import pytest

from conftest import Rackscope, interrupt_study, process_exists

#: A host that is busy with other things measures each window up to three times.
SECONDS = 240.0
SHORT = ("study", "transports", "--keys", "1000", "--window", "50ms", "--no-fetch", "--out", "study", "--json")


@pytest.mark.alone
def test_transports_and_modes_are_measured(rackscope: Rackscope) -> None:
    done = rackscope.process(
        *(
            *SHORT,
            "--transports",
            "tcp,udp-batch,udp-batch-veth,af_xdp",
            "--modes",
            "erew,erew-forwarded",
            "--loads",
            "50",
        ),
        *("--repetitions", "2", "--budget", "60s"),
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["status"] == "complete"
    result = told["result"]
    left_out = {one["contender"]: one["reason"] for one in result["failures"]}
    # What needs rights, or a second core, is named where it is missing.
    assert set(left_out) <= {"udp-batch-veth", "af_xdp", "erew", "erew-forwarded"}
    assert all("root" in reason or "namespace" in reason or "takes 2 cores" in reason for reason in left_out.values())
    there = {"tcp", "udp-batch", "udp-batch-veth", "af_xdp", "erew", "erew-forwarded"} - set(left_out)
    assert {one["name"] for one in result["contenders"]} == there
    assert len(result["cells"]) == 3 * len(there)
    for cell in result["cells"]:
        assert len(cell["rates_operations_per_second"]) == 2
        assert cell["hit_ratio"] == 1.0
        assert cell["server_cpu_seconds_per_million"]["estimate"] > 0
        assert cell["client_cpu_seconds_per_million"]["estimate"] > 0
    assert {one["contender"] for one in result["loads"]} == there - {"erew", "erew-forwarded"}
    assert all(one["p99_seconds"]["estimate"] > 0 for one in result["loads"])
    folder = rackscope.folder / "study"
    assert (folder / "report.html").stat().st_size > 10_000
    manifests = [json.loads(file.read_text()) for file in folder.glob("runs/*/manifest.json")]
    assert not any(process_exists(one["system"]["pid"]) for one in manifests if one["system"]["pid"])


def test_ctrl_c_stops_all_systems_and_keeps_what_there_is(rackscope: Rackscope) -> None:
    running = rackscope.start(
        *(*SHORT, "--transports", "tcp,udp-batch", "--modes", "none", "--loads", "none"),
        *("--repetitions", "1000", "--budget", "1h"),
    )
    folder = rackscope.folder / "study"
    study = folder / "study.json"

    def measured() -> bool:
        return study.exists() and len(json.loads(study.read_text())["result"].get("cells", ())) == 6

    interrupt_study(running, measured, "a round")
    assert (folder / "report.html").exists()
    manifests = [json.loads(file.read_text()) for file in folder.glob("runs/*/manifest.json")]
    assert len(manifests) == 2
    assert not any(process_exists(manifest["system"]["pid"]) for manifest in manifests)
