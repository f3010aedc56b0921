"""Every column that the sampler gives is in the table of metrics, on this host and on recorded ones."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rackscope.host.meters import parse_meters
from rackscope.metrics import METRICS, parse_metric

native = pytest.importorskip("rackscope._native")

TREES = Path(__file__).parent.parent / "crates" / "probe" / "tests" / "trees"


def assert_in_table(columns: list[str]) -> None:
    for column in columns:
        name, labels = parse_metric(column)
        assert name in METRICS, column
        assert set(labels) == set(METRICS[name].labels), column


def test_columns_of_this_host() -> None:
    sampler = native.Sampler(processes={"system": os.getpid()}, cgroups={"all": "/"})
    assert_in_table(sampler.columns)
    assert len(set(sampler.columns)) == len(sampler.columns)
    for probe in sampler.probes:
        assert_in_table(probe["columns"])
        assert probe["status"] in {"ok", "missing", "untrusted"}
        assert probe["reason"] or probe["status"] == "ok"
        assert probe["needs"]


@pytest.mark.parametrize("tree", sorted(path.name for path in TREES.iterdir() if path.is_dir()))
def test_columns_of_recorded_hosts(tree: str) -> None:
    for probe in native.list_probes(str(TREES / tree)):
        assert_in_table(probe["columns"])


@pytest.mark.parametrize(
    ("tree", "domains"),
    [
        ("intel-with-psys", ["package-0", "core-0", "uncore-0", "dram-0", "psys"]),
        ("amd-with-rapl", ["package-0", "core-0"]),
        ("server-2-packages", ["package-0", "dram-0", "package-1", "dram-1"]),
    ],
)
def test_processors_that_count_their_energy(tree: str, domains: list[str]) -> None:
    probes = {probe["name"]: probe for probe in native.list_probes(str(TREES / tree))}
    columns = [parse_metric(column) for column in probes["power:rapl_powercap"]["columns"]]
    assert columns == [("energy_joules_total", {"domain": domain, "meter": "rapl_powercap"}) for domain in domains]


def test_a_meter_that_is_named_is_read(tmp_path: Path) -> None:
    (tmp_path / "watts").write_text("250.5\n")
    meters = parse_meters(["none", f"file:{tmp_path}/watts,unit=watts", "command:echo 12,unit=watts,domain=fan"])
    sampler = native.Sampler(interval_seconds=0.01, perf=False, local_meters=meters.local, meters_json=meters.to_json())
    power = [column for column in sampler.columns if column.startswith("power_watts")]
    assert power == ['power_watts{domain="server",meter="file"}', 'power_watts{domain="fan",meter="command"}']
    names = [probe["name"] for probe in sampler.probes if probe["name"].startswith("power:")]
    assert names == ["power:file:server", "power:command:fan"]
    sampler.start()
    block = b""
    while not block:
        _, block = sampler.drain()
    sampler.stop()
    row = dict(zip(sampler.columns, memoryview(block).cast("d").tolist(), strict=False))
    assert [row[column] for column in power] == [250.5, 12.0]


@pytest.mark.parametrize("text", ["", "{}", '[{"kind": "wattmeter"}]', '[{"kind": "file", "path": "/x"}]'])
def test_meters_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="power meters: "):
        native.Sampler(meters_json=text)


def test_rows_cross_as_plain_buffers() -> None:
    sampler = native.Sampler(interval_seconds=0.01, perf=False)
    width = len(sampler.columns)
    before = time.time_ns()
    sampler.start()
    rows: list[int] = []
    values = b""
    while len(rows) < 3:
        timestamps, block = sampler.drain()
        rows += memoryview(timestamps).cast("q").tolist()
        values += block
    summary = sampler.stop()
    timestamps, block = sampler.drain()
    rows += memoryview(timestamps).cast("q").tolist()
    values += block
    assert len(memoryview(values).cast("d")) == len(rows) * width
    assert rows == sorted(rows)
    assert before <= rows[0] <= rows[-1] <= time.time_ns()
    assert summary["ticks"] == len(rows) + summary["dropped_rows"]
    assert 0 < summary["cpu_seconds"] < summary["wall_seconds"]


def test_a_sampler_serves_once_and_says_so() -> None:
    sampler = native.Sampler()
    with pytest.raises(RuntimeError, match="not running"):
        sampler.stop()
    sampler.start()
    with pytest.raises(RuntimeError, match="started before"):
        sampler.start()
    sampler.stop()


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.001, 60.0, float("nan"), float("inf")])
def test_an_interval_out_of_range_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="interval"):
        native.Sampler(interval_seconds=seconds)
