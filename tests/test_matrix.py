"""The pressure-point matrix: what each cell claims is what its directory shows, and no more than that."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from conftest import Rackscope
from rackscope.errors import RunDirectoryError
from rackscope.runs.directory import RunDirectory
from rackscope.runs.facts import characterise_run
from rackscope.studies.pressure.matrix import label_rows, matrix_record, matrix_result, show_cell
from rackscope.studies.pressure.points import (
    RESOURCES,
    Cell,
    Estimate,
    MalformedResultError,
    read_pressure_points,
    rows_of_result,
)
from report_example import Example, write_example
from report_html import Document
from study_example import pressure_result, pressure_study, slo_study, squeezed, write_example_study


def write_busy_run(path: Path, example: Example | None = None) -> RunDirectory:
    """A run whose core was never idle."""
    idle = pl.col('cpu_core_seconds_total{core="0",state="idle"}')

    def never_idle(samples: pl.DataFrame) -> pl.DataFrame:
        return samples.with_columns(idle * 0 + 250.0)

    return write_example(path, example, edit_samples=never_idle)


def row_of(*resources: dict) -> dict[str, Cell]:
    result = pressure_result()
    result["phases"][0]["resources"] = list(resources)
    (row,) = rows_of_result(result)
    return dict(row.cells)


def test_a_pressure_study_gives_a_cell_for_each_resource():
    (row,) = rows_of_result(pressure_result())
    assert list(row.cells) == list(RESOURCES)
    shown = {name: (cell.verdict, cell.basis) for name, cell in row.cells.items()}
    assert shown == {
        "cpu": ("limits", "experiment"),
        "dram_capacity": ("does not limit", "experiment"),
        "dram_bandwidth": ("inconclusive", "experiment"),
        "last_level_cache": ("not known", "none"),
        "disk": ("does not limit", "intensity"),
        "network": ("does not limit", "experiment"),
    }
    assert row.cells["cpu"].elasticity == Estimate(0.97, 0.91, 1.02)
    assert row.cells["last_level_cache"].sentence == "what last_level_cache showed"


def test_one_squeeze_that_limits_is_enough_whatever_the_others_show():
    cells = row_of(
        squeezed("cpu_set", "cpu", "does_not_limit", (0.01, 0.0, 0.02), 0.5),
        squeezed("cpu_share", "cpu", "limits", (0.9, 0.8, 1.0), 0.03),
        squeezed("core_frequency", "cpu", "not_squeezable"),
    )
    assert cells["cpu"].verdict == "limits"
    assert cells["cpu"].elasticity == Estimate(0.9, 0.8, 1.0)
    assert cells["cpu"].slack == 0.03
    assert cells["network"].verdict == "not known"


def test_an_open_squeeze_keeps_a_resource_from_being_cleared():
    cells = row_of(
        squeezed("disk_bandwidth", "disk", "does_not_limit", (0.0, -0.1, 0.1), 0.5),
        squeezed("disk_operations", "disk", "inconclusive", (0.2, 0.1, 0.4)),
    )
    assert (cells["disk"].verdict, cells["disk"].slack) == ("inconclusive", None)


def test_weaker_evidence_never_outdoes_an_experiment():
    weak = {**squeezed("cpu_set", "cpu", "not_squeezable"), "evidence": "intensity", "weaker_status": "limits"}
    cells = row_of(squeezed("cpu_share", "cpu", "does_not_limit", (0.0, -0.1, 0.1)), weak)
    assert (cells["cpu"].verdict, cells["cpu"].basis) == ("does not limit", "experiment")
    assert (row_of(weak)["cpu"].verdict, row_of(weak)["cpu"].basis) == ("limits", "intensity")


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (Cell("limits", "experiment", "", Estimate(0.97, 0.91, 1.02), slack=0.03), "● 0.97\n0.91…1.02\nslack 3.0 %"),
        (Cell("does not limit", "experiment", "", Estimate(-0.001, -0.05, 0.05)), "· 0.00\n-0.05…0.05"),
        (Cell("inconclusive", "experiment", "", Estimate(0.21, None, None)), "~ 0.21"),
        (Cell("inconclusive", "experiment", "too few blocks"), "~"),
        (Cell("limits", "intensity", "", intensity=0.92), "◐ 92 %\nintensity"),
        (Cell("does not limit", "intensity", "", intensity=0.12), "◌ 12 %\nintensity"),
        (Cell("does not limit", "intensity", ""), "◌\nintensity"),
        (Cell("not known", "none", "no resctrl"), "?"),
    ],
)
def test_cells_mark_what_was_proven_apart_from_what_was_not(cell, shown):
    assert show_cell(cell) == shown


def _no_phases(result):
    result["phases"] = "none"


def _no_status(result):
    del result["phases"][0]["resources"][0]["status"]


def _new_status(result):
    result["phases"][0]["resources"][0]["status"] = "perhaps"


def _words_for_numbers(result):
    result["phases"][0]["resources"][0]["elasticity"]["low"] = "low"


def _huge(result):
    result["phases"][0]["resources"][0]["slack"] = 10**400


@pytest.mark.parametrize("harm", [_no_phases, _no_status, _new_status, _words_for_numbers, _huge])
def test_a_malformed_result_names_the_place(tmp_path: Path, harm):
    study = pressure_study()
    harm(study.result)
    with pytest.raises(MalformedResultError, match=r"^result\.phases"):
        rows_of_result(study.result)
    path = write_example_study(tmp_path / "study", study)
    with pytest.raises(RunDirectoryError, match=r"study\.json is damaged"):
        read_pressure_points(path)


def test_a_run_gives_weaker_evidence_only(tmp_path: Path):
    run = write_busy_run(tmp_path / "run")
    source = read_pressure_points(tmp_path / "run")
    (row,) = source.rows
    assert (row.system, row.workload, row.phase) == ("memcached", "ycsb-b", "measure")
    assert {cell.basis for cell in row.cells.values()} == {"intensity", "none"}
    (phase,) = [one for one in characterise_run(run).phases if one.kind == "measure"]
    assessed = {one.resource: one for one in phase.resources}
    assert row.cells["cpu"].intensity == assessed["cpu_system"].intensity
    assert row.cells["dram_capacity"].intensity == assessed["dram_capacity"].intensity
    limiting = {name for name, cell in row.cells.items() if cell.verdict == "limits"}
    assert limiting == {one.resource.replace("cpu_system", "cpu") for one in phase.resources if one.status == "limits"}
    assert limiting == {"cpu"}
    assert row.cells["last_level_cache"].verdict == "not known"
    assert all(cell.sentence for cell in row.cells.values())
    (found,) = matrix_result([source])["rows"]
    assert found["limits"] == []
    (finding,) = [one for one in matrix_record([source], []).findings if one.severity == "finding"]
    assert "proves nothing" in finding.sentence


def test_phases_are_named_where_there_are_several_and_folders_where_labels_repeat(tmp_path: Path):
    write_example(tmp_path / "stages", Example(stages=("get", "set")))
    for name in ("first", "second"):
        write_example_study(tmp_path / name)
    sources = [read_pressure_points(tmp_path / name) for name in ("stages", "first", "second")]
    assert [label for label, _, _ in label_rows(sources)] == [
        "memcached under ycsb-b, get",
        "memcached under ycsb-b, set",
        "memcached under ycsb-b (first)",
        "memcached under ycsb-b (second)",
    ]


def test_different_hosts_are_pointed_out(tmp_path: Path):
    study = pressure_study()
    study.host = {"identity": "another"}
    write_example_study(tmp_path / "a", study)
    write_example_study(tmp_path / "b")
    record = matrix_record([read_pressure_points(tmp_path / name) for name in "ab"], [])
    assert "2 different hosts" in " ".join(one.sentence for one in record.findings if one.severity == "warning")
    assert record.host == {}


def test_the_matrix_in_the_terminal_as_json_and_as_a_page(rackscope: Rackscope):
    write_example_study(rackscope.folder / "study")
    (rackscope.folder / "study" / "report.html").write_text("x")
    write_busy_run(rackscope.folder / "run", Example(system_name="redis"))
    ended = rackscope("matrix", "study", "run", "study/", "--out", "matrix.html")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("● 0.97") == 1
    assert "◐ 100 %" in ended.stdout
    assert "redis under ycsb-b" in ended.stdout
    assert "what last_level_cache showed" in ended.stdout
    page = (rackscope.folder / "matrix.html").read_text()
    document = Document(page)
    assert document.problems == []
    assert "0.91…1.02" in document.text
    assert '<a href="./study/report.html">' in page
    shown = json.loads(rackscope("matrix", "study", "run", "--json").stdout)
    assert [row["kind"] for row in shown["rows"]] == ["study", "run"]
    assert shown["rows"][0]["limits"] == ["cpu"]
    assert shown["rows"][0]["cells"]["cpu"]["elasticity"] == {"estimate": 0.97, "low": 0.91, "high": 1.02}
    assert (shown["not_read"], shown["report"]) == ([], None)


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(rackscope: Rackscope):
    folder = rackscope.folder
    write_example_study(folder / "study")
    write_example_study(folder / "damaged")
    (folder / "damaged" / "study.json").write_text("{")
    write_example_study(folder / "other", slo_study())
    (folder / "foreign").mkdir()
    write_example(folder / "harmed")
    (folder / "harmed" / "latency.parquet").unlink()
    names = ("nowhere", "damaged", "other", "foreign", "study", "harmed")
    ended = rackscope("matrix", *names)
    assert ended.returncode == 1
    assert "● 0.97" in ended.stdout
    assert "harmed" in ended.stdout
    lines = ended.stderr.splitlines()
    assert len(lines) == 5
    for line, words in zip(
        lines,
        ("nowhere is not a folder", "damaged/study.json is damaged", "another kind (slo)", "foreign holds", "harmed"),
        strict=True,
    ):
        assert line.startswith("rackscope: ")
        assert words in line
    shown = json.loads(rackscope("matrix", *names, "--json").stdout)
    assert [one["path"] for one in shown["not_read"]] == ["nowhere", "damaged", "other", "foreign", "harmed"]
    assert [Path(row["path"]).name for row in shown["rows"]] == ["study", "harmed"]


def test_nothing_to_show_is_a_failure(rackscope: Rackscope):
    ended = rackscope("matrix", "nowhere", "neither", "--json")
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 2
    assert json.loads(ended.stdout)["status"] == "failed"


def test_a_study_that_ended_early_is_shown_with_a_warning(tmp_path: Path):
    study = pressure_study()
    study.status, study.status_reason = "interrupted", "stopped by Ctrl-C"
    source = read_pressure_points(write_example_study(tmp_path / "study", study))
    record = matrix_record([source], [])
    assert any("stopped by Ctrl-C" in one.sentence for one in record.findings if one.severity == "warning")
    study.result = {}
    path = write_example_study(tmp_path / "early", study)
    with pytest.raises(RunDirectoryError, match=r"no pressure points: stopped by Ctrl-C"):
        read_pressure_points(path)


def test_a_run_without_a_measured_phase_shows_nothing(tmp_path: Path):
    write_example(tmp_path / "run", Example(finished_repetitions=0, status="interrupted"))
    with pytest.raises(RunDirectoryError, match="shows no pressure points"):
        read_pressure_points(tmp_path / "run")
