"""Directories of format 1, written by rackscope 0.1: they stay readable, whatever this format has more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from conftest import Rackscope
from rackscope.runs.directory import RunDirectory
from rackscope.runs.study import read_study

KEPT = Path(__file__).parent / "data" / "format1"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return Path(shutil.copytree(KEPT, tmp_path / "kept"))


def test_a_run_has_one_start_one_host_and_our_load(kept: Path) -> None:
    run = RunDirectory.open(kept / "run-a")
    assert run.manifest.format_version == 1 and not run.damage
    for frame, driver in ((run.results(), "load"), (run.latency(), "load"), (run.samples(), None)):
        assert frame.height
        assert frame.select("start", "host", "driver").unique().rows() == [(1, "localhost", driver)]
    assert run.results()["throughput_operations_per_second"].dtype == pl.Float64
    assert run.stacks().is_empty() and run.reports().is_empty()
    assert {phase.start for phase in run.manifest.phases} == {1}


def test_a_study_is_read_in_the_words_of_today(kept: Path) -> None:
    old = (kept / "study" / "study.json").read_text()
    assert '"abstains"' in old and '"stretch"' in old
    record = read_study(kept / "study")
    assert record.parameters["window"]
    assert "--stretch" in record.command_line
    statuses = {row["status"] for phase in record.result["phases"] for row in phase["resources"]}
    assert "inconclusive" in statuses and "abstains" not in statuses
    assert any("inconclusive" in row for table in record.tables for row in table.rows)


def test_report_and_compare_take_them(kept: Path, rackscope: Rackscope) -> None:
    for name in ("run-a", "study"):
        ended = rackscope("report", str(kept / name), "--json")
        assert ended.returncode == 0, ended.stderr
        assert Path(json.loads(ended.stdout)["report"]).stat().st_size > 10_000
    ended = rackscope("compare", str(kept / "run-a"), str(kept / "run-b"), "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["rows"]
    ended = rackscope("matrix", str(kept / "study"), str(kept / "run-a"), "--json")
    assert ended.returncode == 0, ended.stderr
    assert len(json.loads(ended.stdout)["rows"]) == 2
