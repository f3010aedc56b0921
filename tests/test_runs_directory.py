"""The run directory: what a kill, a full disk or a stranger's folder leaves is read back, or refused in one line."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import polars as pl
import pytest

from rackscope.errors import RunDirectoryError
from rackscope.process_identity import boot_id, process_start_ticks
from rackscope.runs.directory import RunDirectory, RunWriter
from rackscope.runs.files import write_atomically
from rackscope.runs.manifest import ClientPart, Manifest, RepetitionPart, SystemPart, WorkloadPart
from rackscope.runs.tables import RESULT_FIELDS, latency_frame, read_table, results_frame


def manifest(**changes: object) -> Manifest:
    values: dict[str, object] = {
        "rackscope_version": "0.1.0",
        "started_at": "2026-11-21T18:22:31+00:00",
        "system": SystemPart(name="memcached"),
        "workload": WorkloadPart(name="ycsb-b"),
        "client": ClientPart(protocol="memcached_text", connections=50),
        "repetition": RepetitionPart(duration_seconds=5, minimum=3),
    }
    return Manifest.model_validate({**values, **changes})


def samples(*times: int) -> pl.DataFrame:
    return pl.DataFrame({"timestamp_ns": list(times), 'cpu_seconds_total{state="user"}': [float(t) for t in times]})


def test_parts_become_one_table_in_order_of_time(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest(status="complete"))
    writer.append("samples", samples(30, 40))
    writer.append("samples", pl.DataFrame({"timestamp_ns": [10], "load_operations_total": [1.0]}))
    writer.join_parts()
    frame = RunDirectory.open(writer.path).samples()
    assert frame["timestamp_ns"].to_list() == [10, 30, 40]
    assert frame["load_operations_total"].to_list() == [1.0, None, None]
    assert not (writer.path / "samples.parts").exists()


def test_killed_run_is_read_from_its_parts_and_says_so(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest(rackscope_pid=2**22 + 1, boot_id=boot_id()))
    writer.append("samples", samples(10, 20))
    (writer.path / "samples.parts" / "000001.tmp").write_bytes(b"PAR1 cut off")
    run = RunDirectory.open(writer.path)
    assert run.manifest.status == "interrupted"
    assert any("killed" in remark for remark in run.remarks)
    assert run.samples().height == 2


def test_a_damaged_part_costs_only_itself(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest())
    writer.append("samples", samples(10, 20))
    writer.append("samples", samples(30))
    part = writer.path / "samples.parts" / "000001.arrow"
    part.write_bytes(part.read_bytes()[:20])
    assert RunDirectory.open(writer.path).samples()["timestamp_ns"].to_list() == [10, 20]


def test_a_run_that_is_going_on_is_not_called_killed(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    pid = os.getpid()
    writer.write_manifest(
        manifest(rackscope_pid=pid, rackscope_pid_start_ticks=process_start_ticks(pid), boot_id=boot_id())
    )
    run = RunDirectory.open(writer.path)
    assert run.manifest.status == "running"
    assert any("still going on" in remark for remark in run.remarks)


def test_a_pid_that_was_used_again_is_not_the_run(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest(rackscope_pid=os.getpid(), rackscope_pid_start_ticks=1, boot_id=boot_id()))
    assert RunDirectory.open(writer.path).manifest.status == "interrupted"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged"),
        (b'{"format_version": 1', "damaged"),
        (b"[]", "not a manifest"),
        (b'{"format_version": 1}', "not a manifest"),
        (json.dumps({"format_version": 99}).encode(), "format 99"),
        (b"\xff\xfe\x00", "damaged"),
        (b'{"format_version": NaN}', "damaged"),
        (b'{"host": {"memory_total_bytes": 1e999}}', "damaged"),
        (b"[" * 100_000, "damaged"),
    ],
)
def test_what_is_not_a_run_is_refused_in_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(RunDirectoryError, match=words) as caught:
        RunDirectory.open(tmp_path)
    assert "\n" not in str(caught.value)
    assert caught.value.advice


def test_a_folder_without_manifest_and_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="not a run directory"):
        RunDirectory.open(tmp_path)
    with pytest.raises(RunDirectoryError, match="not a folder"):
        RunDirectory.open(tmp_path / "nothing")


def test_a_truncated_table_is_named(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest(status="complete"))
    writer.append("results", results_frame([{"phase": "measure", "kind": "measure", "operations": 5}]))
    writer.append("samples", samples(10, 20))
    writer.join_parts()
    table = writer.path / "results.parquet"
    table.write_bytes(table.read_bytes()[:-10])
    run = RunDirectory.open(writer.path)
    assert run.results().is_empty()
    assert run.samples().height == 2
    assert any("results.parquet is damaged" in remark for remark in run.remarks)
    assert any("results.parquet is damaged" in damage for damage in run.damage)


@pytest.mark.parametrize(
    ("table", "column", "values", "words"),
    [
        ("results", "operations", ["many"], "holds String"),
        ("results", "throughput_operations_per_second", [1e308], "holds 1e\\+308"),
        ("results", "start_ns", [-1], "holds -1"),
        ("results", "kind", None, "no column kind"),
        ("samples", "timestamp_ns", [None], "has gaps"),
        ("samples", "timestamp_ns", None, "no column timestamp_ns"),
        ("samples", "context_switches_total", [[1]], "holds List"),
        ("latency", "index", [[-1]], "damaged"),
        ("latency", "count", ["x"], "holds String"),
    ],
)
def test_a_table_that_is_not_what_rackscope_writes_is_damage(
    tmp_path: Path, table: str, column: str, values: list[object] | None, words: str
) -> None:
    frames = {
        "results": results_frame([{"phase": "measure", "kind": "measure", "operations": 5}]),
        "samples": samples(10),
        "latency": latency_frame(
            [
                {"phase": "measure", "operation": "read", "kind": "response", "index": [1], "count": [2]}
                | {"grouping_power": 7, "max_value_power": 64}
            ]
        ),
    }
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest(status="complete"))
    frame = frames[table]
    frames[table] = frame.drop(column) if values is None else frame.with_columns(pl.Series(column, values))
    for name, content in frames.items():
        content.write_parquet(writer.path / f"{name}.parquet")
    run = RunDirectory.open(writer.path)
    assert len(run.damage) == 1 and re.search(words, run.damage[0]), run.damage
    assert {"results": run.results, "samples": run.samples, "latency": run.latency}[table]().is_empty()


def test_fields_that_an_older_rackscope_did_not_write_are_unknown(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest(status="complete"))
    old = results_frame([{"phase": "measure", "kind": "measure", "operations": 5}]).drop("system_cpu_seconds")
    old.write_parquet(writer.path / "results.parquet")
    results = RunDirectory.open(writer.path).results()
    assert results.schema == results_frame([]).schema
    assert results["system_cpu_seconds"].to_list() == [None]


def test_parts_that_cannot_be_read_are_counted_and_kept(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest(status="interrupted"))
    writer.append("samples", samples(10))
    writer.append("samples", samples(20))
    (writer.path / "samples.parts" / "000000.arrow").write_bytes(b"PAR1")
    assert any("1 of the parts of samples" in damage for damage in RunDirectory.open(writer.path).damage)
    writer.join_parts()
    assert RunDirectory.open(writer.path).samples()["timestamp_ns"].to_list() == [20]
    assert (writer.path / "samples.parts" / "000000.arrow").exists()


def test_a_part_of_the_wrong_kind_costs_only_itself(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest(status="interrupted"))
    writer.append("samples", samples(10))
    writer.append("samples", samples(20).with_columns(pl.lit("much").alias('cpu_seconds_total{state="user"}')))
    writer.append("samples", samples(30).drop("timestamp_ns"))
    writer.append("samples", samples(40))
    run = RunDirectory.open(writer.path)
    assert run.samples()["timestamp_ns"].to_list() == [10, 40]
    assert run.samples()['cpu_seconds_total{state="user"}'].to_list() == [10.0, 40.0]
    assert any("2 of the parts of samples" in damage for damage in run.damage)


def test_missing_tables_are_empty_and_said(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest(status="complete"))
    run = RunDirectory.open(writer.path)
    assert run.samples().is_empty() and run.results().is_empty() and run.latency().is_empty()
    assert sum("is missing" in remark for remark in run.remarks) == 3


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(manifest())
    with pytest.raises(RunDirectoryError, match="already holds a run"):
        RunWriter.create(tmp_path / "run")


def test_a_write_that_fails_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "manifest.json"
    write_atomically(target, b"old")

    def no_space(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(RunDirectoryError, match="No space left on device"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_results_have_every_field_with_its_type() -> None:
    frame = results_frame([{"phase": "measure", "kind": "measure", "operations": 7}])
    assert tuple(frame.columns) == RESULT_FIELDS
    assert frame["operations"].dtype == pl.Int64
    assert frame["response_p99_seconds"].to_list() == [None]


def test_unknown_fields_of_a_manifest_are_no_error(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run")
    content = json.loads(manifest(status="complete").model_dump_json()) | {"invented_later": 1}
    (writer.path / "manifest.json").write_text(json.dumps(content))
    assert RunDirectory.open(writer.path).manifest.system.name == "memcached"


def test_an_inventory_that_makes_no_sense_is_not_known() -> None:
    from rackscope.runs.facts import run_facts

    facts = run_facts(manifest(host={"online_cores": "many", "memory_total_bytes": -1}))
    assert facts.host_cores == 1
    assert facts.memory_total_bytes is None


def test_a_table_of_which_no_part_can_be_read_is_damage(tmp_path: Path) -> None:
    (tmp_path / "samples.parts").mkdir()
    (tmp_path / "samples.parts/000001.arrow").write_bytes(b"cut short")
    assert read_table(tmp_path, "samples").damage == "no part of samples could be read"
    (tmp_path / "samples.parquet").write_bytes(b"cut short")
    assert "samples.parquet is damaged" in read_table(tmp_path, "samples").damage
