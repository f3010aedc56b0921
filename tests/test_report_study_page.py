"""The page of a study: complete, offline, well-formed, safe, and honest about what is missing."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from conftest import Rackscope
from rackscope.errors import RunDirectoryError
from rackscope.report.study import render_study, write_study_report
from rackscope.runs.study import Column, Finding, Member, Table, read_study, write_study
from report_html import Document
from study_example import pressure_study, slo_study, sweep_study, write_example_study

HOSTILE = "</script><script>alert('x')</script><img src=http://evil.example/x onerror=alert(1)>\"'&"


@pytest.mark.parametrize("study", [pressure_study(), slo_study(), sweep_study()], ids=lambda study: study.kind)
def test_every_kind_of_study_is_one_well_formed_page(study):
    document = Document(render_study(study))
    assert document.problems == []
    assert len(document.identifiers) == len(set(document.identifiers))
    text = document.text
    for word in [study.title, *study.method, *(chart.title for chart in study.charts)]:
        assert word in text
    for finding in study.findings:
        assert finding.sentence in text
        assert finding.evidence in text
    links = [attributes["href"] for tag, attributes in document.elements if tag == "a"]
    assert [link for link in links if link.removeprefix("#") not in document.identifiers] == []


def test_findings_come_first_then_charts_then_tables_then_how_it_was_done():
    identifiers = Document(render_study(pressure_study())).identifiers
    sections = ["findings", "charts", "tables", "method", "members", "host"]
    assert [one for one in identifiers if one in sections] == sections


def test_fetches_nothing_and_runs_nothing():
    page = render_study(pressure_study())
    document = Document(page)
    policy = [attributes for _, attributes in document.elements if attributes.get("http-equiv")]
    assert [one["content"] for one in policy] == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert not any(tag == "script" for tag, _ in document.elements)
    assert not any("src" in attributes for _, attributes in document.elements)
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(", page)


def test_numbers_of_charts_are_there_for_those_who_do_not_see_them():
    text = Document(render_study(slo_study())).text
    assert "p99 10,000/s 104 µs 89.2 µs to 123 µs" in text


def test_cells_are_written_in_the_unit_of_their_column_and_what_is_not_known_is_a_dash():
    text = Document(render_study(pressure_study())).text
    assert "CPU limits 0.97 0.91 1.02 3.0 % 20 % less of it cost 19 % of the throughput" in text
    assert "last-level cache not squeezable – – – – no resctrl in this guest" in text


def test_hostile_names_stay_text():
    study = pressure_study()
    study.title = study.status_reason = HOSTILE
    study.status = "failed"
    study.findings.append(Finding(sentence=HOSTILE, severity="serious", evidence=HOSTILE))
    study.tables.append(
        Table(identifier=HOSTILE, title=HOSTILE, columns=[Column(name=HOSTILE, help=HOSTILE)], rows=[[HOSTILE]])
    )
    study.charts[0].title = study.charts[0].series[0].label = study.charts[0].x.categories[0] = HOSTILE
    study.members.append(Member(folder=HOSTILE, label=HOSTILE, discarded=HOSTILE))
    study.parameters[HOSTILE] = HOSTILE
    study.method.append(HOSTILE)
    study.host = {HOSTILE: HOSTILE}
    study.command_line = [HOSTILE]
    page = render_study(study)
    document = Document(page)
    assert document.problems == []
    assert not any(tag in ("script", "img") or "onerror" in attributes for tag, attributes in document.elements)
    assert "<script" not in page


@pytest.mark.parametrize("status", ["running", "interrupted", "failed"])
def test_a_study_that_did_not_finish_says_so_first(status):
    study = pressure_study()
    study.status, study.status_reason = status, "the disk was full"
    text = Document(render_study(study)).text
    assert text.index("the disk was full") < text.index("What was found")


def test_an_empty_study_is_a_page_too():
    study = pressure_study()
    for part in (study.findings, study.charts, study.tables, study.method, study.members):
        part.clear()
    study.host, study.parameters, study.command_line = {}, {}, []
    document = Document(render_study(study))
    assert document.problems == []
    assert "Nothing that answers the question" in document.text


def test_members_lead_to_their_reports_wherever_the_page_and_the_study_are(tmp_path: Path):
    study = slo_study()
    study.members[0].folder = "a run, with spaces & #"
    study.members[1].folder = "../../outside"
    path = write_example_study(tmp_path / "study", study)
    for folder in ("runs/a run, with spaces & #", "outside"):
        (path / folder).mkdir(parents=True)
        (path / folder / "report.html").write_text("x")
    shutil.copytree(path / "outside", tmp_path / "outside")
    for out in (None, tmp_path / "elsewhere" / "page.html"):
        if out is not None:
            out.parent.mkdir()
        written = write_study_report(path, out)
        text = written.read_text()
        links = re.findall(r'<a href="(\./[^"]*)">', text)
        assert links == [
            ("./" if out is None else "./../study/") + "runs/a%20run%2C%20with%20spaces%20%26%20%23/report.html"
        ]
    assert "does not count" in Document(text).text
    assert "the generator was late by 1.2 ms" in Document(text).text


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path: Path):
    path = write_example_study(tmp_path / "study")
    with pytest.raises(RunDirectoryError, match="it is a folder"):
        write_study_report(path, tmp_path)
    with pytest.raises(RunDirectoryError, match="cannot write"):
        write_study_report(path, tmp_path / "no" / "such" / "page.html")


def test_report_shows_a_study_directory_as_it_shows_a_run(rackscope: Rackscope):
    path = write_example_study(rackscope.folder / "study")
    ended = rackscope("report", "study")
    assert ended.returncode == 0, ended.stderr
    assert "limited by the CPU" in ended.stdout
    assert "Report: study/report.html" in ended.stdout
    assert Document((path / "report.html").read_text()).problems == []
    ended = rackscope("report", "study", "--json", "--out", "page.html")
    shown = json.loads(ended.stdout)
    assert shown["report"] == "page.html"
    assert shown["result"]["phases"][0]["limits"] == ["cpu"]
    assert (rackscope.folder / "page.html").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged"),
        (b'{"format_version": 1', "damaged"),
        (b"\xff\xfe", "damaged"),
        (b"[]", "not a study that rackscope understands"),
        (b'{"format_version": 99}', "newer rackscope"),
        (b"{}", "not a study that rackscope understands"),
    ],
)
def test_a_damaged_study_is_one_clear_line(rackscope: Rackscope, content: bytes, words: str):
    path = write_example_study(rackscope.folder / "study")
    (path / "study.json").write_bytes(content)
    ended = rackscope("report", "study")
    assert ended.returncode == 1
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def _shorter_row(content):
    content["tables"][0]["rows"][0].pop()


def _shorter_series(content):
    content["charts"][0]["series"][0]["y"].pop()


@pytest.mark.parametrize("harm", [_shorter_row, _shorter_series])
def test_a_table_or_series_with_holes_is_damage(tmp_path: Path, harm):
    path = write_example_study(tmp_path / "study")
    content = json.loads((path / "study.json").read_text())
    harm(content)
    (path / "study.json").write_text(json.dumps(content))
    with pytest.raises(RunDirectoryError, match="not a study that rackscope understands"):
        read_study(path)


def test_a_study_whose_process_is_gone_was_killed(tmp_path: Path):
    study = pressure_study()
    study.status = "running"
    path = write_example_study(tmp_path / "study", study)
    write_study(path, study)
    assert "rackscope was killed before the study ended" in Document(write_study_report(path).read_text()).text
