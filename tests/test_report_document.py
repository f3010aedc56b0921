"""The report as a file: complete, small, offline, well-formed, and safe whatever programs call themselves."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from rackscope.errors import RunDirectoryError
from rackscope.report import render, write_report
from report_example import Example, write_example
from report_html import Document

SECTIONS = (
    "findings",
    "figures",
    "intensity",
    "over-time",
    "latency",
    "repetitions",
    "configuration",
    "host",
    "notes",
)
PANELS = (
    "throughput",
    "response-time",
    "cpu",
    "memory",
    "disk",
    "network",
    "pressure",
    "processes",
    "cpi",
    "dram-bandwidth",
)
HOSTILE = "</script><script>alert('x')</script><img src=http://evil.example/x onerror=alert(1)>\"'&"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    return render(write_example(tmp_path_factory.mktemp("run") / "run"))


def test_is_well_formed(report: str) -> None:
    document = Document(report)
    assert document.problems == []
    assert len(document.identifiers) == len(set(document.identifiers))


def test_has_every_section_and_panel(report: str) -> None:
    identifiers = Document(report).identifiers
    assert [section for section in SECTIONS if section not in identifiers] == []
    assert [panel for panel in PANELS if f"panel-{panel}" not in identifiers] == []
    assert [identifier for identifier in identifiers if identifier in SECTIONS] == list(SECTIONS)


def test_says_what_was_found_before_any_number(report: str) -> None:
    text = Document(report).text
    assert text.index("What was found") < text.index("Key figures") < text.index("Intensity against ceilings")


def test_every_link_leads_to_a_place_in_the_page(report: str) -> None:
    document = Document(report)
    links = [attributes["href"] for tag, attributes in document.elements if tag == "a"]
    assert links
    assert [link for link in links if link.removeprefix("#") not in document.identifiers] == []


def test_fetches_nothing(report: str) -> None:
    document = Document(report)
    policy = [attributes for tag, attributes in document.elements if attributes.get("http-equiv")]
    assert policy == [
        {
            "http-equiv": "Content-Security-Policy",
            "content": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:",
        }
    ]
    for tag, attributes in document.elements:
        assert "src" not in attributes, tag
        assert attributes.get("href", "#").startswith(("#", "data:")), (tag, attributes)
    # The one address names SVG, and nothing asks for it.
    assert set(re.findall(r"https?://[^\s\"'<>)]+", report)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|importScripts", report)


def test_long_run_stays_below_a_megabyte(tmp_path: Path) -> None:
    example = Example(repetitions=100, repetition_seconds=5.8, load_seconds=10.0, extra_columns=230)
    run = write_example(tmp_path / "run", example)
    samples = run.samples()
    assert samples.width >= 300
    assert (samples["timestamp_ns"][-1] - samples["timestamp_ns"][0]) / 1e9 > 600
    written = write_report(run)
    assert written.stat().st_size < 1_000_000
    assert "steps of" in Document(written.read_text()).text


def test_hostile_names_and_log_lines_stay_text(tmp_path: Path) -> None:
    def edit(manifest):
        manifest.system.knobs = {HOSTILE: next(iter(manifest.system.knobs.values()))}
        manifest.system.statistics = {HOSTILE: HOSTILE}
        manifest.workload.notes = [HOSTILE]
        manifest.workload.name = HOSTILE
        manifest.host = {HOSTILE: HOSTILE, "disks": [{"model": HOSTILE}]}
        manifest.probes[0].reason = HOSTILE
        manifest.probes[0].status = "missing"
        manifest.command_line = ["rackscope", HOSTILE]
        manifest.started_at = HOSTILE

    example = Example(
        stages=(HOSTILE,),
        system_name=HOSTILE,
        log_text=HOSTILE + "\x1b[31mred\x1b[0m\x00\n",
        warnings=[{"code": "x", "severity": "serious", "text": HOSTILE}],
    )
    run = write_example(
        tmp_path / "run",
        example,
        edit_manifest=edit,
        edit_samples=lambda samples: samples.rename(
            {'disk_read_bytes_total{device="vda"}': f'disk_read_bytes_total{{device="{HOSTILE}"}}'}
        ),
    )
    text = render(run)
    document = Document(text)
    assert document.problems == []
    assert [tag for tag, _ in document.elements].count("script") == 2
    assert not any(tag == "img" or "onerror" in attributes for tag, attributes in document.elements)
    assert "<script>alert" not in text
    assert HOSTILE in document.text
    assert HOSTILE in {phase["name"] for phase in document.data["phases"]}
    assert "\x1b" not in text
    assert "\x00" not in text


def test_writes_whole_files_only(tmp_path: Path) -> None:
    run = write_example(tmp_path / "run", Example(repetitions=1))
    first = write_report(run)
    assert first == tmp_path / "run" / "report.html"
    other = write_report(run, tmp_path / "elsewhere.html")
    assert other.read_bytes() == first.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere.html", "run"]


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    run = write_example(tmp_path / "run", Example(repetitions=1))
    with pytest.raises(RunDirectoryError, match=r"cannot write .*missing.*--out"):
        write_report(run, tmp_path / "missing" / "report.html")


def test_every_chart_is_drawn_without_scripts(report: str) -> None:
    drawn = [attributes for tag, attributes in Document(report).elements if tag == "svg"]
    assert len(drawn) == len(PANELS) + 1


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_a_browser_zooms_and_reads_values(tmp_path: Path) -> None:
    written = write_report(write_example(tmp_path / "run"))
    script = """<script>
    document.getElementById("zoom-measured").click();
    const frame = document.querySelector('[data-panel="throughput"] .lines'), box = frame.getBoundingClientRect();
    frame.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2 }));
    </script></body>"""
    written.write_text(written.read_text().replace("</body>", script))
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", written.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert len(re.findall(r'viewBox="[1-9][\d.]* 0 [\d.]+ 1000"', shown)) == len(PANELS)
    assert re.search(r'legend-moment">measure \d, \d+\.\d s<', shown)
