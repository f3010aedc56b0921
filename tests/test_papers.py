"""Papers are found by their folders, their pages in docs are current, and studies of one's own stand beside them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conftest import Rackscope
from rackscope.cli import main
from rackscope.metrics import METRICS, parse_metric
from rackscope.papers.awasthi2015 import printed
from rackscope.papers.base import NOT_MEASURED, all_papers
from rackscope.papers.document import Document, Section, Table
from study_example import pressure_result, pressure_study, record, slo_study, write_example_study

ROOT = Path(__file__).parent.parent
NAMES = sorted(folder.name for folder in (ROOT / "python/rackscope/papers").iterdir() if (folder / "page.py").is_file())
#: Its page takes some seconds; its own tests check it.
QUICK = [name for name in NAMES if name != "taleb2016"]


def test_papers_are_found_by_their_folders() -> None:
    assert list(all_papers()) == NAMES
    for name, paper in all_papers().items():
        assert paper.name == name and paper.title and paper.citation and paper.figures


@pytest.mark.parametrize("name", QUICK)
def test_the_page_in_docs_is_what_the_code_says(name: str) -> None:
    page = all_papers()[name].page().markdown()
    assert (ROOT / "docs/papers" / f"{name}.md").read_text() == page, (
        f"rackscope paper {name} --markdown > docs/papers/{name}.md"
    )


@pytest.mark.parametrize("name", NAMES)
def test_commands_on_pages_are_commands(name: str) -> None:
    for _, _, here in all_papers()[name].figures:
        for command in re.findall(r"`(rackscope [^`]*)`", here):
            verb = command.split()[1]
            assert (ROOT / "python/rackscope/cli" / f"{verb}.py").is_file(), command


def test_metrics_beside_table_3_exist() -> None:
    names = set(METRICS)
    for *_, metrics in printed.TABLE_3:
        for column in metrics:
            assert parse_metric(column)[0] in names


def test_a_pressure_study_stands_beside_table_4(tmp_path: Path, rackscope: Rackscope) -> None:
    measured = pressure_study()
    measured.result = pressure_result()
    path = write_example_study(tmp_path / "pressure", measured)
    out = tmp_path / "page.html"
    ended = rackscope("paper", "awasthi2015", "--runs", str(path), "--json", "--out", str(out))
    assert ended.returncode == 0, ended.stderr
    content = json.loads(ended.stdout)
    rows = {row["workload"]: row for row in content["table_4"]}
    assert [one["limits"] for one in rows["Memcache"]["measured"]] == [["cpu"]]
    assert rows["Cassandra"]["measured"] == [] and rows["Cassandra"]["limited_by"] == ["disk"]
    assert "memcached under ycsb-b: cpu" in out.read_text()
    assert "<script" not in out.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("paper",), "no paper is named"),
        (("paper", "nobody2020"), "issa2012"),
        (("project", "--model", "issa2012"), "rackscope paper issa2012"),
    ],
)
def test_a_mistake_is_one_line(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said and len(said.splitlines()) == 1


def test_a_study_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_example_study(tmp_path / "slo", slo_study())
    assert main(["paper", "han2014", "--runs", str(path)]) == 2
    assert "of the kind 'slo'" in capsys.readouterr().err
    assert main(["paper", "taleb2016", "--runs", str(path)]) == 2
    assert "Leave out --runs" in capsys.readouterr().err


def test_the_list_names_every_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == NAMES


def test_a_page_escapes_what_it_shows() -> None:
    table = Table(("a", "b"), (("<b>", "1.5 (1.2 to 1.8)"), ("x", "2")), aside=1)
    page = Document("T & U", (Section("S", ("**bold** `x<y`", table)),), {})
    assert "T &amp; U" in page.html("") and "<strong>bold</strong> <code>x&lt;y</code>" in page.html("")
    assert "| --- | ---: |" in page.markdown()


def test_studies_stand_beside_mica(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    access = record("access", "access modes")
    mix = {"theta": 0.0, "writes_percent": 50}
    access.result = {
        "cells": [
            {**mix, "access": "CRCW", "cores": 1, "median": 10e6},
            {**mix, "access": "CRCW", "cores": 2, "median": 12e6},
            {**mix, "access": "EREW", "cores": 2, "median": 20e6},
            {**mix, "theta": 0.99, "access": "EREW", "cores": 2, "median": 18e6},
        ],
        "comparisons": [
            {**mix, "cores": 2, "first": "EREW", "second": "CRCW", "ratio": 1.67, "outcome": "different"},
        ],
    }
    peers = record("peers", "cache beside memcached")
    systems = {"memcached": {"ratio": {"estimate": 1.25}}, "cache": {}}
    peers.result = {"subject": "cache", "settings": [{"name": "a", "systems": systems}]}
    transports = record("transports", "transports")
    transports.result = {
        "comparisons": [
            {"first": "af_xdp", "second": "memcached-udp", "condition": name, "ratio": {"estimate": ratio}}
            for name, ratio in (("base", 20.0), ("uniform", 22.0))
        ]
        + [{"first": "erew", "second": "crcw", "condition": "base", "ratio": {"estimate": 1.1}}]
    }
    paths = [write_example_study(tmp_path / study.kind, study) for study in (access, peers, transports)]
    assert main(["paper", "han2014", "--json", "--runs", *map(str, paths)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["measured"] for row in content["mica"]] == [
        "cache over memcached: 1.25x; af_xdp over memcached-udp: 20.00x to 22.00x",
        "on 2 cores EREW is faster in 1 and slower in 0 of 1 mixes (1.67x); erew over crcw: 1.10x",
        "EREW from theta 0 to 0.99: 0.90x",
        "CRCW from cores 1 to 2: 1.20x",
        NOT_MEASURED,
        NOT_MEASURED,
    ]
    assert {row["measured"] for row in content["mtcp"]} == {NOT_MEASURED}
