"""docs/reference/schemas: made from the code, current, and true of what the verbs really print and write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from conftest import REPOSITORY
from projection_example import noisy, server, write_pressure, write_run, write_servers
from rackscope.api.schemas import schemas
from rackscope.cli import main

FOLDER = REPOSITORY / "docs" / "reference" / "schemas"
KEPT = Path(__file__).parent / "data" / "format1"
RUN = ["run", "cache", "ycsb-b", "--duration", "200ms", "--warm-up", "0", "--repeat", "2", "--set", "keys=1k"]


def test_the_files_are_current() -> None:
    made = {f"{name}.json": schema for name, schema in schemas().items()}
    written = {file.name: json.loads(file.read_text()) for file in FOLDER.glob("*.json")}
    assert written == made, "run tools/write-schemas"
    for schema in made.values():
        Draft202012Validator.check_schema(schema)


def strict(schema: Any) -> Any:
    """The same, allowing no key that it does not name."""
    if isinstance(schema, dict):
        changed = {key: strict(one) for key, one in schema.items()}
        return {"additionalProperties": False, **changed} if "properties" in schema else changed
    return [strict(one) for one in schema] if isinstance(schema, list) else schema


def check(name: str, content: Any) -> None:
    errors = [
        f"{error.json_path}: {error.message[:200]}"
        for error in Draft202012Validator(strict(schemas()[name])).iter_errors(content)
    ]
    assert not errors, errors[:5]


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a command line with --json prints, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(*arguments: str | Path) -> Any:
        main([*map(str, arguments), "--json"])
        return json.loads(capsys.readouterr().out)

    return run


def test_a_run_its_manifest_its_report_and_a_comparison(printed: Any) -> None:
    check("run-output", printed(*RUN, "--out", "a"))
    check("manifest", json.loads(Path("a/manifest.json").read_text()))
    check("run-output", printed("report", "a", "--out", "page.html"))
    check("compare-output", printed("compare", "a", KEPT / "run-b"))
    check("matrix-output", printed("matrix", "a", KEPT / "study", "nowhere"))
    check("prune-output", printed("prune", ".", "--keep-bytes", "0"))


def test_a_study_and_its_record(printed: Any) -> None:
    options = ["--duration", "100ms", "--warm-up", "100ms", "--repeat", "2", "--set", "keys=1k", "--out", "s"]
    check("study-output", printed("study", "sweep", "cache", "ycsb-b", "--vary", "value_size=64,1k", *options))
    check("study", json.loads(Path("s/study.json").read_text()))
    check("study-output", printed("report", "s"))


def test_what_is_known_of_the_host_and_of_what_can_be_run(printed: Any) -> None:
    check("doctor-output", printed("doctor"))
    check("repair-output", printed("doctor", "--repair"))
    check("list-output", printed("run", "--list"))
    check("get-output", printed("get", "cache"))
    check("calibrate-output", printed("calibrate", "--only", "cpu"))
    check("models-list-output", printed("models", "list"))
    sheet = ["processor=AMD EPYC 9654", "chips=2", "cores=192", "mhz=2400", "memory_gb=384", "year=2023"]
    check("models-predict-output", printed("models", "predict", *sheet))
    check("paper-list-output", printed("paper", "--list"))
    check("paper-output", printed("paper", "sevilla2013"))


def test_what_fails(printed: Any) -> None:
    check("failure", printed("run", "cache"))
    check("failure", printed("study", "slo", "cache", "ycsb-b", "--bound", "fast"))


def test_advice(printed: Any) -> None:
    check("cost-output", printed("cost", "memcached get 64 B", "--out", "page.html"))
    check("advise-provision-output", printed("advise", "provision", "memcached get 64 B", "--rate", "2M"))
    check("advise-measure-next-output", printed("advise", "measure-next", "memcached get 64 B", "--rate", "5M"))


def test_a_projection(printed: Any, tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "run", noisy(100_000)), write_pressure(tmp_path / "pressure")]
    file = write_servers(tmp_path / "servers.toml", server("small", price=1500), server("tiny", memory_bytes="64MiB"))
    check("project-output", printed("project", *runs, "--to", file, "--rate", "30k", "--catalogue-out", "out.toml"))
