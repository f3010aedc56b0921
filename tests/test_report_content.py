"""What the report says of a run: numbers with their intervals, what is missing in words, what went wrong at the top."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from rackscope.analysis.intervals import mean_interval
from rackscope.report import render
from rackscope.runs.directory import RunDirectory, RunWriter
from report_example import START_NS, Example, write_example
from report_html import Document


def report_of(path: Path, example: Example | None = None, **edits) -> Document:
    document = Document(render(write_example(path / "run", example, **edits)))
    assert document.problems == []
    return document


def test_key_figures_carry_their_interval(tmp_path: Path) -> None:
    run = write_example(tmp_path / "run")
    rows = run.results().filter(pl.col("kind") == "measure")
    interval = mean_interval(rows["throughput_operations_per_second"].to_list())
    assert interval.low is not None and interval.high is not None
    half = 50 * (interval.high - interval.low) / interval.estimate
    text = Document(render(run)).text
    assert f"Throughput {interval.estimate:,.0f} operations/s ± {half:.2g} % (95 %, n = 5)" in text


def test_one_repetition_has_no_interval_and_says_so(tmp_path: Path) -> None:
    assert "one repetition: no interval" in report_of(tmp_path, Example(repetitions=1)).text


def test_a_discarded_repetition_is_shown_but_not_counted(tmp_path: Path) -> None:
    def discard(results: pl.DataFrame) -> pl.DataFrame:
        second = pl.col("repetition") == 2
        return results.with_columns(
            discarded=pl.when(second).then(pl.lit("the CPU was throttled")).otherwise(None),
            throughput_operations_per_second=pl.when(second)
            .then(1.0)
            .otherwise(pl.col("throughput_operations_per_second")),
        )

    document = report_of(tmp_path, edit_results=discard)
    assert "left out: the CPU was throttled" in document.text
    assert "(95 %, n = 4)" in document.text
    # Its histogram is not part of the distribution: four repetitions of 20,000 reads are left.
    assert "80,000" in document.text
    assert "100,000" not in document.text.partition("Latency distribution")[2].partition("Repetitions")[0]


def test_several_stages_are_told_apart(tmp_path: Path) -> None:
    document = report_of(tmp_path, Example(stages=("lpush", "sadd"), repetitions=3))
    figures = document.text.partition("Key figures")[2].partition("Intensity")[0]
    assert "lpush" in figures
    assert "sadd" in figures
    assert [phase["label"] for phase in document.data["phases"]][2:4] == ["lpush 1", "sadd 1"]


def test_a_missing_sensor_is_named_with_its_reason(tmp_path: Path) -> None:
    document = report_of(tmp_path, Example(perf=False))
    drawn = {panel["id"] for panel in document.data["panels"]}
    assert not drawn & {"cpi", "dram-bandwidth"}
    cpi = document.text.partition("CPI cycles per instruction")[2].partition("DRAM bandwidth")[0]
    assert "Not available here" in cpi
    assert "perf_event_paranoid is 4" in cpi
    assert "CAP_PERFMON" in cpi


def test_an_untrusted_counter_is_drawn_and_marked(tmp_path: Path) -> None:
    def doubt(manifest) -> None:
        manifest.probes[-1].status = "untrusted"
        manifest.probes[-1].reason = "off by 40 % from a kernel of known bytes"

    document = report_of(tmp_path, edit_manifest=doubt)
    assert document.panel("dram-bandwidth")["series"]
    panel = document.text.partition("DRAM bandwidth bytes per second")[2]
    assert panel.strip().startswith("that the cores read from DRAM not trusted off by 40 %")


def test_what_was_never_read_is_not_drawn_as_zero(tmp_path: Path) -> None:
    unread = ['memory_bytes{kind="slab"}', 'cpu_seconds_total{state="steal"}', "load_errors_total"]
    unread += [f'pressure_stall_seconds_total{{resource="{name}",share="some"}}' for name in ("cpu", "memory", "io")]

    def blank(samples: pl.DataFrame) -> pl.DataFrame:
        return samples.with_columns([pl.lit(None, dtype=pl.Float64).alias(name) for name in unread])

    document = report_of(tmp_path, edit_samples=blank)
    assert "slab" not in {series["label"] for series in document.panel("memory")["series"]}
    assert "steal" not in {series["label"] for series in document.panel("cpu")["series"]}
    assert "pressure" not in {panel["id"] for panel in document.data["panels"]}
    assert "The samples have no pressure_stall_seconds_total." in document.text


def test_a_gap_in_a_gauge_stays_a_gap(tmp_path: Path) -> None:
    def cut(samples: pl.DataFrame) -> pl.DataFrame:
        seconds = (pl.col("timestamp_ns") - START_NS) / 1e9
        column = 'memory_bytes{kind="cached"}'
        return samples.with_columns(
            pl.when(seconds.is_between(15, 18)).then(None).otherwise(pl.col(column)).alias(column)
        )

    document = report_of(tmp_path, edit_samples=cut)
    clock = document.data["clocks"]["host"]
    values = document.series("memory", "cached")["values"]
    # The run's clock starts with its first phase, one second after the first sample.
    inside = [value for second, value in zip(clock, values, strict=True) if 14.2 < second < 16.8]
    assert inside
    assert set(inside) == {None}


def test_cpu_shares_add_up(tmp_path: Path) -> None:
    document = report_of(tmp_path)
    stack = [series["values"] for series in document.panel("cpu")["series"] if series["style"] == "area"]
    totals = [sum(values) for values in zip(*stack, strict=True) if None not in values]
    assert totals
    assert all(0 <= total <= 100.5 for total in totals)


@pytest.mark.parametrize("status", ["running", "interrupted", "failed"])
def test_a_run_that_did_not_finish_says_so_at_the_top(tmp_path: Path, status: str) -> None:
    document = report_of(tmp_path, Example(status=status, finished_repetitions=2))
    head = document.text.partition("What was found")[0]
    assert "did not finish" in head or "failed" in head
    assert len([phase for phase in document.data["phases"] if phase["kind"] == "measure"]) == 2
    assert document.panel("cpu")["series"]


def test_a_phase_that_never_ended_lasts_until_the_last_sample(tmp_path: Path) -> None:
    def kill(manifest) -> None:
        manifest.phases[-1].end_ns = None

    def cut(results: pl.DataFrame) -> pl.DataFrame:
        return results.head(results.height - 1)

    document = report_of(tmp_path, Example(status="running"), edit_manifest=kill, edit_results=cut)
    last = document.data["phases"][-1]
    assert last["label"] == "measure 5 (cut short)"
    assert last["end"] == pytest.approx(document.data["clocks"]["host"][-1], abs=0.01)


@pytest.mark.parametrize("keep", [0, 1, 2])
def test_hardly_any_samples_still_make_a_report(tmp_path: Path, keep: int) -> None:
    document = report_of(
        tmp_path,
        Example(status="running", finished_repetitions=0),
        edit_samples=lambda samples: samples.head(keep),
        edit_results=lambda results: results.head(0),
    )
    assert "No measured phase was completed" in document.text
    assert "Nothing can be said about what was measured" in document.text


def test_a_run_killed_at_once_has_a_report(tmp_path: Path) -> None:
    from report_example import manifest

    described = manifest(Example(status="running"))
    described.phases, described.probes = [], []
    writer = RunWriter.create(tmp_path / "run")
    writer.write_manifest(described)
    document = Document(render(RunDirectory.open(tmp_path / "run")))
    assert document.problems == []
    assert "did not finish" in document.text.partition("What was found")[0]
    assert document.data["panels"] == []


def test_warnings_stand_above_the_findings_gravest_first(tmp_path: Path) -> None:
    warnings = [
        {"code": "a", "severity": "note", "text": "The clock source is tsc."},
        {"code": "b", "severity": "warning", "text": "The generator lagged."},
        {"code": "c", "severity": "serious", "text": "Values were wrong."},
    ]
    text = report_of(tmp_path, Example(warnings=warnings)).text
    head = text.partition("What was found")[0]
    assert head.index("Values were wrong.") < head.index("The generator lagged.")
    assert "The clock source is tsc." not in head
    assert "The clock source is tsc." in text


def test_a_stall_survives_the_drawing_of_a_long_run(tmp_path: Path) -> None:
    """One interval of an hour without answers: neither the latency nor the hole in throughput may be averaged away."""
    example = Example(repetitions=1, repetition_seconds=3600.0, host_interval_seconds=1.0)
    slow, quantile = 2.5, 'load_response_seconds{quantile="0.999"}'

    def stall(samples: pl.DataFrame) -> pl.DataFrame:
        rows = samples.with_row_index().filter(pl.col(quantile).is_not_null())["index"]
        chosen = pl.int_range(pl.len()) == rows[7_000]
        return samples.with_columns(
            pl.when(chosen).then(slow).otherwise(pl.col(quantile)).alias(quantile),
            load_throughput_operations_per_second=pl.when(chosen)
            .then(0.0)
            .otherwise(pl.col("load_throughput_operations_per_second")),
        )

    document = report_of(tmp_path, example, edit_samples=stall)
    assert len(document.data["clocks"]["load"]) <= 900
    assert max(value for value in document.series("response-time", "p99.9")["values"] if value) == slow
    lowest, _ = document.series("throughput", "completed")["band"]
    assert min(value for value in lowest if value is not None) == 0


def test_settings_say_why_they_are_what_they_are(tmp_path: Path) -> None:
    text = report_of(tmp_path).text
    knobs = text.partition("Knobs of memcached")[2].partition("Do it again")[0]
    assert "memory 2GiB 64MiB set" in knobs
    assert "hash_power 20 16 tuned" in knobs
    assert "rackscope run memcached ycsb-b --cores 0 --client-cores 1" in text
    assert "ticks missed 0 of 372" in text


def test_the_log_is_shown_from_its_end(tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(5_000))
    text = report_of(tmp_path, Example(log_text=lines)).text
    assert "line 4999" in text
    assert "line 10 " not in text
    assert "system.log (the end of it)" in text


def test_a_chart_says_in_words_what_it_shows(tmp_path: Path) -> None:
    document = report_of(tmp_path)
    labels = [
        attributes["aria-label"]
        for tag, attributes in document.elements
        if tag == "div" and attributes.get("class") == "chart"
    ]
    assert len(labels) == 10
    assert all("Mean, measured: " in label and "–" not in label for label in labels), labels
