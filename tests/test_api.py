"""The Python API: what docs/python.md shows, and what a script counts on."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

import rackscope
from conftest import REPOSITORY, Rackscope
from rackscope.api.settings import RunSettings
from rackscope.errors import RunDirectoryError, UsageError
from rackscope.runs.options import RunOptions

KEPT = Path(__file__).parent / "data" / "format1"


def test_the_blocks_of_the_docs_run_in_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    text = (REPOSITORY / "docs" / "python.md").read_text()
    names: dict[str, object] = {}
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S), 1):
        exec(compile(block, f"docs/python.md, block {number}", "exec"), names)
    assert isinstance(names["run"], rackscope.Run) and isinstance(names["study"], rackscope.Study)
    assert names["run"].report is not None and len(names["study"].runs) > 1


def test_importing_rackscope_imports_nothing_heavy_and_shows_its_names() -> None:
    program = (
        "import sys, rackscope\n"
        "assert {'read', 'run', 'study', 'Run', 'Study'} <= set(dir(rackscope))\n"
        "heavy = {'polars', 'numpy', 'scipy', 'pydantic', 'rich', 'jinja2'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "assert callable(rackscope.read) and not hasattr(rackscope, 'nothing')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_a_run_of_format_1_is_read_compared_and_shown() -> None:
    a, b = rackscope.read(KEPT / "run-a"), rackscope.read(KEPT / "run-b")
    assert isinstance(a, rackscope.Run) and isinstance(b, rackscope.Run)
    assert a.samples.height and a.latency.height and a.results.height and a.findings
    assert {"start", "host", "driver"} <= set(a.results.columns)
    assert any(row.metric.startswith("throughput") for row in a.compare(b).rows)
    assert a.findings[0].sentence in repr(a)


def test_a_study_of_format_1_is_read_with_its_runs_and_tables() -> None:
    study = rackscope.read(KEPT / "study")
    assert isinstance(study, rackscope.Study)
    assert study.findings and study.remarks == ()
    (member,) = study.runs.values()
    assert member.results.height
    for table in study.record.tables:
        assert study.tables[table.identifier].height == len(table.rows)


def test_top_level_warnings_hold_those_of_the_samples() -> None:
    run = rackscope.Run.open(KEPT / "run-a")
    codes = {warning.code for warning in run.characterisation.warnings}
    assert codes and codes <= {warning["code"] for warning in run.to_dict()["warnings"]}
    assert {warning.severity for warning in run.warnings} <= {"note", "warning", "serious"}


def test_mistakes_are_errors_of_rackscope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RunDirectoryError):
        rackscope.read(tmp_path)
    with pytest.raises(UsageError, match="invalid option of a run"):
        rackscope.run("cache", "ycsb-b", conections=4)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="no study 'presure'"):
        rackscope.study("presure", "cache", "ycsb-b")
    with pytest.raises(UsageError, match="no option 'windw'") as caught:
        rackscope.study("pressure", "cache", "ycsb-b", options={"windw": "1s"})
    assert caught.value.advice == "Did you mean window?"
    with pytest.raises(UsageError):
        rackscope.study("pressure", "cache", "ycsb-b", options={"window": "long"})
    assert not (tmp_path / "runs").exists()


def test_settings_are_the_fields_of_run_options() -> None:
    fields = set(RunOptions.__dataclass_fields__) - {"system", "workload", "server"}
    assert set(get_type_hints(RunSettings)) == fields


def test_a_study_that_was_killed_says_where_its_windows_are(tmp_path: Path, rackscope: Rackscope) -> None:
    folder = Path(shutil.copytree(KEPT / "study", tmp_path / "study"))
    record = json.loads((folder / "study.json").read_text())
    (folder / "study.json").write_text(json.dumps({**record, "status": "running"}))
    ended = rackscope("report", str(folder), "--json")
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)["remarks"]
    assert "did not finish" in said[0]
    assert str(folder / "runs" / "squeezed") in said[1]
    assert str(folder / "runs" / "squeezed") in rackscope("report", str(folder)).stdout
